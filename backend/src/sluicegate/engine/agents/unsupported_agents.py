"""Reasons not to serve an agent: one sentence each, with the tool or setting and the remedy."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from google.adk import __version__ as installed_adk
from google.adk.agents.llm_agent import LlmAgent

from sluicegate.core.event_reading import INPUT
from sluicegate.core.reserved_call_names import RESERVED_PREFIX
from sluicegate.engine.agents.survey import root_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.apps.app import App
    from google.adk.workflow import BaseNode

    from sluicegate.engine.agents.survey import AgentSurvey
    from sluicegate.engine.agents.tool_collector import SurveyedTool

FIRST_ADK: Final = (2, 13)
LAST_ADK: Final = (2, 14)
"""The range that is tested, without its end: private parts may change in any minor version."""


def refusals(
    target: BaseAgent | BaseNode | App, survey: AgentSurvey, *, adk: str | None = None
) -> list[str]:
    """Return why an agent is not served, an empty list if it is.

    Refused are a version of ADK outside the tested range, names that ADK or another tool of the
    same agent uses, tools that would wait for a person or a browser at a position that ADK does not
    resume, and agents on other servers, which may ask there. ``adk`` is the version to check in
    place of the installed one.
    """
    found = [tool for tools in survey.tools.values() for tool in tools]
    sentences = [
        *_unsupported_adk(adk or installed_adk),
        *_unrunnable_root(root_of(target)),
        *tool_refusals(found),
        *_ambiguous_agents(survey),
        *_remote_agents(survey),
    ]
    return list(dict.fromkeys(sentences))


def tool_refusals(found: list[SurveyedTool]) -> list[str]:
    """Return why tools cannot be offered, one sentence each."""
    return [
        *_reserved_names(found),
        *_duplicate_names(found),
        *_conditional_client_tools(found),
        *_unresumable_tools(found),
    ]


def live_refusal(survey: AgentSurvey) -> str | None:
    """Return why an agent cannot be used in live chats; None if it can."""
    # ADK: a live run goes on without a result where a node waits.
    asking = (each for tools in survey.tools.values() for each in tools if each.may_wait)
    tool = next((each for each in asking if each.node is not None), None)
    if tool is None:
        return None
    return (
        f"This agent cannot be used live: {tool.name!r} asks for approval as a node of a Workflow, "
        "and a live run does not continue there. Write to the chat instead, or give the tool to an "
        "LlmAgent that is a node of the Workflow."
    )


def _unsupported_adk(installed: str) -> Iterator[str]:
    major, _, rest = installed.partition(".")
    minor = rest.partition(".")[0]
    found = (int(major), int(minor)) if major.isdigit() and minor.isdigit() else (0, 0)
    if not FIRST_ADK <= found < LAST_ADK:
        first, last = (f"{major}.{minor}" for major, minor in (FIRST_ADK, LAST_ADK))
        yield (
            f"google-adk {installed} is not supported; install google-adk>={first},<{last}, for "
            f'example with pip install "google-adk>={first},<{last}".'
        )


def _unrunnable_root(root: BaseNode) -> Iterator[str]:
    # ADK: Runner.run_async raises for such a root, at the first message.
    if isinstance(root, LlmAgent) and root.mode == "single_turn":
        yield (
            f'The root agent {root.name!r} has mode="single_turn", which ADK runs only as a '
            'sub-agent; leave mode out, or set mode="chat".'
        )


def _reserved_names(tools: list[SurveyedTool]) -> Iterator[str]:
    for tool in tools:
        if tool.name.startswith(RESERVED_PREFIX) and not tool.is_part_of_adk:
            yield (
                f"The tool {tool.name!r} of {tool.agent!r} has a name that starts with adk_, which "
                "belongs to ADK; give the tool another name."
            )


def _duplicate_names(tools: list[SurveyedTool]) -> Iterator[str]:
    # ADK: both declarations go to the model, but every call lands on the later tool.
    called = Counter((tool.agent, tool.position, tool.name) for tool in tools if tool.node is None)
    for (agent, _, name), times in called.items():
        if times > 1:
            yield (
                f"The agent {agent!r} has {times} tools with the name {name!r}, and ADK calls only "
                "the last one; give each its own name, or the toolset a tool_name_prefix."
            )


def _conditional_client_tools(tools: list[SurveyedTool]) -> Iterator[str]:
    for tool in tools:
        if tool.kind == "gated-client" and tool.requirement.when == "sometimes":
            yield (
                f"The client-side tool {tool.name!r} of {tool.agent!r} asks only sometimes, which "
                "cannot be known before its call goes to the page "
                f"({tool.requirement.why}); declare it with "
                "client_tool(..., require_confirmation=True), or take the condition away."
            )


def _unresumable_tools(tools: list[SurveyedTool]) -> Iterator[str]:
    for tool in tools:
        whose = f"{tool.name!r} of {tool.agent!r}"
        is_client = tool.kind in ("client", "gated-client") or _asks_for_input(tool)
        if is_client and tool.node is not None:
            yield (
                f"The client-side tool {whose} is a node of a Workflow, which does not wait for "
                "the page; give it to an LlmAgent that is a node of the Workflow."
            )
        elif not tool.position.problem:
            continue
        elif is_client:
            yield f"The client-side tool {whose} waits for the page, but {tool.position.problem}."
        elif tool.may_wait:
            asks = "asks for approval" if tool.requirement.when == "always" else "may ask"
            yield f"The tool {whose} {asks}, but {tool.position.problem}."


def _ambiguous_agents(survey: AgentSurvey) -> Iterator[str]:
    # ADK: a call that waits is resumed at the first agent with the name of its author.
    for name in survey.ambiguous:
        yield (
            f"The agent {name!r} stands at several places, one of them in an AgentTool, and a tool "
            "there may ask for approval; give the agent at each place its own name."
        )


def _remote_agents(survey: AgentSurvey) -> Iterator[str]:
    # ADK: its question arrives beside a result without a mark, and the call counts as answered.
    for name in survey.remote:
        yield (
            f"The remote agent {name!r} (RemoteA2aAgent) may ask for approval on its own server, "
            "and the answer cannot be sent there; run the agent in this process, or call it in a "
            "tool of your own that requires approval. If it never asks, name it in never_gates."
        )


def _asks_for_input(tool: SurveyedTool) -> bool:
    return tool.is_part_of_adk and tool.name == INPUT
