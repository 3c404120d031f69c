"""The files that models were given last, kept in memory in the form of the request."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from sluicegate.media.file_inspection import (
    count_pages,
    longest_side,
)
from sluicegate.media.heic_conversion import CONVERSION_TYPE, convert_to_jpeg
from sluicegate.media.litellm_blocks import data_url
from sluicegate.media.model_request_shaping import LoadedFile

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.media.model_request_shaping import FileForm

    Key: TypeAlias = tuple[ChatKey, str, FileForm]


class Timers(Protocol):
    """The clock and the timers of an event loop."""

    def time(self) -> float:
        """Return the time of the clock in seconds."""

    def call_later(self, delay: float, callback: Callable[[], None], /) -> object:
        """Call back after a delay in seconds."""


@dataclass(slots=True)
class _Cached:
    form: LoadedFile
    used_at: float


class FileCache:
    """The forms of files that models are sent, by chat, name and form (S4-R45).

    A name is a digest of the content; the chat is part of the key, so that no chat reads the files
    of another one. The cache holds at most ``max_bytes`` and evicts the least recently used form,
    and each form that was not used for ``ttl`` seconds. Each form is read once at a time.

    ``timers`` is the running event loop unless a test hands in another one.
    """

    def __init__(self, max_bytes: int, ttl: float, timers: Timers | None = None) -> None:
        self._max_bytes = max_bytes
        self._ttl = ttl
        self._timers = timers
        self._forms: OrderedDict[Key, _Cached] = OrderedDict()
        self._size = 0
        self._is_timed = False
        self._reading: dict[Key, asyncio.Future[LoadedFile]] = {}

    @property
    def size(self) -> int:
        """Bytes in the cache."""
        return self._size

    async def get(self, key: Key, read: Callable[[], Awaitable[tuple[bytes, str]]]) -> LoadedFile:
        """Return a form of a file; ``read`` returns its bytes and type if it is not cached.

        Raises:
            Exception: Any error of ``read``.
        """
        cached = self._forms.get(key)
        if cached is not None:
            self._forms.move_to_end(key)
            cached.used_at = self._clock().time()
            return cached.form
        running = self._reading.get(key)
        if running is None:
            running = asyncio.ensure_future(self._read(key, read))
            self._reading[key] = running
            running.add_done_callback(lambda _: self._reading.pop(key, None))
        # A cancelled caller must not cancel a read that another one waits for.
        return await asyncio.shield(running)

    async def _read(self, key: Key, read: Callable[[], Awaitable[tuple[bytes, str]]]) -> LoadedFile:
        data, media_type = await read()
        loaded = await asyncio.to_thread(_form, data, media_type, key[2])
        self._add(key, loaded)
        return loaded

    def _add(self, key: Key, loaded: LoadedFile) -> None:
        size = _size_of(loaded)
        if size > self._max_bytes:
            return
        self._forms[key] = _Cached(loaded, self._clock().time())
        self._size += size
        while self._size > self._max_bytes:
            self._evict_oldest()
        self._schedule_eviction()

    def _clock(self) -> Timers:
        return self._timers or asyncio.get_running_loop()

    def _schedule_eviction(self) -> None:
        if self._is_timed or not self._forms:
            return
        clock, oldest = self._clock(), next(iter(self._forms.values()))
        self._is_timed = True
        clock.call_later(max(0, oldest.used_at + self._ttl - clock.time()), self._evict_unused)

    def _evict_unused(self) -> None:
        self._is_timed = False
        unused_since = self._clock().time() - self._ttl
        while self._forms and next(iter(self._forms.values())).used_at <= unused_since:
            self._evict_oldest()
        self._schedule_eviction()

    def _evict_oldest(self) -> None:
        _, oldest = self._forms.popitem(last=False)
        self._size -= _size_of(oldest.form)


def _size_of(loaded: LoadedFile) -> int:
    return len(loaded.data) + len(loaded.url)


def _form(data: bytes, media_type: str, form: FileForm) -> LoadedFile:
    if form in ("jpeg", "jpeg-url"):
        data, media_type = convert_to_jpeg(data), CONVERSION_TYPE
    side, count = longest_side(data, media_type), count_pages(data, media_type)
    if form in ("bytes", "jpeg"):
        return LoadedFile(data=data, side=side, pages=count)
    return LoadedFile(url=data_url(data, media_type), side=side, pages=count)
