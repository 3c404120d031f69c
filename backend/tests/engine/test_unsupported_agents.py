"""Refused trees are in test_topologies; here are names, versions and client-side tools."""

from __future__ import annotations

import importlib
from typing import Any, cast

import pytest
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools._request_input_tool import request_input
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.workflow import BaseNode, Workflow

from sluicegate.engine.agents.approval_requirements import ToolNames
from sluicegate.engine.agents.survey import survey
from sluicegate.engine.agents.unsupported_agents import refusals
from tests.engine.loop_time import EVENT_TIMEOUT
from tests.engine.tool_samples import (
    Hanging,
    Plain,
    Tools,
    agent,
    gated,
    is_large,
    page_tool,
    pay,
    request_in_the_code,
)

DECIDING = FunctionTool(pay, require_confirmation=is_large)


async def refused(root: BaseNode, *, adk: str | None = None, **settings: Any) -> list[str]:
    names = ToolNames(**settings)
    return refusals(root, await survey(root, names, resolve_timeout=EVENT_TIMEOUT), adk=adk)


def unplugged(tool: Any) -> AgentTool:
    """A tool in an agent that is called without plugins, which approvals need."""
    return AgentTool(agent("inner", tool), include_plugins=False)


def remote(name: str) -> BaseAgent:
    """An agent of ADK on another server."""
    try:
        module = importlib.import_module("google.adk.agents.remote_a2a_agent")
    except ImportError:
        place = {"__module__": "google.adk.a2a.agent._remote_a2a_agent"}
        return cast("BaseAgent", type("RemoteA2aAgent", (BaseAgent,), place)(name=name))
    made: BaseAgent = module.RemoteA2aAgent(name=name, agent_card="http://127.0.0.1:9/card.json")
    return made


def adk_tool() -> BaseTool:
    return Plain(name="adk_pay", description="d")


@pytest.mark.parametrize(
    "root",
    [
        agent("root", pay, gated(request_in_the_code)),
        agent("root", request_input),
        agent("root", AgentTool(agent("inner", pay))),
        agent("root", AgentTool(agent("inner", gated()))),
        agent("root", AgentTool(agent("inner", page_tool(), request_input))),
        agent("root", pay, sub_agents=[agent("inner", pay, mode="single_turn")]),
        Workflow(name="root", edges=[("START", gated(), agent("inner", pay))]),
    ],
)
async def test_an_ordinary_agent_is_not_refused(root: BaseNode) -> None:
    assert await refused(root) == []


async def test_an_agent_whose_toolset_lists_nothing_in_time_is_not_refused() -> None:
    root = agent("root", page_tool(require_confirmation=True), Hanging())
    assert refusals(root, await survey(root, ToolNames(), resolve_timeout=0.05)) == []


@pytest.mark.parametrize("installed", ["2.13.0", "2.13.0rc1", "2.13.7", "2.13.99.dev3"])
async def test_an_adk_in_the_tested_range_is_accepted(installed: str) -> None:
    assert await refused(agent("root"), adk=installed) == []


@pytest.mark.parametrize(
    "installed", ["2.12.9", "1.30.0", "2.14.0", "2.14.0a1", "3.0.0", "unknown"]
)
async def test_an_adk_outside_the_tested_range_is_refused_with_the_range(installed: str) -> None:
    (sentence,) = await refused(agent("root"), adk=installed)
    assert installed in sentence
    assert "install google-adk>=2.13,<2.14" in sentence


@pytest.mark.parametrize(
    ("root", "words"),
    [
        (agent("root", adk_tool()), ["'adk_pay' of 'root'", "another name"]),
        (agent("root", Tools(adk_tool())), ["'adk_pay' of 'root'", "another name"]),
        (
            agent("root", sub_agents=[agent("adk_help", mode="single_turn")]),
            ["'adk_help' of 'root'", "another name"],
        ),
        (agent("root", pay, gated()), ["'root' has 2 tools", "'pay'", "tool_name_prefix"]),
        (agent("root", pay, Tools(gated())), ["'root' has 2 tools", "'pay'", "tool_name_prefix"]),
        (
            agent("root", pay, sub_agents=[agent("pay", mode="single_turn")]),
            ["'root' has 2 tools", "'pay'"],
        ),
        (
            LlmAgent(name="root", model="gemini-2.5-flash", mode="single_turn"),
            ["'root'", 'mode="chat"'],
        ),
        (
            agent("root", unplugged(page_tool())),
            ["client-side tool 'pay' of 'inner'", "AgentTool(inner)", "leave include_plugins out"],
        ),
        (
            agent("root", unplugged(request_input)),
            ["'adk_request_input' of 'inner'", "AgentTool(inner)"],
        ),
        (
            agent("root", unplugged(FunctionTool(pay, require_confirmation=is_large))),
            ["The tool 'pay' of 'inner' may ask", "AgentTool(inner)"],
        ),
        (
            agent("root", AgentTool(agent("inner", gated())), sub_agents=[agent("inner", pay)]),
            ["'inner' stands at several places", "its own name"],
        ),
        (
            agent("root", pay, sub_agents=[remote("books")]),
            ["remote agent 'books'", "run the agent in this process", "never_gates"],
        ),
        (
            agent("root", AgentTool(remote("books"))),
            ["remote agent 'books'", "a tool of your own that requires approval"],
        ),
        (
            Workflow(name="root", edges=[("START", page_tool())]),
            ["client-side tool 'pay' of 'root'", "does not wait", "give it to an LlmAgent"],
        ),
    ],
)
async def test_a_refusal_is_one_sentence_with_the_tool_and_the_remedy(
    root: BaseNode, words: list[str]
) -> None:
    (sentence,) = await refused(root)
    assert all(word in sentence for word in words), sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence


async def test_a_remote_agent_that_never_asks_is_served() -> None:
    root = agent("root", pay, sub_agents=[remote("books")])
    assert await refused(root, never_gates=("books",)) == []


@pytest.mark.parametrize(
    ("tool", "settings"),
    [
        (DECIDING, {"client_tools": ("pay",)}),
        (request_in_the_code, {"client_tools": ("request_in_the_code",)}),
        (page_tool(), {"dynamic_gates": ("pay",)}),
    ],
)
async def test_a_client_side_tool_with_conditional_approval_is_refused(
    tool: Any, settings: dict[str, Any]
) -> None:
    (sentence,) = await refused(agent("root", tool), **settings)
    assert "asks only sometimes" in sentence
    assert "client_tool(..., require_confirmation=True)" in sentence


async def test_never_gates_lifts_the_refusal_of_a_false_detection() -> None:
    root = agent("root", unplugged(request_in_the_code))
    assert len(await refused(root)) == 1
    assert await refused(root, never_gates=("request_in_the_code",)) == []


async def test_never_gates_does_not_lift_the_refusal_of_a_declared_requirement() -> None:
    root = agent("root", unplugged(gated()))
    (sentence,) = await refused(root, never_gates=("pay",))
    assert "'pay' of 'inner' asks for approval" in sentence


async def test_every_reason_is_reported_once() -> None:
    inner = agent("inner", gated(), adk_tool())
    sentences = await refused(agent("root", AgentTool(inner), sub_agents=[inner]))
    assert len(sentences) == len(set(sentences)) == 2
