"""Tools of one chat: what the application's function ``tools_for`` returns for it.

Rule 1: the function is called when a run starts, once per turn; a run whose tools cannot be had
fails before its model is called. Rule 2: what a chat's tools are is known by the chat, for their
cards and for its history; the history of a chat that this process has not run calls the function.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.workflow import BaseNode

from sluicegate.adk_private import UncachedToolset
from sluicegate.engine.agents.agent_copy import as_named
from sluicegate.engine.agents.agent_tree import children_of
from sluicegate.engine.agents.approval_requirements import requirement_of, toolset_requirement
from sluicegate.engine.agents.list_toolset_tools import list_tools
from sluicegate.engine.agents.mcp_declaration_limits import bounded_tools_of
from sluicegate.engine.agents.read_tool_facts import as_tool, facts_of, unusable_pattern_of
from sluicegate.engine.agents.survey import GatedTool
from sluicegate.engine.agents.tool_collector import SurveyedTool
from sluicegate.engine.agents.unsupported_agents import tool_refusals
from sluicegate.engine.current_guard import CURRENT_GUARD
from sluicegate.engine.describe_exceptions import describe
from sluicegate.errors import ConfigurationError
from sluicegate.tools.approval_terms import terms_of

if TYPE_CHECKING:
    from google.adk.agents.readonly_context import ReadonlyContext
    from google.adk.apps.app import App
    from google.adk.tools.base_tool import BaseTool

    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.engine.agents.approval_requirements import ApprovalRequirement, ToolNames
    from sluicegate.engine.agents.survey import AgentSurvey
    from sluicegate.engine.agents.tool_collector import AgentPosition
    from sluicegate.engine.hooks import ToolsFor

logger = logging.getLogger("sluicegate")

_CHATS: Final = 1_000
"""Chats whose tools are known; more cost another call of ``tools_for``."""

_SECONDS: Final = 30.0
"""Seconds within which ``tools_for`` returns and its toolsets are listed."""

_WHY: Final = "Tools of one chat may ask; tools_for returns them when a turn starts."


class ChatTools:
    """The tools of each chat, by the function of the application.

    ``survey`` is that of the agent, whose tools keep their names.
    """

    def __init__(self, tools_for: ToolsFor, survey: AgentSurvey, names: ToolNames) -> None:
        self._tools_for = tools_for
        self._survey = survey
        self._names = names
        self._reserved = {tool.name for tools in survey.tools.values() for tool in tools}
        self._tools: OrderedDict[ChatKey, dict[str, list[_ChatTool]]] = OrderedDict()
        self._toolsets: dict[ChatKey, list[BaseToolset]] = {}

    async def load(self, chat: ChatKey) -> None:
        """Call the function for a chat.

        Raises:
            ConfigurationError: It returns what an agent cannot have.
            Exception: Whatever it raises.
        """
        async with asyncio.timeout(_SECONDS):
            returned: Any = self._tools_for(chat.user, chat.chat)
            if inspect.isawaitable(returned):
                returned = await returned
            root = self._survey.agents[0] if self._survey.agents else ""
            by_agent = returned if isinstance(returned, Mapping) else {root: returned}
            entries = [(agent, entry) for agent in by_agent for entry in by_agent[agent] or ()]
            toolsets = [entry for _, entry in entries if isinstance(entry, BaseToolset)]
            earlier = self._toolsets.get(chat, [])
            self._toolsets[chat] = [*earlier, *toolsets]
            found: dict[str, list[_ChatTool]] = {}
            for agent, entry in entries:
                found.setdefault(agent, []).extend(await self._surveyed(agent, entry))
        refused = tool_refusals([tool.surveyed for tools in found.values() for tool in tools])
        if refused:
            raise ConfigurationError(refused[0])
        self._tools[chat] = found
        self._tools.move_to_end(chat)
        self._toolsets[chat] = toolsets
        await self._close_unused(earlier)
        if len(self._tools) > _CHATS:
            oldest, _ = self._tools.popitem(last=False)
            await self._close_unused(self._toolsets.pop(oldest, []))

    async def close(self) -> None:
        """Close the toolsets of all chats."""
        held = [toolset for toolsets in self._toolsets.values() for toolset in toolsets]
        self._toolsets.clear()
        await self._close_unused(held)

    async def _close_unused(self, toolsets: Sequence[BaseToolset]) -> None:
        """Close toolsets that no chat has any more, each once."""
        held = {id(each) for of_chat in self._toolsets.values() for each in of_chat}
        for toolset in {id(each): each for each in toolsets if id(each) not in held}.values():
            try:
                await toolset.close()
            except Exception as error:  # noqa: BLE001 - a toolset may fail in any way
                logger.warning("a toolset of tools_for was not closed: %s", describe(error))

    async def load_once(self, chat: ChatKey) -> None:
        """Call the function for the history of a chat that is not known; errors are logged."""
        if chat in self._tools:
            return
        try:
            await self.load(chat)
        except Exception as error:  # noqa: BLE001 - it is the user's and may raise anything
            logger.warning("tools_for failed chat=%s %s", chat.chat, describe(error))

    def of_agent(self, chat: ChatKey, agent: str) -> list[BaseTool]:
        """Return the tools of an agent in a chat."""
        return [each.tool for each in self._tools.get(chat, {}).get(agent, ())]

    def find(self, chat: ChatKey, name: str) -> SurveyedTool | None:
        """Return the tool of a chat that has a name."""
        tools = (tool for of_agent in self._tools.get(chat, {}).values() for tool in of_agent)
        return next((each.surveyed for each in tools if each.tool.name == name), None)

    async def _surveyed(self, agent: str, entry: Any) -> list[_ChatTool]:
        position = self._survey.positions.get(agent)
        if position is None:
            raise ConfigurationError(
                f"tools_for returns tools of {agent!r}, which is no agent with a model; name one."
            )
        if isinstance(entry, BaseNode | AgentTool):
            raise ConfigurationError(
                f"tools_for returns the agent {entry.name!r}; give it to the agent that calls it."
            )
        inherited = position.inherited
        if isinstance(entry, BaseToolset):
            inherited = toolset_requirement(entry) or inherited
            tools = await list_tools(entry, bounded_tools_of(entry))
        else:
            tools = [as_tool(entry)]
        return [
            self._described(position, as_named(tool, tool.name, self._names), inherited)
            for tool in tools
            if self._is_offered(agent, tool)
        ]

    def _described(
        self, position: AgentPosition, tool: BaseTool, inherited: ApprovalRequirement | None
    ) -> _ChatTool:
        requirement = requirement_of(tool, self._names, inherited=inherited)
        facts = facts_of(tool, requirement.kind, self._names)
        surveyed = SurveyedTool(
            position.path, tool.name, requirement, facts, position.position, terms=terms_of(tool)
        )
        return _ChatTool(tool, surveyed)

    def _is_offered(self, agent: str, tool: BaseTool) -> bool:
        why = unusable_pattern_of(tool)
        if tool.name in self._reserved:
            why = "a tool of the server has its name"
        if why is not None:
            logger.warning("the tool %s of tools_for is left out of %s: %s", tool.name, agent, why)
        return why is None


class _ChatTool(NamedTuple):
    tool: BaseTool
    surveyed: SurveyedTool


class ChatToolset(UncachedToolset):
    """The tools that an agent has in the chat of the running turn."""

    def __init__(self, tools: ChatTools, agent: str) -> None:
        super().__init__()
        self._tools = tools
        self._agent = agent

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """Return the tools of the current turn, none outside turns."""
        guard = CURRENT_GUARD.get()
        return [] if guard is None else self._tools.of_agent(guard.chat, self._agent)

    async def close(self) -> None:
        """Close the toolsets of all chats, once for all agents."""
        await self._tools.close()


def attach_chat_tools(app: App, tools: ChatTools, survey: AgentSurvey) -> AgentSurvey:
    """Let each agent of the engine's copy call its tools of a chat.

    Returns:
        The survey with these tools: any of them may require approval.
    """
    unlisted = {**survey.unlisted}
    for agent in _agents(app.root_agent):
        # ADK: of two tools of the same name the later one runs; the agent's own must win.
        agent.tools = [ChatToolset(tools, agent.name), *agent.tools]
        unlisted[agent.name] = (*unlisted.get(agent.name, ()), ChatToolset.__name__)
    gated = [GatedTool(agent, ChatToolset.__name__, _WHY) for agent in survey.positions]
    return replace(
        survey,
        may_gate=True,
        gated_tools=[*survey.gated_tools, *gated],
        unlisted=unlisted,
        of_chats=tools.find,
    )


def _agents(root: BaseNode | None) -> Iterator[LlmAgent]:
    """Yield the agents with a model of a tree, each once, those that tools call too."""
    pending, seen = [root], set[int]()
    while pending:
        node = pending.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        pending.extend(children_of(node))
        if isinstance(node, LlmAgent):
            pending.extend(
                inner
                for entry in node.tools
                if isinstance(inner := getattr(entry, "agent", entry), BaseNode)
            )
            yield node
