"""An agent on Google's own client, connected to `bench.servers.live_api`."""

import os

from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.google_llm import Gemini
from google.adk.tools.function_tool import FunctionTool

from bench.servers.live_api import API_URL, KEY, MODEL


def pay(amount: float) -> dict[str, float]:
    """Pay an amount of money."""
    return {"paid": amount}


root_agent = LlmAgent(
    name="google",
    model=Gemini(model=MODEL, base_url=os.environ[API_URL], client_kwargs={"api_key": KEY}),
    tools=[FunctionTool(pay, require_confirmation=True)],
)
