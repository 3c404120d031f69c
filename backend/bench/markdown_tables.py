"""``python -m bench.markdown_tables FILE``: the saved samples as Markdown tables of the docs."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.capacity import PLANNED, SHARED, Capacity, Step, planned
from bench.peers import PEERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def table(document: Mapping[str, Any]) -> list[str]:
    """Return a line for each measured row of the output of `Report.json`."""
    return [
        "| | µs per delta | lowest - highest | x the floor | µs of CPU | first delta, ms |",
        "| --- | --: | --: | --: | --: | --: |",
        *_rows(document),
    ]


def _rows(document: Mapping[str, Any]) -> Iterator[str]:
    for peer in PEERS:
        found = document["rows"].get(peer.name)
        if found is None:
            continue
        taken = [value * 1e6 for value in found["per_delta"]]
        ratio = document["to_floor"][peer.name]
        work = f"{statistics.median(found['server']) * 1e6:.1f}" if found["server"] else ""
        first = statistics.median(found["first_delta"]) * 1e3
        cells = [
            peer.title,
            f"{statistics.median(taken):.1f}",
            f"{min(taken):.1f} - {max(taken):.1f}",
            "" if ratio is None else f"{ratio:.1f}",
            work,
            f"{first:.1f}",
        ]
        yield f"| {' | '.join(cells)} |"


def capacity_table(document: Mapping[str, Any]) -> list[str]:
    """Return a line for each step of each server of `Report.json`."""
    return [
        "| | people | first delta p50, ms | p99 | gap p99, ms | cores | PostgreSQL | Valkey |",
        "| --- | --: | --: | --: | --: | --: | --: | --: |",
        *(
            f"| {found.title} | {step.people:,} | {_ms(step.first[0])} | {_ms(step.first[1])} "
            f"| {_ms(step.gaps[1])} | {step.server:.2f} | {_some(step.database)} "
            f"| {_some(step.streams)} |"
            for found in _capacities(document)
            for step in found.steps
        ),
    ]


def plan_table(document: Mapping[str, Any]) -> list[str]:
    """Return a line for each plan, from the last step that holds of the server `SHARED`."""
    return [
        "| | people | processes | cores | memory, GiB | PostgreSQL: cores | commits/s | log, MB/s "
        "| Valkey: cores | MB/s |",
        "| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |",
        *(
            f"| {found.title} | {plan.people:,} | {plan.processes} | {plan.server_cores:.1f} "
            f"| {plan.memory_bytes / 2**30:.1f} | {_some(plan.database_cores)} "
            f"| {plan.commits:,.0f} | {_some(plan.log_bytes / 1e6)} | {_some(plan.streams_cores)} "
            f"| {_some(plan.stream_bytes / 1e6)} |"
            for found in _capacities(document)
            if found.most is not None and found.title == SHARED
            for plan in (planned(found.most, people) for people in PLANNED)
        ),
    ]


def _capacities(document: Mapping[str, Any]) -> list[Capacity]:
    return [
        Capacity(found["title"], tuple(Step(**step) for step in found["steps"]))
        for found in document.get("capacity", ())
    ]


def _ms(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:.0f}"


def _some(value: float) -> str:
    return f"{value:.2f}" if value else ""


if __name__ == "__main__":
    saved = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    for lines in (table(saved), capacity_table(saved), plan_table(saved)):
        print("\n".join((*lines, "")))
