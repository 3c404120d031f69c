"""Several tabs of one user act at once, in any order: nothing runs twice, nothing gets stuck."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Literal

from hypothesis import given
from hypothesis import strategies as st

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.errors import RequestError, Unknown
from sluicegate.testing.message_comparison import comparable
from sluicegate.testing.response_checks import check_order
from sluicegate.wire.chunks import BaseChunk
from sluicegate.wire.reducer import reduce_chunks
from sluicegate.wire.ui_messages import UIMessage, is_tool_part
from tests.engine.talk import Talk, decide
from tests.properties.client_tab import LONG, read
from tests.properties.example_agent import CLIENT, EFFECTS, GATED
from tests.properties.example_scripts import prepared, profile
from tests.properties.invariants import check_major
from tests.properties.random_scripts import Script, scripts

Act = Literal["approve", "deny", "stop", "resume", "ask", "regenerate", "leave", "give"]
ACTS: tuple[Act, ...] = (
    *("approve",) * 4,
    "deny",
    "stop",
    "resume",
    "ask",
    "regenerate",
    "leave",
    *("give",) * 2,
)
names = itertools.count()


@dataclass(frozen=True)
class TabAction:
    """The action of one tab after a delay."""

    act: Act
    after: int


TAB_ACTIONS = st.lists(
    st.builds(TabAction, st.sampled_from(ACTS), st.sampled_from([0, 0, 1, 5, 20, 60])),
    min_size=2,
    max_size=8,
)


@dataclass
class Tabs:
    """The tabs of one chat; each looks at the stored chat before it acts."""

    talk: Talk

    async def do(self, tab_action: TabAction) -> None:
        """Act once; a request that is refused is fine."""
        for _ in range(tab_action.after):
            await asyncio.sleep(0)
        acts: dict[Act, Callable[[], Coroutine[Any, Any, None]]] = {
            "approve": lambda: self._answer(approved=True),
            "deny": lambda: self._answer(approved=False),
            "stop": self._stop,
            "resume": self._resume,
            "ask": self._ask,
            "regenerate": self._regenerate,
            "leave": self._leave,
            "give": self._give,
        }
        try:
            await acts[tab_action.act]()
        except RequestError:
            return

    async def _last(self) -> UIMessage:
        chat = await self.talk.engine.get_chat(self.talk.chat_id, user=self.talk.user)
        if not chat["messages"]:
            # The chat is listed, and its first message is about to be stored.
            raise Unknown
        message: UIMessage = chat["messages"][-1]
        return message

    async def _answer(self, *, approved: bool) -> None:
        last = await self._last()
        for part in last["parts"]:
            if is_tool_part(part) and part["state"] == "approval-requested":
                decide(part, approved=approved)
        await self._post({"message": last, "messageId": last["id"]})

    async def _give(self) -> None:
        last = await self._last()
        for part in last["parts"]:
            if is_tool_part(part) and part["type"][5:] in CLIENT and "output" not in part:
                part["state"], part["output"] = "output-available", "here"
        await self._post({"message": last, "messageId": last["id"]})

    async def _ask(self) -> None:
        question = {"role": "user", "parts": [{"type": "text", "text": "another"}]}
        await self._post({"message": {"id": f"question-{next(names)}", **question}})

    async def _regenerate(self) -> None:
        chat = await self.talk.engine.get_chat(self.talk.chat_id, user=self.talk.user)
        question = next((m for m in reversed(chat["messages"]) if m["role"] == "user"), None)
        if question is None:
            raise Unknown
        await self._post({"message": question, "trigger": "regenerate-message"})

    async def _stop(self) -> None:
        await self.talk.engine.stop(self.talk.chat_id, user=self.talk.user)

    async def _resume(self) -> None:
        engine, user = self.talk.engine, self.talk.user
        reader = await engine.resume(self.talk.chat_id, user=user, client=self.talk.client)
        if reader is not None:
            self._check(await read(reader), None)

    async def _leave(self) -> None:
        engine, user = self.talk.engine, self.talk.user
        reader = await engine.resume(self.talk.chat_id, user=user, client=self.talk.client)
        if reader is not None:
            await anext(aiter(reader))
            await reader.aclose()

    async def _post(self, body: dict[str, Any]) -> None:
        message = body["message"]
        self._check(await read(await self.talk.start(body)), message)

    def _check(self, chunks: list[BaseChunk], before: UIMessage | None) -> None:
        answered = before if before is not None and before["role"] == "assistant" else None
        check_order(chunks, answered, CLIENT)
        check_major(chunks, self.talk.major)
        reduce_chunks(chunks, answered)


@profile
@given(
    said=scripts(),
    release=st.sampled_from(["deferred", "progressive"]),
    style=st.sampled_from(["call", "confirmation"]),
    tab_actions=TAB_ACTIONS,
)
async def test_concurrent_tabs_never_corrupt_a_chat(
    engines: dict[str, ChatEngine],
    said: Script,
    release: Literal["deferred", "progressive"],
    style: str,
    tab_actions: list[TabAction],
) -> None:
    engine, text = engines[style], prepared(said, may_hang=False)
    talk = Talk(engine, release)
    tabs = Tabs(talk)
    question: Any = {"id": "first", "role": "user", "parts": [{"type": "text", "text": text}]}
    first = asyncio.create_task(tabs._post({"message": question}))
    await asyncio.sleep(0)
    acting = [asyncio.create_task(tabs.do(tab_action)) for tab_action in tab_actions]
    done, pending = await asyncio.wait([first, *acting], timeout=LONG)
    assert not pending
    for task in done:
        error = task.exception()
        assert error is None or isinstance(error, RequestError), error
    counts = Counter(EFFECTS[talk.chat_id])
    assert all(counts[call] == 1 for call in counts if call[0] in (*GATED, "maybe"))
    chat = await engine.get_chat(talk.chat_id, user=talk.user)
    again = await engine.get_chat(talk.chat_id, user=talk.user)
    assert chat == again
    assert chat["status"] in ("ready", "waiting")
    turn = await talk.say("another")
    assert turn.finish_reason == "stop"
    assert comparable(await talk.history()) == comparable(turn.message)
    chat = await engine.get_chat(talk.chat_id, user=talk.user)
    open_ = ("approval-requested", "approval-responded", "input-available", "input-streaming")
    states = {p["state"] for m in chat["messages"] for p in m["parts"] if is_tool_part(p)}
    assert states.isdisjoint(open_)
