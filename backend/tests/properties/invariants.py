"""Invariants of every response that the test kit does not check."""

from __future__ import annotations

from collections.abc import Sequence

from sluicegate.wire.chunks import BaseChunk, chunk_for_major
from sluicegate.wire.encoding import to_json
from tests.properties.example_agent import SECRET


def check_major(chunks: Sequence[BaseChunk], major: int) -> None:
    """Chunks for a 6 client are valid for it; it never contains an exception's message."""
    for chunk in chunks:
        assert major == 7 or chunk_for_major(chunk, 6) == chunk
        assert SECRET not in to_json(chunk)
