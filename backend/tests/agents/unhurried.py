"""A conformance agent whose model says a piece only when the one before is at the page.

The others say all they have at once, so that every piece is still under way through the Runner when
the next one comes, and none may pass it by.
"""

from __future__ import annotations

import asyncio
from typing import Final

from google.adk.agents.llm_agent import LlmAgent

from tests.agents.conformance_agent import root_agent

_ROUNDS: Final = 40
"""Iterations of the event loop in which the Runner yields a piece; it needs no I/O."""


async def _let_it_out(_seconds: float) -> None:
    for _ in range(_ROUNDS):
        await asyncio.sleep(0)


def unhurried_agent() -> LlmAgent:
    """A copy of the conformance agent with this model."""
    assert not isinstance(root_agent.model, str)
    model = root_agent.model.model_copy(update={"sleep": _let_it_out})
    return root_agent.model_copy(update={"model": model})
