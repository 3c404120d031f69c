"""The double of the Live API, with Google's own client and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from google.genai import Client, errors, types
from google.genai.live import AsyncSession

from tests.live.google.certificates import Certificates
from tests.live.google.live_api import (
    GEMINI_2_5,
    GEMINI_3_1,
    LIMIT,
    Call,
    Family,
    LiveApi,
    Pause,
    Say,
    Script,
    serving_live_api,
)

pytestmark = pytest.mark.usefixtures("trusted")
SCRIPT: Script = {"pay": [Call("pay")], "hello": [Say("Hi.")], "->": [Say("Done.")]}
PAY = types.FunctionDeclaration(name="pay", parameters_json_schema={"type": "object"})
HISTORY = types.HistoryConfig(initial_history_in_client_content=True)


@pytest.fixture
def trusted(certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    monkeypatch.setenv("NO_PROXY", "localhost,127.0.0.1")


@contextlib.asynccontextmanager
async def connected(api: LiveApi, **config: Any) -> AsyncIterator[AsyncSession]:
    """A session of Google's client."""
    client = Client(api_key="of-the-test", http_options=types.HttpOptions(base_url=api.url))
    config.setdefault("tools", [types.Tool(function_declarations=[PAY])])
    async with client.aio.live.connect(
        model=api.family.model, config=types.LiveConnectConfig(**config)
    ) as session:
        yield session


async def answer(session: AsyncSession) -> list[types.LiveServerMessage]:
    """The messages until the turn is complete or a tool is called."""
    received: list[types.LiveServerMessage] = []
    async with asyncio.timeout(LIMIT):
        async for message in session.receive():
            received.append(message)
            if message.tool_call:
                break
    return received


async def closed(session: AsyncSession) -> int:
    """The close code of the session."""
    async with asyncio.timeout(LIMIT):
        while True:
            try:
                await answer(session)
            except errors.APIError as error:
                return int(error.code)


def user(text: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text)])


async def content(session: AsyncSession) -> None:
    await session.send_client_content(turns=[user("hello")])


async def mark(session: AsyncSession) -> None:
    await session.send_realtime_input(activity_start=types.ActivityStart())


async def unknown_result(session: AsyncSession) -> None:
    result = types.FunctionResponse(id="x", name="pay", response={})
    await session.send_tool_response(function_responses=result)


async def two_setups(session: AsyncSession) -> None:
    await session._ws.send('{"setup": {"model": "models/x"}}')


@pytest.mark.parametrize(
    ("send", "config", "code", "rule"),
    [
        (content, {}, 1007, "initial history only"),
        (content, {"history_config": HISTORY}, None, None),
        (mark, {}, 1007, "activity marks"),
        (unknown_result, {}, 1008, "the unknown call x"),
        (two_setups, {}, 1007, "setup is the first"),
    ],
)
async def test_a_broken_rule_is_noted_and_closes_the_connection(
    certificates: Certificates,
    send: Callable[[AsyncSession], Awaitable[None]],
    config: dict[str, Any],
    code: int | None,
    rule: str | None,
) -> None:
    api = LiveApi(GEMINI_3_1, SCRIPT)
    async with serving_live_api(api, certificates), connected(api, **config) as session:
        await send(session)
        if code is None or rule is None:
            await session.send_realtime_input(text="hello")
            assert (await answer(session))[-1].server_content
            assert api.violations == []
        else:
            assert await closed(session) == code
            assert [rule in each for each in api.violations] == [True]


@pytest.mark.parametrize("handle", ["handle-1", "handle-2"])
async def test_only_a_handle_of_the_server_resumes_a_session(
    certificates: Certificates, handle: str
) -> None:
    api = LiveApi(GEMINI_3_1, SCRIPT)
    async with serving_live_api(api, certificates):
        async with connected(api, session_resumption=types.SessionResumptionConfig()) as session:
            await session.send_realtime_input(text="hello")
            await answer(session)
            await api.until(lambda: api.handles)
        await api.until(lambda: api.last.is_over)
        resumption = types.SessionResumptionConfig(handle=handle)
        if handle in api.handles:
            async with connected(api, session_resumption=resumption):
                assert api.last.context == ["user: hello", "model: Hi."]
        else:
            with pytest.raises(errors.APIError):
                async with connected(api, session_resumption=resumption):
                    pass


@pytest.mark.parametrize("compressed", [True, False])
async def test_a_context_without_compression_gets_full(
    certificates: Certificates, *, compressed: bool
) -> None:
    api = LiveApi(GEMINI_3_1, SCRIPT)
    api.context_limit = 6
    window = types.ContextWindowCompressionConfig(sliding_window=types.SlidingWindow())
    config = {"context_window_compression": window} if compressed else {}
    async with serving_live_api(api, certificates), connected(api, **config) as session:
        await session.send_realtime_input(text="hello")
        await answer(session)
        await session.send_realtime_input(text="hello hello hello")
        if compressed:
            await answer(session)
        else:
            assert await closed(session) == 1011


@pytest.mark.parametrize("family", [GEMINI_2_5, GEMINI_3_1])
async def test_input_cancels_a_call_that_is_open(
    certificates: Certificates, family: Family
) -> None:
    api = LiveApi(family, SCRIPT, barge_in="cancel")
    async with serving_live_api(api, certificates), connected(api) as session:
        await session.send_realtime_input(text="pay")
        [*_, call] = await answer(session)
        assert call.tool_call
        assert call.tool_call.function_calls
        await session.send_realtime_input(text="hello")
        cancelled: list[str] = []
        while not cancelled:
            for message in await answer(session):
                if message.tool_call_cancellation:
                    cancelled += message.tool_call_cancellation.ids or []
        assert cancelled == [call.tool_call.function_calls[0].id]


async def test_words_of_the_user_interrupt_the_model(certificates: Certificates) -> None:
    pause = Pause()
    api = LiveApi(GEMINI_3_1, {"long": [Say("One"), pause, Say("two")], **SCRIPT})
    async with serving_live_api(api, certificates), connected(api) as session:
        await session.send_realtime_input(text="long")
        await pause.reached.wait()
        await session.send_realtime_input(text="hello")
        contents = [message.server_content for message in await answer(session)]
        assert any(each and each.interrupted for each in contents)
        assert not any(each and each.generation_complete for each in contents)
