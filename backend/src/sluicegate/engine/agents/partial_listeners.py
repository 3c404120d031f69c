"""Who listens to partial responses on their way through ADK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from google.adk.agents.llm_agent import LlmAgent
from google.adk.planners.built_in_planner import BuiltInPlanner
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.workflow import BaseNode

from sluicegate.engine.agents.tree_walk import children_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.adk.apps.app import App

_HEAR: Final = ("on_event_callback", "after_model_callback")
_NO_WAY: Final = frozenset({"model_config", "model_post_init", "config_type", "_abc_impl"})
"""What pydantic and ``abc`` put into every class."""


def unheard_agents(app: App, own: BasePlugin) -> frozenset[str]:
    """The names of agents whose partial text nobody sees between the model and the turn.

    Heard are all agents where a plugin other than ``own`` sees events or responses; else one that
    has an ``after_model_callback``, a planner that rewrites, or methods of its own; and all below
    a node whose class is not ADK's, since it may look at what they say.
    """
    if any(_hears(plugin) for plugin in app.plugins if plugin is not own):
        return frozenset()
    root = app.root_agent
    if not isinstance(root, BaseNode):
        return frozenset()
    unheard, heard = set[str](), set[str]()
    for agent, is_heard in _agents(root, is_heard=False, seen=set()):
        (heard if is_heard else unheard).add(agent.name)
    return frozenset(unheard - heard)


def _hears(plugin: BasePlugin) -> bool:
    return any(
        getattr(getattr(plugin, name), "__func__", None) is not getattr(BasePlugin, name)
        for name in _HEAR
    )


def _agents(
    node: BaseNode, *, is_heard: bool, seen: set[tuple[int, bool]]
) -> Iterator[tuple[LlmAgent, bool]]:
    if (id(node), is_heard) in seen:
        return
    seen.add((id(node), is_heard))
    below = is_heard or _has_ways_of_its_own(node)
    if isinstance(node, LlmAgent):
        yield node, below or _listens(node)
    for child in children_of(node):
        yield from _agents(child, is_heard=below, seen=seen)


def _listens(agent: LlmAgent) -> bool:
    if agent.canonical_after_model_callbacks:
        return True
    if agent.planner is None:
        return False
    rewriting = getattr(type(agent.planner), "process_planning_response", None)
    return rewriting is not BuiltInPlanner.process_planning_response


def _has_ways_of_its_own(node: BaseNode) -> bool:
    """Whether a class that is not ADK's changes what the ADK class below it does."""
    line = type(node).__mro__
    at, of_adk = next((at, cls) for at, cls in enumerate(line) if _is_adks(cls))
    return any(
        hasattr(of_adk, name) and name not in _NO_WAY and not name.startswith("__")
        for cls in line[:at]
        for name in vars(cls)
    )


def _is_adks(cls: type) -> bool:
    return cls.__module__.startswith("google.adk.")
