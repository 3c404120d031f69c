"""Intercepts the calls of a model: errors lose their text, plain text takes the fast lane.

ADK writes the text of a model's exception into spans and sessions; the copy of the model that turns
run raises `ModelFailed` instead. Text that session stores reject is made storable.
"""

from __future__ import annotations

from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

from sluicegate.core.json_values import storable_json, storable_text
from sluicegate.engine.models.fast_lane import CURRENT_FAST_LANE
from sluicegate.engine.turn_context import CURRENT_TURN

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.base_llm_connection import BaseLlmConnection
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse

    from sluicegate.engine.guard.guard import Connecting


class ModelFailed(Exception):
    """A model call failed; ``original`` is what the model raised, for callbacks that recover."""

    def __init__(self, original: Exception) -> None:
        super().__init__(type(original).__name__)
        self.original = original


def redact_errors(model: BaseLlm, live: BaseLlm) -> BaseLlm:
    """Return a copy of a model that raises `ModelFailed` in place of what the model raises.

    Its live connections are those of the model ``live``.

    Partial responses that the turn's fast lane accepts never reach ADK.

    ADK: an exception that leaves the model call is written into spans and into the session with
    its text. The copy keeps the model's class, which ADK checks in several places.
    """
    redacted = model.model_copy()
    original = model.generate_content_async

    async def generate_content_async(
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT001, FBT002 - ADK's signature
    ) -> AsyncGenerator[LlmResponse, None]:
        turn = CURRENT_TURN.get()
        fast_lane = CURRENT_FAST_LANE.get()
        call = None if fast_lane is None else fast_lane.start_call()
        responses: AsyncGenerator[LlmResponse, Any] = original(llm_request, stream)
        try:
            async with aclosing(responses):
                async for response in responses:
                    make_storable(response)
                    if call is None:
                        yield response
                    elif not response.partial:
                        call.end_event()
                        yield response
                    else:
                        if call.accepts(response):
                            await call.emit(response)
                        else:
                            yield call.through_runner(response)
                        if call.is_wait_due:
                            await call.wait()
        except Exception as error:  # noqa: BLE001 - a provider's error may have any class
            if turn is not None:
                turn.model_error = error
            raise ModelFailed(error) from None

    object.__setattr__(redacted, "generate_content_async", generate_content_async)
    object.__setattr__(redacted, "connect", _connect_to(live, in_place_of=model.model))
    return redacted


def _connect_to(live: BaseLlm, *, in_place_of: str) -> Callable[[LlmRequest], Connecting]:
    """Return the ``connect`` of a copy of the model with the name ``in_place_of``."""

    @asynccontextmanager
    async def connect(llm_request: LlmRequest) -> AsyncGenerator[BaseLlmConnection, None]:
        turn = CURRENT_TURN.get()
        if llm_request.model == in_place_of:
            # ADK: it names the model that the agent has, which is the one for turns.
            llm_request.model = live.model
        opening = (
            live.connect(llm_request) if turn is None else turn.connect(live.connect, llm_request)
        )
        async with opening as connection:
            yield connection

    return connect


def make_storable(response: LlmResponse) -> None:
    """Replace, in place, characters that session stores reject, which would fail the turn."""
    for part in (response.content and response.content.parts) or ():
        if part.text is not None:
            part.text = storable_text(part.text)
        call = part.function_call
        if call is not None and call.args is not None:
            call.args = storable_json(call.args)
    for transcription in (response.input_transcription, response.output_transcription):
        if transcription is not None and transcription.text is not None:
            transcription.text = storable_text(transcription.text)
