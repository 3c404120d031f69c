"""One reader of one response: what came before, then the stream as it grows."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Protocol

from sluicegate.errors import StoreError
from sluicegate.wire.chunks import BaseChunk, decode_chunk
from sluicegate.wire.encoding import encode_chunk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from sluicegate.core.release.policy import ReleasePolicy
    from sluicegate.engine.models.fast_lane import ReaderBackpressure
    from sluicegate.stores.streams.base import StreamReader
    from sluicegate.tools.client_tools import ClientTool

GATHERED: Final = 0.001
"""Seconds from one batch to the next: what comes sooner waits for it, so a burst costs little."""

_ENDS: Final = ("finish", "error")


@dataclass(frozen=True, slots=True)
class Client:
    """The AI SDK's major, and the release it wishes for (header ``x-release``).

    ``via`` is what the transport calls itself in the audit trail (A10). ``tools`` are what the page
    brings along, which its request says.
    """

    major: Literal[6, 7]
    release: ReleasePolicy | None = None
    via: str = field(default="", compare=False)
    tools: tuple[ClientTool, ...] = field(default=(), compare=False)


class Left(Protocol):
    """Is told that a reader has left."""

    def __call__(self, *, aborted: bool) -> None:
        """Note it."""


class TurnReader:
    """An async iterator of chunks, fit for the client's major; leaving it stops nothing."""

    def __init__(
        self,
        head: Sequence[BaseChunk],
        live: StreamReader | None,
        *,
        major: Literal[6, 7],
        left: Left | None = None,
        pace: ReaderBackpressure | None = None,
    ) -> None:
        """Take what comes first, what follows, and whom to tell of leaving and of being behind."""
        self._head = head
        self._live = live
        self._major: Literal[6, 7] = major
        self._left = left
        self._pace = pace
        if pace is not None and live is not None:
            pace.add_reader(live)

    @property
    def behind(self) -> int:
        """Bytes of chunks that are there and were not taken."""
        return 0 if self._live is None else self._live.backlog

    async def texts(self) -> AsyncIterator[Sequence[str]]:
        """The chunks as JSON texts, in one batch all that are ready together.

        The first of a burst is never held; what follows within a millisecond comes together.

        Raises:
            StoreError: the turn has ended without its last chunk.
        """
        if self._head:
            head = (encode_chunk(chunk).text_for(self._major) for chunk in self._head)
            yield [text for text in head if text is not None]
        if self._live is None:
            return
        clock, given_at, last = asyncio.get_running_loop().time, 0.0, ""
        async for batch in self._live:
            early = given_at + GATHERED - clock()
            if early > 0 and self._live.backlog == 0:
                await asyncio.sleep(early)
                batch = [*batch, *self._live.read_nowait()]
            last = batch[-1].kind
            if self._pace is not None:
                self._pace.reader_advanced()
            if self._head and batch[0].kind == "start":
                batch = batch[1:]
            given_at = clock()
            if self._major == 7:
                yield [chunk.text for chunk in batch]
            else:
                yield [chunk.text_for_6 for chunk in batch if chunk.text_for_6 is not None]
        if last not in _ENDS:
            # A clean end of the response would count as success.
            raise StoreError("The turn ended without its last chunk.")

    async def __aiter__(self) -> AsyncIterator[BaseChunk]:
        async for texts in self.texts():
            for text in texts:
                yield decode_chunk(text)

    async def detach(self) -> None:
        """Leave for good: the turn goes on to its end, whether anybody reads or not."""
        self._left = None
        await self.aclose()

    async def aclose(self, *, aborted: bool = False) -> None:
        """This reader leaves; the turn goes on.

        A reader that has ``aborted`` wants no more: if nobody else reads, an ungated turn is
        stopped after the setting ``abort_grace``, else after ``linger``.
        """
        if self._live is not None:
            if self._pace is not None:
                self._pace.remove_reader(self._live)
            await self._live.aclose()
        if self._left is not None:
            self._left(aborted=aborted)
            self._left = None
