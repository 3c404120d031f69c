"""The digest of what was shown is the digest of what ran, for any hostile model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.properties.hostile_world import EFFECTS, Broken, HostileWorld

CASES = 20


async def test_nothing_runs_without_a_decision_that_covers_what_was_shown(folder: str) -> None:
    world = await HostileWorld.open(Path(folder), 0)
    await play(world)
    await world.engine.close()


async def play(world: HostileWorld) -> None:
    """Play the first cases."""
    for seed in range(CASES):
        await world.play(seed)


async def test_an_effect_without_a_card_is_noticed(folder: str) -> None:
    world = await HostileWorld.open(Path(folder), 0)
    original = world.tools[0].run_async

    async def twice(*, args: dict[str, object], tool_context: object) -> object:
        session = tool_context.session.id  # type: ignore[attr-defined]
        EFFECTS[session].append(("gated0", "another", {}))
        return await original(args=args, tool_context=tool_context)  # type: ignore[arg-type]

    for tool in world.tools[4:]:
        vars(tool)["run_async"] = twice
    with pytest.raises(Broken, match="without a card"):
        await play(world)
    await world.engine.close()
