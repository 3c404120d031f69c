"""A conformance agent whose model yields a piece only after the previous one was sent.

The other agents yield all pieces immediately, so that several are in the Runner at once and their
order must be kept.
"""

from __future__ import annotations

import asyncio
from typing import Final

from google.adk.agents.llm_agent import LlmAgent

from tests.agents.conformance_agent import root_agent

_ROUNDS: Final = 40
"""Iterations of the event loop in which the Runner yields a piece; it needs no I/O."""


async def yield_to_runner(_seconds: float) -> None:
    """Take the place of a pause of the model, so that the Runner has yielded what it has."""
    for _ in range(_ROUNDS):
        await asyncio.sleep(0)


def unhurried_agent() -> LlmAgent:
    """A copy of the conformance agent with this model."""
    assert not isinstance(root_agent.model, str)
    model = root_agent.model.model_copy(update={"sleep": yield_to_runner})
    return root_agent.model_copy(update={"model": model})
