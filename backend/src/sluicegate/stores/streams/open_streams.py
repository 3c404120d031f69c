"""Opens the stream store of a URL."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

from sluicegate.errors import ConfigurationError
from sluicegate.stores.streams.base import MAX_BYTES, MAX_CHUNKS
from sluicegate.stores.streams.memory import MemoryStreamStore

if TYPE_CHECKING:
    from sluicegate.stores.streams.base import StreamStore
    from sluicegate.stores.streams.valkey import ValkeyStreamStore

MEMORY: Final = "memory"
_PACKAGE: Final = "redis"


async def open_streams(
    url: str, *, max_chunks: int = MAX_CHUNKS, max_bytes: int = MAX_BYTES
) -> StreamStore:
    """Open the store: ``memory``, or a server's URL such as ``valkey://localhost:6379/0``.

    ``max_chunks`` and ``max_bytes`` limit each turn; bytes are those of encoded chunks.

    Raises:
        ConfigurationError: the URL cannot be parsed, or the server refuses the user.
    """
    if url == MEMORY:
        return MemoryStreamStore(max_chunks=max_chunks, max_bytes=max_bytes)
    try:
        module = importlib.import_module("sluicegate.stores.streams.valkey")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != _PACKAGE:
            raise
        raise ConfigurationError(
            "Streams on a server need the package redis; install it with "
            "pip install 'sluicegate[valkey]'."
        ) from error
    store: ValkeyStreamStore = module.ValkeyStreamStore(
        url, max_chunks=max_chunks, max_bytes=max_bytes
    )
    try:
        await store.connect()
    except ConfigurationError:
        await store.aclose()
        raise
    return store
