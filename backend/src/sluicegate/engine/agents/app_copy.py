"""The App the engine runs: a copy of the user's, so that theirs stays exactly as it was."""

from __future__ import annotations

import sys
import warnings
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from google.adk.apps.app import App, ResumabilityConfig
from google.adk.apps.llm_event_summarizer import LlmEventSummarizer
from google.adk.models.registry import LLMRegistry
from pydantic import ValidationError

from sluicegate.engine.agents.agent_tree import root_of
from sluicegate.engine.agents.tree_copy import TreeCopy
from sluicegate.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.apps.app import EventsCompactionConfig
    from google.adk.models.base_llm import BaseLlm
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.workflow import BaseNode

_A2A_AGENT: Final = "google.adk.agents.remote_a2a_agent"


def build_app(
    target: BaseAgent | BaseNode | App,
    plugins_first: Sequence[BasePlugin],
    *,
    model: BaseLlm | str | None,
    client_tools: Collection[str] = (),
    wrap_model: Callable[[BaseLlm], BaseLlm] | None = None,
) -> App:
    """Build the App to run from the user's agent, node or App.

    ``plugins_first`` stand before the user's plugins, which stay the same objects (they may hold
    connections and counters). ``is_resumable`` is set: without it ADK drops later agents of a
    SequentialAgent and branches of a ParallelAgent after an approval. With ``model`` every model
    of the tree is replaced, in ``AgentTool`` and Workflow graphs too; so is the model that
    summarises for event compaction. Tools that ``client_tools`` names become client-side tools of
    the same declaration. Agents that a function builds or reaches by itself are not copied: they
    keep their model and their tools.

    ``wrap_model`` stands around every model of the tree.

    The name of the App is the user's, else the root's name.

    Raises:
        ConfigurationError: The root's name cannot be the name of an App, or two plugins have the
            same name.
    """
    _remember_missing_a2a()
    copies = TreeCopy(model=model, client_tools=client_tools, wrap_model=wrap_model)
    root = copies.tree(root_of(target))
    resumable = _resumable()
    if isinstance(target, App):
        changes = {
            "root_agent": root,
            "plugins": _distinct([*plugins_first, *target.plugins]),
            "resumability_config": resumable,
            "events_compaction_config": _compaction(target.events_compaction_config, model),
        }
        return target.model_copy(update=changes)
    try:
        return App(
            name=root.name,
            root_agent=root,
            plugins=_distinct(plugins_first),
            resumability_config=resumable,
        )
    except ValidationError as error:
        message = (
            f"The name {root.name!r} of the root agent cannot be the name of an App: wrap it as "
            "App(name=..., root_agent=...) with a name of letters, digits, _ and -."
        )
        raise ConfigurationError(message) from error


def _remember_missing_a2a() -> None:
    """Let an import that cannot succeed fail at once.

    ADK: every run of a node tries to import ``RemoteA2aAgent``; without the a2a package Python
    executes the same modules each time until one fails, for up to 8 ms.
    """
    if find_spec("a2a") is None:
        sys.modules.setdefault(_A2A_AGENT, None)  # type: ignore[arg-type]  # None is import's "no"


def _resumable() -> ResumabilityConfig:
    """ADK calls the class experimental; the choice is this module's, so users are not warned."""
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
    summarizer = LlmEventSummarizer(llm, config.summarizer._prompt_template)
    return config.model_copy(update={"summarizer": summarizer})
