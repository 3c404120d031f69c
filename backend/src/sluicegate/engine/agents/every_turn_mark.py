"""The mark of callbacks that run in every turn of an exchange, not once."""

from __future__ import annotations

from typing import Any, Final, TypeVar

_MARK: Final = "_sluicegate_every_turn"

AnyCallback = TypeVar("AnyCallback")


def every_turn(callback: AnyCallback) -> AnyCallback:
    """Mark a callback that prepares or checks each turn, and return it.

    A callback around an agent runs once for each run of its agent, however often a call in it waits
    for a person. One that is marked also runs in each later turn of that run.

    Args:
        callback: A function for ``before_agent_callback`` or ``after_agent_callback`` of an agent,
            or a method of a plugin: one of these two, or ``on_user_message_callback``, which then
            also gets the messages that only answer calls.
    """
    setattr(callback, _MARK, True)
    return callback


def runs_every_turn(callback: Any) -> bool:
    """Whether a callback was marked by `every_turn`."""
    return getattr(callback, _MARK, False) is True
