"""ADK's configuration of live runs, from the settings and the author's ``RunConfig``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from google.adk.agents.run_config import RunConfig
from google.genai import types

from sluicegate.adk_private import is_gemini_3_live
from sluicegate.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sluicegate.engine.options import EngineOptions

_OWN_FIELDS: Final = (
    "custom_metadata",
    "history_config",
    "save_input_blobs_as_artifacts",
    "save_live_blob",
    "streaming_mode",
    "support_cfc",
    "telemetry",
    "tool_thread_pool_config",
)
"""Fields that the server sets itself, or whose effect it cannot store."""

_START: Final = {
    "low": types.StartSensitivity.START_SENSITIVITY_LOW,
    "high": types.StartSensitivity.START_SENSITIVITY_HIGH,
}
_END: Final = {
    "low": types.EndSensitivity.END_SENSITIVITY_LOW,
    "high": types.EndSensitivity.END_SENSITIVITY_HIGH,
}


def live_run_config(options: EngineOptions, given: RunConfig | None = None) -> RunConfig:
    """Return the configuration of live runs.

    The session can be resumed. ``given`` or the setting ``live_compression`` compresses its
    context.

    Raises:
        ConfigurationError: a field cannot be used, or a setting sets it too.
    """
    config = RunConfig() if given is None else given
    _check(config)
    chosen = _from_settings(options)
    for field, (setting, _) in chosen.items():
        if getattr(config, field) is not None and field in config.model_fields_set:
            raise ConfigurationError(
                f"The setting {setting} and RunConfig.{field} set the same; remove one of them."
            )
    changes: dict[str, Any] = {field: value for field, (_, value) in chosen.items()}
    if options.live_compression and config.context_window_compression is None:
        sliding = types.ContextWindowCompressionConfig(sliding_window=types.SlidingWindow())
        changes["context_window_compression"] = sliding
    if config.session_resumption is None:
        changes["session_resumption"] = types.SessionResumptionConfig()
    changes["response_modalities"] = [types.Modality.AUDIO]
    return config.model_copy(update=changes)


def check_live_models(config: RunConfig, models: Mapping[str, str]) -> None:
    """Refuse what a live model cannot do; ``models`` are their names by agent.

    Raises:
        ConfigurationError: ADK would leave a field out for the model of an agent.
    """
    for field, setting in (
        ("enable_affective_dialog", "live_affective_dialog"),
        ("proactivity", "live_proactivity"),
    ):
        for agent, model in models.items():
            if getattr(config, field) and is_gemini_3_live(model):
                raise ConfigurationError(
                    f"The live model {model} of {agent} does not support {field}; remove the "
                    f"setting {setting}, or choose a native audio model of Gemini 2.5."
                )


def _check(config: RunConfig) -> None:
    # Deprecated fields warn when they are read as attributes.
    values = vars(config)
    for field in _OWN_FIELDS:
        default = RunConfig.model_fields[field].get_default(call_default_factory=True)
        if values[field] != default:
            raise ConfigurationError(f"RunConfig.{field} cannot be used for live chats; remove it.")
    if config.response_modalities not in (None, [types.Modality.AUDIO]):
        raise ConfigurationError(
            "RunConfig.response_modalities must be AUDIO for live chats; a client without audio "
            "gets the transcripts."
        )
    for field in ("input_audio_transcription", "output_audio_transcription"):
        if getattr(config, field) is None:
            raise ConfigurationError(
                f"RunConfig.{field} cannot be None; spoken messages are stored as transcripts."
            )
    resumption = config.session_resumption
    if resumption is not None and resumption.handle:
        raise ConfigurationError(
            "RunConfig.session_resumption cannot have a handle; each live chat has its own."
        )
    realtime = config.realtime_input_config
    detection = None if realtime is None else realtime.automatic_activity_detection
    if detection is not None and detection.disabled:
        raise ConfigurationError(
            "RunConfig.realtime_input_config cannot disable the detection of speech; a client "
            "that marks it opens the socket with activity=client."
        )


def _from_settings(options: EngineOptions) -> dict[str, tuple[str, Any]]:
    """Return the fields that settings set: the name of the setting, and the value."""
    fields: dict[str, tuple[str, Any]] = {}
    if options.live_voice or options.live_language:
        voice = options.live_voice and types.VoiceConfig(
            prebuilt_voice_config=types.PrebuiltVoiceConfig(voice_name=options.live_voice)
        )
        speech = types.SpeechConfig(voice_config=voice or None, language_code=options.live_language)
        name = "live_voice" if options.live_voice else "live_language"
        fields["speech_config"] = (name, speech)
    if options.live_transcription_languages:
        languages = list(options.live_transcription_languages)
        transcription = types.AudioTranscriptionConfig(language_codes=languages)
        fields["input_audio_transcription"] = ("live_transcription_languages", transcription)
    if options.live_sensitivity is not None:
        detection = types.AutomaticActivityDetection(
            start_of_speech_sensitivity=_START[options.live_sensitivity],
            end_of_speech_sensitivity=_END[options.live_sensitivity],
        )
        realtime = types.RealtimeInputConfig(automatic_activity_detection=detection)
        fields["realtime_input_config"] = ("live_sensitivity", realtime)
    if options.live_proactivity:
        proactivity = types.ProactivityConfig(proactive_audio=True)
        fields["proactivity"] = ("live_proactivity", proactivity)
    if options.live_affective_dialog:
        fields["enable_affective_dialog"] = ("live_affective_dialog", True)
    return fields
