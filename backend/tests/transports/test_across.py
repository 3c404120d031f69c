"""One chat over two transports on the real engine."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.timeouts_and_intervals import EngineTimings
from sluicegate.server.app import build, engine_of
from sluicegate.server.settings import Settings
from sluicegate.wire.chunks import decode_chunk
from sluicegate.wire.reducer import reduce_chunks
from tests.agents.conformance_agent import root_agent
from tests.engine.talk import decide
from tests.patience import LEASE
from tests.server.exchange import PATIENCE, chunks, over_socket, serving, user_message
from tests.stores.builders import PATIENT
from tests.transports.socket_client import SocketClient, abort_frame, opened
from tests.transports.socket_client import chunks as framed

Chunk: TypeAlias = dict[str, Any]
Message: TypeAlias = dict[str, Any]

SSE, SOCKET, LIVE = "sse", "socket", "live"
PAIRS = [(SSE, SOCKET), (SOCKET, SSE), (SOCKET, SOCKET)]
LIVE_PAIRS = [(LIVE, SSE), (SSE, LIVE), (LIVE, SOCKET), (SOCKET, LIVE), (LIVE, LIVE)]
HEADERS = {"x-ai-sdk": "7"}


class Tab:
    """Sends and resumes over either transport."""

    def __init__(self, address: tuple[str, int], engine: ChatEngine) -> None:
        self._address = address
        self._engine = engine

    async def post(self, transport: str, message: Message) -> list[Chunk]:
        body = {"id": "c1", "messages": [message], "trigger": "submit-message"}
        if message["role"] == "assistant":
            body["messageId"] = message["id"]
        if transport == SSE:
            async with over_socket(self._address, headers=HEADERS) as http:
                return chunks((await http.post("/api/chat", json=body)).text)
        async with self.socket(transport) as client:
            return framed(await client.exchange({"type": "send", "requestId": "r1"} | body))

    async def resume(self, transport: str) -> list[Chunk]:
        if transport == SSE:
            async with over_socket(self._address, headers=HEADERS) as http:
                return chunks((await http.get("/api/chat/c1/stream")).text)
        async with self.socket(transport) as client:
            frames = await client.exchange({"type": "resume", "requestId": "r1", "id": "c1"})
            return framed(frames)

    @contextlib.asynccontextmanager
    async def socket(self, transport: str = SOCKET) -> AsyncIterator[SocketClient]:
        path = "/api/live?chat=c1" if transport == LIVE else "/api/chat/ws"
        async with opened(self._address, path) as client:
            yield client
        if transport == LIVE:
            await self._is_released()

    async def _is_released(self) -> None:
        """Wait until the lease of the live chat is released."""
        owners = self._engine.resources.turns.chat_owners
        async with asyncio.timeout(PATIENCE):
            while owners.chats():
                await self.history()

    async def has_readers(self, count: int) -> None:
        """Wait until a turn runs with ``count`` readers; each check is preceded by a request."""
        async with asyncio.timeout(PATIENCE):
            while True:
                turns = self._engine.resources.turns
                running = [turns.running(chat) for chat in set(turns.chats())]
                if [turn.readers for turn in running if turn is not None] == [count]:
                    return
                await self.history()

    async def stop(self) -> None:
        async with over_socket(self._address) as http:
            await http.post("/api/chat/c1/stop")

    async def history(self) -> dict[str, Any]:
        async with over_socket(self._address) as http:
            response = await http.get("/api/chats/c1")
            return dict(response.json()) if response.status_code == 200 else {}


Open: TypeAlias = Callable[..., contextlib.AbstractAsyncContextManager[Tab]]


@pytest.fixture
def open_tab(tmp_path: Path, effects: Path) -> Open:
    @contextlib.asynccontextmanager
    async def opened_tab(**settings: Any) -> AsyncIterator[Tab]:
        url = f"sqlite+aiosqlite:///{tmp_path}/sluicegate.db"
        chosen = Settings(**{"port": 0, "sessions": url, "lease_ttl": LEASE, **settings})
        open_engine = engine_of(root_agent, chosen, timings=EngineTimings(database=PATIENT))
        application = build(open_engine, chosen)
        async with (
            application.app.router.lifespan_context(application.app),
            serving(application, chosen) as address,
        ):
            engine = await application.engine.get()
            assert isinstance(engine, ChatEngine)
            yield Tab(address, engine)

    return opened_tab


def approved(told: list[Chunk]) -> Message:
    """The message of a turn as a page posts it after Approve."""
    message: Message = dict(reduce_chunks([decode_chunk(json.dumps(chunk)) for chunk in told]))
    for part in message["parts"]:
        if part.get("state") == "approval-requested":
            decide(part, approved=True)
    return message


def ran(effects: Path) -> list[str]:
    return [json.loads(line)["tool"] for line in effects.read_text().splitlines()]


def said(told: list[Chunk]) -> str:
    return "".join(chunk["delta"] for chunk in told if chunk["type"] == "text-delta")


@pytest.mark.parametrize("release", ["deferred", "progressive"])
@pytest.mark.parametrize(("first", "second"), [*PAIRS, *LIVE_PAIRS])
async def test_an_exchange_begins_on_one_transport_and_ends_on_another(
    open_tab: Open, effects: Path, first: str, second: str, release: str
) -> None:
    async with open_tab(release=release) as tab:
        asked = await tab.post(first, user_message("story:approval"))
        assert ran(effects) == []
        finished = await tab.post(second, approved(asked))
        again = await tab.post(first, approved(asked))
        history = await tab.history()
    assert ran(effects) == ["pay"]
    assert finished[0] == {"type": "start", "messageId": asked[0]["messageId"]}
    assert said(finished) == "The payment is settled."
    assert finished[-1]["type"] == "finish"
    # Repeating the decision replays the rest of the message, on either transport.
    assert (again[0], said(again), again[-1]) == (finished[0], said(finished), finished[-1])
    assert (len(history["messages"]), history["status"]) == (2, "ready")


@pytest.mark.parametrize(("first", "second"), [*PAIRS, (LIVE, SSE), (LIVE, SOCKET)])
async def test_a_turn_begun_on_one_transport_is_resumed_on_another(
    open_tab: Open, first: str, second: str
) -> None:
    async with open_tab(release="progressive") as tab:
        telling = asyncio.create_task(tab.post(first, user_message("story:stop")))
        await tab.has_readers(1)
        resuming = asyncio.create_task(tab.resume(second))
        await tab.has_readers(2)
        await tab.stop()
        told, again = await telling, await resuming
    assert [chunk["type"] for chunk in again] == [chunk["type"] for chunk in told]
    assert again[0]["messageId"] == told[0]["messageId"]
    assert again[-1]["finishReason"] == "other"


async def test_an_abort_stops_a_turn_without_readers(open_tab: Open) -> None:
    async with open_tab(abort_grace=0.01) as tab, tab.socket() as client:
        await client.send(
            {
                "type": "send",
                "requestId": "r1",
                "id": "c1",
                "messages": [user_message("story:stop")],
            }
        )
        await client.next()
        await client.send({"type": "resume", "requestId": "r2", "id": "c1"})
        assert (await client.next("r2"))["type"] == "start"
        await client.send(abort_frame("r1"))
        # A reader remains, so the turn continues; the abort of the last reader stops it.
        assert (await client.next("r2"))["type"] == "chunk"
        await tab.has_readers(1)
        await client.send(abort_frame("r2"))
        async with asyncio.timeout(PATIENCE):
            while (await tab.history())["status"] == "running":
                pass
        await client.send({"type": "resume", "requestId": "r3", "id": "c1"})
        assert (await client.next("r3"))["type"] == "no-active"
        assert [frame["type"] for frame in client.unread if frame["type"] != "chunk"] == []
