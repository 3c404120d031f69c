"""Where a process dies: named points on the way from a question to the end of its answer.

P0 before the decision is stored, P1 decision stored and nothing run, P2 claimed without effect, P3
effect without outcome, P4 outcome without event, P5 result event without a model call, P6 in the
middle of what the model says, P7 last event without an end mark, P8 call event without its
confirmation event, P9 confirmation event without its placeholder.
"""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Callable
from typing import Any, Final

from google.adk.events.event import Event

from sluicegate.engine.continue_turn import ContinueTurn
from sluicegate.engine.models.text_fast_lane import FastLane
from sluicegate.engine.turn.running_turn import RunningTurn
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.stores.sessions import ChatSessions


class ModelDelay:
    """The wait of an agent's model between two pieces of its answer."""

    async def __call__(self, seconds: float) -> None:
        """Return at once."""


def die() -> None:
    """Die as a killed process does: nothing is flushed or closed."""
    os.kill(os.getpid(), signal.SIGKILL)


def before(owner: type, name: str) -> None:
    """Die instead of calling a method."""

    def dying(*_: Any, **__: Any) -> None:
        die()

    setattr(owner, name, dying)


def after(owner: type, name: str, when: Callable[..., bool] = lambda *_, **__: True) -> None:
    """Die after a method has returned for matching arguments."""
    original: Callable[..., Any] = getattr(owner, name)

    @functools.wraps(original)
    async def dying(*args: Any, **kwargs: Any) -> Any:
        result = await original(*args, **kwargs)
        if when(*args, **kwargs):
            die()
        return result

    setattr(owner, name, dying)


def _stored(*, confirmation: bool) -> None:
    def calls_it(_: ChatSessions, *, event: Event, **__: Any) -> bool:
        names = {str(call.name) for call in event.get_function_calls()}
        return any(name.startswith("adk_") is confirmation for name in names)

    after(ChatSessions, "append_event", calls_it)


POINTS: Final[dict[str, Callable[[], None]]] = {
    "P0": lambda: before(Ledger, "record_decisions"),
    "P1": lambda: before(ContinueTurn, "run"),
    "P2": lambda: after(Ledger, "claim"),
    "P3": lambda: before(Ledger, "store_outcome"),
    "P4": lambda: after(Ledger, "store_outcome"),
    "P5": lambda: before(FastLane, "start_call"),
    "P6": lambda: before(ModelDelay, "__call__"),
    "P7": lambda: before(RunningTurn, "finish"),
    "P8": lambda: _stored(confirmation=False),
    "P9": lambda: _stored(confirmation=True),
}
"""The patch that kills the process at each point; P8 and P9 depend on the message."""
