"""The undocumented parts of uvicorn, Starlette, sse-starlette and websockets that are used.

One test for each row of `sluicegate.server.asgi_private_api_check`: what the library does with a
name.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import signal
import textwrap
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import pytest
import uvicorn
from sse_starlette import EventSourceResponse
from sse_starlette.sse import AppStatus
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import HANDLED_SIGNALS, Server
from websockets.frames import Frame, Opcode
from websockets.protocol import Protocol, Side, State
from websockets.streams import StreamReader

from sluicegate.errors import ConfigurationError
from sluicegate.server.asgi_private_api_check import USES, PrivateUse, check_private_apis, has_name
from sluicegate.server.settings import Settings
from sluicegate.server.uvicorn_protocols import LimitedHttpProtocol, LimitedSocketProtocol
from sluicegate.server.uvicorn_server import Server as OwnServer
from sluicegate.server.uvicorn_server import bind
from sluicegate.transports.sse import EventStream
from tests.server.exchange import PATIENCE
from tests.server.protocol_stage import Wire, protocol_of
from tests.server.raw_frames import CONTINUATION, HEAD, PING, PONG, TEXT, frame

TESTED: set[tuple[str, tuple[str, ...]]] = set()


def row(*names: str) -> Callable[[Any], Any]:
    """Mark the test of the row with these names."""

    def mark(test: Any) -> Any:
        [use] = [use for use in USES if use.names == names]
        TESTED.add((use.owner, use.names))
        return test

    return mark


async def respond_without_reading(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def accept(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "websocket.accept"})
    while (await receive())["type"] != "websocket.disconnect":
        pass


class Calls(list[str]):
    """The names of the called methods, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()

    def append(self, name: str) -> None:
        super().append(name)
        self.begun.set()

    async def first(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self.begun.wait()


def recording(kind: type[Any], *names: str) -> tuple[type[Any], Calls]:
    """A subclass that records the calls of some methods."""
    calls = Calls()

    def recorded(name: str) -> Any:
        def method(self: Any, *arguments: Any, **keywords: Any) -> Any:
            calls.append(name)
            return getattr(kind, name)(self, *arguments, **keywords)

        return method

    return type("Recording", (kind,), {name: recorded(name) for name in names}), calls


@row("on_message_begin", "on_headers_complete", "on_message_complete", "headers")
async def test_uvicorn_reports_each_part_of_a_request_on_arrival() -> None:
    names = ("on_message_begin", "on_headers_complete", "on_message_complete")
    kind, calls = recording(HttpToolsProtocol, *names)
    protocol, _ = protocol_of(kind, respond_without_reading)
    protocol.data_received(b"POST / HTTP/1.1\r\nhost: a\r\naccept: b\r\n")
    assert calls == ["on_message_begin"]
    assert protocol.headers == [(b"host", b"a")]
    protocol.data_received(b"content-length: 1\r\n\r\n")
    assert calls == ["on_message_begin", "on_headers_complete"]
    protocol.data_received(b"x")
    assert calls == list(names)


@row("on_response_complete", "transport", "loop")
async def test_uvicorn_reports_the_end_of_a_response_before_the_end_of_the_body() -> None:
    kind, calls = recording(HttpToolsProtocol, "on_message_complete", "on_response_complete")
    protocol, wire = protocol_of(kind, respond_without_reading)
    protocol.data_received(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nx")
    await calls.first()
    assert calls == ["on_response_complete"]
    assert protocol.transport is wire
    assert protocol.loop is asyncio.get_running_loop()
    protocol.connection_lost(None)


@row("send_400_response")
async def test_uvicorn_answers_invalid_http_with_one_method() -> None:
    kind, calls = recording(HttpToolsProtocol, "send_400_response")
    protocol, wire = protocol_of(kind, respond_without_reading)
    protocol.data_received(b"hello\r\n\r\n")
    assert calls == ["send_400_response"]
    assert wire.written.startswith(b"HTTP/1.1 400")


@row("_should_upgrade", "scope")
async def test_uvicorn_decides_in_one_method_whether_to_upgrade_a_request() -> None:
    kind, calls = recording(HttpToolsProtocol, "_should_upgrade")
    protocol, _ = protocol_of(kind, respond_without_reading)
    protocol.data_received(HEAD.replace(b"GET ", b"POST "))
    assert "_should_upgrade" in calls
    assert protocol.scope["method"] == "POST"


@row("client")
async def test_uvicorn_knows_the_peer_of_a_connection_before_a_request() -> None:
    protocol, wire = protocol_of(HttpToolsProtocol, respond_without_reading)
    assert protocol.client == wire.get_extra_info("peername")
    protocol.connection_lost(None)


@row("shutdown", "cycle")
@pytest.mark.parametrize("kind", [HttpToolsProtocol, H11Protocol])
async def test_uvicorn_closes_a_connection_on_request_but_not_during_a_response(
    kind: type[Any],
) -> None:
    asked, answering = asyncio.Event(), asyncio.Event()

    async def respond(scope: Any, receive: Any, send: Any) -> None:
        asked.set()
        await answering.wait()
        await respond_without_reading(scope, receive, send)

    idle, idle_wire = protocol_of(kind, respond)
    busy, busy_wire = protocol_of(kind, respond)
    busy.data_received(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    assert idle.cycle is None
    assert busy.cycle.keep_alive
    async with asyncio.timeout(PATIENCE):
        await asked.wait()
    for protocol in (idle, busy):
        protocol.shutdown()
    assert (idle_wire.closed, busy_wire.closed) == (True, False)
    assert not busy.cycle.keep_alive
    [task] = busy.tasks
    answering.set()
    async with asyncio.timeout(PATIENCE):
        await task
    assert busy_wire.written.startswith(b"HTTP/1.1 204")
    assert busy_wire.closed
    for protocol in (idle, busy):
        protocol.connection_lost(None)


async def open_socket(*names: str) -> tuple[Any, Wire, Calls]:
    """A protocol after the handshake."""
    kind, calls = recording(WebSocketsSansIOProtocol, *names)
    protocol, wire = protocol_of(kind, accept)
    protocol.data_received(HEAD)
    async with asyncio.timeout(PATIENCE):
        await wire.wrote.wait()
    assert b"101 Switching Protocols" in wire.written
    return protocol, wire, calls


async def end(protocol: Any) -> None:
    protocol.connection_lost(None)
    await asyncio.gather(*protocol.tasks, return_exceptions=True)


@row("run_asgi", "scope", "transport")
async def test_uvicorn_runs_the_application_of_a_socket_with_the_scope_of_the_protocol() -> None:
    protocol, wire, calls = await open_socket("run_asgi")
    assert calls == ["run_asgi"]
    assert protocol.scope["extensions"] == {"websocket.http.response": {}}
    assert protocol.transport is wire
    await end(protocol)


@row("writable", "disconnected", "close_sent", "conn")
async def test_uvicorn_sends_to_a_socket_under_these_conditions() -> None:
    protocol, _, _ = await open_socket()
    assert (protocol.disconnected, protocol.close_sent) == (False, False)
    assert protocol.conn.state is State.OPEN
    assert protocol.writable.is_set()
    protocol.pause_writing()
    assert not protocol.writable.is_set()
    await end(protocol)
    assert protocol.disconnected
    assert protocol.writable.is_set()


@row("send_receive_event_to_app", "frames", "curr_msg_data_type", "read_paused", "queue")
async def test_uvicorn_passes_a_message_on_by_this_method_and_stops_reading() -> None:
    kind, calls = recording(WebSocketsSansIOProtocol, "send_receive_event_to_app")
    protocol, _ = protocol_of(kind, accept)
    protocol.data_received(HEAD)
    await protocol.queue.get()
    protocol.data_received(frame(TEXT, b"a", fin=False))
    assert (protocol.frames, protocol.curr_msg_data_type) == ([b"a"], "text")
    protocol.data_received(frame(CONTINUATION, b"b"))
    assert calls == ["send_receive_event_to_app"]
    assert protocol.read_paused
    assert protocol.queue.get_nowait() == {"type": "websocket.receive", "text": "ab"}
    await end(protocol)


@row("receive")
async def test_uvicorn_gives_the_application_of_a_socket_the_receive_of_the_protocol() -> None:
    protocol, _, calls = await open_socket("receive")
    assert calls
    before = len(calls)
    protocol.data_received(frame(TEXT, b"a"))
    async with asyncio.timeout(PATIENCE):
        while not protocol.queue.empty():  # noqa: ASYNC110 - it announces nothing
            await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert len(calls) == before + 1
    await end(protocol)


@row("close_timer")
async def test_uvicorn_closes_a_connection_at_the_end_of_a_task_unless_a_timer_does() -> None:
    protocol, wire, _ = await open_socket()
    protocol.close_timer = asyncio.get_running_loop().call_later(PATIENCE, wire.close)
    await end(protocol)
    assert protocol.close_timer is None


@row("handle_text", "handle_bytes", "handle_cont", "handle_parser_exception")
async def test_uvicorn_has_one_method_for_each_kind_of_frame() -> None:
    names = ("handle_text", "handle_bytes", "handle_cont", "handle_parser_exception")
    protocol, wire, calls = await open_socket(*names)
    protocol.data_received(frame(TEXT, b"a", fin=False) + frame(CONTINUATION, b"b"))
    protocol.data_received(frame(0x2, b"c"))
    assert calls == ["handle_text", "handle_cont", "handle_bytes"]
    protocol.conn.fail(1008, "test")
    protocol.handle_parser_exception()
    assert wire.written.endswith(b"\x03\xf0test")
    assert protocol.close_sent
    await end(protocol)


@row("handle_ping", "handle_pong", "loop")
async def test_uvicorn_has_one_method_for_each_kind_of_control_frame() -> None:
    protocol, _, calls = await open_socket("handle_ping", "handle_pong")
    protocol.data_received(frame(PING, b"a") + frame(PONG, b"b"))
    assert calls == ["handle_ping", "handle_pong"]
    assert protocol.loop is asyncio.get_running_loop()
    await end(protocol)


@row("start_keepalive", "ping_interval", "ping_timeout")
async def test_uvicorn_reads_the_ping_interval_after_it_calls_the_start_of_pings() -> None:
    class Pinging(WebSocketsSansIOProtocol):
        def start_keepalive(self) -> None:
            self.ping_interval = self.ping_timeout = 0.01
            super().start_keepalive()

    kind, calls = recording(Pinging, "keepalive_timeout")
    protocol, wire = protocol_of(kind, accept, ws_ping_interval=100.0, ws_ping_timeout=100.0)
    protocol.data_received(HEAD)
    await calls.first()
    assert wire.closed
    await end(protocol)


@row("keepalive_timeout")
async def test_uvicorn_calls_one_method_when_a_ping_is_not_answered() -> None:
    kind, calls = recording(WebSocketsSansIOProtocol, "keepalive_timeout")
    protocol, wire = protocol_of(kind, accept, ws_ping_interval=0.01, ws_ping_timeout=0.01)
    protocol.data_received(HEAD)
    await calls.first()
    assert wire.closed
    await end(protocol)


@row("ClientDisconnected")
async def test_uvicorn_raises_an_os_error_of_its_own_when_a_socket_is_closed() -> None:
    protocol, _, _ = await open_socket()
    protocol.disconnected = True
    with pytest.raises(ClientDisconnected):
        await protocol.send({"type": "websocket.send", "text": "late"})
    assert issubclass(ClientDisconnected, OSError)
    await end(protocol)


@row("capture_signals", "on_tick", "should_exit", "force_exit")
async def test_uvicorn_ends_its_main_loop_when_a_tick_returns_true() -> None:
    kind, calls = recording(Server, "on_tick")
    server = kind(uvicorn.Config(respond_without_reading, log_config=None))
    assert (server.should_exit, server.force_exit) == (False, False)
    server.should_exit = True
    with server.capture_signals():
        assert signal.getsignal(signal.SIGTERM) == server.handle_exit
        await server.main_loop()
    assert calls == ["on_tick"]


@row("startup", "shutdown")
async def test_uvicorn_starts_and_shuts_down_by_these_methods() -> None:
    kind, calls = recording(Server, "startup", "shutdown")
    server = kind(uvicorn.Config(respond_without_reading, lifespan="off", log_config=None))
    server.should_exit = True
    await server.serve(sockets=[bind(Settings(port=0))])
    assert calls == ["startup", "shutdown"]


@row("server_state", "servers")
async def test_uvicorn_knows_its_open_connections_and_what_it_listens_on() -> None:
    config = uvicorn.Config(respond_without_reading, lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    listener = bind(Settings(port=0))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    async with asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        while not server.server_state.connections:  # noqa: ASYNC110 - it announces nothing
            await asyncio.sleep(0.01)
        [listening] = server.servers
        assert listening.is_serving()
        listening.close()
        assert not listening.is_serving()
        [connection] = server.server_state.connections
        connection.shutdown()
        assert await reader.read() == b""
        writer.close()
        server.should_exit = True
        await serving


@row("http_protocol_class")
@pytest.mark.parametrize(
    ("http", "kind"), [(HttpToolsProtocol, HttpToolsProtocol), ("h11", H11Protocol)]
)
def test_uvicorn_knows_the_class_of_its_connections_of_http(http: Any, kind: type[Any]) -> None:
    config = uvicorn.Config(respond_without_reading, http=http, log_config=None)
    config.load()
    assert config.http_protocol_class is kind
    assert not issubclass(WebSocketsSansIOProtocol, kind)


@row("HANDLED_SIGNALS")
def test_uvicorn_handles_these_signals() -> None:
    assert {signal.SIGINT, signal.SIGTERM} <= set(HANDLED_SIGNALS)


@row("get_loop_factory")
def test_uvicorn_chooses_an_event_loop() -> None:
    factory = uvicorn.Config(respond_without_reading, log_config=None).get_loop_factory()
    loop = (factory or asyncio.new_event_loop)()
    assert isinstance(loop, asyncio.AbstractEventLoop)
    loop.close()


@row("_listen_for_exit_signal")
async def test_sse_starlette_detects_a_server_shutdown() -> None:
    listening = asyncio.create_task(EventSourceResponse._listen_for_exit_signal())
    await asyncio.sleep(0)
    assert not listening.done()
    AppStatus.should_exit = True
    try:
        async with asyncio.timeout(PATIENCE):
            await listening
    finally:
        AppStatus.should_exit = False


@row("should_exit")
async def test_sse_starlette_ends_streams_at_once_while_its_flag_is_set() -> None:
    AppStatus.should_exit = True
    try:
        async with asyncio.timeout(PATIENCE):
            await EventSourceResponse._listen_for_exit_signal()
    finally:
        AppStatus.should_exit = False


@row("redirect_slashes", "default", "not_found", "lifespan_context")
async def test_starlette_routes_by_these_attributes() -> None:
    app = Starlette()
    assert isinstance(app.router, Router)
    assert app.router.redirect_slashes is True
    assert app.router.default == app.router.not_found
    async with app.router.lifespan_context(app):
        pass


@row("methods")
def test_starlette_adds_head_to_the_methods_of_a_route() -> None:
    async def endpoint(_: Request) -> Response:
        return Response()

    assert Route("/", endpoint, methods=["GET"]).methods == {"GET", "HEAD"}


@row("reader")
def test_websockets_keeps_the_frame_that_arrives_in_its_reader() -> None:
    connection = Protocol(Side.SERVER, state=State.OPEN)
    connection.receive_data(frame(TEXT, b"x" * 1000)[:500])
    assert isinstance(connection.reader, StreamReader)
    assert len(connection.reader.buffer) == 500 - 8


@row("parser")
def test_websockets_keeps_a_connection_with_a_suspended_parser() -> None:
    connection = Protocol(Side.SERVER, state=State.OPEN)
    assert inspect.getgeneratorlocals(connection.parser)["self"] is connection
    connection.parser.close()
    assert inspect.getgeneratorlocals(connection.parser) == {}


@row("buffer")
def test_websockets_removes_the_head_and_the_mask_of_a_frame_from_one_buffer() -> None:
    connection = Protocol(Side.SERVER, state=State.OPEN)
    buffer = connection.reader.buffer
    sent = frame(TEXT, b"x" * 1000)
    connection.receive_data(sent[:500])
    assert buffer == sent[8:500]
    connection.receive_data(sent[500:])
    assert connection.reader.buffer is buffer
    assert not buffer


@row("state", "fail")
def test_websockets_fails_a_connection_with_a_close_frame() -> None:
    connection = Protocol(Side.SERVER, state=State.OPEN)
    connection.fail(1008, "test")
    assert connection.state is State.CLOSING
    assert connection.data_to_send()[0] == Frame(Opcode.CLOSE, b"\x03\xf0test").serialize(
        mask=False
    )


def test_every_row_has_a_test_and_a_reason() -> None:
    assert {(use.owner, use.names) for use in USES} == TESTED
    for use in USES:
        assert use.why.endswith(".")
        assert use.breaks.endswith(".")
        for name in use.names:
            assert has_name(use.owner, name), name


def names_used_of_itself(kind: type[Any]) -> set[str]:
    """What a class defines, and the attributes of ``self`` and ``super()`` in its methods."""
    used = set(vars(kind))
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(kind)))):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("self", "super()"):
            used.add(node.attr)
    return {name for name in used if not name.startswith("__")}


@pytest.mark.parametrize(
    ("kind", "documented"),
    [
        (LimitedHttpProtocol, {"connection_made", "connection_lost", "data_received"}),
        (LimitedSocketProtocol, {"connection_made", "connection_lost", "data_received"}),
        (OwnServer, {"config"}),
        (EventStream, {"headers", "raw_headers"}),
    ],
)
def test_what_a_class_uses_of_its_base_class_is_documented_or_has_a_row(
    kind: type[Any], documented: set[str]
) -> None:
    [base] = kind.__bases__
    owner = f"{base.__module__}:{base.__qualname__}"
    used = {name for name in names_used_of_itself(kind) if has_name(owner, name)}
    rows = {name for use in USES if use.owner == owner for name in use.names}

    assert documented <= used
    assert used - documented - rows == set()


def test_an_attribute_of_instances_is_found_where_a_method_sets_it() -> None:
    owner = "uvicorn.server:Server"
    assert has_name(owner, "server_state")
    assert has_name(owner, "servers")
    # Its methods only read these, from other objects.
    assert not has_name(owner, "timeout_graceful_shutdown")
    assert not has_name(owner, "gone")


@pytest.mark.parametrize(
    ("package", "owner"), [("uvicorn", "uvicorn.server:Server"), ("starlette", "starlette.gone")]
)
def test_a_version_that_lacks_a_required_name_is_refused_in_one_sentence(
    package: str, owner: str
) -> None:
    uses = (*USES, PrivateUse(package, owner, ("gone",), "", ""))
    with pytest.raises(ConfigurationError) as caught:
        check_private_apis(package, uses=uses)
    sentence = str(caught.value)
    assert f"{package} {version(package)}" in sentence
    assert "gone" in sentence
    assert sentence.endswith(".")


def test_the_installed_versions_are_accepted_and_an_absent_dependency_is_optional() -> None:
    check_private_apis("uvicorn", "starlette", "sse-starlette", "websockets")
    absent = PrivateUse("uvicorn", "uvicorn.gone", ("gone",), "", "", optional="no_such_module")
    check_private_apis("uvicorn", uses=(absent,))
