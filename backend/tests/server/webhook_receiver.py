"""A receiver of webhooks: a small HTTP server that verifies each event as its author would."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import queue
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from standardwebhooks import Webhook

LIMIT: Final = 30.0


def new_secret() -> str:
    return f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"


def write_secrets(path: Path, **of: str | list[str]) -> str:
    """Write a file of secrets, private to its owner; returns its name."""
    lines = [
        f"{name} {secret}"
        for name, found in of.items()
        for secret in ([found] if isinstance(found, str) else found)
    ]
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return str(path)


@dataclass
class Received:
    """One verified request; ``answer`` is the status that it got, ``at`` its time."""

    headers: dict[str, str]
    body: str
    answer: int
    at: float = field(default_factory=time.time)

    @property
    def event(self) -> dict[str, Any]:
        event: dict[str, Any] = json.loads(self.body)
        return event

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def kind(self) -> str:
        kind: str = self.event["type"]
        return kind

    @property
    def data(self) -> dict[str, Any]:
        data: dict[str, Any] = self.event["data"]
        return data


@dataclass
class Receiver:
    """``answer`` returns status and headers for each request; by default it accepts."""

    secret: str = field(default_factory=new_secret)
    port: int = 0
    answer: Callable[[dict[str, Any]], tuple[int, dict[str, str]]] = lambda _: (204, {})
    received: queue.Queue[Received] = field(default_factory=queue.Queue)
    refused: list[str] = field(default_factory=list)
    """Why a request was not genuine."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?token=in-the-url"

    async def next(self) -> Received:
        """Wait for the next genuine request."""
        return await asyncio.to_thread(self.received.get, timeout=LIMIT)

    async def accepted(self, count: int) -> list[Received]:
        """Wait for so many requests that were accepted."""
        found: list[Received] = []
        while len(found) < count:
            received = await self.next()
            if received.answer < 300:
                found.append(received)
        return found

    @property
    def is_idle(self) -> bool:
        return self.received.empty() and not self.refused

    @contextlib.contextmanager
    def running(self) -> Iterator[Receiver]:
        """Serve on a free port, or on the one of before."""
        server = ThreadingHTTPServer(("127.0.0.1", self.port), self.handler())
        server.daemon_threads = True
        self.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def handler(self) -> type[BaseHTTPRequestHandler]:
        """Handles a request: verify, answer, remember."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                try:
                    event = Webhook(receiver.secret).verify(body, headers)
                except Exception as error:  # noqa: BLE001 - the test reads it
                    receiver.refused.append(f"{type(error).__name__}: {error}")
                    self._reply(401, {})
                    return
                status, more = receiver.answer(event)
                receiver.received.put(Received(headers, body.decode(), status))
                self._reply(status, more)

            def _reply(self, status: int, headers: dict[str, str]) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if status != 204:
                    self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None: ...

        return Handler


def settings_of(receiver: Receiver, folder: Path, **more: Any) -> dict[str, Any]:
    """The settings of a server that delivers to a receiver on this machine."""
    return {
        "webhooks": (f"ops={receiver.url}",),
        "webhook_secrets": write_secrets(folder / "webhook-secrets", ops=receiver.secret),
        "webhook_hosts": ("127.0.0.1",),
        # What a busy receiver answers late is not sent again.
        "webhook_timeout": LIMIT,
        **more,
    }
