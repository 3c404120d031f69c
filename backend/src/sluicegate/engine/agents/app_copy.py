"""The App that the engine runs: the copy of the agent tree, the plugins, the compaction."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from google.adk.apps.app import App, ResumabilityConfig
from google.adk.apps.llm_event_summarizer import LlmEventSummarizer
from google.adk.models.registry import LLMRegistry
from pydantic import ValidationError

from sluicegate.adk_private import prompt_of
from sluicegate.engine.agents.agent_copy import NO_CHANGES, CopyChanges, TreeCopy
from sluicegate.engine.agents.survey import root_of
from sluicegate.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.apps.app import EventsCompactionConfig
    from google.adk.models.base_llm import BaseLlm
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.workflow import BaseNode


def build_app(
    target: BaseAgent | BaseNode | App,
    plugins_first: Sequence[BasePlugin],
    plugins_last: Sequence[BasePlugin] = (),
    changes: CopyChanges = NO_CHANGES,
) -> App:
    """Build the App to run from the user's agent, node or App.

    Args:
        target: The user's agent; the App is named as the user's App, else as the root.
        plugins_first: Plugins before the user's, which are not copied since they may hold
            connections and counters.
        plugins_last: Plugins after the user's.
        changes: The differences between the tree and its copy.

    ``is_resumable`` is set: without it ADK drops later agents of a SequentialAgent and branches of
    a ParallelAgent after an approval. Agents that a function builds or reaches by itself are not
    copied and keep their models and tools.

    Raises:
        ConfigurationError: The root's name cannot be the name of an App, or two plugins have the
            same name.
    """
    root = TreeCopy(changes).tree(root_of(target))
    resumable = _resumable()
    if isinstance(target, App):
        fields = {
            "root_agent": root,
            "plugins": _distinct([*plugins_first, *target.plugins, *plugins_last]),
            "resumability_config": resumable,
            "events_compaction_config": _compaction(
                target.events_compaction_config, changes.models.model
            ),
        }
        return target.model_copy(update=fields)
    try:
        return App(
            name=root.name,
            root_agent=root,
            plugins=_distinct([*plugins_first, *plugins_last]),
            resumability_config=resumable,
        )
    except ValidationError as error:
        message = (
            f"The name {root.name!r} of the root agent cannot be the name of an App: wrap it as "
            "App(name=..., root_agent=...) with a name of letters, digits, _ and -."
        )
        raise ConfigurationError(message) from error


def _resumable() -> ResumabilityConfig:
    """Return the setting without ADK's warning, since users have not chosen it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"\[EXPERIMENTAL\] ResumabilityConfig", UserWarning)
        return ResumabilityConfig(is_resumable=True)


def _distinct(plugins: Sequence[BasePlugin]) -> list[BasePlugin]:
    seen: set[str] = set()
    for plugin in plugins:
        if plugin.name in seen:
            message = f"Two plugins have the name {plugin.name!r}; give the App's own another name."
            raise ConfigurationError(message)
        seen.add(plugin.name)
    return list(plugins)


def _compaction(
    config: EventsCompactionConfig | None, model: BaseLlm | str | None
) -> EventsCompactionConfig | None:
    if config is None or model is None or not isinstance(config.summarizer, LlmEventSummarizer):
        return config
    llm = LLMRegistry.new_llm(model) if isinstance(model, str) else model
    summarizer = LlmEventSummarizer(llm, prompt_of(config.summarizer))
    return config.model_copy(update={"summarizer": summarizer})
