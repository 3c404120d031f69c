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
    """How long a decision about an earlier exchange waits for the model to finish."""
    stop_grace: float = 2.0
    """How long a stopped turn waits for its last event from the run."""
    close_grace: float = 1.0
    """How long a run may take to end after its connection to the model was closed."""
    words_grace: float = 3.0
    """How long results wait for the model to begin its answer to earlier words."""
    phrase_pause: float = 1.5
    """How long a spoken phrase must stay unchanged before it approves, unless it is final."""
    silent_answer: float = 5.0
    """How long a model may say nothing before its answer counts as given."""
    first_audio: float = 0.1
    """How long the publication of a spoken exchange waits for the first audio of its answer."""


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
