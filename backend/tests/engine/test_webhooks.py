"""The delivery of events: by one replica, in time, and only where it may go."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from google.adk.tools.function_tool import FunctionTool

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.webhooks.delivery_attempt import MAX_RESPONSE_BYTES, Attempt, WebhookSender
from sluicegate.engine.webhooks.outbox_delivery import LONGEST_PAUSE, pause_before
from sluicegate.engine.webhooks.webhook_settings import Endpoint
from sluicegate.stores.approvals.sweep_queries import SweepQueries
from sluicegate.tools import gated
from sluicegate.tools.outbound_hosts import WEBHOOK_HOSTS, WorkerHosts
from tests.engine.loop_time import LoopTime, within_limit
from tests.engine.stage import Counted, Open, OpenReplicas, calls, says, scripted
from tests.engine.talk import Talk
from tests.server.webhook_receiver import LIMIT, Receiver, settings_of
from tests.stores.builders import Clock

PAY = [calls(("pay", {"n": 1})), says("done")]
DAY = 86_400.0


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver().running() as running:
        yield running


async def until_recorded(engine: ChatEngine) -> None:
    """Wait until no attempt runs: one that a closing replica cuts off is made again."""
    queries = SweepQueries(engine.resources.database, engine.resources.app)
    async with asyncio.timeout(LIMIT):
        while (await queries.count_undelivered())[0]:
            pass


async def test_of_two_replicas_one_delivers_and_the_other_follows_it(
    open_replicas: OpenReplicas, tmp_path: Path, counted: Counted, receiver: Receiver
) -> None:
    settings = settings_of(receiver, tmp_path)
    one, other = await open_replicas(scripted(PAY, [counted.tool()]), **settings)
    talk = Talk(one)
    await talk.say("pay")
    # It is delivered by whichever replica began first, also if the other one has written it.
    [asked] = await receiver.accepted(1)
    await until_recorded(one)
    assert one.resources.webhooks is not None
    await one.resources.webhooks.aclose()
    await talk.approve()
    events = await receiver.accepted(2)
    assert [each.data["state"] for each in (asked, *events)] == [
        "requested",
        "approved",
        "executed",
    ]
    assert other.resources.webhooks is not None
    await other.resources.webhooks.aclose()
    assert receiver.is_idle


async def test_an_expiry_is_one_event_although_two_replicas_look_for_it(
    open_replicas: OpenReplicas, tmp_path: Path, counted: Counted, receiver: Receiver
) -> None:
    settings = settings_of(receiver, tmp_path, approval_ttl=0.5)
    agent = scripted(PAY, [counted.tool()])
    engines = await open_replicas(agent, timings={"sweep": 0.02}, **settings)
    talk = Talk(engines[0])
    await talk.say("pay")
    asked, expired = await receiver.accepted(2)
    assert [asked.kind, expired.kind] == ["approval.requested", "approval.expired"]
    assert asked.data["approvalId"] == expired.data["approvalId"]
    # A late decision is recorded without effect, and is no event.
    await talk.approve()
    await until_recorded(engines[0])
    for engine in engines:
        assert engine.resources.webhooks is not None
        await engine.resources.webhooks.aclose()
    assert receiver.is_idle
    assert counted.runs == []


async def test_an_event_is_a_dead_letter_after_its_time_and_holds_nothing_up(
    open_stage: Open,
    tmp_path: Path,
    clock: Clock,
    counted: Counted,
    receiver: Receiver,
    caplog: pytest.LogCaptureFixture,
) -> None:
    receiver.answer = lambda event: (500 if event["data"]["state"] == "requested" else 204, {})
    engine = await open_stage(
        scripted(PAY, [counted.tool()]), clock=clock, **settings_of(receiver, tmp_path)
    )
    talk = Talk(engine)
    await talk.say("pay")
    assert (await receiver.next()).answer == 500
    await talk.approve()
    with caplog.at_level(logging.ERROR, "sluicegate"):
        clock.ahead += 3 * DAY + 60
        events = await receiver.accepted(2)
    assert [each.data["state"] for each in events] == ["approved", "executed"]
    [record] = [each for each in caplog.records if "dead letter" in each.message]
    assert record.message.endswith("The webhook ops answered 500.")
    assert "in-the-url" not in caplog.text


@pytest.mark.parametrize(
    ("attempt", "jitter", "seconds"),
    [(1, 0.0, 0.5), (1, 0.999, 0.9995), (2, 0.0, 1.0), (5, 0.5, 12.0), (13, 0.0, 1800.0)],
)
def test_the_pause_doubles_and_half_of_it_is_random(
    attempt: int, jitter: float, seconds: float
) -> None:
    assert pause_before(attempt, jitter) == pytest.approx(seconds)


def test_the_pause_has_an_upper_limit() -> None:
    assert pause_before(10_000, 0.999) < LONGEST_PAUSE


def endpoint(url: str, *hosts: str) -> Endpoint:
    return Endpoint("ops", url, WorkerHosts(hosts, WEBHOOK_HOSTS).webhook("ops", url))


async def sent(to: Endpoint, within: float = LIMIT) -> Attempt:
    async with WebhookSender(to, within) as sender:
        return await sender.send({"webhook-id": "evt_1"}, "{}")


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "10.1.2.3", "169.254.169.254", "[::1]", "[fe80::1]"]
)
async def test_an_address_that_is_not_public_is_not_connected_to_unless_it_is_named(
    host: str, receiver: Receiver
) -> None:
    attempt = await sent(endpoint(f"https://{host}:{receiver.port}/"))
    assert attempt.error is not None
    assert "which is not public and not in the setting webhook_hosts" in attempt.error
    assert receiver.is_idle


@pytest.mark.parametrize("named", ["localhost", "127.0.0.0/8"])
async def test_a_host_or_a_network_is_named(receiver: Receiver, named: str) -> None:
    host = "localhost" if named == "localhost" else "127.0.0.1"
    attempt = await sent(endpoint(f"http://{host}:{receiver.port}/", named))
    # It is reached, and refuses what is not signed.
    assert attempt == Attempt("The webhook ops answered 401.")


async def test_a_name_is_resolved_once_and_the_checked_address_is_the_one_connected_to(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second answer of a rebinding name server would be the address inside."""
    loop = asyncio.get_running_loop()
    answers = iter(["127.0.0.1", "169.254.169.254"])

    async def rebinding(host: Any, port: int, **_: Any) -> list[Any]:
        return [(2, 1, 6, "", (next(answers), port))]

    monkeypatch.setattr(loop, "getaddrinfo", rebinding)
    to = endpoint(f"http://hooks.example:{receiver.port}/", "hooks.example")
    assert await sent(to) == Attempt("The webhook ops answered 401.")
    assert next(answers) == "169.254.169.254"


Respond = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def raw_server(respond: Respond) -> AsyncIterator[int]:
    """A server that writes what it likes to one client; yields its port."""
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await respond(reader, writer)
        except ConnectionError:
            pass
        finally:
            writer.close()
            ended.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        async with asyncio.timeout(LIMIT):
            await ended.wait()


async def test_a_response_without_end_is_not_read_to_its_end() -> None:
    written = 0

    async def endless(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"2000\r\n" + b"x" * 0x2000 + b"\r\n")
            written += 0x2000
            await writer.drain()

    async with raw_server(endless) as port:
        assert await sent(endpoint(f"http://127.0.0.1:{port}/", "127.0.0.1")) == Attempt()
    # Buffers of the system hold some more.
    assert written < MAX_RESPONSE_BYTES + 16 * 1024 * 1024


async def test_an_endpoint_that_does_not_answer_is_left_after_the_timeout(
    loop_time: LoopTime,
) -> None:
    asked = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        asked.set()
        while await reader.read(1024):
            pass

    async with raw_server(silent) as port:
        to = endpoint(f"http://127.0.0.1:{port}/", "127.0.0.1")
        sending = asyncio.create_task(sent(to, within=20.0))
        await within_limit(asked)
        loop_time.advance(20.0)
        assert await sending == Attempt("The webhook ops did not answer within 20 seconds.")


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (
            b"HTTP/1.1 429 No\r\nretry-after: 90\r\n",
            Attempt("The webhook ops answered 429.", retry_after=90),
        ),
        (b"HTTP/1.1 503 No\r\nretry-after: soon\r\n", Attempt("The webhook ops answered 503.")),
        (b"HTTP/1.1 410 No\r\n", Attempt("The webhook ops answered 410.", is_final=True)),
        (b"nonsense", Attempt("The webhook ops was not reached: RemoteProtocolError.")),
        (
            b"HTTP/1.1 307 No\r\nlocation: http://169.254.169.254/\r\n",
            Attempt(
                "The webhook ops answers with a redirect, which is not followed; configure its "
                "final URL."
            ),
        ),
        (
            b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n",
            Attempt("The webhook ops compresses its answers; turn that off."),
        ),
    ],
)
async def test_what_an_endpoint_answers_is_one_sentence(head: bytes, expected: Attempt) -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head + b"content-length: 0\r\n\r\n")
        await writer.drain()

    async with raw_server(answer) as port:
        attempt = await sent(endpoint(f"http://127.0.0.1:{port}/secret", "127.0.0.1"))
    assert attempt == expected


async def test_a_call_that_runs_is_not_taken_for_one_whose_process_has_died(
    open_replicas: OpenReplicas,
    tmp_path: Path,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked, may_end = asyncio.Event(), asyncio.Event()

    async def pay(n: int) -> dict[str, int]:
        """Pay."""
        await may_end.wait()
        return {"paid": n}

    agent = scripted(PAY, [FunctionTool(pay, require_confirmation=True)])
    settings = settings_of(receiver, tmp_path)
    engines = await open_replicas(agent, timings={"sweep": 0.02}, **settings)
    talk = Talk(engines[0])
    await talk.say("pay")
    count = 0

    original = SweepQueries.claimed_chats

    async def claimed_chats(due: SweepQueries, *, limit: int) -> list[ChatKey]:
        nonlocal count
        found = await original(due, limit=limit)
        count += bool(found)
        if count > 4:
            # Both replicas have tried to take the chat.
            looked.set()
        return found

    monkeypatch.setattr(SweepQueries, "claimed_chats", claimed_chats)
    answering = asyncio.create_task(talk.approve())
    async with asyncio.timeout(LIMIT):
        await looked.wait()
    may_end.set()
    assert (await answering).finish_reason == "stop"
    events = await receiver.accepted(3)
    assert [each.data["state"] for each in events] == ["requested", "approved", "executed"]


async def test_an_approval_that_still_waits_is_reminded_of_once(
    open_replicas: OpenReplicas, tmp_path: Path, receiver: Receiver
) -> None:
    async def pay(n: int) -> dict[str, int]:
        """Pay."""
        return {"paid": n}

    agent = scripted(PAY, [gated(pay, remind_after=0.2)])
    settings = settings_of(receiver, tmp_path)
    engines = await open_replicas(agent, timings={"sweep": 0.02}, **settings)
    talk = Talk(engines[0])
    await talk.say("pay")
    asked, reminded = await receiver.accepted(2)
    assert [asked.kind, reminded.kind] == ["approval.requested", "approval.reminder"]
    assert reminded.data == {**asked.data, "state": "reminder"}
    await talk.approve()
    events = await receiver.accepted(2)
    assert [each.data["state"] for each in events] == ["approved", "executed"]
