"""The promises under test, each with an error of its own."""

from __future__ import annotations


class DoubleEffect(AssertionError):
    """A tool ran twice, or without an approval."""


class LostDecision(AssertionError):
    """A recorded decision, or the result of a call, is missing in the chat."""
