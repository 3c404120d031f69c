"""The live socket over a real connection: requests, audio, frames and close codes."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from google.adk.agents.llm_agent import LlmAgent
from websockets.exceptions import InvalidStatus

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.timeouts_and_intervals import EngineTimings
from sluicegate.errors import StoreUnavailable, Unavailable
from sluicegate.live.chat import LiveChat
from sluicegate.live.outgoing_frame_queue import ChatEnded, EndReason
from sluicegate.server.app import Application, build, engine_of
from sluicegate.server.authentication import LOCAL_USER
from sluicegate.server.settings import Settings
from sluicegate.server.uvicorn_server import ServerTimings
from sluicegate.wire.live_frames import SUBPROTOCOL
from tests.engine.loop_time import LoopTime
from tests.engine.stage import Counted, calls, says, scripted
from tests.live.caller import SILENCE, spoken_response, tone
from tests.patience import LEASE
from tests.server.exchange import PATIENCE, chunks, over_socket, serving, user_message
from tests.stores.builders import PATIENT
from tests.transports.live_client import LiveClient, opened_live
from tests.transports.socket_client import chunks as framed
from tests.transports.socket_client import opened, resume_frame, send_frame

Address = tuple[str, int]
SCRIPT = {
    "pay": [calls(("pay", {"n": 3})), spoken_response("It is paid.")],
    "440": [spoken_response("I heard.")],
    "long": [spoken_response("Listen.", wait_ms=100_000)],
    ".": [says("Hello.")],
}
PAY = Counted()
NUMBERS = itertools.count()
INTERRUPT = '{"type":"interrupt","requestId":"live"}'


def agent() -> LlmAgent:
    return scripted(SCRIPT, [PAY.tool()])


@contextlib.asynccontextmanager
async def server(
    folder: Path, timings: ServerTimings | None = None, **settings: Any
) -> AsyncIterator[tuple[Address, ChatEngine]]:
    """A real server of the scripted agent."""
    async with staged(folder, timings, **settings) as (address, application):
        engine = await application.engine.get()
        assert isinstance(engine, ChatEngine)
        yield address, engine


@contextlib.asynccontextmanager
async def staged(
    folder: Path, timings: ServerTimings | None = None, **settings: Any
) -> AsyncIterator[tuple[Address, Application]]:
    """The same server, with its `Application`."""
    url = f"sqlite+aiosqlite:///{folder}/sluicegate.db"
    stores = {"sessions": url, "artifacts": f"file:{folder}/files"}
    chosen = Settings(**{"port": 0, "lease_ttl": LEASE, **stores, **settings})
    open_engine = engine_of(agent(), chosen, timings=EngineTimings(database=PATIENT))
    application = build(open_engine, chosen)
    async with (
        application.app.router.lifespan_context(application.app),
        serving(application, chosen, timings=timings) as address,
    ):
        yield address, application


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Any]:
    """A shared server with the default settings; each test uses its own chat."""
    async with server(tmp_path_factory.mktemp("live")) as found:
        yield found


@pytest.fixture
def address(shared: Any) -> Address:
    found: Address = shared[0]
    return found


@pytest.fixture
def chat() -> str:
    return f"chat-{next(NUMBERS)}"


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_typed_message_is_answered_as_over_the_chat_socket(
    address: Address, chat: str
) -> None:
    async with opened_live(address, chat) as client:
        frames = await client.exchange(send_frame(chat=chat))
    assert [chunk["type"] for chunk in framed(frames)] == [
        "start",
        "start-step",
        "text-start",
        "text-delta",
        "text-end",
        "finish-step",
        "finish",
    ]
    assert frames[-1] == {"type": "end", "requestId": "r1"}


async def test_the_subprotocol_is_accepted_and_ready_has_the_sample_rates(address: Address) -> None:
    path = "/api/live?chat=rates"
    async with opened(address, path, subprotocols=["other", SUBPROTOCOL]) as client:
        assert client.connection.subprotocol == SUBPROTOCOL
        assert await client.next("live") == {
            "type": "ready",
            "requestId": "live",
            "inputRate": 16_000,
            "outputRate": 24_000,
        }


async def test_a_spoken_message_is_answered_with_audio_and_read_by_a_resume(
    address: Address, chat: str
) -> None:
    async with opened_live(address, chat) as client:
        for start in range(0, len(tone(440)), 640):
            await client.send(tone(440)[start : start + 640])
        await client.send(SILENCE)
        heard = await client.live("transcript")
        while not heard["final"]:
            heard = await client.live("transcript")
        assert (heard["role"], heard["text"]) == ("user", "a tone of 440 Hz")
        # A task of its own announces the turn, maybe after the frame that follows it.
        turn = (await client.each_of("turn", "turn-complete"))["turn"]
        assert turn["userMessageId"] == heard["messageId"]
        resume = {**resume_frame(chat=chat), "body": {"messageId": turn["messageId"]}}
        frames = await client.exchange(resume)
        assert frames[0] == {"type": "start", "requestId": "r1"}
        told = framed(frames)
        assert told[0] == {"type": "start", "messageId": turn["messageId"]}
        assert "".join(c["delta"] for c in told if c["type"] == "text-delta") == "I heard."
        assert len(client.audio) == 4800


async def test_a_turn_is_announced_when_no_request_is_open(address: Address, chat: str) -> None:
    async with opened_live(address, chat) as client:
        await client.exchange(send_frame(text="pay", chat=chat))
        async with over_socket(address, headers={"x-ai-sdk": "7"}) as http:
            stored = (await http.get(f"/api/chats/{chat}")).json()["messages"][-1]
            [part] = [p for p in stored["parts"] if p["type"] == "tool-pay"]
            part["state"] = "approval-responded"
            part["approval"] = {**part["approval"], "approved": True}
            answer = {"id": chat, "message": stored, "messageId": stored["id"]}
            before = len(PAY.runs)
            told = chunks((await http.post("/api/chat", json=answer)).text)
        assert told[-1]["finishReason"] == "stop"
        assert len(PAY.runs) == before + 1
        approval = await client.live("approval")
        assert approval == {
            "type": "approval",
            "requestId": "live",
            "approvalId": part["approval"]["id"],
            "state": "approved",
        }
        turn = await client.live("turn")
        assert turn["messageId"] == stored["id"]


async def test_a_second_socket_takes_the_chat_over_and_the_first_is_closed(
    address: Address, chat: str
) -> None:
    async with opened_live(address, chat) as first:
        assert (await first.exchange(send_frame(chat=chat)))[-1]["type"] == "end"
        async with opened_live(address, chat) as second:
            error = await first.live("error")
            assert "take it back" in error["errorText"]
            assert error["code"] == "taken_over"
            assert await first.wait_closed() == (4409, "taken_over")
            frames = await second.exchange(send_frame("r2", "again", chat=chat))
            assert frames[-1]["type"] == "end"


@pytest.mark.asyncio(loop_scope="function")  # The shared server keeps its clock.
async def test_a_frozen_page_loses_its_chat_by_a_missing_pong(tmp_path: Path, chat: str) -> None:
    timings = ServerTimings()
    with LoopTime.of_running_loop() as time:
        # A page sends no pings; without an answer they would close the socket as well.
        async with (
            server(tmp_path, timings) as (address, engine),
            opened(address, f"/api/live?chat={chat}", ping_interval=None) as frozen,
        ):
            await frozen.next("live")
            frozen.connection.transport.pause_reading()
            for seconds in (timings.live_ping, timings.live_pong):
                time.advance(seconds)
                # The timer fires in one round of the loop and has had its effect in the next.
                for _ in range(2):
                    await asyncio.sleep(0)
            async with asyncio.timeout(PATIENCE):
                for _ in itertools.count():
                    if not engine.resources.turns.chat_owners.chats():
                        break
                    await asyncio.sleep(0)
            frozen.connection.transport.abort()


async def test_a_text_over_http_is_refused_while_the_chat_is_open_live(
    address: Address, chat: str
) -> None:
    async with opened_live(address, chat) as client:
        async with over_socket(address) as http:
            body = {"id": chat, "message": user_message()}
            refused = await http.post("/api/chat", json=body)
            assert (refused.status_code, refused.headers["x-error-code"]) == (
                409,
                "held_elsewhere",
            )
        assert (await client.exchange(send_frame(chat=chat)))[-1]["type"] == "end"


@pytest.mark.parametrize("query", ["", "?chat=", "?chat=a%2Fb", "?chat=c1&activity=both"])
async def test_a_query_without_a_chat_is_refused_before_the_handshake(
    address: Address, query: str
) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with opened(address, f"/api/live{query}"):
            pass
    assert refused.value.response.status_code == 400
    assert refused.value.response.headers["x-error-code"] == "malformed"


BAD_FRAMES: dict[str, tuple[Any, str, str]] = {
    "another chat, send": (send_frame(chat="elsewhere"), "r1", "malformed"),
    "another chat, resume": (resume_frame(chat="elsewhere"), "r1", "malformed"),
    "an unknown type": ({"type": "ping", "requestId": "r1"}, "r1", "malformed"),
    "an unknown live type": ({"type": "ping", "requestId": "live"}, "live", "malformed"),
    "a live id for a send": ({**send_frame(), "requestId": "live"}, "live", "malformed"),
    "a mark": ({"type": "activity-start", "requestId": "live"}, "live", "malformed"),
    "an image of no type": (
        {"type": "image", "requestId": "live", "mediaType": "text/html", "data": "AAAA"},
        "live",
        "malformed",
    ),
    "an image without data": (
        {"type": "image", "requestId": "live", "mediaType": "image/png"},
        "live",
        "malformed",
    ),
    "an image that is no base64": (
        {"type": "image", "requestId": "live", "mediaType": "image/png", "data": "a b"},
        "live",
        "malformed",
    ),
    "messages that are none": ({**send_frame(), "messages": "no"}, "r1", "malformed"),
    "a resume of nothing": (resume_frame(), "r1", ""),
}


@pytest.mark.parametrize("case", BAD_FRAMES)
async def test_an_invalid_frame_is_rejected_and_the_socket_stays_open(
    address: Address, chat: str, case: str
) -> None:
    frame, request_id, code = BAD_FRAMES[case]
    if frame.get("id") == "c1":
        frame = {**frame, "id": chat}
    async with opened_live(address, chat) as client:
        await client.send(frame)
        answer = await client.next(request_id)
        assert answer["type"] == ("error" if code else "no-active")
        assert answer.get("code", "") == code
        assert (await client.exchange(send_frame("r2", chat=chat)))[-1]["type"] == "end"


BAD_MESSAGES: dict[str, tuple[list[str | bytes], tuple[int, str]]] = {
    "no JSON": (["{"], (1007, "malformed")),
    "no object": (["[]"], (1008, "malformed")),
    "no requestId": (['{"type":"send"}'], (1008, "malformed")),
    "half a sample": ([b"\0" * 641], (1007, "half_a_sample")),
    "ten seconds at once": ([bytes(320_000)], (1009, "too_much_audio")),
    "more than five seconds": ([bytes(160_002)], (1009, "too_much_audio")),
    "a minute faster than it is spoken": ([bytes(160_000)] * 40, (1008, "audio_too_fast")),
    "a flood of frames": (
        ['{"type":"interrupt","requestId":"live"}'] * 1000,
        (1008, "too_many_frames"),
    ),
    "a flood of audio": ([b"\0\0"] * 10_000, (1008, "too_many_frames")),
}


@pytest.mark.parametrize("case", BAD_MESSAGES)
async def test_an_unreadable_message_closes_the_socket_and_not_the_chat(
    address: Address, chat: str, case: str
) -> None:
    messages, ends = BAD_MESSAGES[case]
    async with opened_live(address, chat) as client:
        await client.send(*messages)
        assert await client.wait_closed() == ends
    await until_released(address, chat)
    async with opened_live(address, chat) as client:
        assert (await client.exchange(send_frame(chat=chat)))[-1]["type"] == "end"


async def until_released(address: Address, chat: str) -> None:
    """Wait until the live session of the chat is released."""
    async with asyncio.timeout(PATIENCE), over_socket(address) as http:
        body = {"id": chat, "message": user_message("Hi", message_id="let-go")}
        while (await http.post("/api/chat", json=body)).status_code == 409:
            pass


async def test_audio_within_the_limits_is_accepted(address: Address, chat: str) -> None:
    async with opened_live(address, chat) as client:
        await client.send(*[bytes(160_000)] * 12)
        assert (await client.exchange(send_frame(chat=chat)))[-1]["type"] == "end"


async def test_audio_without_the_subprotocol_is_refused(address: Address, chat: str) -> None:
    async with opened_live(address, chat, audio=False) as client:
        await client.send(bytes(640))
        assert await client.wait_closed() == (1003, "text_only")


async def test_marks_images_and_interruptions_are_accepted(address: Address, chat: str) -> None:
    async with opened_live(address, chat, more="&activity=client") as client:
        picture = base64.b64encode(b"picture").decode()
        await client.send(
            {"type": "image", "requestId": "live", "mediaType": "image/jpeg", "data": picture},
            {"type": "activity-start", "requestId": "live"},
            tone(440),
            {"type": "activity-end", "requestId": "live"},
        )
        await client.first_audio()
        turn = (await client.each_of("turn", "turn-complete"))["turn"]
        # A text is refused until the spoken turn has ended.
        resume = {**resume_frame(chat=chat), "body": {"messageId": turn["messageId"]}}
        assert (await client.exchange(resume))[-1]["type"] == "end"
        await client.send(send_frame("r2", text="long", chat=chat))
        assert (await client.next("r2"))["type"] == "chunk"
        await client.send({"type": "interrupt", "requestId": "live"})
        assert (await client.live("interrupted"))["type"] == "interrupted"
        assert (await client.all("r2"))[-1]["type"] == "end"


async def test_an_image_above_the_limit_is_refused(tmp_path: Path) -> None:
    async with server(tmp_path, max_file_bytes=9) as (address, _), opened_live(address) as client:
        for size, is_taken in ((9, True), (10, False)):
            data = base64.b64encode(bytes(size)).decode()
            await client.send(
                {"type": "image", "requestId": "live", "mediaType": "image/png", "data": data}
            )
            if not is_taken:
                assert (await client.next("live"))["code"] == "too_large"
        assert (await client.exchange(send_frame()))[-1]["type"] == "end"


async def test_an_idle_socket_gets_heartbeats(tmp_path: Path) -> None:
    async with server(tmp_path, keep_alive=0.05) as (address, _), opened_live(address) as client:
        # At the default interval so many take longer than the limit.
        async with asyncio.timeout(PATIENCE):
            for _ in range(3):
                assert await client.next("-") == {"type": "heartbeat", "requestId": "-"}


async def test_an_idle_socket_is_closed(tmp_path: Path) -> None:
    path = "/api/live?chat=c1"
    async with server(tmp_path, idle_timeout=0.3) as (address, _), opened(address, path) as client:
        assert await client.wait_closed() == (1000, "idle")


async def test_a_restart_closes_the_socket_and_approvals_stay_open(tmp_path: Path) -> None:
    async with contextlib.AsyncExitStack() as stack:
        async with server(tmp_path) as (address, _):
            client = await stack.enter_async_context(opened(address, "/api/live?chat=c1"))
            assert (await client.exchange(send_frame(text="pay")))[-1]["type"] == "end"
            closing = asyncio.create_task(client.wait_closed())
        assert (await closing)[0] == 1012
    async with server(tmp_path) as (_, engine):
        assert (await engine.get_chat("c1", user=LOCAL_USER))["status"] == "waiting"


async def test_the_end_of_the_server_is_announced_to_clients(tmp_path: Path) -> None:
    async with staged(tmp_path) as (address, application), opened_live(address) as client:
        assert (await client.exchange(send_frame(text="pay")))[-1]["type"] == "end"
        await application.shutdown.drain(5.0, asyncio.Event())
        await client.live("go-away")
        assert await client.wait_closed() == (1012, "restart")
        engine = await application.engine.get()
        assert (await engine.get_chat("c1", user=LOCAL_USER))["status"] == "waiting"


@pytest.mark.parametrize(
    ("reason", "code"), [("lease_lost", 4409), ("run_failed", 1011), ("model_ended", 1012)]
)
async def test_the_close_code_says_why_a_live_chat_has_ended(
    tmp_path: Path, reason: EndReason, code: int
) -> None:
    async with server(tmp_path) as (address, engine), opened_live(address) as client:
        assert (await client.exchange(send_frame()))[-1]["type"] == "end"
        owners = engine.resources.turns.chat_owners
        [chat] = owners.chats()
        live_chat = owners.of(chat)
        assert isinstance(live_chat, LiveChat)
        live_chat.outbox.send(ChatEnded(Unavailable("Connect again."), reason))
        error = await client.live("error")
        assert (error["code"], error["errorText"]) == ("unavailable", "Connect again.")
        assert await client.wait_closed() == (code, "unavailable")


async def test_an_unavailable_store_closes_the_socket_with_try_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object, **__: object) -> int:
        raise StoreUnavailable("the database does not answer")

    async with server(tmp_path) as (address, engine):
        monkeypatch.setattr(engine.resources.leases, "acquire", away)
        async with opened(address, "/api/live?chat=c1") as client:
            error = await client.next("live")
            assert (error["type"], error["code"]) == ("error", "unavailable")
            assert await client.wait_closed() == (1013, "unavailable")


async def test_a_token_in_the_first_frame_authenticates_the_user(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"sha256:{hashlib.sha256(b'token-ada').hexdigest()} ada\n")
    settings = {"auth": f"bearer:{tokens}"}
    async with server(tmp_path, None, **settings) as (address, engine):
        path = "/api/live?chat=c1"
        async with opened(address, path, subprotocols=[SUBPROTOCOL]) as client:
            [error] = await client.exchange(send_frame("no"))
            assert error["code"] == "unauthenticated"
            headers = {"authorization": "Bearer token-ada"}
            live = LiveClient(client.connection)
            frames = await live.exchange({**send_frame("yes"), "headers": headers})
            assert frames[-1]["type"] == "end"
        assert (await engine.get_chat("c1", user="ada"))["status"] == "ready"
        async with opened(address, path, subprotocols=[SUBPROTOCOL]) as client:
            await client.send(bytes(640))
            assert (await client.wait_closed())[0] == 4401
