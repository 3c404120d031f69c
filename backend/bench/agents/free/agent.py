"""Without tools, so that nothing has to wait."""

from google.adk.agents.llm_agent import LlmAgent

from bench.prepared_model import PreparedModel

root_agent = LlmAgent(name="free", model=PreparedModel())
