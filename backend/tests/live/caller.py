"""A client of a live chat without a socket: sends audio and text, decides, and reads frames."""

from __future__ import annotations

import asyncio
import itertools
import math
import sys
from array import array
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.errors import Unknown
from sluicegate.live.chat import LiveChat, open_live
from sluicegate.live.options import LiveOptions, LiveTimings
from sluicegate.live.outgoing_frame_queue import ChatEnded
from sluicegate.live.run_config import live_run_config
from sluicegate.testing.message_comparison import comparable
from sluicegate.wire.frames import ResumeFrame
from sluicegate.wire.live_frames import INPUT_RATE, TranscriptFrame, TurnFrame
from tests.engine.talk import Talk, Turn
from tests.live.settled import running_parts

if TYPE_CHECKING:
    from sluicegate.engine.turn.reader import TurnReader

LIMIT = 30.0
"""Seconds after which a test fails that waits for an event."""

SILENCE = bytes(INPUT_RATE * 2)
"""A second of nothing, after which a model that listens answers."""


def tone(hertz: int, seconds: float = 0.2) -> bytes:
    """A tone as a microphone would bring it."""
    step = 2 * math.pi * hertz / INPUT_RATE
    samples = array(
        "h", (round(12_000 * math.sin(step * n)) for n in range(round(seconds * INPUT_RATE)))
    )
    if sys.byteorder == "big":
        samples.byteswap()
    return samples.tobytes()


@dataclass
class Caller(Talk):
    """One live chat of one user; requests use it, except for those sent ``elsewhere``."""

    live: LiveChat | None = None
    frames: list[Any] = field(default_factory=list)
    audio: bytearray = field(default_factory=bytearray)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def chat(self) -> LiveChat:
        assert self.live is not None
        return self.live

    @property
    def key(self) -> ChatKey:
        """The chat in the stores."""
        return ChatKey(self.engine.resources.app, self.user, self.chat_id)

    def speak(self, hertz: int = 440) -> None:
        """Send a tone, then silence."""
        self.chat.receive_audio(tone(hertz))
        self.chat.receive_audio(SILENCE)

    async def call_held(self, count: int = 1) -> None:
        """Wait until the session holds requests for approval of so many calls."""
        async with asyncio.timeout(LIMIT):
            for _ in itertools.count():
                if len(await self._requested()) >= count:
                    return
                await asyncio.sleep(0)

    async def _requested(self) -> set[str]:
        """The calls that the session holds a request for."""
        session = await self.engine.resources.session_log.load(self.key)
        events = session.events if session is not None else []
        return {name for event in events for name in event.actions.requested_tool_confirmations}

    async def start(self, body: dict[str, Any]) -> TurnReader:
        """Send a body through the live chat."""
        return await self.chat.start(self.request(body), user=self.user, client=self.client)

    async def start_elsewhere(self, body: dict[str, Any]) -> TurnReader:
        """Send a body as by HTTP."""
        return await self.engine.start(self.request(body), user=self.user, client=self.client)

    async def until(self, found: Callable[[list[Any]], bool]) -> None:
        """Wait until the frames are so."""
        async with asyncio.timeout(LIMIT):
            while not found(self.frames):
                self._news.clear()
                await self._news.wait()

    async def frame(self, kind: type, count: int = 1) -> Any:
        """Wait for the so manieth frame of a kind."""
        await self.until(lambda frames: sum(isinstance(f, kind) for f in frames) >= count)
        return [f for f in self.frames if isinstance(f, kind)][count - 1]

    async def spoken_turn(self, count: int = 1) -> Turn:
        """Process a ``turn`` frame as the client does: insert the message, resume."""
        frame = await self.frame(TurnFrame, count)
        said = self.said(frame.user_message_id)
        if said and not any(m["id"] == frame.user_message_id for m in self.messages):
            self.messages.append(
                {
                    "id": frame.user_message_id,
                    "role": "user",
                    "parts": [{"type": "text", "text": text} for text in said.split("\n")],
                }
            )
        return await self.resumed(frame.message_id)

    async def resumed(self, message_id: str) -> Turn:
        """Resume a message; it replaces the partial one."""
        self.messages = [m for m in self.messages if m["id"] != message_id]
        frame = ResumeFrame("r", {}, self.chat_id, message_id)
        reader = await self.chat.resume(frame, user=self.user, client=self.client)
        assert reader is not None
        async with asyncio.timeout(LIMIT):
            return await self.read(reader)

    async def chats(self) -> dict[str, Any]:
        """The stored chat."""
        return await self.engine.get_chat(self.chat_id, user=self.user)

    def said(self, message_id: str) -> str:
        """The transcript of a message so far."""
        texts = [f.text for f in self.frames if _is_of(f, message_id)]
        return texts[-1] if texts else ""

    async def listen(self) -> None:
        """Receive frames until the context ends."""
        async for piece in self.chat.outbox.read():
            if isinstance(piece, bytes):
                self.audio.extend(piece)
            else:
                self.frames.append(piece)
            self._news.set()

    @property
    def ended(self) -> ChatEnded | None:
        """How the chat ended."""
        return next((f for f in self.frames if isinstance(f, ChatEnded)), None)


def _is_of(frame: object, message_id: str) -> bool:
    return isinstance(frame, TranscriptFrame) and frame.message_id == message_id


@asynccontextmanager
async def calling(
    caller: Caller,
    *,
    audio: bool = True,
    by_client: bool = False,
    timings: LiveTimings | None = None,
) -> AsyncIterator[Caller]:
    """Have the chat open live."""
    live = await open_live(
        caller.engine,
        caller.chat_id,
        user=caller.user,
        client=caller.client,
        options=LiveOptions(
            with_audio=audio,
            marked_by_client=by_client,
            run_config=live_run_config(caller.engine.resources.options),
            timings=timings or LiveTimings(),
        ),
    )
    assert isinstance(live, LiveChat)
    caller.live = live
    listening = asyncio.create_task(caller.listen())
    try:
        yield caller
    finally:
        async with asyncio.timeout(LIMIT):
            await live.close()
        listening.cancel()
    await _settled(caller)


async def _settled(caller: Caller) -> None:
    """After a live run no part of the chat is left running; another socket may have taken it."""
    resources = caller.engine.resources
    if resources.turns.chat_owners.of(caller.key) is not None:
        return
    async with asyncio.timeout(LIMIT):
        for _ in itertools.count():
            try:
                chat = await caller.chats()
            except Unknown:
                # Nothing was said.
                return
            if chat["status"] != "running":
                break
    survey = resources.survey
    client_tools = {
        tool.name
        for agent, tools in survey.tools.items()
        for tool in tools
        if survey.facts(agent, tool.name).kind in ("client", "gated-client")
    }
    left = running_parts(chat, client_tools)
    assert left == [], left


def spoken_response(text: str, *, hertz: int = 300, **more: Any) -> dict[str, Any]:
    """A response of a tone and its transcript."""
    spoken = {"role": "model", "text": text}
    parts = [{"audio": {"tone_hz": hertz, "seconds": 0.1}}, {"transcript": spoken}]
    return {"parts": parts, **more}


async def agree(caller: Caller) -> None:
    """The message that the client holds, the stored one, and the one sent again are the same."""
    held = caller.messages[-1]
    told = [m for m in (await caller.chats())["messages"] if m["id"] == held["id"]]
    assert [comparable(m) for m in told] == [comparable(held)]
    again = Caller(
        caller.engine, caller.release, caller.major, caller.user, caller.chat_id, live=caller.live
    )
    if caller.live is not None and not caller.ended:
        turn = await again.resumed(held["id"])
        assert comparable(turn.message) == comparable(held)


def question(text: str, name: str = "user-x") -> dict[str, Any]:
    return {"id": name, "role": "user", "parts": [{"type": "text", "text": text}]}
