"""Opens a scripted live session behind ADK's own connection for live models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from google.adk.models.gemini_llm_connection import GeminiLlmConnection
from google.genai import errors, types

from sluicegate.adk_private import is_gemini_3_live
from sluicegate.replay.live_session import Manners, Memory, ScriptedLiveSession
from sluicegate.replay.speech import Ways

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from google.adk.models.llm_request import LlmRequest
    from google.genai.live import AsyncSession

    from sluicegate.replay.live_session import Script


@dataclass(frozen=True, slots=True)
class Opening:
    """What a connection is opened with; ``sleep`` takes seconds."""

    script: Script
    model: str
    sleep: Callable[[float], Awaitable[object]]


def live_connection(opening: Opening, request: LlmRequest) -> GeminiLlmConnection:
    """A connection that answers as the request's ``live_connect_config`` asks for.

    Raises:
        google.genai.errors.ClientError: The session cannot be resumed, for its handle is none of a
            script's.
    """
    config = request.live_connect_config or types.LiveConnectConfig()
    resumption = config.session_resumption
    memory = Memory()
    if resumption is not None and resumption.handle:
        remembered = Memory.from_handle(resumption.handle)
        if remembered is None:
            raise errors.ClientError(400, {"message": "The session handle is not a script's."})
        memory = remembered
    session = ScriptedLiveSession(
        opening.script, _manners(config, opening.model), memory, opening.sleep
    )
    return GeminiLlmConnection(cast("AsyncSession", session), model_version=opening.model)


def _manners(config: types.LiveConnectConfig, model: str) -> Manners:
    ways = Ways(
        aloud=types.Modality.AUDIO in (config.response_modalities or [types.Modality.AUDIO]),
        tells_input=config.input_audio_transcription is not None,
        tells_output=config.output_audio_transcription is not None,
    )
    realtime = config.realtime_input_config or types.RealtimeInputConfig()
    detection = realtime.automatic_activity_detection or types.AutomaticActivityDetection()
    silence = detection.silence_duration_ms
    return Manners(
        ways=ways,
        silence_ms=500 if silence is None else silence,
        barge_in=realtime.activity_handling is not types.ActivityHandling.NO_INTERRUPTION,
        # ADK: it reads from the model's name in which order calls and the end of a turn come.
        waits_for_results=is_gemini_3_live(model),
        resumable=config.session_resumption is not None,
        tells_activity=bool(config.explicit_vad_signal),
    )
