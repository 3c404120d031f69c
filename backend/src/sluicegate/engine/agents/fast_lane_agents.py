"""Agents whose partial responses no plugin or callback of the user observes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.planners.built_in_planner import BuiltInPlanner
from google.adk.plugins.base_plugin import BasePlugin

from sluicegate.engine.agents.agent_tree import children_of
from sluicegate.engine.agents.survey import root_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.workflow import BaseNode

_OBSERVING_CALLBACKS: Final = ("on_event_callback", "after_model_callback")
_NOT_OVERRIDDEN: Final = frozenset({"model_config", "model_post_init", "config_type", "_abc_impl"})
"""Names that pydantic and ``abc`` add to every class."""


def unobserved_agents(target: BaseAgent | BaseNode | App) -> frozenset[str]:
    """Return the names of agents whose partial text only the turn sees on its way through ADK.

    Observed are all agents if a plugin of the App receives events or responses; otherwise an agent
    with an ``after_model_callback``, with a planner that rewrites responses, or whose class
    overrides methods of ADK's; and every agent below a node whose class does so.
    """
    if isinstance(target, App) and any(map(_observes, target.plugins)):
        return frozenset()
    observed, unobserved = set[str](), set[str]()
    for agent, is_observed in _agents(root_of(target), is_observed=False, seen=set()):
        (observed if is_observed else unobserved).add(agent.name)
    return frozenset(unobserved - observed)


def _observes(plugin: BasePlugin) -> bool:
    return any(
        getattr(getattr(plugin, name), "__func__", None) is not getattr(BasePlugin, name)
        for name in _OBSERVING_CALLBACKS
    )


def _agents(
    node: BaseNode, *, is_observed: bool, seen: set[tuple[int, bool]]
) -> Iterator[tuple[LlmAgent, bool]]:
    if (id(node), is_observed) in seen:
        return
    seen.add((id(node), is_observed))
    below = is_observed or _overrides_adk(node)
    if isinstance(node, LlmAgent):
        yield node, below or _rewrites_responses(node)
    for child in children_of(node):
        yield from _agents(child, is_observed=below, seen=seen)


def _rewrites_responses(agent: LlmAgent) -> bool:
    if agent.canonical_after_model_callbacks:
        return True
    if agent.planner is None:
        return False
    process = getattr(type(agent.planner), "process_planning_response", None)
    return process is not BuiltInPlanner.process_planning_response


def _overrides_adk(node: BaseNode) -> bool:
    """Whether a class that is not part of ADK overrides a method of its base class in ADK."""
    bases = type(node).__mro__
    index, adk_base = next(
        (index, cls) for index, cls in enumerate(bases) if cls.__module__.startswith("google.adk.")
    )
    return any(
        hasattr(adk_base, name) and name not in _NOT_OVERRIDDEN and not name.startswith("__")
        for cls in bases[:index]
        for name in vars(cls)
    )
