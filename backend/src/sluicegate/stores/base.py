"""The ports of the stores: what the engine may ask of them, whatever stands behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol, Self

from sluicegate.errors import StoreError
from sluicegate.wire.encoding import EncodedChunk, encode_chunk

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Sequence

    from pydantic import JsonValue

    from sluicegate.core.approvals import ApprovalRow, Decision, NewApproval
    from sluicegate.core.keys import CallKey, ChatKey, TurnKey
    from sluicegate.wire.chunks import BaseChunk


MAX_CHUNKS: Final = 50_000
"""Chunks of one turn, unless a setting says otherwise."""

MAX_BYTES: Final = 8 * 1024 * 1024
"""Bytes of the encoded chunks of one turn, unless a setting says otherwise."""

BATCH_BYTES: Final = 16 * 1024
"""What a reader takes at once, unless a single chunk is larger."""


class StreamFull(StoreError):
    """The turn passed its bound of chunks or bytes; end it with an error (D5)."""


def stored(chunk: BaseChunk | EncodedChunk) -> EncodedChunk:
    """Return what a store keeps of a chunk; one that comes from a store stays as it is.

    Raises:
        StoreError: the chunk cannot be encoded.
    """
    if isinstance(chunk, EncodedChunk):
        return chunk
    try:
        return encode_chunk(chunk)
    except (RecursionError, TypeError, ValueError) as error:
        raise StoreError(f"a chunk cannot be encoded: {type(error).__name__}") from error


class StreamWriter(Protocol):
    """The writer's seat of one turn."""

    async def append(self, chunk: BaseChunk | EncodedChunk) -> None:
        """Add the next chunk of the turn, sequence from 0.

        The chunk that would pass a bound is refused with `StreamFull`. That happens once per turn:
        what ends the turn afterwards has as much room again.

        Raises:
            StreamFull: the turn has grown over its bound; the chunk is not in the stream.
            StoreError: the turn is closed, a turn with a higher fence has taken the seat, or the
                chunk cannot be encoded.
        """

    async def conclude(self) -> None:
        """Let other processes know that this was the last chunk; readers here are not told yet.

        It comes before the lease is given back: who then finds neither an end nor a holder knows
        that this process is gone.
        """

    async def close(self) -> None:
        """End the turn; readers that hold it still get all of it. A second call does nothing."""


class StreamReader(Protocol):
    """One reader of one turn, an iterator of batches; it waits without asking again and again."""

    @property
    def behind(self) -> int:
        """Bytes of chunks that are there and were not taken; 0 where nobody can tell."""

    def __aiter__(self) -> Self:
        """Return itself."""

    async def __anext__(self) -> Sequence[EncodedChunk]:
        """Wait for the next chunks and take all that are ready, up to `BATCH_BYTES`."""

    def ready(self) -> Sequence[EncodedChunk]:
        """Take what is ready, up to `BATCH_BYTES`, and do not wait; perhaps nothing."""

    async def aclose(self) -> None:
        """Stop reading."""


class OpenStream(Protocol):
    """A turn that somebody writes, here or elsewhere."""

    @property
    def key(self) -> TurnKey:
        """Which turn it is."""

    @property
    def about(self) -> str:
        """What the writer said of the turn when it began."""

    def read(self) -> StreamReader:
        """Return the turn from sequence 0 to its close.

        The reader ends early when a turn with a higher fence takes the seat.
        """


class StreamStore(Protocol):
    """The chunks of the turns that run, one writer and any number of readers per chat."""

    async def open(self, turn: TurnKey, *, about: str = "") -> StreamWriter | None:
        """Take the writer's seat, also from a turn with a lower fence.

        None while a turn of this chat with the same or a higher fence has it.
        """

    async def find(self, chat: ChatKey) -> OpenStream | None:
        """Return the turn of a chat that is open; what was found stays readable.

        None also where the store cannot be asked: what is not found is in the session's log.
        """

    @property
    def is_shared(self) -> bool:
        """Whether other processes find here what this one writes."""

    def followed(self) -> Collection[TurnKey]:
        """Return the turns that are read here and written by other processes."""

    async def give_up(self, turn: TurnKey, last: BaseChunk) -> None:
        """End a followed turn with a last chunk: its writer is gone."""

    async def check(self) -> bool:
        """Return whether the store can be asked."""

    async def aclose(self) -> None:
        """Let go of everything; no turn may be open."""


class Ledger(Protocol):
    """Who decided what and when, and which calls have run (A1); one row per gated call.

    Every change is a compare-and-set along `TRANSITIONS`, noted in the audit trail in the same
    transaction (A10), and every time is the database's. All
    methods raise StoreError when the database cannot answer; nothing has changed then, unless
    the reply to a commit was lost: look before a change is repeated.
    """

    async def request(self, new: Sequence[NewApproval]) -> None:
        """Remember requests; those that are known already stay as they are."""

    async def decide(
        self, decisions: Sequence[Decision], *, by: str, via: str = ""
    ) -> list[ApprovalRow]:
        """Record the answers of one person, all or none, and return the rows as they are then.

        The first answer to a request wins, and a request that is not known is remembered first.
        An answer past the deadline makes the row ``expired`` and stands in ``answer``. If one of
        the answers contradicts an earlier one, or its row is superseded, none is recorded (A4).
        The rows come in the order of the decisions. ``via`` is the transport that brought them.

        Raises:
            StoreError: the decisions contradict each other, or a row has other arguments.
        """

    async def approve_remembered(self, new: NewApproval) -> ApprovalRow | None:
        """Approve a call of a tool that is remembered in its chat, without asking (A8).

        Returns the row, also one that was made so before; None when the tool has to ask.
        """

    async def supersede(self, keys: Sequence[CallKey]) -> list[ApprovalRow]:
        """Close what waits or is approved but not claimed (A5).

        Returns the rows as they are then, in the order of the keys, without unknown ones.
        """

    async def expire(self, chat: ChatKey) -> list[ApprovalRow]:
        """Close what waited past its deadline (A5); an answer that came in time holds.

        Returns the rows that changed.
        """

    async def claim(
        self, key: CallKey, *, owner: str, args_hash: str, is_again: bool = False
    ) -> ApprovalRow | None:
        """Move an approved call to ``executing``, just before its effect.

        ``is_again``: only a call whose outcome is ``unknown``, of a tool that may run twice (A9).
        Returns None to the one who won, else the row as it is. Other arguments never win.

        Raises:
            StoreError: also when there is no such row.
        """

    async def finish(
        self,
        key: CallKey,
        *,
        owner: str,
        state: Literal["executed", "failed"],
        outcome: JsonValue,
    ) -> bool:
        """Store the outcome of a claimed call; False if the row did not wait for it.

        Only the owner that claimed may do this, but anybody who knows that an ``unknown`` call
        was executed may say so.

        Raises:
            StoreError: also when the outcome is not JSON.
        """

    async def refuse(self, key: CallKey, reason: str) -> bool:
        """Close an approved call that policy forbids; the reason stands in its outcome."""

    async def abandon(self, chat: ChatKey, *, owners_alive: Container[str]) -> list[ApprovalRow]:
        """Move claimed calls whose owner is gone to ``unknown``; returns the rows that changed."""

    async def rows(self, chat: ChatKey) -> list[ApprovalRow]:
        """Return every row of a chat, oldest request first."""

    async def forget(self, chat: ChatKey) -> None:
        """Drop what the calls of a deleted chat were about: arguments, hints, results.

        Who decided what and when stays, with the hashes of the arguments.
        """

    async def pending(self, app: str, user: str) -> dict[str, int]:
        """Return how many requests wait, by chat id; chats without any are left out."""


@dataclass(frozen=True, slots=True)
class ChatEntry:
    """One line of the list of chats; ``updated_at`` is seconds since the epoch."""

    key: ChatKey
    title: str | None
    updated_at: float


@dataclass(frozen=True, slots=True)
class ChatPage:
    """Some chats, newest first; ``next`` is the cursor of what follows, None at the end."""

    chats: list[ChatEntry]
    next: str | None


class Chats(Protocol):
    """The list of a user's chats."""

    async def touch(self, chat: ChatKey, *, title: str | None) -> None:
        """Put the chat on top, adding it if it is new; a title that is there stays."""

    async def page(
        self, app: str, user: str, *, limit: int, after: str | None, query: str | None
    ) -> ChatPage:
        """Return up to ``limit`` chats behind the cursor ``after``, newest first.

        ``query`` is looked for anywhere in the titles, upper and lower case alike.

        Raises:
            Malformed: the cursor is none of ours.
        """

    async def get(self, chat: ChatKey) -> ChatEntry | None:
        """Return the entry of a chat."""

    async def rename(self, chat: ChatKey, title: str) -> bool:
        """Set the title; False when there is no such chat. Its place in the list stays."""

    async def delete(self, chat: ChatKey) -> bool:
        """Take the chat out of the list; False when it was not there. The ledger keeps its rows."""
