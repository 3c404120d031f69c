"""One reader of one response: what came before, then the stream as it grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

from sluicegate.errors import StoreError
from sluicegate.wire.chunks import BaseChunk, ErrorChunk, FinishChunk, StartChunk, for_major

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence


class Left(Protocol):
    """Is told that a reader has left."""

    def __call__(self, *, aborted: bool) -> None:
        """Note it."""


class TurnReader:
    """An async iterator of chunks, fit for the client's major; leaving it stops nothing."""

    def __init__(
        self,
        head: Sequence[BaseChunk],
        live: AsyncIterator[tuple[int, BaseChunk]] | None,
        *,
        major: Literal[6, 7],
        left: Left | None = None,
    ) -> None:
        self._head = head
        self._live = live
        self._major: Literal[6, 7] = major
        self._left = left

    def __aiter__(self) -> AsyncIterator[BaseChunk]:
        return self._chunks()

    async def _chunks(self) -> AsyncIterator[BaseChunk]:
        for chunk in self._head:
            fit = for_major(chunk, self._major)
            if fit is not None:
                yield fit
        if self._live is None:
            return
        ended = False
        async for _, chunk in self._live:
            if self._head and isinstance(chunk, StartChunk):
                continue
            ended = isinstance(chunk, FinishChunk | ErrorChunk)
            fit = for_major(chunk, self._major)
            if fit is not None:
                yield fit
        if not ended:
            # A clean end of the response would count as success.
            raise StoreError("The turn ended without its last chunk.")

    async def aclose(self, *, aborted: bool = False) -> None:
        """This reader leaves; the turn goes on.

        A reader that has ``aborted`` wants no more: if nobody else reads, an ungated turn is
        stopped after the setting ``abort_grace``, else after ``linger``.
        """
        if self._left is not None:
            self._left(aborted=aborted)
            self._left = None
