"""The command ``sluicegate audit``: prints, exports and verifies the audit trail (A10)."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TextIO

from sluicegate.errors import ConfigurationError
from sluicegate.server.audit_csv import csv_writer
from sluicegate.server.terminal import visible
from sluicegate.stores.approvals.audit_reading import AuditEntry, AuditFilter, read_audit
from sluicegate.stores.approvals.audit_verification import (
    Checkpoint,
    Verification,
    read_checkpoint,
    verify_audit,
)
from sluicegate.wire.iso_times import iso_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class AuditOptions(Protocol):
    """The options of the command."""

    chat: str | None
    user: str | None
    since: str | None
    until: str | None
    format: str
    checkpoint: bool
    verify: bool
    against: str | None


def audit(url: str, arguments: Any, out: TextIO) -> int:
    """Write the entries that match the options, oldest first, or what the chain shows.

    Returns:
        0, or 1 if the chain is broken.

    Args:
        url: The database of a server, which may be running.
        arguments: The options, with the attributes of `AuditOptions`.
        out: The stream to which the lines are written.

    Raises:
        ConfigurationError: A time, a checkpoint or the database cannot be read.
    """
    options: AuditOptions = arguments
    if options.checkpoint or options.verify or options.against is not None:
        _refuse_filters(options)
    if options.checkpoint:
        out.write(f"{asyncio.run(read_checkpoint(url))}\n")
        return 0
    if options.verify or options.against is not None:
        return _verify(url, options.against, out)
    matching = AuditFilter(
        chat=options.chat,
        user=options.user,
        since=_seconds("--since", options.since),
        until=_seconds("--until", options.until),
    )
    write = _WRITERS[options.format](out)

    async def copy() -> None:
        async for entry in read_audit(url, matching):
            write(entry)

    try:
        asyncio.run(copy())
        out.flush()
    except BrokenPipeError:
        # The reader has closed the pipe; the interpreter would report it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _refuse_filters(options: AuditOptions) -> None:
    for name in ("chat", "user", "since", "until"):
        if getattr(options, name) is not None:
            raise ConfigurationError(f"The chain covers all lines; leave out --{name}.")


def _verify(url: str, file: str | None, out: TextIO) -> int:
    checkpoint = None if file is None else Checkpoint.parse(_read(Path(file)))
    found = asyncio.run(verify_audit(url, checkpoint))
    if found.broken is not None:
        sys.stderr.write(f"The audit trail is broken. {found.broken}\n")
        return 1
    for line in _verified(found, checkpoint):
        out.write(f"{line}\n")
    return 0


def _verified(found: Verification, checkpoint: Checkpoint | None) -> Iterator[str]:
    yield f"{found.chained:,} lines are in the chain and unchanged"
    if found.erased:
        yield f"the content of {found.erased:,} of them was erased"
    if found.unchained:
        yield (
            f"{found.unchained:,} lines up to line {found.last_unchained} are from before the "
            "chain and not chained"
        )
    if checkpoint is not None:
        line = max(entry.line for entry in checkpoint.entries)
        yield f"they contain the checkpoint of line {line}"
    yield str(found.last)


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigurationError(f"The checkpoint {file} cannot be read: {reason}.") from None


def _seconds(option: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (OverflowError, ValueError):
        raise ConfigurationError(
            f"The time of {option} cannot be read; write it as 2026-01-31 or 2026-01-31T12:00:00Z."
        ) from None


def _text(out: TextIO) -> Callable[[AuditEntry], None]:
    def write(entry: AuditEntry) -> None:
        words = [iso_time(entry.at), entry.action, entry.tool, f"by={entry.by or '-'}"]
        words += [f"via={entry.via or '-'}", f"user={entry.user}", f"chat={entry.chat}"]
        words += [f"approval={entry.approval_id or '-'}", f"args={(entry.args_hash or '-')[:12]}"]
        if entry.reason is not None:
            words.append(f"reason={json.dumps(entry.reason)}")
        out.write(" ".join(visible(word) for word in words) + "\n")

    return write


def _jsonl(out: TextIO) -> Callable[[AuditEntry], None]:
    def write(entry: AuditEntry) -> None:
        out.write(
            json.dumps({**asdict(entry), "at": iso_time(entry.at)}, separators=(",", ":")) + "\n"
        )

    return write


_WRITERS: Final = {"text": _text, "jsonl": _jsonl, "csv": csv_writer}
