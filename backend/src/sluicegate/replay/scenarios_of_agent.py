"""The script of one agent: what it says, and after which answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluicegate.replay.scenario import sentence_response
from sluicegate.replay.script_position import count_responses, own_contents

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from google.genai import types

    from sluicegate.replay.scenario import Scenario, Scenarios, ScriptedResponse
    from sluicegate.replay.script_position import AgentContent


@dataclass(frozen=True, slots=True)
class AgentScript:
    """The scenarios as one agent plays them.

    ``agent`` and ``root`` are as for `Scenarios.first`. ``times`` counts the user messages with the
    current text, where it is known.
    """

    scenarios: Scenarios
    agent: str | None
    root: str | None
    times: int | None = None

    def response(self, text: str, number: int) -> ScriptedResponse:
        """Return response ``number`` (from 0) to a user text."""
        agent = self.agent or "the agent"
        scenario = self._scenario(text)
        if scenario is None:
            return sentence_response(
                f"The script has no scenario in which {agent} answers this message."
            )
        if number >= len(scenario.responses):
            return sentence_response(
                f"The script has no response {number + 1} of {agent} to this message."
            )
        return scenario.responses[number]

    def count_responses(self, text: str, contents: Sequence[AgentContent]) -> int:
        """Count the responses to a user text that the agent's contents make up."""
        scenario = self._scenario(text)
        return count_responses(contents, scenario.responses if scenario else ())

    def own_contents(self, contents: Sequence[types.Content]) -> list[types.Content]:
        """Return a history in which the agent's own contents are its own."""
        return own_contents(contents, self.agent)

    def transcribe(self, sound: Callable[[], str]) -> str:
        """Return the words of audio; ``sound`` describes it."""
        return self.scenarios.transcribe(sound, self.agent, self.root)

    def _scenario(self, text: str) -> Scenario | None:
        found = self.scenarios.first(text, self.agent, self.root, times=self.times)
        return None if found is None else found.filled(text)
