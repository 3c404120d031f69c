"""Turns of other processes on the same database: where a chat runs, and readers of its stream."""

from __future__ import annotations

import functools
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from sluicegate.core.history import for_reader, resumable
from sluicegate.engine.polling_backoff import Backoff
from sluicegate.engine.turn.lease_owner_ids import is_live_owner
from sluicegate.engine.turn.reader import TurnReader
from sluicegate.wire.chunks import StartChunk, decode_chunk
from sluicegate.wire.encoding import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from sluicegate.core.chat_and_turn_keys import ChatKey, TurnKey
    from sluicegate.engine.turn.running_turn import RunningTurn
    from sluicegate.stores.leases.base import Leases
    from sluicegate.stores.streams.base import OpenStream, StreamStore
    from sluicegate.wire.chunks import BaseChunk, Major


@dataclass(frozen=True, slots=True)
class TurnDescription:
    """A running turn as other processes need it; it is stored beside the turn's stream.

    ``prefix`` are the JSON texts of the message before this turn's chunks; ``for_6`` and
    ``all_for_6`` say whether a client of AI SDK 6 can read the turn, and the whole message.
    """

    message: str
    user_message: str
    for_6: bool
    all_for_6: bool
    prefix: tuple[str, ...] = ()

    @classmethod
    def of(cls, turn: RunningTurn) -> TurnDescription:
        """Describe a turn that starts."""
        before = turn.before
        return cls(
            turn.stamp.message,
            turn.stamp.user_message,
            not turn.is_previewed,
            not turn.is_previewed and (before is None or resumable(before, major=6)),
            tuple(to_json(chunk) for chunk in turn.prefix),
        )

    @classmethod
    def from_json(cls, text: str) -> TurnDescription | None:
        """Read the result of `to_json`; None if another version has written it."""
        try:
            fields = json.loads(text)
            return cls(**{**fields, "prefix": tuple(fields["prefix"])})
        except (KeyError, TypeError, ValueError):
            return None

    def to_json(self) -> str:
        """Write the description as JSON."""
        return json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":"))

    def head(self, major: Major) -> list[BaseChunk]:
        """The message before this turn, for a reader that has nothing of it."""
        chunks = [decode_chunk(text) for text in self.prefix]
        return [StartChunk(message_id=self.message), *for_reader(chunks, major=major)]


READ_TTL: Final = 15.0
"""Seconds for which a note that a turn is read in another process holds."""


@dataclass(frozen=True, slots=True)
class RemoteTurn:
    """A chat whose lease another process holds; no stream where streams are not shared."""

    fence: int
    is_live: bool
    stream: OpenStream | None
    description: TurnDescription | None

    def is_running(self, message: str, *, last: bool) -> bool:
        """Whether it answers the message with this id; ``last``: the newest of the chat."""
        if self.description is not None:
            return self.description.message == message
        return last and not self.is_live


@dataclass(frozen=True, slots=True)
class ChatLocation:
    """The fencing token of the chat's last owner, and the owner if it is another process.

    Without a token the lease was not read.
    """

    fence: int | None = None
    remote: RemoteTurn | None = None


UNREAD: Final = ChatLocation()
"""The location of a chat whose lease was not read."""


class Replicas:
    """Locates chats, and reads and stops turns of other processes.

    ``alone``: no other process can use the database. ``is_local``: this process owns a chat.
    """

    def __init__(
        self,
        leases: Leases,
        streams: StreamStore,
        is_local: Callable[[ChatKey], bool],
        *,
        alone: bool,
    ) -> None:
        self._leases = leases
        self._streams = streams
        self._is_local = is_local
        self._alone = alone
        self._readers: dict[TurnKey, int] = {}

    async def locate(self, chat: ChatKey) -> ChatLocation:
        """Read the lease of a chat."""
        state = await self._leases.state(chat)
        if self._alone or state.owner is None or self._is_local(chat):
            return ChatLocation(state.fence)
        stream = await self._streams.find(chat)
        if stream is not None and stream.key.fence != state.fence:
            stream = None
        description = None if stream is None else TurnDescription.from_json(stream.description)
        is_live = is_live_owner(state.owner)
        return ChatLocation(state.fence, RemoteTurn(state.fence, is_live, stream, description))

    async def running_remotely(self, chats: Collection[ChatKey]) -> set[ChatKey]:
        """The chats among these that another process answers; one that is open live may rest."""
        if self._alone:
            return set()
        states = await self._leases.states(chats)
        return {
            chat
            for chat, state in states.items()
            if state.owner is not None
            and not is_live_owner(state.owner)
            and not self._is_local(chat)
        }

    async def message_reader(self, remote: RemoteTurn, major: Major) -> TurnReader | None:
        """A reader of the running message from its beginning, if the client can read it."""
        description = remote.description
        if description is None or not (major == 7 or description.all_for_6):
            return None
        return await self._reader(remote, major, description.head(major))

    async def turn_reader(self, remote: RemoteTurn, major: Major) -> TurnReader | None:
        """A reader of the running turn alone, if the client can read it."""
        if remote.description is None or not (major == 7 or remote.description.for_6):
            return None
        return await self._reader(remote, major, ())

    def read_here(self) -> list[TurnKey]:
        """The turns of other processes that have readers here."""
        return list(self._readers)

    async def wait_released(self, chat: ChatKey, fence: int, within: float) -> bool:
        """Wait until the owner with this token has released the chat or is gone."""
        pause = Backoff(within)
        while await pause():
            state = await self._leases.state(chat)
            if state.fence != fence or state.owner is None:
                return True
        return False

    async def stop(self, chat: ChatKey, fence: int, within: float) -> bool:
        """Ask the owner to stop its turn and wait; return whether the chat has no owner now.

        An owner that is gone leaves its chat as it was.
        """
        await self._leases.request_stop(chat, fence=fence)
        pause = Backoff(within)
        while await pause():
            state = await self._leases.state(chat)
            if state.owner is None or state.fence != fence or not state.stop_requested:
                return state.owner is None
        return False

    async def release(self, chat: ChatKey, within: float) -> bool:
        """Ask the live chat of another process to release a chat; return whether it has.

        A process that is gone loses its lease within the time.
        """
        state = await self._leases.state(chat)
        if state.owner is None:
            return True
        if self._is_local(chat) or not is_live_owner(state.owner):
            return False
        await self._leases.request_release(chat, fence=state.fence)
        return await self.wait_released(chat, state.fence, within)

    async def _reader(
        self, remote: RemoteTurn, major: Major, head: Sequence[BaseChunk]
    ) -> TurnReader | None:
        if remote.stream is None:
            return None
        key = remote.stream.key
        reader = TurnReader(
            head,
            remote.stream.read(),
            major=major,
            on_close=functools.partial(self._reader_closed, key),
        )
        self._readers[key] = self._readers.get(key, 0) + 1
        await self._leases.record_reader(key.chat, fence=key.fence, ttl=READ_TTL)
        return reader

    def _reader_closed(self, key: TurnKey, *, aborted: bool) -> None:
        self._readers[key] -= 1
        if not self._readers[key]:
            del self._readers[key]
