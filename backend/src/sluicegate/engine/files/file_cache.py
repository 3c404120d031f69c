"""Files that models are sent, kept for the next call: bounded, and each read once at a time."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, TypeAlias

from sluicegate.media.blocks import data_url
from sluicegate.media.measure import longest_side, pages
from sluicegate.media.shaping import Loaded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sluicegate.core.keys import ChatKey
    from sluicegate.media.shaping import Form

    Key: TypeAlias = tuple[ChatKey, str, Form]


class FileCache:
    """Forms of files by chat, name and form; a name is a digest of the content (S4-R45).

    The chat is part of the key: what one chat has read is nothing that another one may see.
    """

    def __init__(self, max_bytes: int) -> None:
        """Take how many bytes are kept; the ones used longest ago go first."""
        self._max_bytes = max_bytes
        self._kept: OrderedDict[Key, Loaded] = OrderedDict()
        self._size = 0
        self._reading: dict[Key, asyncio.Future[Loaded]] = {}

    @property
    def size(self) -> int:
        """Bytes that are kept now."""
        return self._size

    async def get(self, key: Key, read: Callable[[], Awaitable[tuple[bytes, str]]]) -> Loaded:
        """A form of a file; ``read`` gives its bytes and its type when they are not here.

        Raises:
            Exception: what ``read`` raises.
        """
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
            return kept
        running = self._reading.get(key)
        if running is None:
            running = asyncio.ensure_future(self._read(key, read))
            self._reading[key] = running
            running.add_done_callback(lambda _: self._reading.pop(key, None))
        # A caller that is stopped does not stop what another one waits for.
        return await asyncio.shield(running)

    async def _read(self, key: Key, read: Callable[[], Awaitable[tuple[bytes, str]]]) -> Loaded:
        data, media_type = await read()
        loaded = await asyncio.to_thread(_formed, data, media_type, key[2])
        self._keep(key, loaded)
        return loaded

    def _keep(self, key: Key, loaded: Loaded) -> None:
        size = _size_of(loaded)
        if size > self._max_bytes:
            return
        self._kept[key] = loaded
        self._size += size
        while self._size > self._max_bytes:
            _, oldest = self._kept.popitem(last=False)
            self._size -= _size_of(oldest)


def _size_of(loaded: Loaded) -> int:
    return len(loaded.data) + len(loaded.url)


def _formed(data: bytes, media_type: str, form: Form) -> Loaded:
    side, count = longest_side(data, media_type), pages(data, media_type)
    if form == "bytes":
        return Loaded(data=data, side=side, pages=count)
    return Loaded(url=data_url(data, media_type), side=side, pages=count)
