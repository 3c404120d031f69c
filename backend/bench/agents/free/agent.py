"""Without tools, so that nothing has to wait."""

import os

from google.adk.agents.llm_agent import LlmAgent

from sluicegate.replay import ScriptedModel

root_agent = LlmAgent(name="free", model=ScriptedModel.from_file(os.environ["BENCH_SCRIPT"]))
