from __future__ import annotations

import sys

import pytest

from sluicegate.errors import ConfigurationError
from sluicegate.stores.streams.from_url import open_stream_store
from sluicegate.stores.streams.memory import MemoryStreamStore
from sluicegate.stores.streams.valkey import ValkeyStreamStore
from tests.real_stores.valkey import Valkey


async def test_streams_are_in_memory_or_on_a_server(valkey: Valkey) -> None:
    memory = await open_stream_store("memory")
    assert isinstance(memory, MemoryStreamStore)
    assert (memory.is_shared, await memory.check()) == (False, True)
    for url in (valkey.url(), valkey.url().replace("valkey:", "redis:")):
        shared = await open_stream_store(url)
        assert isinstance(shared, ValkeyStreamStore)
        assert (shared.is_shared, await shared.check()) == (True, True)
        await shared.aclose()
    await memory.aclose()


async def test_a_wrong_password_is_refused_at_the_start(valkey: Valkey) -> None:
    url = f"valkey://ann:hunter2@127.0.0.1:{valkey.port}/0"
    with pytest.raises(ConfigurationError, match="refuses this client") as refusal:
        await open_stream_store(url)
    assert "hunter2" not in str(refusal.value)


async def test_a_missing_client_is_reported_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [
        name for name in sys.modules if name.startswith("sluicegate.stores.streams.valkey")
    ]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.partition(".")[0] == "redis"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(ConfigurationError, match=r"pip install redis"):
        await open_stream_store("valkey://localhost")
