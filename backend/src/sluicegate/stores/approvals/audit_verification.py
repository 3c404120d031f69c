"""Verifies the hash chains of the audit trail, and the checkpoints that a person has signed."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self

from sqlalchemy import func, inspect, null, select

from sluicegate.errors import ConfigurationError
from sluicegate.stores.approvals.audit_reading import open_audit
from sluicegate.stores.sql.audit_chain_triggers import (
    CHAIN_LENGTH,
    OPEN,
    PARTS,
    commitment,
    is_blank,
    line_digest,
)
from sluicegate.stores.sql.schema import AUDIT, AUDIT_CHAIN, AUDIT_KEYS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sqlalchemy import ColumnElement, Row
    from sqlalchemy.ext.asyncio import AsyncConnection

_PAGE: Final = 5_000
_C = AUDIT_CHAIN.c
_COLUMNS: Final = tuple(AUDIT.columns.keys())
_TEXT: Final = re.compile(
    r"sluicegate audit: line (\d{1,19}), entry (\d{1,19}), sha256 ([0-9a-f]{64})"
)


@dataclass(frozen=True, slots=True)
class ChainEntry:
    """An entry of a chain: the id of its line, its number and its digest.

    The digest covers every line before it in its chain.
    """

    line: int
    number: int
    digest: str

    @property
    def chain(self) -> int:
        """The chain of this entry."""
        return self.number // CHAIN_LENGTH

    def __str__(self) -> str:
        return f"sluicegate audit: line {self.line}, entry {self.number}, sha256 {self.digest}"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The last entry of each chain, in the order of the chains.

    A signed checkpoint fixes all lines before. ``str`` is the text to sign, `parse` reads it: a
    line of text for each chain, so the only one of schema 7 is a checkpoint too.
    """

    entries: tuple[ChainEntry, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.entries))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a checkpoint; raises ConfigurationError if there is anything else in the text."""
        matches = [_TEXT.fullmatch(line.strip()) for line in text.strip().splitlines()]
        entries = tuple(ChainEntry(int(it[1]), int(it[2]), it[3]) for it in matches if it)
        chains = [entry.chain for entry in entries]
        if not entries or len(entries) < len(matches) or chains != sorted(set(chains)):
            raise ConfigurationError(
                "This is not a checkpoint; give the text that 'sluicegate audit --checkpoint' "
                "printed, without its signature."
            )
        return cls(entries)


@dataclass(frozen=True, slots=True)
class Verification:
    """What is known about the chains.

    ``last`` are their last verified entries, ``unchained`` is the number of lines from before the
    chains, which are not verified, and ``last_unchained`` the id of the last of them. ``erased``
    is the number of lines whose content was erased with its key. ``broken`` names the first line
    that is not as it was written, in one sentence.
    """

    last: Checkpoint
    erased: int = 0
    unchained: int = 0
    last_unchained: int = 0
    broken: str | None = None

    @property
    def chained(self) -> int:
        """The number of verified lines."""
        return sum(entry.number % CHAIN_LENGTH for entry in self.last.entries)


async def read_checkpoint(url: str) -> Checkpoint:
    """Return the last entry of each chain, without a verification.

    Raises:
        ConfigurationError: the database cannot be read or has no chain.
    """
    entries: list[ChainEntry] = []
    async with open_audit(url) as connection:
        await _require_chain(connection)
        last = select(_C.line, _C.number, _C.digest).order_by(_C.number.desc()).limit(1)
        row = (await connection.execute(last)).one_or_none()
        while row is not None:
            entry = ChainEntry(row.line, row.number, row.digest)
            entries.insert(0, entry)
            before = last.where(_C.number < entry.chain * CHAIN_LENGTH)
            row = (await connection.execute(before)).one_or_none()
    if not entries:
        raise ConfigurationError("The chain of the audit trail is empty; verify a backup.")
    return Checkpoint(tuple(entries))


async def verify_audit(url: str, checkpoint: Checkpoint | None = None) -> Verification:
    """Verify every line of the chains, page by page; servers may write meanwhile.

    Args:
        url: The database.
        checkpoint: Entries that the chains must contain.

    Raises:
        ConfigurationError: the database cannot be read or has no chain.
    """
    async with open_audit(url) as connection:
        await _require_chain(connection)
        entries = _entries(connection)
        first = await anext(entries, None)
        if first is None:
            return Verification(Checkpoint(()), broken="The chain has no beginning.")
        if first.number != 0 or first.digest != line_digest("", 0, [("id", first.line)]):
            return Verification(Checkpoint(()), broken="The beginning of the chain was changed.")
        beginning = ChainEntry(first.line, 0, first.digest)
        chains = _Chains(beginning, checkpoint or Checkpoint(()))
        async for row in entries:
            chains.verify(row)
        unchained = await _count_until(connection, beginning.line)
        found = Verification(chains.last, chains.erased, unchained, beginning.line)
        broken = chains.first_difference() or await _unlisted(connection, beginning.line)
        return replace(found, broken=broken)


class _Chains:
    """The last verified entry of each chain, and the first difference of each.

    Args:
        beginning: Entry 0, which every chain begins with.
        checkpoint: Entries that the chains must contain.
    """

    def __init__(self, beginning: ChainEntry, checkpoint: Checkpoint) -> None:
        self._beginning = beginning
        self._signed = {entry.chain: entry for entry in checkpoint.entries}
        self._last = {0: beginning}
        self._broken: dict[int, tuple[int, str]] = {}
        self.erased = 0
        self._compare(beginning)

    @property
    def last(self) -> Checkpoint:
        """The last verified entry of each chain."""
        return Checkpoint(tuple(self._last.values()))

    def verify(self, row: Row[Any]) -> None:
        """Verify the next entry and its line, in the order of the numbers."""
        entry = ChainEntry(row.line, row.number, row.digest)
        if entry.chain in self._broken:
            return
        before = self._last.get(entry.chain)
        difference = _difference(before or self._beginning_of(entry.chain), row)
        if difference is not None:
            self._broken[entry.chain] = difference
            return
        self._last[entry.chain] = entry
        self.erased += row.content is not None and row.key_of_content is None
        self._compare(entry)

    def first_difference(self) -> str | None:
        """Return the difference of the lowest line, after all entries were verified."""
        for chain, signed in self._signed.items():
            last = self._last.get(chain)
            if chain not in self._broken and (last is None or last.number < signed.number):
                self._broken[chain] = (signed.line, _missing(signed, last))
        return min(self._broken.values())[1] if self._broken else None

    def _beginning_of(self, chain: int) -> ChainEntry:
        return replace(self._beginning, number=chain * CHAIN_LENGTH)

    def _compare(self, entry: ChainEntry) -> None:
        signed = self._signed.get(entry.chain)
        if signed is not None and signed.number == entry.number and signed != entry:
            said = f"Line {entry.line} or one before it is not the one of the checkpoint."
            self._broken[entry.chain] = (entry.line, said)


async def _require_chain(connection: AsyncConnection) -> None:
    if not await connection.run_sync(lambda c: inspect(c).has_table(AUDIT_CHAIN.name)):
        raise ConfigurationError(
            "The audit trail of this database has no chain yet; start the server once on it."
        )


async def _entries(connection: AsyncConnection) -> AsyncIterator[Row[Any]]:
    """Read the entries with their lines, a page at a time."""
    joined = AUDIT_CHAIN.outerjoin(AUDIT, AUDIT.c.id == _C.line)
    commitments: list[ColumnElement[Any]] = []
    has_keys = await connection.run_sync(lambda c: inspect(c).has_table(AUDIT_KEYS.name))
    for part in PARTS:
        table = AUDIT_KEYS.alias(part)
        if has_keys:
            joined = joined.outerjoin(table, (table.c.line == _C.line) & (table.c.part == part))
        # A database that no server of this version has opened has neither.
        found = (_C[part], table.c.key) if has_keys else (null(), null())
        commitments += [found[0].label(part), found[1].label(f"key_of_{part}")]
    entry = (_C.number, _C.line, _C.digest, *commitments)
    statement = select(*entry, *AUDIT.columns).select_from(joined)
    statement = statement.order_by(_C.number).limit(_PAGE)
    last: int | None = None
    while True:
        rest = statement if last is None else statement.where(_C.number > last)
        page = (await connection.execute(rest)).all()
        for row in page:
            yield row
        if len(page) < _PAGE:
            return
        last = page[-1].number


def _difference(before: ChainEntry, row: Row[Any]) -> tuple[int, str] | None:
    """Return the line and how its entry contradicts the one before, or the line itself."""
    if row.number != before.number + 1:
        if before.number % CHAIN_LENGTH == 0:
            return row.line, f"The first line of the chain of line {row.line} was removed."
        return before.line, f"The line after line {before.line} was removed."
    if row.id is None:
        return row.line, f"Line {row.line} was removed."
    line = dict(zip(_COLUMNS, row[-len(_COLUMNS) :], strict=True))
    if row.content is None:
        # An entry from before the keys.
        covered = line
    else:
        covered = {name: line[name] for name in OPEN}
        covered |= {"content": row.content, "person": row.person}
    if row.digest != line_digest(before.digest, row.number, covered.items()):
        return row.line, f"Line {row.line} was changed."
    return None if row.content is None else _uncommitted(row, line)


def _uncommitted(row: Row[Any], line: dict[str, Any]) -> tuple[int, str] | None:
    """Return how the columns of a line contradict their commitments."""
    committed = {
        "content": (row.content, row.key_of_content),
        "person": (row.person, row.key_of_person),
    }
    for part, (expected, key) in committed.items():
        values = [(name, line[name]) for name in PARTS[part]]
        if is_blank(part, values) if key is None else commitment(key, values) == expected:
            continue
        if key is None and expected is not None:
            return row.line, f"The key of line {row.line} was removed, but not its content."
        return row.line, f"Line {row.line} was changed."
    return None


def _missing(signed: ChainEntry, last: ChainEntry | None) -> str:
    chain = f"The chain of line {signed.line} of the checkpoint"
    if last is None or last.number == 0:
        return f"{chain} was removed."
    return f"{chain} ends after line {last.line}: its last lines were removed."


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
