"""Intercepts the calls of a model: errors lose their text, plain text takes the fast lane.

ADK writes the text of a model's exception into spans and sessions; the copy of the model that turns
run raises `ModelFailed` instead, and the turn gets a `ModelError` for the log. Text that session
stores reject is made storable.
"""

from __future__ import annotations

import importlib
import logging
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Final

from sluicegate.adk_private_resumption import NODE_FAILURE_LOGGERS
from sluicegate.core.json_values import storable_json, storable_text
from sluicegate.engine.current_guard import CURRENT_GUARD
from sluicegate.engine.models.cut_off_calls import with_cut_off_calls
from sluicegate.engine.models.explain_model_errors import (
    called_model,
    error_of_exception,
    error_of_response,
    refuse_without_key,
)
from sluicegate.engine.models.text_fast_lane import CURRENT_FAST_LANE
from sluicegate.engine.telemetry import model_failed
from sluicegate.errors import ModelBlocked, ModelError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.base_llm_connection import BaseLlmConnection
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse

    from sluicegate.engine.guard.guard import ApprovalGuard, Connecting
    from sluicegate.engine.models.explain_model_errors import CalledModel

logger = logging.getLogger("sluicegate")


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
        guard = CURRENT_GUARD.get()
        fast_lane = CURRENT_FAST_LANE.get()
        call = None if fast_lane is None else fast_lane.start_call()
        called = called_model(model, llm_request.model)
        try:
            refuse_without_key(model)
            quiet_litellm(model)
            responses = with_cut_off_calls(original(llm_request, stream))
            async with aclosing(responses):
                async for response in responses:
                    make_storable(response)
                    if guard is not None and not response.partial:
                        _note_error(guard, response, called)
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
            if guard is not None:
                guard.model_error = (
                    error if isinstance(error, ModelError) else error_of_exception(error, called)
                )
                model_failed(guard.model_error)
            raise ModelFailed(error) from None

    object.__setattr__(redacted, "generate_content_async", generate_content_async)
    object.__setattr__(redacted, "connect", _connect_to(live, in_place_of=model.model))
    return redacted


def _note_error(turn: ApprovalGuard, response: LlmResponse, called: CalledModel) -> None:
    """Keep the error of a complete response, if any; an answer that was blocked is no failure."""
    error = None if response.error_code is None else error_of_response(response, called)
    turn.model_error = error
    if error is not None:
        model_failed(error)
    if isinstance(error, ModelBlocked):
        logger.warning("an answer was blocked chat=%s %s", turn.chat.chat, str(error))


def _connect_to(live: BaseLlm, *, in_place_of: str) -> Callable[[LlmRequest], Connecting]:
    """Return the ``connect`` of a copy of the model with the name ``in_place_of``."""

    @asynccontextmanager
    async def connect(llm_request: LlmRequest) -> AsyncGenerator[BaseLlmConnection, None]:
        guard = CURRENT_GUARD.get()
        if llm_request.model == in_place_of:
            # ADK: it names the model that the agent has, which is the one for turns.
            llm_request.model = live.model
        opening = (
            live.connect(llm_request) if guard is None else guard.connect(live.connect, llm_request)
        )
        async with opening as connection:
            yield connection

    return connect


def quiet_litellm(model: BaseLlm) -> None:
    """Keep LiteLLM from printing advice for its own debugging at each failure."""
    if any(cls.__name__ == "LiteLlm" for cls in type(model).__mro__):
        vars(importlib.import_module("litellm"))["suppress_debug_info"] = True


class _ReportedOnce(logging.Filter):
    """Drops records about failed model calls, which the turn reports in one line."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, ModelFailed)


_REPORTED_ONCE: Final = _ReportedOnce()


def report_model_errors_once() -> None:
    """Keep ADK from logging failed model calls, each of them twice with a traceback."""
    for name in NODE_FAILURE_LOGGERS:
        logging.getLogger(name).addFilter(_REPORTED_ONCE)


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
