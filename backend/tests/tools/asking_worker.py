"""An MCP server over HTTP whose tools ask a person on the way, in either way of the protocol.

In 2025-11-25 the request stands in the stream of the call, which waits for the answer. In
2026-07-28 the call ends with what it needs and a state, and is made again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from queue import SimpleQueue
from typing import Any

from tests.tools.hostile_worker import serving

HELD, STATELESS = "2025-11-25", "2026-07-28"
META = "io.modelcontextprotocol/clientCapabilities"


def form(message: str, **fields: Any) -> dict[str, Any]:
    """A request for a form; a field named ``seat`` is required."""
    required = [name for name in fields if name == "seat"]
    schema = {"type": "object", "properties": fields, "required": required}
    params = {"mode": "form", "message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


SEAT = form(
    "Which seat?",
    seat={"type": "string", "title": "Seat", "pattern": "^[A-F][0-9]$"},
    meals={"type": "integer", "minimum": 0, "maximum": 3, "default": 1},
)
NAME = form("Whose name?", name={"type": "string", "default": "Ann"})
NESTED = form("All of it?", all={"type": "object", "properties": {}})
URL = {
    "method": "elicitation/create",
    "params": {
        "mode": "url",
        "message": "Log in",
        "url": "https://a.example",
        "elicitationId": "1",
    },
}
SAMPLE = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}
ROOTS = {"method": "roots/list"}
ASKS: dict[str, list[dict[str, Any]]] = {
    "book": [SEAT],
    "twice": [SEAT, NAME],
    "nested": [NESTED],
    "url": [URL],
    "sample": [SAMPLE],
    "roots": [ROOTS],
}
"""What each tool asks for, one after the other."""


@dataclass
class AskingWorker:
    """``calls`` are the parameters of the calls, ``answers`` what they got for their questions.

    ``offered`` are the capabilities that the client declared last. ``ended`` are the calls that
    ended without an answer.
    """

    era: str
    port: int = 0
    calls: list[dict[str, Any]] = field(default_factory=list)
    answers: SimpleQueue[dict[str, Any]] = field(default_factory=SimpleQueue)
    offered: dict[str, Any] = field(default_factory=dict)
    pending: dict[str, SimpleQueue[dict[str, Any] | None]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Its URL."""
        return f"http://127.0.0.1:{self.port}/mcp"

    def close(self) -> None:
        """Let the calls end that wait."""
        for queue in self.pending.values():
            queue.put(None)

    def result_of(self, request: dict[str, Any]) -> dict[str, Any]:
        """The result of a request, or its error, except a call that waits."""
        params = request.get("params") or {}
        match request["method"]:
            case "initialize":
                self.offered = params["capabilities"]
                info = {"name": "asking", "version": "1"}
                shaken = {"protocolVersion": HELD, "capabilities": {"tools": {}}}
                return {"result": {**shaken, "serverInfo": info}}
            case "server/discover" if self.era == STATELESS:
                info = {"name": "asking", "version": "1"}
                found = {"supportedVersions": [STATELESS], "capabilities": {"tools": {}}}
                return {"result": self._complete({**found, "serverInfo": info})}
            case "tools/list":
                tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ASKS]
                return {"result": self._complete({"tools": tools})}
            case "tools/call" if self.era == STATELESS:
                self.offered = params["_meta"][META]
                return {"result": self._stateless_call(params)}
        return {"error": {"code": -32601, "message": "Method not found"}}

    def _complete(self, result: dict[str, Any]) -> dict[str, Any]:
        if self.era == HELD:
            return result
        return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result}

    def _stateless_call(self, params: dict[str, Any]) -> dict[str, Any]:
        self.calls.append(params)
        state = json.loads(params.get("requestState") or "[]")
        responses = params.get("inputResponses") or {}
        answers = [*state, *(responses[name] for name in sorted(responses))]
        for answer in responses.values():
            self.answers.put(answer)
        left = ASKS[params["name"]][len(answers) :]
        if not left:
            return self._complete(result_with(answers))
        request = left[0]
        if request["method"] != "elicitation/create":
            request = {"params": {}, **request}
        return {
            "resultType": "input_required",
            "inputRequests": {f"q{len(answers)}": request},
            "requestState": json.dumps(answers),
        }


def result_with(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """The result of a call."""
    booked = [answer.get("content", answer.get("error")) for answer in answers]
    structured = {"booked": booked}
    text = {"type": "text", "text": json.dumps(structured)}
    return {"content": [text], "structuredContent": structured}


class _Handler(BaseHTTPRequestHandler):
    """Serves the tools of `ASKS`."""

    protocol_version = "HTTP/1.1"
    worker: AskingWorker

    def do_POST(self) -> None:
        """Handle one message."""
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "method" not in message:
            answer = message.get("result") or {"error": message["error"]["message"]}
            self.worker.answers.put(answer)
            self.worker.pending[message["id"]].put(answer)
            self.respond(202)
        elif "id" not in message:
            self.respond(202)
        elif message["method"] == "tools/call" and self.worker.era == HELD:
            self.held_call(message)
        else:
            body = {"jsonrpc": "2.0", "id": message["id"], **self.worker.result_of(message)}
            self.respond(200, json.dumps(body).encode())

    def held_call(self, message: dict[str, Any]) -> None:
        """Ask in the stream of a call, and wait for each answer."""
        params, calls = message["params"], self.worker.calls
        calls.append(params)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        answers = []
        for number, request in enumerate(ASKS[params["name"]]):
            name = f"call {len(calls)}, question {number}"
            waiting = self.worker.pending[name] = SimpleQueue()
            self.event({"id": name, **request})
            answer = waiting.get()
            if answer is None:
                return
            answers.append(answer)
        self.event({"id": message["id"], "result": result_with(answers)})

    def event(self, message: dict[str, Any]) -> None:
        """Send an event of a stream."""
        data = json.dumps({"jsonrpc": "2.0", **message})
        self.wfile.write(f"event: message\ndata: {data}\n\n".encode())
        self.wfile.flush()

    def respond(self, status: int, body: bytes = b"") -> None:
        """Send a response."""
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle(self) -> None:
        """Handle a connection, which the client may break."""
        try:
            super().handle()
        except ConnectionError:
            self.close_connection = True

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def asking_worker(era: str) -> Iterator[AskingWorker]:
    """Serve a worker of this revision of the protocol."""
    worker = AskingWorker(era)
    handler = type("Handler", (_Handler,), {"worker": worker})
    with serving(handler) as worker.port:
        try:
            yield worker
        finally:
            worker.close()
