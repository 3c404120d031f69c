"""Random agent trees: with every gate decided, a conversation is that of plain ADK without them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.engine.tree_oracle import play
from tests.parts import long_table

if TYPE_CHECKING:
    from tests.engine.tree_oracle import OpenEngine

pytestmark = [
    pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated"),  # AgentTool's own
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
]


@pytest.mark.parametrize("seed", range(200))
async def test_a_random_tree_does_what_plain_adk_does_without_the_gates(
    open_engine: OpenEngine, seed: int
) -> None:
    await play(open_engine, seed)


@pytest.mark.parametrize("stores", ["PostgreSQL and Valkey"], indirect=True)
@long_table
@pytest.mark.parametrize("seed", range(200, 212))
async def test_a_random_tree_does_so_on_servers_as_well(open_engine: OpenEngine, seed: int) -> None:
    await play(open_engine, seed)
