"""Tools of one chat, by the application's function, through a running server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool
from starlette.requests import HTTPConnection

from sluicegate.testing.message_comparison import comparable
from sluicegate.tools import gated
from tests.engine.stage import Prompts, Responses, calls, says, scripted
from tests.server.page import Page, served
from tests.transports.conversation import TRANSPORTS, Transport, conversation

every_transport = pytest.mark.parametrize("transport", TRANSPORTS)


class Shelf:
    """Makes tools, and records what they did and for whom they were made."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.asked_for: list[tuple[str, str]] = []

    def lend(self, whose: str = "all", **terms: Any) -> BaseTool:
        async def lend(book: str) -> dict[str, str]:
            """Lend a book."""
            self.done.append(f"{whose}: {book}")
            return {"lent": book}

        return gated(lend, **terms) if terms else FunctionTool(lend)

    def gated_lend(self, user: str, chat: str) -> list[BaseTool]:
        self.asked_for.append((user, chat))
        return [self.lend(user, expires=3600.0)]


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


LEND = calls(("lend", {"book": "Emma"}))


async def by_header(connection: HTTPConnection) -> str | None:
    return connection.headers.get("x-user")


@every_transport
async def test_a_gated_tool_of_a_chat_asks_and_runs_once_on_every_transport(
    tmp_path: Path, shelf: Shelf, transport: Transport
) -> None:
    agent = scripted([LEND, says("Done.")])
    async with conversation(agent, tmp_path, transport, tools_for=shelf.gated_lend) as chat:
        await chat.say("lend")
        [card] = await chat.inbox()
        assert (card["tool"], card["arguments"]) == ("lend", {"book": "Emma"})
        assert shelf.done == []
        await chat.answer()
        assert shelf.done == ["local: Emma"]
    assert set(shelf.asked_for) == {("local", "c1")}


async def test_each_user_and_chat_has_its_own_tools(tmp_path: Path, shelf: Shelf) -> None:
    """One user's tool asks, the same name of another's does not, and a third has none."""

    def tools_for(user: str, chat: str) -> list[BaseTool]:
        shelf.asked_for.append((user, chat))
        if user == "ann":
            return [shelf.lend(f"{user} in {chat}", expires=60.0)]
        return [shelf.lend(f"{user} in {chat}")] if user == "bob" else []

    script = [LEND, says("Done.")]
    prompts = Prompts()
    agent = scripted(script, before_model_callback=prompts)
    async with served(agent, tmp_path, tools_for=tools_for, authenticate=by_header) as http:
        pages = {name: Page(http, chat_id=f"chat-of-{name}") for name in ("ann", "bob", "eve")}
        for name, page in pages.items():
            http.headers["x-user"] = name
            await page.say("lend")
        assert len(pages["ann"].asks()) == 1
        assert shelf.done == ["bob in chat-of-bob: Emma"]
        http.headers["x-user"] = "ann"
        await pages["ann"].answer()
        for name, page in pages.items():
            http.headers["x-user"] = name
            assert comparable(await page.history()) == comparable(page.messages[-1])
    assert shelf.done == ["bob in chat-of-bob: Emma", "ann in chat-of-ann: Emma"]
    assert [set(declared) for declared in prompts.declared][:2] == [{"lend"}, {"lend"}]
    assert set() in [set(declared) for declared in prompts.declared]


async def test_a_message_is_rebuilt_after_a_restart_with_the_tools_of_its_chat(
    tmp_path: Path, shelf: Shelf
) -> None:
    """What a free call beside a gated one looks like depends on what is known of the tools."""

    async def note(text: str) -> str:
        """Write a note."""
        return text

    def tools_for(user: str, chat: str) -> list[Any]:
        shelf.asked_for.append((user, chat))
        return [*shelf.gated_lend(user, chat), note]

    script = [calls(("note", {"text": "a"}), ("lend", {"book": "Emma"})), says("Done.")]
    async with served(scripted(script), tmp_path, tools_for=tools_for) as http:
        page = Page(http)
        await page.say("lend")
        waiting = await page.history()
        assert comparable(waiting) == comparable(page.messages[-1])
    shelf.asked_for.clear()
    async with served(scripted(script), tmp_path, tools_for=tools_for) as http:
        page.http = http
        assert await page.history() == waiting
        asked = len(shelf.asked_for)
        assert await page.history() == waiting
        assert len(shelf.asked_for) == asked, "it is called once for histories"
        await page.answer()
        assert comparable(await page.history()) == comparable(page.messages[-1])
    assert shelf.done == ["local: Emma"]


async def test_a_grant_covers_the_tool_in_its_chat_alone(tmp_path: Path, shelf: Shelf) -> None:
    script = [LEND, says("Done.")]
    async with served(scripted(script), tmp_path, tools_for=shelf.gated_lend) as http:
        first, second = Page(http), Page(http)
        await first.say("lend")
        await first.answer(remember=dict.fromkeys(first.asks(), "chat"))
        await first.say("lend")
        assert first.asks() == []
        assert len(shelf.done) == 2
        await second.say("lend")
        assert len(second.asks()) == 1
    assert len(shelf.done) == 2


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_function_that_raises_fails_its_turn_alone(
    tmp_path: Path, shelf: Shelf, caplog: pytest.LogCaptureFixture, is_async: bool
) -> None:
    failing = True

    def tools_now(user: str, chat: str) -> list[BaseTool]:
        if failing:
            raise LookupError("the directory does not answer")
        return [shelf.lend()]

    async def tools_later(user: str, chat: str) -> list[BaseTool]:
        await asyncio.sleep(0)
        return tools_now(user, chat)

    tools_for: Any = tools_later if is_async else tools_now
    agent = scripted([LEND, says("Done.")])
    async with served(agent, tmp_path, tools_for=tools_for) as http:
        page = Page(http)
        read = await page.say("lend")
        [error] = [chunk["errorText"] for chunk in read if chunk["type"] == "error"]
        assert error.startswith("The agent could not finish its answer (error ")
        assert shelf.done == []
        failing = False
        page.messages.clear()
        read = await page.say("lend")
        assert "error" not in [chunk["type"] for chunk in read]
    assert shelf.done == ["all: Emma"]
    logged = [each for each in caplog.records if each.name == "sluicegate"]
    [line] = [each.getMessage() for each in logged if each.levelname == "ERROR"]
    assert line.startswith("turn failed ")
    assert "LookupError" in line
    assert "the directory does not answer" in line


def an_agent_tool(name: str) -> AgentTool:
    return AgentTool(LlmAgent(name=name, model="gemini-3.5-flash"))


def adk_odd() -> None:
    """Have a name that belongs to ADK."""


REFUSED = [
    ([an_agent_tool("other")], "tools_for returns the agent 'other'"),
    ({"nobody": [adk_odd]}, "tools_for returns tools of 'nobody', which is no agent with a model"),
    ([adk_odd], "has a name that starts with adk_"),
    ([Shelf().lend(), Shelf().lend()], "has 2 tools with the name 'lend'"),
]


@pytest.mark.parametrize(("returned", "why"), REFUSED, ids=range(len(REFUSED)))
async def test_what_no_agent_can_have_fails_the_turn_with_the_reason_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, returned: Any, why: str
) -> None:
    async with served(scripted([says("Hi.")]), tmp_path, tools_for=lambda *_: returned) as http:
        read = await Page(http).say("hello")
    assert "error" in [chunk["type"] for chunk in read]
    assert any(why in each.getMessage() for each in caplog.records if each.levelname == "ERROR")


async def test_a_tool_with_the_name_of_one_of_the_server_is_left_out(
    tmp_path: Path, shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    agent = scripted([LEND, says("Done.")], [shelf.lend("server")])
    async with served(agent, tmp_path, tools_for=lambda *_: [shelf.lend("chat")]) as http:
        await Page(http).say("lend")
    assert shelf.done == ["server: Emma"]
    lines = [each.getMessage() for each in caplog.records if "tools_for" in each.getMessage()]
    left_out = "the tool lend of tools_for is left out of stage: a tool of the server has its name"
    assert set(lines) == {left_out}


class Toolset(BaseToolset):
    """Lists its tools, and records that it was closed."""

    def __init__(self, tools: list[BaseTool]) -> None:
        super().__init__(tool_name_prefix="desk")
        self.tools = tools
        self.closed = 0

    async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
        return self.tools

    async def close(self) -> None:
        self.closed += 1


async def test_toolsets_of_a_chat_are_listed_and_closed_once_no_chat_has_them(
    tmp_path: Path, shelf: Shelf
) -> None:
    made = [Toolset([shelf.lend()]) for _ in range(3)]
    shared, given = Toolset([]), iter(made)
    lend = calls(("desk_lend", {"book": "Emma"}))
    agent = scripted({"lend": [lend, says("Done.")], "hello": [says("Hi.")]})

    def tools_for(user: str, chat: str) -> list[BaseToolset]:
        return [shared, next(given)]

    async with served(agent, tmp_path, tools_for=tools_for) as http:
        page = Page(http)
        await page.say("lend")
        await page.say("hello")
        await Page(http).say("hello")
        assert [each.closed for each in (*made, shared)] == [1, 0, 0, 0]
    assert [each.closed for each in (*made, shared)] == [1, 1, 1, 1]
    assert shelf.done == ["all: Emma"]


async def test_tools_are_given_to_the_agents_that_are_named(tmp_path: Path, shelf: Shelf) -> None:
    script: Responses = [calls(("transfer_to_agent", {"agent_name": "desk"}))]
    prompts = {"stage": Prompts(), "desk": Prompts()}
    desk = LlmAgent(
        name="desk",
        model=scripted([LEND, says("Done.")]).model,
        before_model_callback=prompts["desk"],
    )
    root = scripted(script, sub_agents=[desk], before_model_callback=prompts["stage"])

    def tools_for(user: str, chat: str) -> dict[str, list[BaseTool]]:
        return {"desk": [shelf.lend(user, expires=60.0)]}

    async with served(root, tmp_path, tools_for=tools_for) as http:
        page = Page(http)
        await page.say("lend")
        [part] = page.pending()
        await page.answer()
        assert comparable(await page.history()) == comparable(page.messages[-1])
    assert part["type"] == "tool-lend"
    assert shelf.done == ["local: Emma"]
    assert all("lend" in declared for declared in prompts["desk"].declared)
    assert not any("lend" in declared for declared in prompts["stage"].declared)
