"""A live chat is recorded and then replayed from its recording."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sluicegate.engine.interface import Engine
from sluicegate.replay import ScriptedModel, load_recording
from sluicegate.replay.playback_engine import PlaybackEngine
from sluicegate.server.app import Application, build, engine_of
from sluicegate.server.settings import Settings
from sluicegate.wire.chunks import decode_chunk
from sluicegate.wire.reducer import reduce_chunks
from sluicegate.wire.ui_messages import UIMessage
from tests.engine.stage import Counted, calls, says, scripted
from tests.engine.talk import decide
from tests.live.caller import SILENCE, spoken_response, tone
from tests.patience import LEASE
from tests.server.exchange import serving, user_message
from tests.transports.live_client import LiveClient, opened_live
from tests.transports.socket_client import chunks as framed

SCRIPT = {
    "pay": [calls(("pay", {"n": 3})), says("It is paid.")],
    "220": [spoken_response("The time is ten.")],
    "fail": [says("I was about to", error={"code": 503, "message": "Too busy."})],
}
SPOKEN = tone(220) + SILENCE


@dataclass
class Received:
    """The output that a client received: responses in order, text of live frames, audio."""

    responses: list[list[dict[str, Any]]]
    frames: list[str]
    audio: bytes
    history: list[Any]


async def converse(application: Application, settings: Settings) -> Received:
    """Call a gated tool, approve it, send audio, and provoke a failure."""
    async with (
        application.app.router.lifespan_context(application.app),
        serving(application, settings) as address,
    ):
        seen: list[dict[str, Any]] = []
        async with opened_live(address) as client:
            asked = framed(await _send(client, "r1", user_message("pay")))
            message = _message(asked)
            (card,) = (part for part in message["parts"] if "approval" in part)
            decide(card, approved=True)
            paid = framed(await _send(client, "r2", message, messageId=message["id"]))
            for start in range(0, len(SPOKEN), 3_200):
                await client.connection.send(SPOKEN[start : start + 3_200])
            turn = await _until(client, "turn", seen)
            resume = {"type": "resume", "requestId": "r3", "id": "c1"}
            frames = await client.exchange({**resume, "body": {"messageId": turn["messageId"]}})
            announced = framed(frames)
            await client.send({"type": "interrupt", "requestId": "live"})
            failed = framed(await _send(client, "r4", {**user_message("fail"), "id": "u2"}))
            await _until(client, "error", seen)
            audio = client.audio
        engine = await application.engine.get()
        history = (await engine.get_chat("c1", user="local"))["messages"]
    texts = sorted(json.dumps(frame, sort_keys=True) for frame in seen)
    return Received([asked, paid, announced, failed], texts, audio, history)


async def _send(client: LiveClient, name: str, message: Any, **more: Any) -> list[Any]:
    body = {"id": "c1", "messages": [message], "trigger": "submit-message", **more}
    return await client.exchange({"type": "send", "requestId": name} | body)


async def _until(client: LiveClient, kind: str, seen: list[dict[str, Any]]) -> dict[str, Any]:
    while True:
        seen.append(await client.next("live"))
        if seen[-1]["type"] == kind:
            return seen[-1]


def _message(texts: list[dict[str, Any]]) -> UIMessage:
    return reduce_chunks([decode_chunk(json.dumps(chunk)) for chunk in texts])


async def test_a_live_chat_is_recorded_and_replayed(tmp_path: Path) -> None:
    pay = Counted()
    settings = Settings(
        port=0,
        sessions=f"sqlite+aiosqlite:///{tmp_path}/chats.db",
        artifacts=f"file:{tmp_path}/artifacts",
        lease_ttl=LEASE,
        record=str(tmp_path / "recordings"),
    )
    agent = scripted(SCRIPT, [pay.tool()])
    then = await converse(build(engine_of(agent, settings), settings), settings)
    assert pay.runs == [3]
    assert then.responses[3][-1]["type"] == "error"

    (file,) = (tmp_path / "recordings").iterdir()
    recording = load_recording(file)
    frames = [entry for entry in recording.entries if entry.kind == "frame"]
    assert _audio(frames, "client") == SPOKEN
    assert _audio(frames, "server") == then.audio != b""
    kinds = {(entry.dir, entry.body.get("type", "audio")) for entry in frames}
    assert kinds == {
        ("client", "audio"),
        ("client", "interrupt"),
        *(("server", kind) for kind in ("audio", "ready", "approval", "transcript", "turn")),
        ("server", "turn-complete"),
        ("server", "error"),
    }
    assert [turn.kind for turn in recording.turns] == ["send", "send", "resume", "send"]
    assert [turn.refusal for turn in recording.turns] == [None] * 4
    states = [body["state"] for body in recording.of_kind("decision")]
    assert states == ["requested", "approved", "executed"]
    ScriptedModel.from_recording(file)

    engine = PlaybackEngine.from_file(file)

    async def open_engine() -> Engine:
        return engine

    plain = Settings(port=0)
    again = await converse(build(open_engine, plain, suggestions=engine.suggestions), plain)
    # A recording names no user.
    sent = json.loads(json.dumps(then.responses), object_hook=_without_approver)
    assert sent != then.responses
    assert again.responses == sent
    assert again.frames == then.frames
    assert again.audio == then.audio
    assert [each["id"] for each in again.history] == [each["id"] for each in then.history]
    assert pay.runs == [3]


def _without_approver(value: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key != "decidedBy"}


async def test_transcriptions_are_removed_by_their_name(tmp_path: Path) -> None:
    settings = Settings(
        port=0,
        sessions=f"sqlite+aiosqlite:///{tmp_path}/chats.db",
        artifacts=f"file:{tmp_path}/artifacts",
        lease_ttl=LEASE,
        record=str(tmp_path / "recordings"),
        redact=("audio",),
    )
    agent = scripted(SCRIPT, [Counted().tool()])
    await converse(build(engine_of(agent, settings), settings), settings)
    (file,) = (tmp_path / "recordings").iterdir()
    frames = [entry.body for entry in load_recording(file).entries if "audio" in entry.body]
    assert frames
    assert {frame["audio"] for frame in frames} == {"[redacted]"}


def _audio(frames: list[Any], sender: str) -> bytes:
    bodies = (entry.body for entry in frames if entry.dir == sender)
    return b"".join(base64.b64decode(body["audio"]) for body in bodies if "audio" in body)
