"""Random agent trees: with every gate decided, a conversation is that of plain ADK without them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.engine.random_trees import play

if TYPE_CHECKING:
    from tests.engine.random_trees import OpenEngine

pytestmark = [
    pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated"),  # AgentTool's own
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
]


PARALLEL_IN_A_LOOP = 1040
"""A loop around agents that ask in parallel, in two rounds."""


@pytest.mark.parametrize("seed", [*range(200), PARALLEL_IN_A_LOOP])
async def test_a_random_tree_does_what_plain_adk_does_without_the_gates(
    open_engine: OpenEngine, seed: int
) -> None:
    await play(open_engine, seed)
