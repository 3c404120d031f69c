"""The undocumented parts of uvicorn, Starlette, sse-starlette and websockets that are used.

Each row is checked when a server or an application starts, since the versions of these packages
are not bounded by minor; ``tests/server/test_asgi_private_api_check.py`` has a test for each row.
"""

from __future__ import annotations

import dis
import importlib
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from sluicegate.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable

_HTTP: Final = "uvicorn.protocols.http.httptools_impl:HttpToolsProtocol"
_SOCKET: Final = "uvicorn.protocols.websockets.websockets_sansio_impl:WebSocketsSansIOProtocol"


@dataclass(frozen=True)
class PrivateUse:
    """Names of one class or module that no documentation promises.

    ``owner`` is ``module`` or ``module:class``; ``names`` are methods, class attributes or
    attributes that a method sets. Without the module ``optional`` the row is not checked.
    """

    package: str
    owner: str
    names: tuple[str, ...]
    why: str
    breaks: str
    optional: str | None = None


USES: Final = (
    PrivateUse(
        "uvicorn",
        _HTTP,
        ("on_message_begin", "on_headers_complete", "on_message_complete", "headers"),
        "Measure a request head while it arrives; uvicorn has no limit for it with httptools.",
        "A head without an end takes memory and a connection for ever.",
        optional="httptools",
    ),
    PrivateUse(
        "uvicorn",
        _HTTP,
        ("on_response_complete", "transport", "loop"),
        "Close a connection whose body is sent on after the response.",
        "A client can hold a connection with an unread body.",
        optional="httptools",
    ),
    PrivateUse(
        "uvicorn",
        _HTTP,
        ("send_400_response",),
        "Refuse invalid HTTP in the form of every other refusal.",
        "Clients get a refusal without an error code.",
        optional="httptools",
    ),
    PrivateUse(
        "uvicorn",
        _HTTP,
        ("_should_upgrade", "scope"),
        "Answer a WebSocket upgrade of another method than GET.",
        "The request is never answered.",
        optional="httptools",
    ),
    PrivateUse(
        "uvicorn",
        _HTTP,
        ("client",),
        "Count the connections of each peer when they are made; the scope exists with a request.",
        "One peer can take every connection.",
        optional="httptools",
    ),
    PrivateUse(
        "uvicorn",
        _HTTP,
        ("shutdown", "cycle"),
        "Close an idle connection, and a busy one after its response, as uvicorn does at its end.",
        "A process that is replaced keeps its idle connections, or cuts responses and requests.",
        optional="httptools",
    ),
    PrivateUse(
        "uvicorn",
        _SOCKET,
        ("run_asgi", "scope", "transport"),
        "Offer the application to reset the connection and to write many messages at once.",
        "A client that does not read is not dropped, and each delta is a write of its own.",
    ),
    PrivateUse(
        "uvicorn",
        _SOCKET,
        ("writable", "disconnected", "close_sent", "conn"),
        "Write many messages at once under the same conditions as uvicorn's own send.",
        "Messages are written after a close frame, or without backpressure.",
    ),
    PrivateUse(
        "uvicorn",
        _SOCKET,
        ("handle_text", "handle_bytes", "handle_cont", "handle_parser_exception"),
        "Refuse messages in many small fragments.",
        "A message in tiny fragments costs a multiple of its size.",
    ),
    PrivateUse(
        "uvicorn",
        _SOCKET,
        ("send_receive_event_to_app", "frames", "curr_msg_data_type", "read_paused", "queue"),
        "Pass a large text on without decoding it, and measure what the application has not read.",
        "A large message is in memory several times.",
    ),
    PrivateUse(
        "uvicorn",
        _SOCKET,
        ("receive",),
        "Know that the application has processed a message: it receives the next one.",
        "Processed messages count as unread, and the socket is not read any more.",
    ),
    PrivateUse(
        "uvicorn",
        _SOCKET,
        ("close_timer",),
        "Read and drop the rest of a refused message for some seconds.",
        "The client of a message that is too large loses the answer.",
    ),
    PrivateUse(
        "uvicorn",
        _SOCKET,
        ("handle_ping", "handle_pong", "loop"),
        "Refuse floods of control frames, which the application never sees.",
        "A client can keep the process busy with pings.",
    ),
    PrivateUse(
        "uvicorn",
        _SOCKET,
        ("start_keepalive", "ping_interval", "ping_timeout"),
        "Send more pings on a live socket than on others.",
        "A frozen page keeps its live chat for longer than ten seconds.",
    ),
    PrivateUse(
        "uvicorn",
        _SOCKET,
        ("keepalive_timeout",),
        "Reset the connection of a peer that answers no ping and does not read.",
        "Unsent output keeps a dead peer's connection open.",
    ),
    PrivateUse(
        "uvicorn",
        "uvicorn.protocols.utils",
        ("ClientDisconnected",),
        "Raise what uvicorn's own send raises when the socket is closed.",
        "A write to a closed socket is logged as an error.",
    ),
    PrivateUse(
        "uvicorn",
        "uvicorn.server:Server",
        ("capture_signals", "on_tick", "should_exit", "force_exit"),
        "Drain turns at the first signal while requests are still answered.",
        "A signal cuts approved calls in the middle.",
    ),
    PrivateUse(
        "uvicorn",
        "uvicorn.server:Server",
        ("startup", "shutdown"),
        "Announce the address after the start; abort streams before connections are closed.",
        "The start is never announced, or the end waits for open streams.",
    ),
    PrivateUse(
        "uvicorn",
        "uvicorn.server:Server",
        ("server_state", "servers"),
        "Close idle connections of a process that another replaces, and what it listens on.",
        "A process that is replaced goes on to accept connections.",
    ),
    PrivateUse(
        "uvicorn",
        "uvicorn.config:Config",
        ("http_protocol_class",),
        "Tell connections of HTTP from sockets, which the application closes itself.",
        "Sockets of a process that is replaced are closed during their turns.",
    ),
    PrivateUse(
        "uvicorn",
        "uvicorn.server",
        ("HANDLED_SIGNALS",),
        "Handle the signals that uvicorn handles.",
        "A signal ends the process at once.",
    ),
    PrivateUse(
        "uvicorn",
        "uvicorn.config:Config",
        ("get_loop_factory",),
        "Run the lifespan around the server, in the event loop that uvicorn would choose.",
        "The server runs without uvloop.",
    ),
    PrivateUse(
        "sse-starlette",
        "sse_starlette.sse:EventSourceResponse",
        ("_listen_for_exit_signal",),
        "Abort streams when uvicorn shuts down around an application that is not the server's own.",
        "Such a server waits for open streams until its own timeout.",
    ),
    PrivateUse(
        "sse-starlette",
        "sse_starlette.sse:AppStatus",
        ("should_exit",),
        "Reset the flag of the process, which some versions set at the first shutdown.",
        "The streams of a second server in the process end at once.",
    ),
    PrivateUse(
        "starlette",
        "starlette.routing:Router",
        ("redirect_slashes", "default", "not_found", "lifespan_context"),
        "Refuse unknown paths instead of redirecting; answer sockets on unknown paths.",
        "A redirect loses the body of a POST; an unknown socket is closed without a reason.",
    ),
    PrivateUse(
        "starlette",
        "starlette.routing:Route",
        ("methods",),
        "Remove HEAD, which Starlette adds to every GET.",
        "A HEAD request starts the work of a GET and discards it.",
    ),
    PrivateUse(
        "websockets",
        "websockets.protocol:Protocol",
        ("state", "fail"),
        "Read the state of the connection that uvicorn holds, and fail it with a reason.",
        "Messages are written to a closing socket; floods are not refused.",
    ),
    PrivateUse(
        "websockets",
        "websockets.protocol:Protocol",
        ("reader",),
        "Measure a message while it arrives.",
        "A socket without a user can hold a message as large as that of a user.",
    ),
    PrivateUse(
        "websockets",
        "websockets.protocol:Protocol",
        ("parser",),
        "End the parser of a closed connection: suspended, it refers to the connection.",
        "The memory of closed sockets is kept until a garbage collection.",
    ),
    PrivateUse(
        "websockets",
        "websockets.streams:StreamReader",
        ("buffer",),
        "Measure the bytes of a frame that arrives, and find its mask and its beginning.",
        "Messages that arrive are not bounded, and their refusals do not name the request.",
    ),
)


def check_private_apis(*packages: str, uses: Iterable[PrivateUse] = USES) -> None:
    """Check that the installed versions of the packages have every name that is used.

    Raises:
        ConfigurationError: A name is missing; the sentence has the package and its version.
    """
    for use in uses:
        if use.package not in packages or (use.optional and find_spec(use.optional) is None):
            continue
        for name in use.names:
            if not has_name(use.owner, name):
                raise ConfigurationError(
                    f"sluicegate does not work with {use.package} {version(use.package)}, which "
                    f"has no {use.owner.rpartition(':')[2]}.{name}; install another version."
                )


def has_name(owner: str, name: str) -> bool:
    """Whether a module or class, given as ``module`` or ``module:class``, has a name."""
    module, _, kind = owner.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in filter(None, kind.split(".")):
            found = getattr(found, part)
    except (AttributeError, ImportError):
        return False
    return hasattr(found, name) or (isinstance(found, type) and _is_set_by_a_method(found, name))


def _is_set_by_a_method(kind: type, name: str) -> bool:
    """Whether instances of a class have an attribute, which the code of some method sets."""
    return any(
        (step.opname, step.argval) == ("STORE_ATTR", name)
        for each in kind.__mro__
        for method in vars(each).values()
        if isinstance(method, FunctionType) and name in method.__code__.co_names
        for step in dis.get_instructions(method)
    )
