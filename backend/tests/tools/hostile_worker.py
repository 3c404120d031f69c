"""An MCP server over HTTP that answers whatever a test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Raw:
    """An HTTP response."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True)
class Fault:
    """An error of JSON-RPC."""

    code: int
    message: str


Answer = Callable[[dict[str, Any]], dict[str, Any] | Raw | Fault]
INITIALIZED = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "hostile", "version": "1"},
}
_DEFAULTS: dict[str, dict[str, Any] | Fault] = {
    "initialize": INITIALIZED,
    "discover": Fault(-32601, "Method not found"),
}


def definition(name: str, **properties: Any) -> dict[str, Any]:
    """A tool as the protocol lists it."""
    schema = {"type": "object", "properties": properties}
    return {"name": name, "description": f"The tool {name}.", "inputSchema": schema}


@dataclass
class HostileWorker:
    """``paths`` are those of its requests, ``methods`` the methods of the protocol."""

    port: int
    paths: list[str] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """Serve requests in threads; yields the port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def hostile_worker(**answers: Answer) -> Iterator[HostileWorker]:
    """Serve; ``answers`` are by the last word of the method: ``list``, ``call``, ``initialize``."""
    worker = HostileWorker(0)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            worker.paths.append(self.path)
            worker.methods.append(request["method"])
            name = request["method"].rpartition("/")[2]
            if name == "initialized":
                self.respond(Raw(202))
                return
            made = answers.get(name)
            answer = _DEFAULTS[name] if made is None else made(request.get("params") or {})
            if isinstance(answer, Raw):
                self.respond(answer)
                return
            body: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
            if isinstance(answer, Fault):
                body["error"] = asdict(answer)
            else:
                body["result"] = answer
            headers = {"content-type": "application/json"}
            self.respond(Raw(200, headers, json.dumps(body).encode()))

        def respond(self, raw: Raw) -> None:
            self.send_response(raw.status)
            for name, value in {**raw.headers, "content-length": str(len(raw.body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(raw.body)

        def log_message(self, *_: Any) -> None:
            pass

    with serving(Handler) as worker.port:
        yield worker
