"""An agent with one gated tool, so that every answer may be buffered."""

from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.function_tool import FunctionTool

from bench.prepared_model import PreparedModel


def transfer(amount: float) -> dict[str, float]:
    """Transfer an amount of money."""
    return {"transferred": amount}


root_agent = LlmAgent(
    name="gated",
    model=PreparedModel(),
    tools=[FunctionTool(transfer, require_confirmation=True)],
)
