"""Tools that the page sends along: for the turn that its request begins, and by allow-list alone.

Rule 1: the setting ``page_tools`` names what a page may bring; none of these names is a tool of the
server, and no such tool asks for approval. Rule 2: what the page says of a tool lives as long as
the turn; that its calls run in the browser follows from the name, so history needs no page.
"""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from google.adk.agents.llm_agent import LlmAgent

from sluicegate.adk_private import UncachedToolset
from sluicegate.core.signals import ToolFacts
from sluicegate.engine.turn_context import CURRENT_TURN
from sluicegate.errors import ConfigurationError, Malformed
from sluicegate.tools.client_tools import ClientTool, client_tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from google.adk.agents.readonly_context import ReadonlyContext
    from google.adk.apps.app import App
    from google.adk.tools.base_tool import BaseTool
    from google.adk.workflow import BaseNode

    from sluicegate.engine.agents.survey import AgentSurvey
    from sluicegate.wire.requests import PageTool

_RUNS_IN_THE_BROWSER: Final = ToolFacts("client", editable=False, rememberable=False)
_ADKS: Final = frozenset({"transfer_to_agent", "set_model_response"})
"""Names that ADK itself gives to tools."""


class PageToolset(UncachedToolset):
    """What the page of the running turn brought."""

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """The tools of the turn's request."""
        turn = CURRENT_TURN.get()
        return [] if turn is None else [*turn.page_tools]


def attach_page_tools(app: App, names: tuple[str, ...], found: AgentSurvey) -> AgentSurvey:
    """Let the root agent of the engine's copy call what the page brings.

    Returns:
        The survey, which now knows these names.
    """
    root = app.root_agent
    if isinstance(root, LlmAgent):
        # ADK: of two tools of the same name the later one runs; the agent's own must win.
        root.tools = [PageToolset(), *root.tools]
    late = found.late

    def facts(name: str) -> ToolFacts | None:
        if name in names:
            return _RUNS_IN_THE_BROWSER
        return None if late is None else late(name)

    return replace(found, late=facts)


def refuse_page_tools(names: Sequence[str], found: AgentSurvey, root: BaseNode) -> None:
    """Refuse names that no page may take, and a root agent that could not call them.

    Raises:
        ConfigurationError: One is a tool of the agent or of ADK, or no name of a tool; or the root
            is no agent with a model.
    """
    if names and not isinstance(root, LlmAgent):
        raise ConfigurationError(
            f"The setting page_tools needs a root agent with a model; {root.name!r} has none."
        )
    taken = {tool.name for tools in found.tools.values() for tool in tools} | _ADKS
    for name in names:
        client_tool(name, "", {"type": "object"})
        if name in taken:
            raise ConfigurationError(
                f"The setting page_tools names {name!r}, which is a tool of the server; "
                "give the page's tool another name."
            )


def offered(tools: Iterable[PageTool]) -> tuple[ClientTool, ...]:
    """The page's tools as ADK takes them.

    Raises:
        Malformed: One has parameters that are no JSON schema.
    """
    return tuple(_offered(tool) for tool in tools)


def _offered(tool: PageTool) -> ClientTool:
    # Its validator is large, and most servers never need it.
    if not importlib.import_module("sluicegate.core.argument_schema").is_schema(tool.schema):
        raise Malformed(
            f"The parameters of the tool {tool.name} of the page are no JSON schema; send one."
        )
    return client_tool(tool.name, tool.description, tool.schema)
