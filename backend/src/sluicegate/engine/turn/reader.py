"""Readers of responses: the chunks that are known already, then the stream as it grows."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Literal, Protocol

from sluicegate.engine.telemetry import reader_closed, reader_opened
from sluicegate.errors import StoreError
from sluicegate.wire.chunks import BaseChunk, decode_chunk
from sluicegate.wire.encoding import encode_chunk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from sluicegate.engine.models.reader_backpressure import ReaderBackpressure
    from sluicegate.stores.streams.base import StreamReader

_BATCH_INTERVAL: Final = 0.001
"""Seconds between two batches: chunks that come sooner are batched, so a burst costs little."""

_LAST_CHUNKS: Final = ("finish", "error")


class OnClose(Protocol):
    """Called once when a reader is closed."""

    def __call__(self, *, aborted: bool) -> None:
        """``aborted``: the client has said that it reads no more."""


class TurnReader:
    """An async iterator of chunks for the client's major version; closing it stops no turn.

    ``head`` comes first, then ``stream``. ``backpressure`` lets the writer wait for slow readers.
    """

    def __init__(
        self,
        head: Sequence[BaseChunk],
        stream: StreamReader | None,
        *,
        major: Literal[6, 7],
        on_close: OnClose | None = None,
        backpressure: ReaderBackpressure | None = None,
    ) -> None:
        self._head = head
        self._stream = stream
        self._major: Literal[6, 7] = major
        self._on_close = on_close
        self._backpressure = backpressure
        self._is_closed = False
        if stream is not None:
            reader_opened()
        if backpressure is not None and stream is not None:
            backpressure.add_reader(stream)

    @property
    def backlog(self) -> int:
        """Bytes of chunks that are ready and not read."""
        return 0 if self._stream is None else self._stream.backlog

    async def texts(self) -> AsyncIterator[Sequence[str]]:
        """The chunks as JSON texts, those that are ready together in one batch.

        The first of a burst is never delayed; those of the next millisecond form one batch.

        Raises:
            StoreError: the turn has ended without its last chunk.
        """
        if self._head:
            head = (encode_chunk(chunk).text_for(self._major) for chunk in self._head)
            yield [text for text in head if text is not None]
        if self._stream is None:
            return
        clock, last_batch_at, last = asyncio.get_running_loop().time, 0.0, ""
        async for batch in self._stream:
            early = last_batch_at + _BATCH_INTERVAL - clock()
            if early > 0 and self._stream.backlog == 0:
                await asyncio.sleep(early)
                batch = [*batch, *self._stream.read_nowait()]
            last = batch[-1].kind
            if self._backpressure is not None:
                self._backpressure.reader_advanced()
            if self._head and batch[0].kind == "start":
                batch = batch[1:]
            last_batch_at = clock()
            if self._major == 7:
                yield [chunk.text for chunk in batch]
            else:
                yield [chunk.text_for_6 for chunk in batch if chunk.text_for_6 is not None]
        if last not in _LAST_CHUNKS:
            # A clean end of the response would count as success.
            raise StoreError("The turn ended without its last chunk.")

    async def __aiter__(self) -> AsyncIterator[BaseChunk]:
        async for texts in self.texts():
            for text in texts:
                yield decode_chunk(text)

    async def detach(self) -> None:
        """Close the reader and let the turn run to its end without any."""
        self._on_close = None
        await self.aclose()

    async def aclose(self, *, aborted: bool = False) -> None:
        """Close the reader; the turn runs on.

        A turn without readers is stopped after the setting ``linger``, or after
        ``abort_grace`` when its last reader ``aborted``.
        """
        if self._stream is not None:
            if self._backpressure is not None:
                self._backpressure.remove_reader(self._stream)
            await self._stream.aclose()
            if not self._is_closed:
                self._is_closed = True
                reader_closed()
        if self._on_close is not None:
            self._on_close(aborted=aborted)
            self._on_close = None
