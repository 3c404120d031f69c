"""The demo agent: with a scripted model, or with a Gemini model if there is an API key."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from google.adk.agents.llm_agent import LlmAgent
from google.adk.models import BaseLlm

from sluicegate.demo.tools import REPORT_SECONDS, demo_tools
from sluicegate.replay import ScriptedModel

NAME: Final = "sluicegate_demo"
GEMINI_MODEL: Final = "gemini-3.5-flash"
KEY_VARIABLE: Final = "GOOGLE_API_KEY"
SCENARIOS: Final = Path(__file__).with_name("scenarios.yaml")

_INSTRUCTION: Final = """\
You are the demo agent of a server that asks a person before some of your tools run.
Use the tools when they help, several in one step where they do not depend on each other.
Do not ask for permission yourself: the server does. When a call was refused, say so and stop.
Answer in a few plain sentences."""


def build_agent(
    environment: Mapping[str, str], *, report_seconds: float = REPORT_SECONDS
) -> LlmAgent:
    """Make the demo agent; a ``GOOGLE_API_KEY`` in the environment selects the Gemini model."""
    model: str | BaseLlm = GEMINI_MODEL
    if not environment.get(KEY_VARIABLE):
        model = ScriptedModel.from_file(SCENARIOS, root=NAME)
    return LlmAgent(
        name=NAME,
        description="Shows what happens when tools wait for a person's yes.",
        model=model,
        instruction=_INSTRUCTION,
        tools=[*demo_tools(report_seconds)],
    )


root_agent = build_agent(os.environ)
