"""The copy of a model that is run: it fails without words, and its partial text takes the lane.

What a provider says of a failure never reaches a span or a session.
"""

from __future__ import annotations

from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

from sluicegate.core.json_values import storable_json, storable_text
from sluicegate.engine.turn_context import CURRENT_TURN

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.base_llm_connection import BaseLlmConnection
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse


class ModelFailed(Exception):
    """A model call failed; ``original`` is what the model raised, for callbacks that go on."""

    def __init__(self, original: Exception) -> None:
        super().__init__(type(original).__name__)
        self.original = original


def redact_errors(model: BaseLlm) -> BaseLlm:
    """A copy of a model that raises `ModelFailed` in place of what the model raises.

    Of its partial responses those that the turn's `FastLanes` take never reach ADK.

    ADK: an exception that leaves the model call is written into spans and into the session with
    its words. The copy stays of the model's class, which ADK asks for here and there.
    """
    quiet = model.model_copy()
    original = model.generate_content_async

    async def generate_content_async(
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT001, FBT002 - ADK's signature
    ) -> AsyncGenerator[LlmResponse, None]:
        turn = CURRENT_TURN.get()
        call = None if turn is None else turn.lanes.enter()
        responses: AsyncGenerator[LlmResponse, Any] = original(llm_request, stream)
        try:
            async with aclosing(responses):
                async for response in responses:
                    make_storable(response)
                    if call is None:
                        yield response
                    elif not response.partial:
                        call.end()
                        yield response
                    else:
                        if call.takes(response):
                            await call.say(response)
                        else:
                            yield call.hand(response)
                        if call.is_to_pause:
                            await call.pace()
        except Exception as error:  # noqa: BLE001 - whatever a provider raises has words
            if turn is not None:
                turn.model_error = error
            raise ModelFailed(error) from None

    connected = model.connect

    @asynccontextmanager
    async def connect(llm_request: LlmRequest) -> AsyncGenerator[BaseLlmConnection, None]:
        turn = CURRENT_TURN.get()
        opened = connected(llm_request) if turn is None else turn.connect(connected, llm_request)
        async with opened as connection:
            yield connection

    object.__setattr__(quiet, "generate_content_async", generate_content_async)
    object.__setattr__(quiet, "connect", connect)
    return quiet


def make_storable(response: LlmResponse) -> None:
    """Replace, in place, what the session's store would refuse: the turn would fail for it."""
    for part in (response.content and response.content.parts) or ():
        if part.text is not None:
            part.text = storable_text(part.text)
        call = part.function_call
        if call is not None and call.args is not None:
            call.args = storable_json(call.args)
    for heard in (response.input_transcription, response.output_transcription):
        if heard is not None and heard.text is not None:
            heard.text = storable_text(heard.text)
