"""An agent whose tool is approved by the holders of a role."""

from google.adk.agents.llm_agent import LlmAgent

from bench.prepared_model import PreparedModel
from sluicegate.tools import Role, gated


def transfer(amount: float) -> dict[str, float]:
    """Transfer an amount of money."""
    return {"transferred": amount}


root_agent = LlmAgent(
    name="shared", model=PreparedModel(), tools=[gated(transfer, approvers=Role("finance"))]
)
