from __future__ import annotations

from google.adk.models.google_llm import Gemini

from sluicegate.demo.agent import GEMINI_MODEL, build_agent
from sluicegate.replay import ScriptedModel


def test_without_a_key_the_model_is_scripted() -> None:
    for environment in ({}, {"GOOGLE_API_KEY": ""}):
        agent = build_agent(environment)
        assert isinstance(agent.canonical_model, ScriptedModel)
        assert agent.canonical_model.root == agent.name


def test_with_a_key_the_model_is_gemini() -> None:
    model = build_agent({"GOOGLE_API_KEY": "key"}).canonical_model
    assert isinstance(model, Gemini)
    assert model.model == GEMINI_MODEL
