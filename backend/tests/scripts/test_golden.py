"""Recorded conversations become goldens."""

from __future__ import annotations

import json
from pathlib import Path

from scripts.golden import main

HEADER = {
    "format": "sluicegate-recording",
    "version": 1,
    "created": "2026-05-06T07:08:09.000+00:00",
    "redaction": [],
    "app": "demo",
    "chat": "deferred:call:plain.ai-6",
}
REQUEST = {"type": "send", "id": HEADER["chat"], "message": {"id": "hX3", "role": "user"}}
ENTRY = {"seq": 1, "turn": 1, "dir": "client", "kind": "request", "delta_ms": 9, "body": REQUEST}


def test_a_chat_is_saved_without_random_ids_and_times(tmp_path: Path) -> None:
    (tmp_path / "recordings").mkdir()
    lines = "".join(f"{json.dumps(line)}\n" for line in (HEADER, ENTRY))
    (tmp_path / "recordings" / "a.1.jsonl").write_text(lines)
    messages = [{"id": "hX3", "role": "user", "metadata": {"createdAt": 1.5}}]
    (tmp_path / "deferred:call:plain.ai-6.messages.json").write_text(json.dumps(messages))
    goldens = tmp_path / "goldens"
    goldens.mkdir()
    (goldens / "old.jsonl").write_text("")
    assert main(tmp_path, goldens) == 0
    assert not (goldens / "old.jsonl").exists()
    text = (goldens / "deferred" / "call" / "plain.ai-6.jsonl").read_text()
    assert '"chat":"chat"' in text
    assert '"id":"chat","message":{"id":"user-1","role":"user"}' in text
    assert "2026-05" not in text
    kept = json.loads((goldens / "deferred" / "call" / "plain.ai-6.messages.json").read_text())
    assert kept == [{"id": "user-1", "role": "user", "metadata": {"createdAt": 1_767_225_600.0}}]


def test_without_recordings_the_goldens_are_kept(tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    kept.write_text("")
    assert main(tmp_path / "nothing", tmp_path) == 1
    assert kept.exists()
