"""An agent whose model answers immediately with audio."""

from google.adk.agents.llm_agent import LlmAgent

from sluicegate.replay import ScriptedModel

_ANSWER = {"parts": [{"audio": {"tone_hz": 440, "seconds": 0.04}}]}

root_agent = LlmAgent(
    name="spoken",
    model=ScriptedModel.from_data({"scenarios": [{"match": ".", "responses": [_ANSWER]}]}),
)
