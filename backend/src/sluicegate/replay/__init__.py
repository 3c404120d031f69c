"""Scripts and recordings: models and conversations that can be played again."""

from sluicegate.replay.loading import load_scenarios, parse_scenarios
from sluicegate.replay.normalized import normalized
from sluicegate.replay.recorder import Recorder
from sluicegate.replay.recording import Recording, load_recording, parse_recording
from sluicegate.replay.scenario import Scenarios
from sluicegate.replay.scripted_model import ScriptedModel

__all__ = [
    "Recorder",
    "Recording",
    "Scenarios",
    "ScriptedModel",
    "load_recording",
    "load_scenarios",
    "normalized",
    "parse_recording",
    "parse_scenarios",
]
