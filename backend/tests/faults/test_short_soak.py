"""The cases of the soak test in their short form."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.kill_points import POINTS
from tests.faults.soak.short import soaked
from tests.faults.soak.stores import KINDS
from tests.faults.soak.trees import KILLED_AT, TREES
from tests.parts import long_table


@long_table
@pytest.mark.parametrize("point", POINTS)
async def test_f1_a_killed_server_never_pays_twice_and_loses_nothing(
    soak: list[str], tmp_path: Path, point: str
) -> None:
    assert await soaked(soak, tmp_path, 2, "kill", point) == 2 * len(KINDS)


@long_table
@pytest.mark.parametrize("tree", TREES)
async def test_a_server_killed_in_a_tree_pays_once_loses_nothing_and_asks_no_model_twice(
    soak: list[str], tmp_path: Path, tree: str
) -> None:
    count = len(KILLED_AT)
    assert await soaked(soak, tmp_path, count, f"kill in {tree}", "sqlite") == count


@pytest.mark.parametrize("kind", KINDS)
async def test_f3_two_processes_with_the_same_approval_pay_once(
    soak: list[str], tmp_path: Path, kind: str
) -> None:
    assert await soaked(soak, tmp_path, 7, "two approvals", kind) == 7 * 4


@pytest.mark.parametrize("kind", KINDS)
async def test_f4_of_a_concurrent_approval_and_denial_one_is_recorded(
    soak: list[str], tmp_path: Path, kind: str
) -> None:
    assert await soaked(soak, tmp_path, 12, "approve and deny", kind) == 12


@pytest.mark.parametrize("kind", KINDS)
async def test_a_quorum_is_never_passed_and_no_yes_is_lost(
    soak: list[str], tmp_path: Path, kind: str
) -> None:
    assert await soaked(soak, tmp_path, 12, "quorum", kind) == 12


@pytest.mark.parametrize("kind", KINDS)
async def test_f28_a_preview_that_changes_before_the_effect_leaves_the_old_yes_without_one(
    soak: list[str], tmp_path: Path, kind: str
) -> None:
    assert await soaked(soak, tmp_path, 15, "drifting previews", kind) == 15


@pytest.mark.parametrize("kind", KINDS)
async def test_f5_a_concurrent_approval_and_new_text_never_both_take_effect(
    soak: list[str], tmp_path: Path, kind: str
) -> None:
    assert await soaked(soak, tmp_path, 6, "approve and new text", kind) == 6 * 2


async def test_f27_a_server_killed_around_a_delivery_loses_no_event_and_keeps_the_order(
    soak: list[str],
    tmp_path: Path,
) -> None:
    assert await soaked(soak, tmp_path, 6, "kill with webhooks", "sqlite") == 6
