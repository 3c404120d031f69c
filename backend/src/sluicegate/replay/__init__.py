"""Scripts and recordings: models and conversations that can be played again."""

from sluicegate.replay.loading import load_scenarios, parse_scenarios
from sluicegate.replay.scenario import Scenarios
from sluicegate.replay.scripted_model import ScriptedModel

__all__ = ["Scenarios", "ScriptedModel", "load_scenarios", "parse_scenarios"]
