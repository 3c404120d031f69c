"""The command ``sluicegate webhooks``: lists, retries and tests deliveries."""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from sluicegate.engine.webhooks.open_webhooks import webhook_options
from sluicegate.engine.webhooks.payloads import TEST, encode_event, kind_of
from sluicegate.errors import ConfigurationError
from sluicegate.server.terminal import visible
from sluicegate.stores.approvals.outbox import OutboxEntry, list_entries, retry_entries
from sluicegate.wire.iso_times import iso_time

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sluicegate.engine.webhooks.webhook_settings import Endpoint, WebhookOptions
    from sluicegate.server.settings import Settings


class WebhookArguments(Protocol):
    """The arguments of the command."""

    action: str
    names: list[str]
    all: bool
    format: str


def webhooks(settings: Settings, arguments: Any, out: TextIO) -> int:
    """Run an action.

    Returns:
        0, or 1 if an event was not found, or not accepted by its endpoint.

    Args:
        settings: The database, and for a test the endpoints and their secrets.
        arguments: The arguments, with the attributes of `WebhookArguments`.
        out: The stream to which lines are written.

    Raises:
        ConfigurationError: An argument, a setting or the database cannot be used.
    """
    given: WebhookArguments = arguments
    if given.action == "list":
        _require_none(given.names)
        for entry in asyncio.run(list_entries(settings.sessions)):
            out.write(f"{_jsonl(entry) if given.format == 'jsonl' else _text(entry)}\n")
        return 0
    if given.action == "retry":
        return _retry(settings.sessions, given, out)
    options = webhook_options(settings)
    if options is None:
        raise ConfigurationError("There is no webhook; name one by --webhook.")
    return asyncio.run(_test(options, _chosen(options, given.names), out))


def _require_none(names: Sequence[str]) -> None:
    if names:
        raise ConfigurationError(f"'webhooks list' takes no names, but got {names[0]!r}.")


def _retry(url: str, given: WebhookArguments, out: TextIO) -> int:
    if given.all == bool(given.names):
        raise ConfigurationError("Name the ids of events that 'webhooks list' shows, or --all.")
    wrong = [name for name in given.names if not (name.isascii() and name.isdecimal())]
    if wrong:
        raise ConfigurationError(f"{wrong[0]!r} is not the id of an event; see 'webhooks list'.")
    ids = None if given.all else {int(name) for name in given.names}
    found = asyncio.run(retry_entries(url, ids))
    out.write(f"{len(found):,} events are delivered again\n")
    missing = sorted((ids or set()) - set(found))
    for number in missing:
        sys.stderr.write(
            f"There is no event {number}, or its endpoint is no longer configured; "
            "see 'webhooks list'.\n"
        )
    return 1 if missing else 0


def _chosen(options: WebhookOptions, names: Collection[str]) -> list[Endpoint]:
    known = {endpoint.name: endpoint for endpoint in options.endpoints}
    for name in names:
        if name not in known:
            raise ConfigurationError(f"There is no webhook {name!r}; there are {', '.join(known)}.")
    return [known[name] for name in dict.fromkeys(names)] or list(known.values())


async def _test(options: WebhookOptions, endpoints: Sequence[Endpoint], out: TextIO) -> int:
    # The HTTP client takes a while to import, and only this action needs it.
    from sluicegate.engine.webhooks.delivery_attempt import WebhookSender  # noqa: PLC0415

    failed = False
    for endpoint in endpoints:
        now, begun = time.time(), time.monotonic()
        body = encode_event(TEST, now, {"endpoint": endpoint.name})
        headers = options.secrets.sign(endpoint.name, f"evt_{secrets.token_hex(16)}", now, body)
        async with WebhookSender(endpoint, options.timeout) as sender:
            attempt = await sender.send(headers, body)
        if attempt.error is None:
            took = round((time.monotonic() - begun) * 1000)
            out.write(f"{endpoint.name} accepted {TEST} in {took} ms\n")
        else:
            failed = True
            sys.stderr.write(f"{attempt.error}\n")
    return 1 if failed else 0


def _text(entry: OutboxEntry) -> str:
    when = "dead" if entry.next_at is None else f"next={_moment(entry.next_at)}"
    words = [str(entry.id), iso_time(entry.at), kind_of(entry.state), f"endpoint={entry.endpoint}"]
    words += [f"app={entry.app}", f"chat={entry.chat}", f"approval={entry.approval_id}"]
    words += [f"attempts={entry.attempts}", when]
    if entry.error is not None:
        words.append(f"error={json.dumps(entry.error)}")
    return " ".join(visible(word) for word in words)


def _jsonl(entry: OutboxEntry) -> str:
    next_at = None if entry.next_at is None else _moment(entry.next_at)
    shown = {**asdict(entry), "at": iso_time(entry.at), "next_at": next_at}
    return json.dumps({**shown, "type": kind_of(entry.state)}, separators=(",", ":"))


def _moment(seconds: float) -> str:
    return "now" if seconds == 0 else iso_time(seconds)
