"""The times and options of live chats."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from google.adk.agents.run_config import RunConfig


@dataclass(frozen=True, slots=True)
class LiveTimings:
    """Limits and intervals of a live chat, in seconds."""

    approval_poll: float = 1.0
    """Between two reads of the ledger while calls wait: another replica may have recorded a
    decision, or a deadline may have passed (A2)."""
    speech_grace: float = 10.0
    """For which a decision about an earlier exchange waits until the model has finished."""
    stop_grace: float = 2.0
    """In which a turn that was stopped has to get its last event from the run."""
    close_grace: float = 1.0
    """In which a run has to end after its connection to the model was closed."""
    words_grace: float = 3.0
    """In which a model begins to answer words, unless it keeps them waiting for a result."""
    phrase_pause: float = 1.5
    """In which an utterance that is a phrase goes on, unless it is over (`SpokenApprovals`)."""
    silent_answer: float = 5.0
    """After which a model that says nothing is taken to have answered."""
    first_audio: float = 0.1
    """For which the work that a spoken exchange begins with waits for the first audio."""


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """How a chat is opened live.

    ``with_audio``: the client plays the model's audio. ``marked_by_client``: the client marks where
    the user's speech begins and ends; otherwise the model detects it. ``run_config`` configures the
    runs. ``trace_contents``: traces contain what is said.
    """

    with_audio: bool
    marked_by_client: bool
    run_config: RunConfig
    trace_contents: bool = False
    timings: LiveTimings = field(default_factory=LiveTimings)
