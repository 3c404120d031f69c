"""Writes recorded conversations as goldens, without random ids and times, one file each.

``golden.py RECORDED GOLDENS``: ``RECORDED`` holds ``recordings/*.jsonl`` and, for each chat, its
stored messages as ``CHAT.messages.json``. A chat ``a:b:c`` becomes ``a/b/c.jsonl`` and
``a/b/c.messages.json`` in ``GOLDENS``, whose other goldens are removed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from sluicegate.replay import load_recording
from sluicegate.replay.normalized import Names, normalized


def main(recorded: Path, goldens: Path) -> int:
    """Write the goldens; returns the exit code."""
    recordings = sorted((recorded / "recordings").glob("*.jsonl"))
    if not recordings:
        sys.stderr.write(f"There are no recordings in {recorded}.\n")
        return 1
    for old in [*goldens.rglob("*.jsonl"), *goldens.rglob("*.messages.json")]:
        old.unlink()
    for file in recordings:
        recording = load_recording(file)
        chat = recording.header.chat
        names = Names(recording)
        target = goldens.joinpath(*chat.split(":"))
        target.parent.mkdir(parents=True, exist_ok=True)
        with_suffix(target, ".jsonl").write_text(normalized(recording, names).text(), "utf-8")
        messages = json.loads((recorded / f"{chat}.messages.json").read_text("utf-8"))
        text = json.dumps(names.of(messages), ensure_ascii=False, indent=1)
        with_suffix(target, ".messages.json").write_text(f"{text}\n", "utf-8")
    sys.stdout.write(f"{len(recordings)} goldens are in {goldens}\n")
    return 0


def with_suffix(path: Path, suffix: str) -> Path:
    """Return the path with a suffix appended to its name, which may contain dots."""
    return path.with_name(path.name + suffix)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
