"""Approvals together with plugins, callbacks, other users and blocking tools."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.apps.app import App
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext

from sluicegate.errors import Superseded, Unknown
from sluicegate.testing.message_comparison import comparable
from tests.engine.loop_time import EVENT_TIMEOUT
from tests.engine.stage import Counted, Prompts, calls, part_of, says, scripted, words
from tests.engine.talk import Talk, decide

if TYPE_CHECKING:
    from tests.engine.stage import Open

PAYS = [calls(("pay", {"n": 1})), says("done")]


class Watching(BasePlugin):
    """A user's plugin: it sees calls, and may answer or change them."""

    def __init__(self, *, answer: dict[str, Any] | None = None, raises: str = "") -> None:
        super().__init__("watching")
        self.seen: list[str] = []
        self.answer = answer
        self.raises = raises

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        self.seen.append(f"before {tool.name}")
        if self.raises == "before":
            raise RuntimeError("words-of-a-plugin")
        return self.answer

    async def after_tool_callback(
        self,
        *,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
        result: dict[str, Any],
    ) -> dict[str, Any] | None:
        self.seen.append(f"after {tool.name}")
        if self.raises == "after":
            raise RuntimeError("words-of-a-plugin")
        return None


def app(plugin: BasePlugin, counted: Counted, **more: Any) -> App:
    return App(name="app", root_agent=scripted(PAYS, [counted.tool()], **more), plugins=[plugin])


async def test_a_plugin_of_the_user_observes_an_approved_call_once(
    open_stage: Open, counted: Counted
) -> None:
    watching = Watching()
    talk = Talk(await open_stage(app(watching, counted)))
    await talk.say("pay")
    before = list(watching.seen)
    await talk.approve()
    assert watching.seen[len(before) :] == ["before pay", "after pay"]
    assert counted.runs == [1]


async def test_a_plugin_that_answers_a_call_answers_it_once_and_the_tool_does_not_run(
    open_stage: Open, counted: Counted
) -> None:
    watching = Watching(answer={"paid": "by the plugin"})
    talk = Talk(await open_stage(app(watching, counted)))
    turn = await talk.say("pay")
    if talk.pending():
        turn = await talk.approve()
    assert part_of(turn.message, "pay")["output"] == {"paid": "by the plugin"}
    assert counted.runs == []
    assert comparable(await talk.history()) == comparable(turn.message)


@pytest.mark.parametrize("where", ["before", "after"])
async def test_a_plugin_that_raises_ends_the_turn_and_the_call_is_never_run_again(
    open_stage: Open, counted: Counted, where: str
) -> None:
    watching = Watching()
    talk = Talk(await open_stage(app(watching, counted)))
    await talk.say("pay")
    watching.raises = where
    turn = await talk.approve()
    assert turn.failed
    assert "words-of-a-plugin" not in str(turn.chunks)
    runs = list(counted.runs)
    assert comparable(await talk.history()) == comparable(turn.message)
    watching.raises = ""
    if where == "before":
        # The guard follows all callbacks: the call was not claimed, so it is known not to have run.
        assert runs == []
        with pytest.raises(Superseded):
            await talk.post_last()
    else:
        await talk.post_last()
    await talk.say("pay")
    assert counted.runs == runs


async def test_a_callback_of_the_user_may_replace_the_tool_call(
    open_stage: Open, counted: Counted
) -> None:
    def answer(tool: BaseTool, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any]:
        return {"paid": "by the callback"}

    agent = scripted(PAYS, [counted.tool()], before_tool_callback=answer)
    talk = Talk(await open_stage(agent))
    turn = await talk.say("pay")
    if talk.pending():
        turn = await talk.approve()
    assert part_of(turn.message, "pay")["output"] == {"paid": "by the callback"}
    assert counted.runs == []


async def test_a_callback_of_the_user_may_change_a_result(
    open_stage: Open, counted: Counted
) -> None:
    prompts = Prompts()

    def change(
        tool: BaseTool, args: dict[str, Any], tool_context: ToolContext, tool_response: Any
    ) -> dict[str, Any]:
        return {**tool_response, "seen": True}

    agent = scripted(
        PAYS, [counted.tool()], after_tool_callback=change, before_model_callback=prompts
    )
    talk = Talk(await open_stage(agent))
    await talk.say("pay")
    turn = await talk.approve()
    assert part_of(turn.message, "pay")["output"] == {"paid": 1, "seen": True}
    assert prompts.results["pay"] == {"paid": 1, "seen": True}
    assert comparable(await talk.history()) == comparable(turn.message)


async def test_arguments_changed_by_a_callback_are_not_run_as_approved(
    open_stage: Open, counted: Counted
) -> None:
    """The call is claimed with the arguments that the person saw (S2-R44)."""

    class Doubling(BasePlugin):
        async def before_run_callback(self, *, invocation_context: Any) -> None:
            for event in invocation_context.session.events:
                for call in event.get_function_calls():
                    if call.name == "pay" and call.args:
                        call.args["n"] = 1_000

    talk = Talk(await open_stage(app(Doubling("doubling"), counted)))
    await talk.say("pay")
    await talk.approve()
    assert 1_000 not in counted.runs


async def test_two_users_may_use_the_same_chat_id(open_stage: Open, counted: Counted) -> None:
    engine = await open_stage(scripted(PAYS, [counted.tool()]))
    ann, bob = Talk(engine, user="ann", chat_id="same"), Talk(engine, user="bob", chat_id="same")
    await ann.say("pay", message_id="u1")
    await bob.say("pay", message_id="u1")
    assert ann.messages[-1]["id"] != bob.messages[-1]["id"]
    decide(ann.pending()[0], approved=True)
    with pytest.raises(Unknown):
        await bob.post({"message": ann.messages[-1], "messageId": ann.messages[-1]["id"]})
    assert counted.runs == []
    await bob.answer(approved=False)
    await ann.post_last()
    assert counted.runs == [1]
    for talk, state in ((ann, "output-available"), (bob, "output-denied")):
        assert part_of(await talk.history(), "pay")["state"] == state
        chats = await engine.list_chats(user=talk.user, limit=10, after=None, query=None)
        assert [chat["id"] for chat in chats["chats"]] == ["same"]


async def test_a_user_without_chats_sees_none(open_stage: Open, counted: Counted) -> None:
    engine = await open_stage(scripted(PAYS, [counted.tool()]))
    talk = Talk(engine)
    await talk.say("pay")
    assert (await engine.list_chats(user="eve", limit=10, after=None, query=None))["chats"] == []
    with pytest.raises(Unknown):
        await engine.get_chat(talk.chat_id, user="eve")
    with pytest.raises(Unknown):
        await engine.rename_chat(talk.chat_id, "mine", user="eve")
    with pytest.raises(Unknown):
        await engine.delete_chat(talk.chat_id, user="eve")
    await engine.stop(talk.chat_id, user="eve")
    assert len(talk.pending()) == 1
    assert (await talk.approve()).finish_reason == "stop"


@dataclass
class Blocking:
    """A tool that blocks its thread until the event loop has gone on."""

    loop_goes_on: threading.Event = field(default_factory=threading.Event)
    threads: set[int] = field(default_factory=set)

    def block(self, n: int) -> dict[str, bool]:
        """Block."""
        self.threads.add(threading.get_ident())
        return {"went_on": self.loop_goes_on.wait(EVENT_TIMEOUT)}


@pytest.mark.parametrize("gated", [True, False])
async def test_a_blocking_tool_does_not_delay_other_chats(open_stage: Open, gated: bool) -> None:
    blocking = Blocking()
    script = {
        "block": [calls(("block", {"n": 1})), says("done")],
        "hello": [says("Hello.")],
    }
    tool = FunctionTool(blocking.block, require_confirmation=gated)
    engine = await open_stage(scripted(script, [tool]))
    talk, other = Talk(engine), Talk(engine)
    blocked = asyncio.create_task(talk.say("block"))
    if gated:
        await blocked
        blocked = asyncio.create_task(talk.approve())
    assert words((await other.say("hello")).message) == "Hello."
    blocking.loop_goes_on.set()
    turn = await blocked
    assert part_of(turn.message, "block")["output"] == {"went_on": True}
    assert threading.get_ident() not in blocking.threads
