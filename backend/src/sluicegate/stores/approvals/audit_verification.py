"""Verifies the hash chain of the audit trail, and the checkpoints that a person has signed."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self

from sqlalchemy import func, inspect, select

from sluicegate.errors import ConfigurationError
from sluicegate.stores.approvals.audit import open_audit
from sluicegate.stores.sql.audit_chain import line_digest
from sluicegate.stores.sql.schema import AUDIT, AUDIT_CHAIN

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sqlalchemy import Row
    from sqlalchemy.ext.asyncio import AsyncConnection

_PAGE: Final = 5_000
_C = AUDIT_CHAIN.c
_COLUMNS: Final = tuple(AUDIT.columns.keys())
_TEXT: Final = re.compile(r"sluicegate audit: line (\d+), entry (\d+), sha256 ([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """An entry of the chain: the id of its line, its number and its digest.

    The digest covers every line before, so a signed checkpoint fixes all of them. ``str`` is the
    text to sign, `parse` reads it.
    """

    line: int
    number: int
    digest: str

    def __str__(self) -> str:
        return f"sluicegate audit: line {self.line}, entry {self.number}, sha256 {self.digest}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a checkpoint; raises ConfigurationError if there is anything else in the text."""
        match = _TEXT.fullmatch(text.strip())
        if match is None:
            raise ConfigurationError(
                "This is not a checkpoint; give the text that 'sluicegate audit --checkpoint' "
                "printed, without its signature."
            )
        return cls(int(match[1]), int(match[2]), match[3])


@dataclass(frozen=True, slots=True)
class Verification:
    """What is known about the chain.

    ``last`` is its last verified entry, ``unchained`` the number of lines from before the chain,
    which is not verified, and ``last_unchained`` the id of the last of them. ``broken`` names the
    first line that is not as it was written, in one sentence.
    """

    last: Checkpoint
    unchained: int = 0
    last_unchained: int = 0
    broken: str | None = None


async def read_checkpoint(url: str) -> Checkpoint:
    """Return the last entry of the chain, without a verification.

    Raises:
        ConfigurationError: the database cannot be read or has no chain.
    """
    async with open_audit(url) as connection:
        await _require_chain(connection)
        last = await connection.execute(select(AUDIT_CHAIN).order_by(_C.number.desc()).limit(1))
        row = last.one_or_none()
    if row is None:
        raise ConfigurationError("The chain of the audit trail is empty; verify a backup.")
    return Checkpoint(row.line, row.number, row.digest)


async def verify_audit(url: str, checkpoint: Checkpoint | None = None) -> Verification:
    """Verify every line of the chain, page by page; servers may write meanwhile.

    Args:
        url: The database.
        checkpoint: An entry that the chain must contain.

    Raises:
        ConfigurationError: the database cannot be read or has no chain.
    """
    async with open_audit(url) as connection:
        await _require_chain(connection)
        reached: Checkpoint | None = None
        beginning = 0
        async for row in _entries(connection):
            broken = _difference(reached, row)
            entry = Checkpoint(row.line, row.number, row.digest)
            if broken is None and checkpoint is not None:
                broken = _contradiction(entry, checkpoint)
            if broken is not None:
                return Verification(reached or entry, broken=broken)
            if reached is None:
                beginning = entry.line
            reached = entry
        if reached is None:
            return Verification(Checkpoint(0, 0, ""), broken="The chain has no beginning.")
        found = Verification(reached, await _count_until(connection, beginning), beginning)
        if checkpoint is not None and checkpoint.number > reached.number:
            end = f"The trail ends after line {reached.line}, before line {checkpoint.line} of the "
            return replace(found, broken=f"{end}checkpoint: its last lines were removed.")
        return replace(found, broken=await _unlisted(connection, beginning))


async def _require_chain(connection: AsyncConnection) -> None:
    if not await connection.run_sync(lambda c: inspect(c).has_table(AUDIT_CHAIN.name)):
        raise ConfigurationError(
            "The audit trail of this database has no chain yet; start the server once on it."
        )


async def _entries(connection: AsyncConnection) -> AsyncIterator[Row[Any]]:
    """Read the entries with their lines, a page at a time."""
    entry = (_C.number.label("number"), _C.line.label("line"), _C.digest.label("digest"))
    joined = AUDIT_CHAIN.outerjoin(AUDIT, AUDIT.c.id == _C.line)
    statement = select(*entry, *AUDIT.columns).select_from(joined).order_by(_C.number).limit(_PAGE)
    last: int | None = None
    while True:
        rest = statement if last is None else statement.where(_C.number > last)
        page = (await connection.execute(rest)).all()
        for row in page:
            yield row
        if len(page) < _PAGE:
            return
        last = page[-1].number


def _difference(before: Checkpoint | None, row: Row[Any]) -> str | None:
    """Return how an entry contradicts the one before or its own line."""
    if before is None:
        if row.number != 0 or row.digest != line_digest("", 0, [("id", row.line)]):
            return "The beginning of the chain was changed."
        return None
    if row.number != before.number + 1:
        return f"The line after line {before.line} was removed."
    if row.id is None:
        return f"Line {row.line} was removed."
    if row.digest != line_digest(before.digest, row.number, zip(_COLUMNS, row[3:], strict=True)):
        return f"Line {row.line} was changed."
    return None


def _contradiction(entry: Checkpoint, checkpoint: Checkpoint) -> str | None:
    if entry.number == checkpoint.number and entry != checkpoint:
        return f"Line {entry.line} or one before it is not the one of the checkpoint."
    return None


async def _count_until(connection: AsyncConnection, line: int) -> int:
    counted = await connection.scalar(select(func.count()).where(AUDIT.c.id <= line))
    return counted or 0


async def _unlisted(connection: AsyncConnection, beginning: int) -> str | None:
    """Return that a line is in the trail but not in the chain; a trigger had been removed."""
    lines = select(func.count()).where(AUDIT.c.id > beginning).scalar_subquery()
    entries = select(func.count()).where(_C.number > 0).scalar_subquery()
    # One statement, so that both are of the same moment.
    counted = (await connection.execute(select(lines, entries))).one()
    if counted[0] == counted[1]:
        return None
    in_chain = select(_C.line).where(_C.number > 0)
    first = await connection.scalar(
        select(func.min(AUDIT.c.id)).where(AUDIT.c.id > beginning, AUDIT.c.id.not_in(in_chain))
    )
    return f"Line {first} was added beside the chain."
