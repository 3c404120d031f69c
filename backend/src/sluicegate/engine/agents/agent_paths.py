"""Paths of agents in a tree."""

from __future__ import annotations


def name_in(path: str) -> str:
    """The name of the agent at a path."""
    return path.rpartition("/")[2]
