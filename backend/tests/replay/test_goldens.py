"""Conversations that are kept: the same messages still get the same answers, to the letter.

``make golden`` makes them anew with the real clients.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from google.adk.events.event import Event

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.core.exchanges import exchanges
from sluicegate.core.history import RebuiltExchange, assistant_message, rebuild, user_message
from sluicegate.engine.agents.survey import AgentSurvey, survey
from sluicegate.engine.client_request_options import RequestingClient
from sluicegate.errors import RequestError
from sluicegate.replay import Recording, load_recording
from sluicegate.replay.normalized import Names, normalized
from sluicegate.replay.recording import RecordedTurn, row_of
from sluicegate.wire.chunks import BaseChunk
from sluicegate.wire.encoding import encode_chunk, to_json
from sluicegate.wire.limits import RequestLimits
from sluicegate.wire.requests import parse_chat_request
from tests.agents.conformance_agent import NAME, root_agent
from tests.parts import long_table
from tests.replay.recorded_engine import RecordedEngineSetup, open_recording_engine

FOLDER = Path(__file__).parents[3] / "e2e" / "goldens"
GOLDENS = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.jsonl"))
CHAT = ChatKey(NAME, "ann", "chat")
STYLES = ("call", "confirmation")

ANNOUNCED_ASIDE = "confirmation/client-tool-gated"
"""Between its approval and its output such a call is part of a turn that is not in the log."""

every_golden = pytest.mark.parametrize("name", GOLDENS)


@cache
def golden(name: str) -> Recording:
    return load_recording(FOLDER / name)


@pytest.fixture(scope="module")
def tools() -> AgentSurvey:
    return asyncio.run(survey(root_agent))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engines(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[dict[str, RecordedEngineSetup]]:
    """An engine for each style that all goldens are played on."""
    folders = {style: tmp_path_factory.mktemp(style) for style in STYLES}
    async with (
        open_recording_engine(folders["call"], approval_style="call") as call,
        open_recording_engine(
            folders["confirmation"], approval_style="confirmation"
        ) as confirmation,
    ):
        yield {"call": call, "confirmation": confirmation}


@long_table
@every_golden
@pytest.mark.asyncio(loop_scope="module")
async def test_the_same_requests_make_the_same_recording_to_the_byte(
    name: str, engines: dict[str, RecordedEngineSetup]
) -> None:
    kept = golden(name)
    taped = engines[Path(name).parts[1]]
    user, chat = name.replace("/", "-"), Path(name).stem.replace(".", "-")
    key = CHAT._replace(user=user, chat=chat)
    for turn in kept.turns:
        await _send(taped, key, turn)
    again = normalized(load_recording(taped.recorder.path(key)))
    for line, expected in zip(again.text().splitlines(), kept.text().splitlines(), strict=False):
        assert line == expected, "if this is meant, `make golden` writes the files anew"
    assert again.text() == kept.text()


async def _send(taped: RecordedEngineSetup, key: ChatKey, turn: RecordedTurn) -> None:
    """Post the recorded request with the ids of this engine."""
    path = taped.recorder.path(key)
    asked = {name: value for name, value in turn.request.items() if name not in ("type", "headers")}
    if turn.number > 1:
        played = load_recording(path)
        names = Names(played)
        normalized(played, names)
        asked = names.resolve(asked)
    body = {**asked, "id": key.chat}
    headers = turn.request["headers"]
    client = RequestingClient(int(headers["x-ai-sdk"]), headers["x-release"])  # type: ignore[arg-type]
    request = parse_chat_request(body, RequestLimits())
    try:
        reader = await taped.engine.start(request, user=key.user, client=client)
    except RequestError:
        assert turn.refusal is not None
        return
    async for _ in reader.texts():
        pass
    await reader.aclose()


@pytest.mark.parametrize("name", [name for name in GOLDENS if ANNOUNCED_ASIDE not in name])
def test_the_stored_events_make_the_chunks_of_each_turn(name: str, tools: AgentSurvey) -> None:
    kept = golden(name)
    told = [_message_chunks(turn.chunks) for turn in kept.turns]
    major = int(kept.turns[0].request["headers"]["x-ai-sdk"])
    rebuilt = [
        _message_chunks(_chunks(turn.chunks, major))
        for exchange in _rebuilt(kept, tools)
        for turn in exchange.turns
    ]
    # A turn that only lists open approvals or client-side calls is not in the log.
    known = [turn for turn in told if {"type": "start-step"} in turn or _holds_output(turn)]
    assert [turn for turn in rebuilt if turn] == known


POSTS = {
    "call/plain": 1,
    "call/approved": 2,
    "call/parallel": 2,
    "call/sequential": 3,
    "call/sequential.stock": 3,
    "call/sequential.s2": 3,
    "call/sequential.s2-bidi": 3,
    "call/sequential.s2-sse": 4,
    "call/client-tool": 2,
    "call/client-tool.stock": 1,
    "call/client-tool.s2": 1,
    "call/client-tool.s2-sse": 1,
    "call/client-tool-gated": 3,
    "confirmation/sequential": 3,
    "confirmation/sequential.s2": 3,
    "confirmation/sequential.s2-sse": 3,
}


@pytest.mark.parametrize("name", POSTS)
def test_a_client_posts_once_more_than_it_is_asked(name: str) -> None:
    """Only the literal S2 rule, in style ``call``, posts twice for each question.

    The second time is in vain.

    An output of the browser blocks every rule but that for tool calls.
    """
    turns = golden(f"deferred/{name}.jsonl").turns
    assert len(turns) == POSTS[name]
    failed = [turn.number for turn in turns if turn.chunks[-1]["type"] == "error"]
    assert failed == ([3] if name == "call/sequential.s2-sse" else [])


@every_golden
def test_the_stored_events_make_the_history(name: str, tools: AgentSurvey) -> None:
    kept = golden(name)
    rows = _rows(kept)
    messages: list[Any] = []
    for exchange in _rebuilt(kept, tools):
        messages.append(user_message(exchange.exchange, files_url="/api/chats/chat/files/"))
        messages.append(assistant_message(exchange, rows))
    stored = FOLDER / name.replace(".jsonl", ".messages.json")
    assert _without_approvers(messages) == _without_approvers(json.loads(stored.read_text("utf-8")))


def _holds_output(turn: Sequence[dict[str, Any]]) -> bool:
    return any("output" in chunk for chunk in turn)


def _rebuilt(kept: Recording, tools: AgentSurvey) -> list[RebuiltExchange]:
    events = [Event.model_validate(body) for body in kept.of_kind("event")]
    stored = [event for event in events if not event.partial]
    rows = _rows(kept)
    return [
        rebuild(exchange, rows, tools, files_url="/api/chats/chat/files/")
        for exchange in exchanges(stored)
    ]


def _rows(kept: Recording) -> dict[str, Any]:
    """The last state of each row."""
    return {body["approvalId"]: row_of(body, CHAT) for body in kept.of_kind("decision")}


def _chunks(chunks: Sequence[BaseChunk], major: int) -> list[dict[str, Any]]:
    texts = (encode_chunk(chunk).text_for(6) if major == 6 else to_json(chunk) for chunk in chunks)
    return [json.loads(text) for text in texts if text is not None]


def _message_chunks(chunks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The chunks of a turn that make its message, text in one piece."""
    found: list[dict[str, Any]] = []
    for chunk in chunks:
        if chunk["type"] in ("start", "finish", "error") or chunk.get("transient"):
            continue
        if chunk["type"] == "reset-step":
            # The chunks of the step are discarded.
            while found.pop()["type"] != "start-step":
                pass
            found.append({"type": "start-step"})
            continue
        last = found[-1] if found else {}
        if chunk["type"].endswith("-delta") and last.get("type") == chunk["type"]:
            key = "delta" if "delta" in chunk else "inputTextDelta"
            found[-1] = {**last, key: last[key] + chunk[key]}
        else:
            found.append(chunk)
    return found


def _without_approvers(messages: Any) -> Any:
    """Remove the approvers, which are not in a recording."""
    told = json.loads(json.dumps(messages))
    for message in told:
        for trace in message.get("metadata", {}).get("approvals", {}).values():
            trace.pop("decidedBy", None)
    return told
