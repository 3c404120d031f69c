"""An agent with one tool that returns a new image on each call."""

import os

from google.adk.agents.llm_agent import LlmAgent
from google.genai import types

from bench.prepared_model import PreparedModel
from bench.script import PICTURE
from sluicegate import ToolResult


def draw() -> ToolResult:
    """Draw."""
    data = PICTURE + os.urandom(64 * 1024)
    return ToolResult(["A picture.", types.Blob(data=data, mime_type="image/png")])


root_agent = LlmAgent(name="pictured", model=PreparedModel(), tools=[draw])
