"""Scripts and recordings: models and conversations that can be played again."""

from sluicegate.replay.file_recorder import FileRecorder
from sluicegate.replay.normalized import normalized
from sluicegate.replay.recording import Recording, load_recording, parse_recording
from sluicegate.replay.scenario import Scenarios, load_scenarios, parse_scenarios
from sluicegate.replay.scripted_model import ScriptedModel

__all__ = [
    "FileRecorder",
    "Recording",
    "Scenarios",
    "ScriptedModel",
    "load_recording",
    "load_scenarios",
    "normalized",
    "parse_recording",
    "parse_scenarios",
]
