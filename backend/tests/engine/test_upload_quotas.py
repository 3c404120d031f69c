"""The hourly limits of a user's files, and the quota of a chat."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.rate_limits import RateLimit
from sluicegate.errors import RequestError, TooLarge, TooManyRequests
from tests.engine.stage import Open, says, scripted
from tests.engine.talk import Talk
from tests.media import samples

SIZE = len(samples.PNG)


@pytest.fixture
async def talk(request: pytest.FixtureRequest, open_stage: Open) -> Talk:
    return Talk(await open_stage(scripted([says("Nice.")]), **request.param))


def limits(**settings: int) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("talk", [settings], indirect=True, ids=[next(iter(settings))])


async def upload(talk: Talk, data: bytes) -> None:
    engine: ChatEngine = talk.engine
    await engine.save_file(talk.chat_id, data, "image/png", title=None, user=talk.user)


async def attach(talk: Talk, data: bytes) -> None:
    url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    parts: list[Any] = [{"type": "file", "url": url, "mediaType": "image/png"}]
    message = {"id": f"u{len(data)}", "role": "user", "parts": parts}
    await talk.read(await talk.start({"message": message}))


def picture(number: int) -> bytes:
    return samples.PNG + bytes(number)


WAYS = pytest.mark.parametrize("send", [upload, attach], ids=["uploaded", "in a message"])


@WAYS
@limits(max_uploads_per_hour=2)
async def test_the_files_of_an_hour_are_counted(talk: Talk, send: Any) -> None:
    await upload(talk, picture(1))
    await send(talk, picture(2))
    with pytest.raises(TooManyRequests, match="too many files in an hour") as refused:
        await send(talk, picture(3))
    assert 3_500 < (refused.value.retry_after or 0) <= 3_600
    other = Talk(talk.engine, user="bob")
    await send(other, picture(4))


@WAYS
@limits(max_upload_bytes_per_hour=2 * SIZE + 3)
async def test_the_bytes_of_an_hour_are_counted(talk: Talk, send: Any) -> None:
    await upload(talk, picture(1))
    with pytest.raises(TooManyRequests, match="too many megabytes in an hour"):
        await send(talk, picture(3))
    await send(talk, picture(2))


@WAYS
@limits(max_chat_file_bytes=2 * SIZE + 3)
async def test_a_chat_has_a_quota(talk: Talk, send: Any) -> None:
    await upload(talk, picture(1))
    await send(talk, picture(2))
    with pytest.raises(TooLarge, match="attach it in a new chat"):
        await send(talk, picture(3))
    await send(Talk(talk.engine), picture(3))


@limits(max_chat_file_bytes=2 * SIZE + 3)
async def test_files_in_messages_count_for_the_quota(talk: Talk) -> None:
    await attach(talk, picture(1))
    await attach(talk, picture(2))
    with pytest.raises(RequestError, match="attach it in a new chat"):
        await upload(talk, picture(3))


@limits(max_chat_file_bytes=2 * SIZE + 3)
async def test_the_files_of_a_deleted_chat_do_not_count(talk: Talk) -> None:
    await attach(talk, picture(1))
    await attach(talk, picture(2))
    await talk.engine.delete_chat(talk.chat_id, user=talk.user)
    await upload(talk, picture(3))


def test_amounts_are_limited_over_the_window() -> None:
    now = 0.0
    rate = RateLimit(10, "Wait.", window=3600, clock=lambda: now)
    rate.take("ada", 4)
    now = 600.0
    rate.take("ada", 6)
    with pytest.raises(TooManyRequests) as refused:
        rate.take("ada", 4)
    assert refused.value.retry_after == 3_000
    with pytest.raises(TooManyRequests) as refused:
        rate.take("ada", 5)
    assert refused.value.retry_after == 3_600
    now = 3_600.0
    rate.take("ada", 4)
