"""The receivers of the guide, run unchanged against a running server."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import queue
import smtplib
import threading
from collections.abc import Iterator
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
from starlette.types import ASGIApp

from tests.docs.markdown import DOCS, fences
from tests.engine.stage import Counted, calls, says, scripted
from tests.server.exchange import client
from tests.server.page import Page, served
from tests.server.webhook_receiver import LIMIT, Receiver, new_secret, settings_of

PAGE = (DOCS / "how-to" / "webhooks.md").read_text("utf-8")
PAY = [calls(("pay", {"n": 1})), says("done")]


def receiver_app(name: str) -> ASGIApp:
    """The application of a snippet, by the name of its file."""
    [code] = [each.code for each in fences(PAGE) if each.code.startswith(f"# {name}.py\n")]
    names: dict[str, Any] = {"__name__": name}
    exec(compile(code, f"{name}.py", "exec"), names)
    app: ASGIApp = names["app"]
    return app


@contextlib.contextmanager
def chat_service(posted: queue.Queue[Any]) -> Iterator[str]:
    """Where Slack or Teams would be; yields its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.put(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


async def events_of_a_payment(tmp_path: Path) -> list[Any]:
    """The requests that a server sends: requested, decided, executed; all are signed."""
    with Receiver().running() as receiver:
        settings = settings_of(receiver, tmp_path, inbox_url="https://chat.example/inbox")
        agent = scripted(PAY, [Counted().tool()])
        async with served(agent, tmp_path, **settings) as http:
            page = Page(http)
            await page.say("pay")
            await page.answer()
            received = await receiver.accepted(3)
    return [receiver.secret, *received]


async def relay(app: ASGIApp, received: list[Any]) -> list[int]:
    """Send the requests on, unchanged; returns the statuses."""
    async with client(app) as http:
        return [
            (await http.post("/", content=each.body, headers=each.headers)).status_code
            for each in received
        ]


@pytest.mark.parametrize(("name", "variable"), [("slack", "SLACK_URL"), ("teams", "TEAMS_URL")])
async def test_the_receiver_of_a_chat_posts_who_waits_with_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, variable: str
) -> None:
    secret, *received = await events_of_a_payment(tmp_path)
    posted: queue.Queue[Any] = queue.Queue()
    monkeypatch.setenv("WEBHOOK_SECRET", secret)
    patient = functools.partial(httpx.AsyncClient, timeout=LIMIT)
    monkeypatch.setattr(httpx, "AsyncClient", patient)
    app = receiver_app(f"{name}_receiver")
    with chat_service(posted) as url:
        monkeypatch.setenv(variable, url)
        assert await relay(app, received) == [204, 204, 204]
        message = await asyncio.to_thread(posted.get, timeout=LIMIT)
        monkeypatch.setenv("WEBHOOK_SECRET", new_secret())
        assert await relay(app, received[:1]) == [401]
    assert posted.empty()
    link = received[0].data["url"]
    if name == "slack":
        assert message == {"text": f"local waits for approval of *pay*: <{link}|decide>"}
    else:
        [attachment] = message["attachments"]
        card = attachment["content"]
        assert card["body"][0]["text"] == "local wants to run pay"
        assert card["actions"][0]["url"] == link


async def test_the_receiver_of_a_mailbox_sends_a_mail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mails: list[EmailMessage] = []

    class Server:
        def __init__(self, host: str) -> None:
            assert host == "mail.example"

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None: ...

        def send_message(self, mail: EmailMessage) -> None:
            mails.append(mail)

    monkeypatch.setattr(smtplib, "SMTP", Server)
    secret, *received = await events_of_a_payment(tmp_path)
    addresses = {"MAIL_FROM": "chat@example.org", "MAIL_TO": "ops@example.org"}
    for variable, value in {
        "WEBHOOK_SECRET": secret,
        "MAIL_SERVER": "mail.example",
        **addresses,
    }.items():
        monkeypatch.setenv(variable, value)
    assert await relay(receiver_app("mail_receiver"), received) == [204, 204, 204]
    [mail] = mails
    assert (mail["Subject"], mail["To"]) == ("pay waits for approval", "ops@example.org")
    assert received[0].data["url"] in mail.get_content()


def test_a_receiver_has_at_most_thirty_five_lines() -> None:
    for fence in fences(PAGE):
        if fence.language == "python":
            assert len(fence.code.splitlines()) <= 38
