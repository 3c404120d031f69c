"""The two models of an agent: one for turns, one for live runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.google_llm import Gemini
from google.adk.models.registry import LLMRegistry
from google.adk.utils.model_name_utils import extract_model_name

from sluicegate.engine.agents.vertex_models import is_for_vertex
from sluicegate.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from google.adk.agents.base_agent import BaseAgent

LIVE_MODEL: Final = "gemini-3.8-live"
"""The live model of an agent with a Gemini that has no live connections, with an API key."""


@dataclass(frozen=True, slots=True)
class AgentModels:
    """``text`` runs the turns of an agent, ``live`` its live runs; they may be one."""

    text: BaseLlm
    live: BaseLlm


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The models in place of those that agents have.

    ``model`` replaces every model: an instance that of live runs too, a name only if it can.
    ``live_model`` is the name of the model of live runs, ``live_models`` the same by agent.
    """

    model: BaseLlm | str | None = None
    live_model: str | None = None
    live_models: Mapping[str, str] = field(default_factory=dict)

    def choose(self, agents: Sequence[BaseAgent]) -> dict[int, AgentModels]:
        """Return the models of the agents by ``id``, without those that inherit the models.

        Raises:
            ConfigurationError: A setting names an unknown model or agent.
        """
        named = [agent for agent in agents if isinstance(agent, LlmAgent)]
        unknown = set(self.live_models) - {agent.name for agent in named}
        if unknown:
            raise ConfigurationError(
                f"The setting live_models names {min(unknown)!r}, but no agent with a model has "
                "this name."
            )
        return {id(agent): self._models_of(agent) for agent in named if self._is_chosen(agent)}

    def _is_chosen(self, agent: LlmAgent) -> bool:
        return bool(agent.model) or agent.name in self.live_models or agent_above(agent) is None

    def _models_of(self, agent: LlmAgent) -> AgentModels:
        if isinstance(self.model, BaseLlm):
            return AgentModels(self.model, self.model)
        declared = _declared_of(agent, self.model)
        given = _named(self.model, declared.text, "model") if self.model else None
        live_name = self.live_models.get(agent.name, self.live_model)
        return AgentModels(
            _text_model(given, declared.text),
            _named(live_name, declared.live, "live_model")
            if live_name
            else _live_model(given, declared.live),
        )


def agent_above(agent: BaseAgent) -> LlmAgent | None:
    """Return the agent whose model an agent without one inherits."""
    above = agent.parent_agent
    while above is not None and not isinstance(above, LlmAgent):
        above = above.parent_agent
    return above


def is_live_only(model: BaseLlm) -> bool:
    """Whether a model is a Gemini that answers live connections alone.

    Google: such a model answers ``generateContent`` with 404, and any other a connection with 1008.
    """
    name = _gemini_name(model)
    return "live" in name.split("-") or "native-audio" in name


def _declared(agent: LlmAgent) -> AgentModels:
    """Return the models that ADK would use."""
    if not agent.model:
        above = agent_above(agent)
        # ADK: it has other defaults for turns than for live runs.
        return (
            AgentModels(agent.canonical_model, agent.canonical_live_model)
            if above is None
            else _declared(above)
        )
    model = agent.model
    resolved = LLMRegistry.new_llm(model) if isinstance(model, str) else model
    return AgentModels(resolved, resolved)


def _declared_of(agent: LlmAgent, given: str | None) -> AgentModels:
    """Return the models that ADK would use; those of ``given`` if it knows none of the agent's."""
    try:
        return _declared(agent)
    except ValueError:
        if given is None:
            raise ConfigurationError(
                f"The agent {agent.name} has the model {agent.model!r}, which ADK does not know."
            ) from None
        model = _named(given, None, "model")
        return AgentModels(model, model)


def _text_model(given: BaseLlm | None, declared: BaseLlm) -> BaseLlm:
    for model in (given, declared):
        if model is not None and not is_live_only(model):
            return model
    default = LlmAgent(name="default").canonical_model
    return _named(default.model, declared, "model") if isinstance(default, Gemini) else default


def _live_model(given: BaseLlm | None, declared: BaseLlm) -> BaseLlm:
    models = [model for model in (given, declared) if model is not None]
    for model in models:
        if is_live_only(model) or (not _gemini_name(model) and _connects(model)):
            return model
    gemini = next((model for model in models if _gemini_name(model)), None)
    # The words of a user go to no other provider than the author's.
    return models[0] if gemini is None else _named(_default_live(gemini), gemini, "live_model")


def _default_live(model: BaseLlm) -> str:
    return LlmAgent.DEFAULT_LIVE_MODEL if is_for_vertex(model) else LIVE_MODEL


def _named(name: str, like: BaseLlm | None, setting: str) -> BaseLlm:
    """Return the model of a name; two Gemini models have the same credentials and backend."""
    try:
        kind = LLMRegistry.resolve(name)
    except ValueError:
        raise ConfigurationError(
            f"The setting {setting} names {name!r}, which is no model that ADK knows."
        ) from None
    if kind is Gemini and like is not None and _gemini_name(like):
        return like.model_copy(update={"model": name})
    return LLMRegistry.new_llm(name)


def _gemini_name(model: BaseLlm) -> str:
    """Return the name of a Gemini, "" for other models."""
    name = extract_model_name(model.model)
    return name if isinstance(model, Gemini) and name.startswith("gemini-") else ""


def _connects(model: BaseLlm) -> bool:
    return type(model).connect is not BaseLlm.connect
