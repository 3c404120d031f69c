"""The promises that faults are to break, each with its own error."""

from __future__ import annotations


class DoubleEffect(AssertionError):
    """A tool ran twice, or without a yes."""


class LostDecision(AssertionError):
    """A decision that was taken, or the result of a call, is not in the chat any more."""
