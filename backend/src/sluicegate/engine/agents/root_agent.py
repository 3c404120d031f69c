"""Facts about a root agent."""

from __future__ import annotations

from google.adk.agents.llm_agent import LlmAgent


def last_speaker_of(root: object) -> str | None:
    """The root LlmAgent: ADK runs it until its final response, and nothing after it.

    A subclass may go on, and an agent with a code executor calls its model again.
    """
    if type(root) is LlmAgent and root.code_executor is None:
        return root.name
    return None


def model_name_of(root: object) -> str:
    """The name of the first model of a tree, for responses without a model version (T3)."""
    model = getattr(root, "model", None)
    if model:
        return model if isinstance(model, str) else str(getattr(model, "model", type(model)))
    below = getattr(root, "sub_agents", None) or getattr(root, "nodes", None) or ()
    return next((name for agent in below if (name := model_name_of(agent))), "")
