"""What a process tells the others of a turn that it runs, so that they can show it."""

from __future__ import annotations

import asyncio
import functools
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from sluicegate.core.history import for_reader, resumable
from sluicegate.engine.turn.reader import TurnReader
from sluicegate.wire.chunks import StartChunk, decode_chunk
from sluicegate.wire.encoding import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluicegate.core.keys import ChatKey, TurnKey
    from sluicegate.engine.turn.runner import RunningTurn
    from sluicegate.stores.leases.base import Leases
    from sluicegate.stores.streams.base import OpenStream, StreamStore
    from sluicegate.wire.chunks import BaseChunk, Major


@dataclass(frozen=True, slots=True)
class TurnDescription:
    """One running turn.

    ``prefix`` are the JSON texts of what the message holds besides this turn's chunks; ``for_6``
    and ``all_for_6`` say whether a client of AI SDK 6 can take the turn, and the whole message.
    """

    message: str
    user_message: str
    for_6: bool
    all_for_6: bool
    prefix: tuple[str, ...] = ()

    @classmethod
    def of(cls, turn: RunningTurn) -> TurnDescription:
        """Look at a turn that begins."""
        before = turn.before
        return cls(
            turn.stamp.message,
            turn.stamp.user_message,
            not turn.is_previewed,
            not turn.is_previewed and (before is None or resumable(before, major=6)),
            tuple(to_json(chunk) for chunk in turn.prefix),
        )

    @classmethod
    def read(cls, text: str) -> TurnDescription | None:
        """Read what `text` wrote; None where another version has written something else."""
        try:
            told = json.loads(text)
            return cls(**{**told, "prefix": tuple(told["prefix"])})
        except (KeyError, TypeError, ValueError):
            return None

    def text(self) -> str:
        """Write it down."""
        return json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":"))

    def head(self, major: Major) -> list[BaseChunk]:
        """The message before this turn, for a reader who holds nothing of it."""
        chunks = [decode_chunk(text) for text in self.prefix]
        return [StartChunk(message_id=self.message), *for_reader(chunks, major=major)]


READ_TTL: Final = 15.0
"""How long a process that runs a turn believes that it is read elsewhere."""

_FIRST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 0.25


@dataclass(frozen=True, slots=True)
class RemoteTurn:
    """A chat that another process holds; the stream is None where streams are not shared."""

    fence: int
    is_live: bool
    stream: OpenStream | None
    about: TurnDescription | None

    def is_running(self, message: str, *, last: bool) -> bool:
        """Whether the answer with this id goes on there; ``last``: it is the newest of the chat."""
        if self.about is not None:
            return self.about.message == message
        return last and not self.is_live


@dataclass(frozen=True, slots=True)
class ChatLocation:
    """How a chat stands: the fence of its last holder, and who holds it in another process.

    Without a fence, nobody has looked.
    """

    fence: int | None = None
    away: RemoteTurn | None = None


UNSEEN: Final = ChatLocation()


class Backoff:
    """Pauses that grow, up to a time in all."""

    def __init__(self, seconds: float) -> None:
        """Take how many seconds may be spent."""
        self._deadline = asyncio.get_running_loop().time() + seconds
        self._pause = _FIRST_PAUSE

    async def __call__(self) -> bool:
        """Pause; False, without one, when the time is over."""
        if asyncio.get_running_loop().time() >= self._deadline:
            return False
        await asyncio.sleep(self._pause)
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        return True


class Replicas:
    """Looks at chats that are not held here; the same process never asks."""

    def __init__(
        self,
        leases: Leases,
        streams: StreamStore,
        is_here: Callable[[ChatKey], bool],
        *,
        alone: bool,
    ) -> None:
        """``alone``: no other process can be on the database; ``is_here``: this one has a chat."""
        self._leases = leases
        self._streams = streams
        self._is_here = is_here
        self._alone = alone
        self._readers: dict[TurnKey, int] = {}

    async def place(self, chat: ChatKey) -> ChatLocation:
        """How a chat stands now."""
        state = await self._leases.state(chat)
        if self._alone or state.owner is None or self._is_here(chat):
            return ChatLocation(state.fence)
        stream = await self._streams.find(chat)
        if stream is not None and stream.key.fence != state.fence:
            stream = None
        about = None if stream is None else TurnDescription.read(stream.description)
        is_live = ":live-" in state.owner
        return ChatLocation(state.fence, RemoteTurn(state.fence, is_live, stream, about))

    async def whole(self, away: RemoteTurn, major: Major) -> TurnReader | None:
        """A reader of the running message from its beginning, if a client can take it."""
        if away.about is None or not (major == 7 or away.about.all_for_6):
            return None
        return await self._reader(away, major, away.about.head(major))

    async def turn(self, away: RemoteTurn, major: Major) -> TurnReader | None:
        """A reader of the running turn alone, if a client can take it."""
        if away.about is None or not (major == 7 or away.about.for_6):
            return None
        return await self._reader(away, major, ())

    def read_here(self) -> list[TurnKey]:
        """The turns of other processes that have readers here."""
        return list(self._readers)

    async def until_left(self, chat: ChatKey, fence: int, within: float) -> None:
        """Wait until the holder with this fence has let go of the chat, or is gone."""
        pause = Backoff(within)
        while await pause():
            state = await self._leases.state(chat)
            if state.fence != fence or state.owner is None:
                return

    async def stop(self, chat: ChatKey, fence: int, within: float) -> None:
        """Have the holder stop what it runs, and wait until it has."""
        await self._leases.request_stop(chat, fence=fence)
        pause = Backoff(within)
        while await pause():
            state = await self._leases.state(chat)
            if state.fence != fence or state.owner is None or not state.stop_requested:
                return

    async def _reader(
        self, away: RemoteTurn, major: Major, head: Sequence[BaseChunk]
    ) -> TurnReader | None:
        if away.stream is None:
            return None
        key = away.stream.key
        reader = TurnReader(
            head, away.stream.read(), major=major, left=functools.partial(self._left, key)
        )
        self._readers[key] = self._readers.get(key, 0) + 1
        await self._leases.record_reader(key.chat, fence=key.fence, ttl=READ_TTL)
        return reader

    def _left(self, key: TurnKey, *, aborted: bool) -> None:
        self._readers[key] -= 1
        if not self._readers[key]:
            del self._readers[key]
