"""What a provider of a test answers to a request that it refuses."""

from __future__ import annotations


class Refused(Exception):
    """An error that a provider answers with 400, or another status."""

    status = 400


class NotFound(Refused):
    """A model that does not exist, or not for this method."""

    status = 404
