"""``python -m bench.page FILE``: the saved samples as the Markdown table of the documentation."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


if __name__ == "__main__":
    print("\n".join(table(json.loads(Path(sys.argv[1]).read_text("utf-8")))))
