"""With one gated tool, so that every answer may have to wait."""

import os

from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.function_tool import FunctionTool

from sluicegate.replay import ScriptedModel


def transfer(amount: float) -> dict[str, float]:
    """Transfer an amount of money."""
    return {"transferred": amount}


root_agent = LlmAgent(
    name="gated",
    model=ScriptedModel.from_file(os.environ["BENCH_SCRIPT"]),
    tools=[FunctionTool(transfer, require_confirmation=True)],
)
