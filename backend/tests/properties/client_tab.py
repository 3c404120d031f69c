"""One browser tab: it posts, reads, and checks every response."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Literal

from sluicegate.core.release.policies import ReleasePolicy
from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.client_request_options import RequestingClient
from sluicegate.testing.message_comparison import comparable
from sluicegate.testing.response_checks import (
    check_held,
    check_last_step,
    check_order,
    check_progress,
    waits,
)
from sluicegate.testing.send_automatically_when import RULES
from sluicegate.wire.chunks import BaseChunk, ErrorChunk
from sluicegate.wire.reducer import reduce_chunks
from sluicegate.wire.ui_messages import UIMessage, is_tool_part, tool_name
from tests.engine.talk import Talk, Turn
from tests.properties.example_agent import CLIENT, HANGING
from tests.properties.invariants import check_major

LONG = 60.0
"""Seconds after which a run counts as one that does not end."""


@dataclass
class Tab:
    """A client of one chat; ``other_major`` is that of a second tab, which joins every turn."""

    engine: ChatEngine
    release: ReleasePolicy
    major: Literal[6, 7]
    other_major: Literal[6, 7]
    talk: Talk = field(init=False)

    def __post_init__(self) -> None:
        self.talk = Talk(self.engine, self.release, self.major)

    @property
    def message(self) -> UIMessage:
        return self.talk.messages[-1]

    async def respond(self, body: dict[str, Any], *, is_repeat: bool = False) -> Turn:
        """Post, and read the whole response; the other tab reads along."""
        reader = await self.talk.start(body)
        client = RequestingClient(self.other_major)
        other = await self.engine.resume(self.talk.chat_id, user=self.talk.user, client=client)
        joining = None if other is None else asyncio.create_task(read(other))
        turn = await self._read(asyncio.create_task(self.talk.read(reader)))
        await self._check(turn, body["message"], is_repeat=is_repeat)
        if joining is not None:
            self._check_resumed(await asyncio.wait_for(joining, LONG), turn)
        return turn

    async def respond_twice(self, body: dict[str, Any]) -> Turn:
        """Two tabs send the same answers at once; both end up with the same message."""
        held = deepcopy(self.message)
        one, other = await asyncio.gather(self.talk.start(body), self.talk.start(body))
        joining = asyncio.create_task(read(other))
        turn = await self._read(asyncio.create_task(self.talk.read(one)))
        chunks = await asyncio.wait_for(joining, LONG)
        await self._check(turn, held)
        self.check_response(chunks, held)
        assert comparable(reduce_chunks(chunks, held)) == comparable(self.message)
        return turn

    async def repeat(self, before: UIMessage) -> None:
        """The same answers once more from a tab that never got the response (A4)."""
        chunks = await read(await self.talk.start({"message": before, "messageId": before["id"]}))
        self.check_response(chunks, before)
        if isinstance(chunks[-1], ErrorChunk):
            # A browser's output is no answer that is known by its id.
            assert any(is_tool_part(p) and tool_name(p) in CLIENT for p in before["parts"])
        else:
            check_same(self.message, reduce_chunks(chunks, before))

    def check_response(
        self, chunks: list[BaseChunk], before: UIMessage | None, *, is_repeat: bool = False
    ) -> None:
        """Check the rules of any response.

        A 6 client that reads a message anew gets no decided approval, but its denial.
        """
        check_order(chunks, before, CLIENT, keeps_approvals=self.major == 7 or not is_repeat)
        check_major(chunks, self.major)

    async def _read(self, reading: asyncio.Task[Turn]) -> Turn:
        """Wait for the end of a response; where the model hangs, press stop."""
        question = next(m for m in reversed(self.talk.messages) if m["role"] == "user")
        text = question["parts"][0]["text"]
        events = [e for (said, _), e in HANGING.items() if said == text and not e.is_set()]
        waiting = [asyncio.create_task(event.wait()) for event in events]
        await asyncio.wait([reading, *waiting], return_when="FIRST_COMPLETED", timeout=LONG)
        for task in waiting:
            task.cancel()
        if not reading.done():
            await self.engine.stop(self.talk.chat_id, user=self.talk.user)
        return await asyncio.wait_for(reading, LONG)

    async def _check(self, turn: Turn, before: UIMessage, *, is_repeat: bool = False) -> None:
        self.check_response(turn.chunks, before, is_repeat=is_repeat)
        check_progress(turn.chunks, before)
        if self.release != "progressive" and not is_repeat:
            check_held(turn.chunks, is_preview=self.release == "preview" and self.major == 7)
        if not turn.failed and not waits(turn.chunks):
            check_last_step(turn.message, CLIENT)
            assert not any(rule(turn.message) for rule in RULES.values())
        stored = await self.talk.history()
        assert stored["id"] == turn.message["id"]
        # Until everything is answered the server keeps decisions, but no outputs (A3).
        keeps_no_output = turn.failed or (waits(turn.chunks) and "start-step" not in turn.types)
        how = {"major": self.major, "resumed": is_repeat and self.major == 6}
        check_same(stored, turn.message, loosely=keeps_no_output, **how)

    def _check_resumed(self, chunks: list[BaseChunk], turn: Turn) -> None:
        check_order(chunks, None, CLIENT, keeps_approvals=self.other_major == 7)
        check_major(chunks, self.other_major)
        seen = reduce_chunks(chunks)
        assert seen["id"] == turn.message["id"]
        least = min(self.major, self.other_major)
        check_same(turn.message, seen, major=least, resumed=self.other_major == 6)


def check_same(stored: UIMessage, seen: UIMessage, *, loosely: bool = False, **how: Any) -> None:
    """Two views hold the same message.

    A gated client-side call is not compared between its approval and its output. ``loosely``: nor
    is any other open one, since the client alone knows an output it could not yet hand over.
    """
    ended = {
        part["toolCallId"]
        for part in stored["parts"]
        if is_tool_part(part) and part["state"].startswith("output-")
    }
    open_ = {
        part["toolCallId"]
        for part in (*stored["parts"], *seen["parts"])
        if is_tool_part(part)
        and tool_name(part) in (CLIENT if loosely else ("here_gated",))
        and part["state"] != "approval-requested"
        and part["toolCallId"] not in ended
    }
    one, other = (
        [part for part in comparable(view, **how) if part.get("toolCallId") not in open_]
        for view in (stored, seen)
    )
    assert one == other


async def read(reader: Any) -> list[BaseChunk]:
    """All chunks of a response."""
    chunks = [chunk async for chunk in reader]
    await reader.aclose()
    return chunks
