"""What a running server leaves on the disk: modes of files, recordings without secrets."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
from google.adk.tools.function_tool import FunctionTool

from sluicegate import create_app
from sluicegate.replay import load_recording
from tests.engine.stage import calls, says, scripted
from tests.patience import LEASE
from tests.server.exchange import chat_body, client, started

SECRET = "sk-4711-0815"
IBAN = "DE02120300000000202051"


async def look_up(api_key: str, IBAN: str) -> dict[str, Any]:
    """Return what a service answers, with its credentials."""
    return {
        "db_password": api_key,
        "headers": [{"name": "Set-Cookie", "value": api_key}],
        "Account": {"Iban": IBAN},
        "raw": f'{{"refreshToken": "{api_key}", "iban": "{IBAN}"}}',
        "amount": 5,
    }


AGENT = scripted(
    {".": [calls(("look_up", {"api_key": SECRET, "IBAN": IBAN})), says("Found.")]},
    [FunctionTool(look_up)],
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with open files, as an earlier version has left them."""
    data = tmp_path / "data"
    for each in (data, data / "files" / "apps", data / "recordings"):
        each.mkdir(parents=True)
        each.chmod(0o755)
    for name in ("files/apps/old.png", "recordings/c0.0123abcd.jsonl"):
        (data / name).touch()
        (data / name).chmod(0o644)
    return data


async def serve_a_chat(folder: Path) -> None:
    """A chat with a message, an upload and a recording."""
    app = create_app(
        AGENT,
        sessions=f"sqlite+aiosqlite:///{folder}/db/chats.db",
        artifacts=f"file:{folder}/files",
        lease_ttl=LEASE,
        record=str(folder / "recordings"),
        redact=["iban"],
    )
    async with started(app), client(app, headers={"x-ai-sdk": "7"}) as http:
        response = await http.post("/api/chat", json=chat_body("look"))
        assert "Found." in response.text
        stored = await http.post(
            "/api/chats/c1/files",
            content=b"\x89PNG\r\n\x1a\n",
            headers={"content-type": "image/png"},
        )
        assert stored.status_code == 201
        check_modes(folder)


def check_modes(folder: Path) -> None:
    modes = {str(p.relative_to(folder)): stat.S_IMODE(p.stat().st_mode) for p in folder.rglob("*")}
    assert {"db/chats.db", "db/chats.db-wal", "db/chats.db.lock"} <= set(modes)
    assert len([name for name in modes if name.startswith("files/apps/")]) > 3
    assert {mode for name, mode in modes.items() if (folder / name).is_dir()} == {0o700}
    assert {mode for name, mode in modes.items() if (folder / name).is_file()} == {0o600}


async def test_every_file_is_private_and_no_recording_has_a_secret(folder: Path) -> None:
    await serve_a_chat(folder)
    recorded = recording_of(folder)
    assert SECRET not in recorded.read_text("utf-8")
    assert IBAN not in recorded.read_text("utf-8")
    (output,) = (
        chunk["output"]
        for turn in load_recording(recorded).turns
        for chunk in turn.chunks
        if chunk["type"] == "tool-output-available"
    )
    assert (output["amount"], output["db_password"]) == (5, "[redacted]")


def recording_of(folder: Path) -> Path:
    (file,) = (path for path in (folder / "recordings").iterdir() if path.stat().st_size)
    return file
