"""The audit trail as CSV."""

from __future__ import annotations

import csv
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Final, TextIO

from sluicegate.stores.approvals.audit_reading import AuditEntry
from sluicegate.wire.iso_times import iso_time

if TYPE_CHECKING:
    from collections.abc import Callable

COLUMNS: Final = tuple(field.name for field in fields(AuditEntry))
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""Characters with which a spreadsheet begins a formula."""


def csv_writer(out: TextIO) -> Callable[[AuditEntry], None]:
    """Write the heads of the columns, and return a function that writes an entry as a row.

    No value is a formula for a spreadsheet.
    """
    # With the line end of RFC 4180: a value is quoted for the characters of the line end alone, and
    # programs begin a row at each carriage return.
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(COLUMNS)

    def write(entry: AuditEntry) -> None:
        values = {**asdict(entry), "at": iso_time(entry.at)}
        writer.writerow([_cell(values[name]) for name in COLUMNS])

    return write


def _cell(value: object) -> object:
    """Escape text that a spreadsheet would take for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
