"""Tools that a page declares in a request: valid for its turn, and only if allow-listed.

Rule 1: the setting ``page_tools`` lists the names that a page may declare; none of them is a tool
of the server, and no such tool requires approval. Rule 2: a declaration lasts as long as the turn;
that the calls run in the browser follows from the name, so history needs no page.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from google.adk.agents.llm_agent import LlmAgent

from sluicegate.adk_private import UncachedToolset
from sluicegate.core.bounded_schema_structure import read_structure
from sluicegate.core.tool_facts import ToolFacts
from sluicegate.engine.current_guard import CURRENT_GUARD
from sluicegate.errors import ConfigurationError, Malformed, UnusableSchema
from sluicegate.tools.client_tools import ClientTool, client_tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from google.adk.agents.readonly_context import ReadonlyContext
    from google.adk.apps.app import App
    from google.adk.tools.base_tool import BaseTool
    from google.adk.workflow import BaseNode

    from sluicegate.engine.agents.survey import AgentSurvey
    from sluicegate.wire.requests import PageTool

_CLIENT_SIDE: Final = ToolFacts("client", editable=False, rememberable=False)
_ADK_TOOLS: Final = frozenset({"transfer_to_agent", "set_model_response"})
"""Names that ADK itself gives to tools."""


class PageToolset(UncachedToolset):
    """The tools that the request of the running turn declares."""

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """Return the page's tools of the current turn, none outside turns."""
        guard = CURRENT_GUARD.get()
        return [] if guard is None else [*guard.page_tools]


def attach_page_tools(app: App, names: tuple[str, ...], survey: AgentSurvey) -> AgentSurvey:
    """Let the root agent of the engine's copy call the page's tools.

    Returns:
        The survey with the facts of these names.
    """
    root = app.root_agent
    if isinstance(root, LlmAgent):
        # ADK: of two tools of the same name the later one runs; the agent's own must win.
        root.tools = [PageToolset(), *root.tools]
    late = survey.late

    def facts(name: str) -> ToolFacts | None:
        if name in names:
            return _CLIENT_SIDE
        return None if late is None else late(name)

    return replace(survey, late=facts)


def refuse_page_tools(names: Sequence[str], survey: AgentSurvey, root: BaseNode) -> None:
    """Refuse names that no page may use, and a root agent that cannot call tools.

    Raises:
        ConfigurationError: A name is that of a tool of the agent or of ADK, or not valid; or the
            root is not an agent with a model.
    """
    if names and not isinstance(root, LlmAgent):
        raise ConfigurationError(
            f"The setting page_tools needs a root agent with a model; {root.name!r} has none."
        )
    reserved = {tool.name for tools in survey.tools.values() for tool in tools} | _ADK_TOOLS
    for name in names:
        client_tool(name, "", {"type": "object"})
        if name in reserved:
            raise ConfigurationError(
                f"The setting page_tools names {name!r}, which is a tool of the server; "
                "give the page's tool another name."
            )


def convert_page_tools(tools: Iterable[PageTool]) -> tuple[ClientTool, ...]:
    """Convert the page's tools into tools of ADK.

    Raises:
        Malformed: The parameters of a tool are not a JSON schema, or not a bounded one.
    """
    return tuple(_convert(tool) for tool in tools)


def _convert(tool: PageTool) -> ClientTool:
    try:
        read_structure(tool.schema)
    except UnusableSchema as error:
        raise Malformed(
            f"The parameters of the tool {tool.name!r} of the page cannot be used: {error}; "
            "send a JSON schema."
        ) from None
    return client_tool(tool.name, tool.description, tool.schema)
