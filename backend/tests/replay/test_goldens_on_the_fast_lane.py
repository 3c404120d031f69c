"""The fast lane produces every golden conversation in the chunks that were recorded without it.

A tape wants every event, so goldens are recorded without the lane; here nothing is taped.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.client_request_options import RequestingClient
from sluicegate.engine.models.text_fast_lane import FastLaneCall
from sluicegate.engine.options import EngineOptions
from sluicegate.errors import RequestError
from sluicegate.replay.recording import RecordedTurn
from sluicegate.wire.limits import RequestLimits
from sluicegate.wire.requests import parse_chat_request
from tests.agents.unhurried import unhurried_agent
from tests.parts import long_table
from tests.replay.equal_runs import Pairs
from tests.replay.test_goldens import STYLES, every_golden, golden

PLAIN = "deferred/call/plain.jsonl"


@asynccontextmanager
async def _opened(folder: Path, **options: Any) -> AsyncIterator[ChatEngine]:
    url = f"sqlite+aiosqlite:///{folder}/sluicegate.db"
    made = EngineOptions(sessions=url, artifacts=f"file:{folder}/artifacts", **options)
    engine = await ChatEngine.open(unhurried_agent(), made)
    try:
        yield engine
    finally:
        await engine.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engines(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, ChatEngine]]:
    """An engine for each style."""
    async with AsyncExitStack() as stack:
        yield {
            style: await stack.enter_async_context(
                _opened(tmp_path_factory.mktemp(style), approval_style=style)
            )
            for style in STYLES
        }


@long_table
@every_golden
@pytest.mark.asyncio(loop_scope="module")
async def test_the_fast_lane_produces_what_was_recorded_without_it(
    name: str, engines: dict[str, ChatEngine]
) -> None:
    chat = name.replace("/", "-").removesuffix(".jsonl")
    pairs = Pairs({"chat": chat})
    for turn in golden(name).turns:
        told = await _replay_turn(engines[Path(name).parts[1]], chat, turn, pairs)
        pairs.match(turn.chunks, told)


@pytest.mark.asyncio(loop_scope="module")
async def test_plain_text_uses_the_fast_lane(
    engines: dict[str, ChatEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces = 0
    say = FastLaneCall.emit

    async def counting(call: FastLaneCall, response: Any) -> None:
        nonlocal pieces
        pieces += 1
        await say(call, response)

    monkeypatch.setattr(FastLaneCall, "emit", counting)
    turn = golden(PLAIN).turns[0]
    await _replay_turn(engines["call"], "counted", turn, Pairs({"chat": "counted"}))
    assert pieces > 0


async def _replay_turn(
    engine: ChatEngine, chat: str, turn: RecordedTurn, pairs: Pairs
) -> list[dict[str, Any]]:
    """Post the recorded request and return the chunks, none for a refusal."""
    asked = {key: value for key, value in turn.request.items() if key not in ("type", "headers")}
    headers = turn.request["headers"]
    request = parse_chat_request({**pairs.here(asked), "id": chat}, RequestLimits())
    client = RequestingClient(int(headers["x-ai-sdk"]), headers["x-release"])  # type: ignore[arg-type]
    try:
        reader = await engine.start(request, user=chat, client=client)
    except RequestError:
        assert turn.refusal is not None
        return []
    async with asyncio.timeout(30):
        told = [json.loads(text) async for texts in reader.texts() for text in texts]
    await reader.aclose()
    return told
