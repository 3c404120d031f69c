"""One reader of one response: what came before, then the stream as it grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sluicegate.errors import StoreError
from sluicegate.wire.chunks import BaseChunk, ErrorChunk, FinishChunk, StartChunk, for_major

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence


class TurnReader:
    """An async iterator of chunks, fit for the client's major; leaving it stops nothing."""

    def __init__(
        self,
        head: Sequence[BaseChunk],
        live: AsyncIterator[tuple[int, BaseChunk]] | None,
        *,
        major: Literal[6, 7],
        left: Callable[[], None] | None = None,
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

    async def aclose(self) -> None:
        """This reader leaves; the turn goes on."""
        if self._left is not None:
            self._left()
            self._left = None
