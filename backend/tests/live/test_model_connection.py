"""The connection between ADK and a live model: what it sends, drops and redacts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import errors, types
from websockets.exceptions import ConnectionClosedError

from sluicegate.engine.models.intercept_model_calls import ModelFailed
from sluicegate.live.model_connection import LiveConnection, open_connection
from sluicegate.live.model_content_sender import ASKED, LISTENING
from sluicegate.live.model_input_rules import LiveModelRules
from sluicegate.live.reconnection_history import ReconnectionHistory
from tests.engine.loop_time import EVENT_TIMEOUT


class Model(BaseLlmConnection):
    """Returns configured responses and records its requests."""

    def __init__(self) -> None:
        self.says: asyncio.Queue[Any] = asyncio.Queue()
        self.sent: list[Any] = []
        self.refusal: Exception | None = None

    async def send_history(self, history: list[types.Content]) -> None:
        self.sent.append(history)

    async def send_content(self, content: types.Content) -> None:
        await self._send_content(content)

    async def _send_content(self, content: types.Content, *, partial: bool = False) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.sent.append((content, partial))

    async def send_realtime(self, blob: Any) -> None:
        self.sent.append(blob)

    async def receive(self) -> Any:
        while (said := await self.says.get()) is not None:
            if isinstance(said, Exception):
                raise said
            yield said

    async def close(self) -> None:
        self.sent.append("closed")


class Owner:
    """Records callbacks; renames every call."""

    is_first_connection = True
    audio_lane = None

    def __init__(self) -> None:
        self.connection: LiveConnection | None = None
        self.recorded: list[Any] = []
        self.whole: list[types.Content] = []
        self.memory = ReconnectionHistory()

    def connected(self, connection: LiveConnection) -> None:
        self.connection = connection

    def delivered(self) -> None:
        pass

    def going_away(self) -> None:
        self.recorded.append("going away")

    def failed(self, error: Exception) -> None:
        self.recorded.append(error)

    async def before_end(self, *, reconnects: bool) -> None:
        self.recorded.append("reconnects" if reconnects else "ends")

    def is_whole(self, content: types.Content) -> bool:
        return any(each is content for each in self.whole)

    def chat_call_id(self, call_id: str) -> str:
        return f"own-{call_id}"

    def model_call_id(self, call_id: str) -> str:
        return call_id.removeprefix("own-")

    def describe_call(self, call_id: str, name: str) -> str:
        return f"{name}()"

    def is_waiting(self, call_id: str) -> bool:
        return call_id == "waits"

    def calls_cancelled(self, call_ids: Sequence[str]) -> None:
        self.recorded.append(call_ids)


async def shape(contents: list[types.Content]) -> list[types.Content]:
    return [types.Content(role="user", parts=[types.Part(text="shaped")]) for _ in contents]


@pytest.fixture
async def pair() -> AsyncIterator[tuple[Model, LiveConnection, Owner]]:
    model, owner = Model(), Owner()

    @asynccontextmanager
    async def connect(_: LlmRequest) -> AsyncIterator[BaseLlmConnection]:
        yield model

    async with open_connection(connect, LlmRequest(), owner, shape, LiveModelRules()) as opened:
        assert isinstance(opened, LiveConnection)
        assert owner.connection is opened
        yield model, opened, owner


Pair = tuple[Model, LiveConnection, Owner]


def text(words: str, *, partial: bool = False, **more: Any) -> LlmResponse:
    part = types.Part(text=words)
    return LlmResponse(content=types.Content(role="model", parts=[part]), partial=partial, **more)


def spoken(words: str, *, finished: bool = False) -> LlmResponse:
    said = types.Transcription(text=words, finished=finished)
    return LlmResponse(output_transcription=said, partial=not finished)


def content(*parts: types.Part, role: str = "user") -> types.Content:
    return types.Content(role=role, parts=list(parts))


async def received(connection: LiveConnection, count: int) -> list[LlmResponse]:
    """So many responses, and then the reception is left as ADK leaves it."""
    found: list[LlmResponse] = []
    reception = connection.receive()
    async with asyncio.timeout(EVENT_TIMEOUT):
        while len(found) < count:
            found.append(await anext(reception))
    await reception.aclose()
    return found


async def test_the_models_output_is_received_up_to_the_end_of_a_reception(pair: Pair) -> None:
    model, connection, _ = pair
    for said in (text("One."), spoken("Two.", finished=True), None):
        model.says.put_nowait(said)
    heard = [response async for response in connection.receive()]
    assert [bool(r.content) for r in heard] == [True, False]


async def test_an_interruption_completes_the_partial_output_and_drops_the_rest(pair: Pair) -> None:
    model, connection, _ = pair
    model.says.put_nowait(text("Hel", partial=True))
    model.says.put_nowait(spoken("One "))
    model.says.put_nowait(spoken("two "))
    await received(connection, 3)
    connection.interrupt()
    model.says.put_nowait(spoken("three"))
    model.says.put_nowait(LlmResponse(interrupted=True))
    model.says.put_nowait(text("Next."))
    whole, transcript, interrupted, following = await received(connection, 4)
    assert whole.content is not None
    assert (whole.content.parts or [])[0].text == "Hel"
    assert whole.partial is False
    assert transcript.output_transcription == types.Transcription(text="One two ", finished=True)
    assert interrupted.interrupted
    assert following.content is not None


async def test_output_after_a_new_message_is_received_after_an_interruption(pair: Pair) -> None:
    model, connection, owner = pair
    connection.interrupt()
    await received(connection, 1)
    question = content(types.Part(text="And now?"))
    owner.whole.append(question)
    await connection._send_content(question, partial=True)
    model.says.put_nowait(text("Now."))
    [heard] = await received(connection, 1)
    assert heard.content is not None


async def test_a_mark_of_activity_ends_the_interruption(pair: Pair) -> None:
    model, connection, _ = pair
    connection.interrupt()
    await received(connection, 1)
    await connection.send_realtime(types.ActivityStart())
    model.says.put_nowait(text("Yes?"))
    [heard] = await received(connection, 1)
    assert heard.content is not None


async def test_a_whole_message_completes_the_users_turn_and_a_remark_does_not(pair: Pair) -> None:
    model, connection, owner = pair
    question, remark = content(types.Part(text="?")), content(types.Part(text="[stop]"))
    owner.whole.append(question)
    for each in (question, remark):
        await connection._send_content(each, partial=True)
    await connection.send_content(question)
    assert model.sent == [(question, False), (remark, True), (question, False)]


async def test_call_ids_are_the_chats_inside_and_the_models_outside(pair: Pair) -> None:
    model, connection, _ = pair
    call = types.FunctionCall(id="call_0", name="pay", args={})
    model.says.put_nowait(LlmResponse(content=content(types.Part(function_call=call))))
    [heard] = await received(connection, 1)
    assert heard.content is not None
    [part] = heard.content.parts or []
    assert part.function_call is not None
    assert part.function_call.id == "own-call_0"
    result = types.FunctionResponse(id="own-call_0", name="pay", response={})
    answer = content(types.Part(function_response=result))
    await connection.send_content(answer)
    [(sent, _)] = model.sent
    assert sent.parts[0].function_response.id == "call_0"
    # The stored event keeps the id of the chat.
    assert result.id == "own-call_0"


def result_part(call_id: str) -> types.Part:
    return types.Part(function_response=types.FunctionResponse(id=call_id, name="pay"))


@pytest.mark.parametrize(
    ("last", "added"),
    [
        (content(types.Part(text="Hi")), LISTENING),
        (content(result_part("waits")), ASKED),
        (content(result_part("done")), LISTENING),
        (content(types.Part(text="Hello."), role="model"), None),
    ],
)
async def test_a_history_is_not_answered_when_the_chat_is_opened_again(
    pair: Pair, last: types.Content, added: str | None
) -> None:
    model, connection, _ = pair
    await connection.send_history([last])
    [[*before, end]] = model.sent
    assert before == ([] if added is None else [last])
    assert end.role == "model"
    assert added is None or end.parts[0].text == added


async def test_a_later_connection_of_a_run_sends_the_history_as_it_is() -> None:
    model = Model()
    question = content(types.Part(text="Hi"))
    owner = Owner()
    owner.is_first_connection = False
    await LiveConnection(model, owner, shape, LiveModelRules()).send_history([question])
    assert model.sent == [[question]]


async def test_files_of_a_content_are_shaped(pair: Pair) -> None:
    model, connection, _ = pair
    data = types.FileData(file_uri="artifact://x", mime_type="image/png")
    await connection.send_content(content(types.Part(file_data=data)))
    [(sent, _)] = model.sent
    assert sent.parts[0].text == "shaped"


async def test_a_model_that_goes_away_is_reported(pair: Pair) -> None:
    model, connection, owner = pair
    model.says.put_nowait(LlmResponse(go_away=types.LiveServerGoAway(time_left="1s")))
    await received(connection, 1)
    assert owner.recorded == ["going away"]


RECONNECTING = [
    errors.APIError(1000, {"message": "closed"}),
    errors.APIError(1011, {"message": "lost"}),
    ConnectionClosedError(None, None),
]


@pytest.mark.parametrize("error", RECONNECTING)
async def test_an_error_after_which_adk_reconnects_is_raised_as_it_is(
    pair: Pair, error: Exception
) -> None:
    model, connection, owner = pair
    model.says.put_nowait(error)
    with pytest.raises(type(error)) as raised:
        await received(connection, 1)
    assert raised.value is error
    assert owner.recorded == [error, "reconnects"]


async def test_any_other_error_is_redacted_and_reported(pair: Pair) -> None:
    model, connection, owner = pair
    error = errors.APIError(500, {"message": "words-of-a-provider"})
    model.says.put_nowait(error)
    with pytest.raises(ModelFailed) as raised:
        await received(connection, 1)
    assert "words-of-a-provider" not in str(raised.value)
    assert owner.recorded == [error, "ends"]


async def test_a_failed_send_ends_the_reception(pair: Pair) -> None:
    model, connection, _ = pair
    model.refusal = LookupError("words-of-a-provider")
    await connection.send_content(content(types.Part(text="Hi")))
    with pytest.raises(ModelFailed):
        await received(connection, 1)


async def test_the_error_of_a_refused_connection_is_redacted() -> None:
    @asynccontextmanager
    async def connected(_: LlmRequest) -> AsyncIterator[BaseLlmConnection]:
        raise LookupError("words-of-a-provider")
        yield Model()

    owner = Owner()
    with pytest.raises(ModelFailed) as raised:
        async with open_connection(connected, LlmRequest(), owner, shape, LiveModelRules()):
            pass
    assert "words-of-a-provider" not in str(raised.value)
    assert isinstance(owner.recorded[0], LookupError)


async def test_closing_reaches_the_model(pair: Pair) -> None:
    model, connection, _ = pair
    await connection.close()
    assert model.sent == ["closed"]
