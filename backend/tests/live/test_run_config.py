"""The configuration of live runs: defaults, settings, an author's own, and what is refused."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.run_config import RunConfig, ToolThreadPoolConfig
from google.genai import types
from pydantic import Field

from sluicegate import create_app
from sluicegate.engine.options import EngineOptions
from sluicegate.engine.timeouts_and_intervals import EngineTimings
from sluicegate.errors import ConfigurationError
from sluicegate.live.run_config import check_live_models, live_run_config
from sluicegate.replay import ScriptedModel
from sluicegate.replay.scenario import parse_scenarios
from sluicegate.server.app import build, engine_of
from sluicegate.server.settings import Settings
from tests.new_database import new_database
from tests.patience import LEASE
from tests.server.exchange import serving
from tests.stores.builders import PATIENT
from tests.transports.live_client import opened_live

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from google.adk.models.base_llm_connection import BaseLlmConnection
    from google.adk.models.llm_request import LlmRequest


class Connected(ScriptedModel):
    """A live model that notes what it is connected with."""

    configs: list[types.LiveConnectConfig] = Field(default_factory=list, exclude=True)

    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncIterator[BaseLlmConnection]:
        self.configs.append(llm_request.live_connect_config.model_copy(deep=True))
        async with super().connect(llm_request) as connection:
            yield connection


async def connected_with(
    folder: Path, query: str = "", *, live: RunConfig | None = None, **given: Any
) -> types.LiveConnectConfig:
    """Open a live socket of a server, and return what its model was connected with."""
    said = {"match": "", "responses": [{"parts": [{"text": "Hello."}]}]}
    model = Connected(scenarios=parse_scenarios({"scenarios": [said]}))
    url = new_database(folder / "sluicegate.db")
    stores = {"sessions": url, "artifacts": f"file:{folder}/files"}
    settings = Settings(**{"port": 0, "lease_ttl": LEASE, **stores, **given})
    agent = LlmAgent(name="own", model=model)
    open_engine = engine_of(agent, settings, live=live, timings=EngineTimings(database=PATIENT))
    application = build(open_engine, settings)
    async with (
        application.app.router.lifespan_context(application.app),
        serving(application, settings) as address,
        opened_live(address, more=query),
    ):
        return model.configs[0]


async def test_the_context_is_compressed_and_the_session_can_be_resumed(tmp_path: Path) -> None:
    config = await connected_with(tmp_path)
    assert config.context_window_compression is not None
    assert config.context_window_compression.sliding_window is not None
    assert config.session_resumption is not None
    assert config.response_modalities == [types.Modality.AUDIO]
    without = await connected_with(tmp_path, live_compression=False)
    assert without.context_window_compression is None


async def test_settings_choose_voice_language_transcripts_and_sensitivity(tmp_path: Path) -> None:
    config = await connected_with(
        tmp_path,
        live_voice="Puck",
        live_language="de-DE",
        live_transcription_languages=("de-DE", "en-US"),
        live_sensitivity="low",
        live_proactivity=True,
        live_affective_dialog=True,
    )
    speech, heard = config.speech_config, config.input_audio_transcription
    assert speech is not None
    assert speech.voice_config is not None
    assert speech.voice_config.prebuilt_voice_config is not None
    assert speech.voice_config.prebuilt_voice_config.voice_name == "Puck"
    assert speech.language_code == "de-DE"
    assert heard is not None
    assert heard.language_codes == ["de-DE", "en-US"]
    assert config.realtime_input_config is not None
    detection = config.realtime_input_config.automatic_activity_detection
    assert detection is not None
    assert detection.end_of_speech_sensitivity == types.EndSensitivity.END_SENSITIVITY_LOW
    assert config.proactivity == types.ProactivityConfig(proactive_audio=True)
    assert config.enable_affective_dialog is True


async def test_the_configuration_of_the_author_is_used(tmp_path: Path) -> None:
    """With a client that marks speech, only the detection differs."""
    realtime = types.RealtimeInputConfig(
        activity_handling=types.ActivityHandling.NO_INTERRUPTION,
    )
    own = RunConfig(realtime_input_config=realtime, explicit_vad_signal=True)
    config = await connected_with(tmp_path, "&activity=client", live=own)
    assert config.explicit_vad_signal is True
    assert config.context_window_compression is not None
    used = config.realtime_input_config
    assert used is not None
    assert used.automatic_activity_detection is not None
    assert used.automatic_activity_detection.disabled is True
    assert used.activity_handling == types.ActivityHandling.NO_INTERRUPTION


DISABLED = types.AutomaticActivityDetection(disabled=True)
REFUSED: dict[str, tuple[RunConfig, dict[str, Any], str]] = {
    "text": (RunConfig(response_modalities=[types.Modality.TEXT]), {}, "response_modalities"),
    "no transcript": (
        RunConfig(output_audio_transcription=None),
        {},
        "output_audio_transcription cannot be None",
    ),
    "a handle": (
        RunConfig(session_resumption=types.SessionResumptionConfig(handle="h")),
        {},
        "cannot have a handle",
    ),
    "no detection": (
        RunConfig(
            realtime_input_config=types.RealtimeInputConfig(automatic_activity_detection=DISABLED)
        ),
        {},
        "activity=client",
    ),
    "threads": (
        RunConfig(tool_thread_pool_config=ToolThreadPoolConfig()),
        {},
        "tool_thread_pool_config",
    ),
    "two voices": (
        RunConfig(speech_config=types.SpeechConfig(language_code="de")),
        {"live_voice": "Puck"},
        "live_voice and RunConfig.speech_config",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_used_is_refused_in_one_sentence(case: str) -> None:
    config, settings, named = REFUSED[case]
    with pytest.raises(ConfigurationError) as caught:
        create_app(LlmAgent(name="own", model="gemini-3.5-flash"), live=config, **settings)
    assert named in str(caught.value)
    assert re.fullmatch(r"[A-Z][^\n]*\.", str(caught.value))


@pytest.mark.parametrize("setting", ["live_proactivity", "live_affective_dialog"])
def test_what_a_live_model_does_not_support_is_refused(setting: str) -> None:
    config = live_run_config(EngineOptions.model_validate({setting: True}))
    check_live_models(config, {"own": "gemini-2.5-flash-native-audio"})
    with pytest.raises(ConfigurationError, match=f"gemini-3.8-live of own .* {setting}"):
        check_live_models(config, {"own": "gemini-3.8-live"})
