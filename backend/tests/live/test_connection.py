"""The connection between ADK and a live model: what it passes on, cuts, and keeps quiet about."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import errors, types
from websockets.exceptions import ConnectionClosedError

from sluicegate.engine.models.redact_errors import ModelFailed
from sluicegate.live.connection import ASKED, LISTENING, LiveConnection, listened_to


class Model(BaseLlmConnection):
    """Says what a test puts in; notes what it is sent."""

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


class Ears:
    """Listens; every call is renamed."""

    is_first = True

    def __init__(self) -> None:
        self.connection: LiveConnection | None = None
        self.heard: list[Any] = []
        self.whole: list[types.Content] = []

    def opened(self, connection: LiveConnection) -> None:
        self.connection = connection

    def going_away(self) -> None:
        self.heard.append("going away")

    def failed(self, error: Exception) -> None:
        self.heard.append(error)

    async def ending(self, *, connects_again: bool) -> None:
        self.heard.append("connects again" if connects_again else "ends")

    async def shaped(self, contents: list[types.Content]) -> list[types.Content]:
        return [types.Content(role="user", parts=[types.Part(text="shaped")]) for _ in contents]

    def is_whole(self, content: types.Content) -> bool:
        return any(each is content for each in self.whole)

    def own_id(self, call_id: str) -> str:
        return f"own-{call_id}"

    def models_id(self, call_id: str) -> str:
        return call_id.removeprefix("own-")


@pytest.fixture
async def pair() -> AsyncIterator[tuple[Model, LiveConnection, Ears]]:
    model, ears = Model(), Ears()

    @asynccontextmanager
    async def connected(_: LlmRequest) -> AsyncIterator[BaseLlmConnection]:
        yield model

    async with listened_to(connected, LlmRequest(), ears) as opened:
        assert isinstance(opened, LiveConnection)
        assert ears.connection is opened
        yield model, opened, ears


Pair = tuple[Model, LiveConnection, Ears]


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
    async with asyncio.timeout(5):
        while len(found) < count:
            found.append(await anext(reception))
    await reception.aclose()
    return found


async def test_what_the_model_says_is_passed_on_up_to_the_end_of_a_reception(pair: Pair) -> None:
    model, connection, _ = pair
    for said in (text("One."), spoken("Two.", finished=True), None):
        model.says.put_nowait(said)
    heard = [response async for response in connection.receive()]
    assert [bool(r.content) for r in heard] == [True, False]


async def test_a_cut_ends_what_was_begun_and_nobody_hears_the_rest(pair: Pair) -> None:
    model, connection, _ = pair
    model.says.put_nowait(text("Hel", partial=True))
    model.says.put_nowait(spoken("One "))
    model.says.put_nowait(spoken("two "))
    await received(connection, 3)
    connection.cut()
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


async def test_what_answers_a_new_message_is_heard_after_a_cut(pair: Pair) -> None:
    model, connection, ears = pair
    connection.cut()
    await received(connection, 1)
    question = content(types.Part(text="And now?"))
    ears.whole.append(question)
    await connection._send_content(question, partial=True)
    model.says.put_nowait(text("Now."))
    [heard] = await received(connection, 1)
    assert heard.content is not None


async def test_a_mark_of_speech_ends_the_silence_after_a_cut_too(pair: Pair) -> None:
    model, connection, _ = pair
    connection.cut()
    await received(connection, 1)
    await connection.send_realtime(types.ActivityStart())
    model.says.put_nowait(text("Yes?"))
    [heard] = await received(connection, 1)
    assert heard.content is not None


async def test_a_whole_message_is_sent_as_one_and_a_remark_is_not(pair: Pair) -> None:
    model, connection, ears = pair
    question, remark = content(types.Part(text="?")), content(types.Part(text="[stop]"))
    ears.whole.append(question)
    for each in (question, remark):
        await connection._send_content(each, partial=True)
    await connection.send_content(question)
    assert model.sent == [(question, False), (remark, True), (question, False)]


async def test_calls_have_ids_of_the_chat_inside_and_the_models_own_outside(pair: Pair) -> None:
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
    # What is stored keeps the id of the chat.
    assert result.id == "own-call_0"


@pytest.mark.parametrize(
    ("last", "added"),
    [
        (content(types.Part(text="Hi")), LISTENING),
        (content(types.Part(function_response=types.FunctionResponse(id="c", name="pay"))), ASKED),
        (content(types.Part(text="Hello."), role="model"), None),
    ],
)
async def test_nobody_is_answered_for_coming_back(
    pair: Pair, last: types.Content, added: str | None
) -> None:
    model, connection, _ = pair
    await connection.send_history([last])
    [[*before, end]] = model.sent
    assert before == ([] if added is None else [last])
    assert end.role == "model"
    assert added is None or end.parts[0].text == added


async def test_a_later_connection_of_a_run_answers_its_history() -> None:
    model = Model()
    question = content(types.Part(text="Hi"))
    await LiveConnection(model, Ears(), is_first=False).send_history([question])
    assert model.sent == [[question]]


async def test_files_are_put_where_a_content_refers_to_them(pair: Pair) -> None:
    model, connection, _ = pair
    data = types.FileData(file_uri="artifact://x", mime_type="image/png")
    await connection.send_content(content(types.Part(file_data=data)))
    [(sent, _)] = model.sent
    assert sent.parts[0].text == "shaped"


async def test_a_model_that_goes_away_is_told_of(pair: Pair) -> None:
    model, connection, ears = pair
    model.says.put_nowait(LlmResponse(go_away=types.LiveServerGoAway(time_left="1s")))
    await received(connection, 1)
    assert ears.heard == ["going away"]


RECONNECTING = [
    errors.APIError(1000, {"message": "closed"}),
    errors.APIError(1011, {"message": "lost"}),
    ConnectionClosedError(None, None),
]


@pytest.mark.parametrize("error", RECONNECTING)
async def test_an_error_after_which_adk_connects_again_stays_what_it_is(
    pair: Pair, error: Exception
) -> None:
    model, connection, ears = pair
    model.says.put_nowait(error)
    with pytest.raises(type(error)) as raised:
        await received(connection, 1)
    assert raised.value is error
    assert ears.heard == [error, "connects again"]


async def test_any_other_error_has_no_words_and_is_told_to_the_log_alone(pair: Pair) -> None:
    model, connection, ears = pair
    error = errors.APIError(500, {"message": "words-of-a-provider"})
    model.says.put_nowait(error)
    with pytest.raises(ModelFailed) as raised:
        await received(connection, 1)
    assert "words-of-a-provider" not in str(raised.value)
    assert ears.heard == [error, "ends"]


async def test_what_cannot_be_sent_ends_the_reception(pair: Pair) -> None:
    model, connection, _ = pair
    model.refusal = LookupError("words-of-a-provider")
    await connection.send_content(content(types.Part(text="Hi")))
    with pytest.raises(ModelFailed):
        await received(connection, 1)


async def test_a_connection_that_cannot_be_opened_fails_without_words() -> None:
    @asynccontextmanager
    async def connected(_: LlmRequest) -> AsyncIterator[BaseLlmConnection]:
        raise LookupError("words-of-a-provider")
        yield Model()

    ears = Ears()
    with pytest.raises(ModelFailed) as raised:
        async with listened_to(connected, LlmRequest(), ears):
            pass
    assert "words-of-a-provider" not in str(raised.value)
    assert isinstance(ears.heard[0], LookupError)


async def test_closing_reaches_the_model(pair: Pair) -> None:
    model, connection, _ = pair
    await connection.close()
    assert model.sent == ["closed"]
