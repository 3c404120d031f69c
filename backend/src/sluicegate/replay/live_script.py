"""What a live session plays, and how it takes turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from google.genai import errors, types

    from sluicegate.replay.request import Said
    from sluicegate.replay.scenario import ScriptedResponse
    from sluicegate.replay.speech import Ways


class Script(Protocol):
    """Chooses what is said, for one agent."""

    def response(self, text: str, number: int) -> ScriptedResponse:
        """Response ``number`` (from 0) to a user text."""
        ...

    def answered(self, text: str, said: Sequence[Said]) -> int:
        """How many responses to a user text the agent's contents amount to."""
        ...

    def own(self, contents: Sequence[types.Content]) -> list[types.Content]:
        """A history, with what the agent itself did as its own."""
        ...

    def hear(self, sound: Callable[[], str]) -> str:
        """The words of audio that sounded so."""
        ...

    def failure(self, response: ScriptedResponse) -> errors.APIError | None:
        """How the provider fails after the response, if it does."""
        ...


@dataclass(frozen=True, slots=True)
class Manners:
    """How the session takes turns.

    ``ways`` of speaking; ``silence_ms`` end what the user says; ``barge_in``: speech interrupts the
    model; ``waits_for_results``: a model turn with calls goes on when their results are there, as
    with Gemini 3; ``resumable``: handles are given; ``tells_activity``: speech is announced.
    """

    ways: Ways
    silence_ms: int = 500
    barge_in: bool = True
    waits_for_results: bool = False
    resumable: bool = False
    tells_activity: bool = False
