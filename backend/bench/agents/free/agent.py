"""An agent without tools, so that no text is buffered."""

from google.adk.agents.llm_agent import LlmAgent

from bench.prepared_model import PreparedModel

root_agent = LlmAgent(name="free", model=PreparedModel())
