"""A local endpoint in its own thread: it records requests and answers as a provider."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Protocol

from sluicegate.testing.providers.google_files import GoogleFiles
from sluicegate.testing.providers.refusal_exceptions import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import BufferedIOBase

    from sluicegate.testing.providers.messages import Message, Reply


class Provider(Protocol):
    """One provider's words, and the rules that its users have run into."""

    def read(self, path: str, body: dict[str, Any]) -> list[Message]:
        """Read a request; raises `Refused`."""

    def write(self, path: str, body: dict[str, Any], said: Reply) -> tuple[str, str]:
        """The content type and the body of an answer, streamed where the request asks for it."""

    def refuse(self, reason: str) -> dict[str, Any]:
        """The body of a 400."""


class Files(Protocol):
    """The Files API of a provider; answers are a status, headers and a body."""

    def is_upload(self, path: str) -> bool:
        """Whether a POST to this path uploads a file."""

    def upload(
        self, path: str, headers: dict[str, str], body: BufferedIOBase
    ) -> tuple[int, dict[str, str], str]:
        """Begin an upload, or receive a part of it."""

    def get(self, path: str) -> tuple[int, dict[str, str], str]:
        """Describe a file."""

    def delete(self, path: str) -> tuple[int, dict[str, str], str]:
        """Delete a file."""


@dataclass
class Endpoint:
    """The address of a provider and the requests that it received."""

    provider: Provider
    reply: Callable[[list[Message]], Reply]
    """Returns the answer of the model to a conversation."""
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    """The headers of the last request, with names in lower case."""

    def __post_init__(self) -> None:
        """Serve the files of the provider; that of Gemini has none of its own."""
        self.files: Files = getattr(self.provider, "files", None) or GoogleFiles()

    @property
    def last(self) -> dict[str, Any]:
        """The last request."""
        return self.requests[-1]

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, str, str]:
        """Answer one request."""
        self.requests.append(body)
        try:
            said = self.reply(self.provider.read(path, body))
        except Refused as reason:
            self.refused.append(str(reason))
            return reason.status, "application/json", json.dumps(self.provider.refuse(str(reason)))
        return 200, *self.provider.write(path, body, said)


@contextmanager
def listening(
    provider: Provider,
    reply: Callable[[list[Message]], Reply],
    kind: type[Endpoint] = Endpoint,
) -> Iterator[Endpoint]:
    """Serve a provider on a free port of 127.0.0.1, as long as the block lasts."""
    endpoint = kind(provider, reply)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.respond(*endpoint.files.get(self.path))

        def do_DELETE(self) -> None:
            self.respond(*endpoint.files.delete(self.path))

        def do_POST(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            if endpoint.files.is_upload(self.path):
                self.respond(*endpoint.files.upload(self.path, headers, self.rfile))
                return
            endpoint.headers = headers
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, kind, text = endpoint.answer(self.path, body)
            self.respond(status, {"content-type": kind}, text)

        def respond(self, status: int, headers: dict[str, str], text: str) -> None:
            data = text.encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    endpoint.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield endpoint
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def events(*data: object) -> str:
    """A stream of server-sent events."""
    return "".join(f"data: {json.dumps(item)}\n\n" for item in data)
