"""Webhooks of a running server, at a receiver that verifies them with the standard's library."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sluicegate import create_app
from sluicegate.errors import ConfigurationError
from sluicegate.server.cli import main
from tests.engine.stage import Counted, calls, says, scripted
from tests.server.exchange import started
from tests.server.page import Page, served
from tests.server.webhook_receiver import LIMIT, Receiver, new_secret, settings_of, write_secrets

PAY = [calls(("pay", {"n": 1})), says("done")]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver().running() as running:
        yield running


async def decide(page: Page, way: str, *, approved: bool) -> None:
    """Decide the pending approval on the page, or outside of it."""
    if way == "page":
        await page.answer(approved=approved)
        return
    [approval] = page.asks()
    decided = await page.http.post(f"/api/approvals/{approval}", json={"approved": approved})
    assert decided.status_code == 202


@pytest.mark.parametrize("way", ["page", "outside"])
async def test_a_receiver_learns_of_a_request_its_decision_and_its_outcome_in_this_order(
    tmp_path: Path, counted: Counted, receiver: Receiver, way: str
) -> None:
    settings = settings_of(receiver, tmp_path, public_url="https://chat.example")
    async with served(scripted(PAY, [counted.tool()]), tmp_path, **settings) as http:
        page = Page(http)
        await page.say("pay my secret bill")
        [approval] = page.asks()
        [asked] = await receiver.accepted(1)
        await decide(page, way, approved=True)
        decided, executed = await receiver.accepted(2)
    assert [each.kind for each in (asked, decided, executed)] == [
        "approval.requested",
        "approval.decided",
        "approval.executed",
    ]
    assert len({each.id for each in (asked, decided, executed)}) == 3
    known = {
        "approvalId": approval,
        "app": "stage",
        "user": "local",
        "chatId": page.chat_id,
        "agent": "stage",
        "tool": "pay",
        "requestedAt": asked.event["timestamp"],
        "expiresAt": asked.data["expiresAt"],
        "url": f"https://chat.example/inbox/{approval}",
    }
    assert asked.data == {**known, "state": "requested"}
    decision = {
        "decidedBy": "local",
        "decidedAt": decided.event["timestamp"],
        "via": "sse" if way == "page" else "http",
    }
    assert decided.data == {**known, **decision, "state": "approved"}
    assert executed.data == {**known, **decision, "state": "executed"}
    assert receiver.is_idle


async def test_arguments_and_texts_are_in_events_only_if_a_setting_adds_them(
    tmp_path: Path, counted: Counted, receiver: Receiver
) -> None:
    agent = scripted(PAY, [counted.tool()])
    events: dict[bool, list[Any]] = {}
    for has_details in (False, True):
        folder = tmp_path / str(has_details)
        folder.mkdir()
        settings = settings_of(receiver, folder, webhook_details=has_details)
        async with served(agent, folder, **settings) as http:
            page = Page(http)
            await page.say("pay my secret bill")
            for part in page.pending():
                part["state"] = "approval-responded"
                part["approval"] |= {"approved": False, "reason": "too much"}
            await page.post()
            events[has_details] = await receiver.accepted(2)
    assert not re.search("secret bill|too much|arguments", str(events[False]))
    asked, denied = events[True]
    assert (asked.data["title"], asked.data["arguments"]) == ("pay my secret bill", {"n": 1})
    assert "reason" not in asked.data
    assert (denied.kind, denied.data["state"], denied.data["reason"]) == (
        "approval.decided",
        "denied",
        "too much",
    )


async def test_a_call_that_a_grant_approves_asks_nobody(
    tmp_path: Path, counted: Counted, receiver: Receiver
) -> None:
    script = [calls(("pay", {"n": 1})), calls(("pay", {"n": 2})), says("done")]
    settings = settings_of(receiver, tmp_path)
    async with served(scripted(script, [counted.tool()]), tmp_path, **settings) as http:
        page = Page(http)
        await page.say("pay")
        await page.answer(remember=dict.fromkeys(page.asks(), "chat"))
        events = await receiver.accepted(5)
    assert counted.runs == [1, 2]
    first = events[0].data["approvalId"]
    own = [each.kind for each in events if each.data["approvalId"] == first]
    granted = [each for each in events if each.data["approvalId"] != first]
    assert own == ["approval.requested", "approval.decided", "approval.executed"]
    assert [each.kind for each in granted] == ["approval.decided", "approval.executed"]
    assert [each.data["automatic"] for each in granted] == [True, True]


async def test_a_new_message_supersedes_an_approval_and_the_receiver_learns_it(
    tmp_path: Path, counted: Counted, receiver: Receiver
) -> None:
    script = {"pay": PAY, "hello": [says("Hello.")]}
    settings = settings_of(receiver, tmp_path)
    async with served(scripted(script, [counted.tool()]), tmp_path, **settings) as http:
        page = Page(http)
        await page.say("pay")
        await page.say("hello")
        events = await receiver.accepted(2)
    assert [each.kind for each in events] == ["approval.requested", "approval.superseded"]


async def test_the_signature_is_that_of_the_specification_and_two_secrets_sign_both(
    tmp_path: Path, counted: Counted, receiver: Receiver
) -> None:
    settings = settings_of(receiver, tmp_path)
    old, new = receiver.secret, new_secret()
    async with served(scripted(PAY, [counted.tool()]), tmp_path, **settings) as http:
        page = Page(http)
        # While the server runs, a second secret joins the first; then the first one leaves.
        write_secrets(tmp_path / "webhook-secrets", ops=[new, old], other=new_secret())
        await page.say("pay")
        [asked] = await receiver.accepted(1)
        receiver.secret = new
        write_secrets(tmp_path / "webhook-secrets", ops=new)
        await page.answer()
        decided, _ = await receiver.accepted(2)
    for received, signers in ((asked, [new, old]), (decided, [new])):
        headers = received.headers
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.{received.body}"
        expected = [
            hmac.digest(base64.b64decode(secret[6:]), signed.encode(), hashlib.sha256)
            for secret in signers
        ]
        assert headers["webhook-signature"] == " ".join(
            f"v1,{base64.b64encode(digest).decode()}" for digest in expected
        )
    assert receiver.refused == []


async def test_events_wait_for_their_receiver_and_arrive_in_order(
    tmp_path: Path, counted: Counted
) -> None:
    receiver = Receiver()
    with receiver.running():
        settings = settings_of(receiver, tmp_path)
    agent = scripted(PAY, [counted.tool()])
    async with served(agent, tmp_path, **settings) as http:
        page = Page(http)
        await page.say("pay")
        await page.answer()
    # The server was shut down meanwhile, too.
    with receiver.running():
        async with served(agent, tmp_path, **settings):
            events = await receiver.accepted(3)
    assert [each.kind for each in events] == [
        "approval.requested",
        "approval.decided",
        "approval.executed",
    ]


async def test_an_event_that_is_not_accepted_is_sent_again_with_its_id_and_before_the_next(
    tmp_path: Path, counted: Counted, receiver: Receiver
) -> None:
    answers = iter([(500, {}), (302, {"location": receiver.url}), (200, {})])
    receiver.answer = lambda _: next(answers, (204, {}))
    settings = settings_of(receiver, tmp_path)
    async with served(scripted(PAY, [counted.tool()]), tmp_path, **settings) as http:
        page = Page(http)
        await page.say("pay")
        await page.answer()
        received = [await receiver.next() for _ in range(5)]
    assert [(each.kind, each.answer) for each in received] == [
        ("approval.requested", 500),
        ("approval.requested", 302),
        ("approval.requested", 200),
        ("approval.decided", 204),
        ("approval.executed", 204),
    ]
    assert len({each.id for each in received}) == 3
    assert len({each.body for each in received}) == 3
    assert receiver.is_idle


async def test_a_slow_endpoint_delays_no_other(tmp_path: Path, counted: Counted) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, Receiver().running() as receiver:
        settings = settings_of(receiver, tmp_path)
        # It accepts connections and never answers.
        slow = f"slow=http://127.0.0.1:{silent.getsockname()[1]}/"
        settings["webhooks"] = (slow, *settings["webhooks"])
        write_secrets(tmp_path / "webhook-secrets", ops=receiver.secret, slow=new_secret())
        async with served(scripted(PAY, [counted.tool()]), tmp_path, **settings) as http:
            page = Page(http)
            await page.say("pay")
            await page.answer()
            events = await receiver.accepted(3)
    assert [each.data["state"] for each in events] == ["requested", "approved", "executed"]


async def command(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    """Run a command beside the server; returns its exit code, output and errors."""
    capsys.readouterr()
    code = await asyncio.to_thread(main, list(argv))
    printed = capsys.readouterr()
    return code, printed.out, printed.err


async def test_a_dead_letter_is_listed_and_delivered_when_it_is_retried(
    tmp_path: Path, counted: Counted, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    receiver.answer = lambda event: (410 if event["data"]["state"] == "requested" else 204, {})
    settings = settings_of(receiver, tmp_path)
    url = f"sqlite+aiosqlite:///{tmp_path}/chats.db"

    async def listed() -> str:
        code, out, _ = await command(capsys, "webhooks", "list", "--sessions", url)
        assert code == 0
        return out

    async with served(scripted(PAY, [counted.tool()]), tmp_path, **settings) as http:
        page = Page(http)
        await page.say("pay")
        await page.answer()
        # What follows a dead letter is delivered.
        assert [each.data["state"] for each in await receiver.accepted(2)] == [
            "approved",
            "executed",
        ]
        # The server forgets an event after its receiver has the answer.
        async with asyncio.timeout(LIMIT):
            while len(lines := (await listed()).splitlines()) != 1:
                pass
        [line] = lines
        assert re.fullmatch(
            r"1 \S+ approval\.requested endpoint=ops app=stage chat=\S+ approval=\S+ attempts=1 "
            r'dead error="The webhook ops answered 410\."',
            line,
        )
        assert "in-the-url" not in line
        _, out, _ = await command(
            capsys, "webhooks", "list", "--sessions", url, "--format", "jsonl"
        )
        entry = json.loads(out)
        assert (entry["type"], entry["next_at"]) == ("approval.requested", None)
        code, out, err = await command(capsys, "webhooks", "retry", "1", "99", "--sessions", url)
        assert (code, out) == (1, "1 events are delivered again\n")
        assert "There is no event 99" in err
        assert (await receiver.next()).answer == 410
        receiver.answer = lambda _: (204, {})
        while " dead error=" not in await listed():
            pass
        code, out, _ = await command(capsys, "webhooks", "retry", "--all", "--sessions", url)
        assert (code, out) == (0, "1 events are delivered again\n")
        [again] = await receiver.accepted(1)
        assert again.data["state"] == "requested"
        while await listed():
            pass


async def test_the_test_command_sends_an_event_and_says_what_became_of_it(
    tmp_path: Path,
    receiver: Receiver,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = settings_of(receiver, tmp_path)
    options = ["--webhook", settings["webhooks"][0], "--webhook-host", "127.0.0.1"]
    options += ["--webhook-secrets", settings["webhook_secrets"]]
    monkeypatch.setenv("SLUICEGATE_WEBHOOK_TIMEOUT", str(LIMIT))
    code, out, _ = await command(capsys, "webhooks", "test", *options)
    assert code == 0
    assert re.fullmatch(r"ops accepted webhook\.test in \d+ ms\n", out)
    received = await receiver.next()
    assert (received.kind, received.data) == ("webhook.test", {"endpoint": "ops"})
    receiver.secret = new_secret()
    code, out, err = await command(capsys, "webhooks", "test", "ops", *options)
    assert (code, out, err) == (1, "", "The webhook ops answered 401.\n")


WRONG: list[tuple[list[str], str]] = [
    (["list", "ops"], "'webhooks list' takes no names, but got 'ops'."),
    (["retry"], "Name the ids of events that 'webhooks list' shows, or --all."),
    (["retry", "ops"], "'ops' is not the id of an event; see 'webhooks list'."),
    (["test"], "There is no webhook; name one by --webhook."),
    (["test", "--webhook", "https://a.example"], "Webhooks are signed; name a file with a secret"),
    (["list"], "There is no database "),
]


@pytest.mark.parametrize(("argv", "sentence"), WRONG)
async def test_a_wrong_use_of_the_command_is_one_sentence(
    folder: Path, argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = await command(capsys, "webhooks", *argv)
    assert (code, out) == (2, "")
    assert err.startswith(sentence)
    assert err.count("\n") == 1


REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"webhooks": ("http://hooks.example/",)},
        "The URL of the webhook webhook begins with http://; use https://, or name its host in the "
        "setting webhook_hosts (--webhook-host).",
    ),
    ({"webhooks": ("https://user:pw@hooks.example/",)}, "is no http or https URL"),
    ({"webhooks": ("a=https://one.example", "a=https://two.example")}, "Two webhooks have the nam"),
    ({"webhooks": ("other=https://hooks.example",)}, "has no secret for other; add a line"),
    ({"webhook_hosts": ("not a host",)}, "The setting webhook_hosts names 'not a host'"),
    ({"webhook_secrets": "missing"}, "The file missing of webhook_secrets cannot be read: No such"),
]


@pytest.mark.parametrize(("wrong", "sentence"), REFUSED)
async def test_settings_that_cannot_be_used_are_refused_at_start(
    folder: Path, wrong: dict[str, Any], sentence: str
) -> None:
    path = write_secrets(folder / "secrets", webhook=new_secret(), a=new_secret())
    given = {"webhooks": ("https://hooks.example/",), "webhook_secrets": path, **wrong}
    app = create_app(scripted([says("hi")]), sessions=f"sqlite+aiosqlite:///{folder}/c.db", **given)
    with pytest.raises(ConfigurationError, match=re.escape(sentence)):
        async with started(app):
            pass


@pytest.mark.parametrize(
    ("text", "mode", "sentence"),
    [
        ("webhook whsec_c2hvcnQ=", 0o600, "is not whsec_ and the base64 of 24 to 64 bytes."),
        (f"webhook {'A' * 44}", 0o600, "is not whsec_ and the base64 of 24 to 64 bytes."),
        (f"webhook whsec_{'A' * 44}", 0o640, "can be read by other users; run chmod 600 secrets."),
    ],
)
def test_a_secret_that_cannot_be_used_is_refused_without_being_printed(
    folder: Path,
    text: str,
    mode: int,
    sentence: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (folder / "secrets").write_text(text)
    os.chmod(folder / "secrets", mode)
    options = ["--webhook", "https://hooks.example/?token=abc", "--webhook-secrets", "secrets"]
    assert main(["webhooks", "test", *options]) == 2
    printed = capsys.readouterr()
    assert sentence in printed.err
    assert text.split()[1] not in printed.err + printed.out
    # The check of an agent says the same, and shows no token of a URL.
    assert main(["check", "payer.py:root_agent", *options]) == 1
    checked = capsys.readouterr().out
    assert sentence in checked
    assert "webhooks = https://hooks.example/…" in checked
    assert "token" not in checked
