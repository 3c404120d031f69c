"""An agent with one gated tool and a model of 30 deltas a second."""

import os

from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext

from bench.paced_model import PacedModel
from bench.script import EFFECTS


def transfer(amount: float, tool_context: ToolContext) -> dict[str, float]:
    """Transfer an amount of money."""
    if path := os.environ.get(EFFECTS):
        # One write that appends is not mixed with that of another process.
        with open(path, "a", encoding="utf-8") as effects:
            effects.write(f"{tool_context.session.id} {tool_context.function_call_id}\n")
    return {"transferred": amount}


root_agent = LlmAgent(
    name="paying",
    model=PacedModel(),
    tools=[FunctionTool(transfer, require_confirmation=True)],
)
