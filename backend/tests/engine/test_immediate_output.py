"""An agent that holds nothing: text and results are shown while the model still works (S2-R02)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from sluicegate.testing.response_checks import kind
from sluicegate.tools import client_tool
from tests.engine.stage import Steps, calls, says, scripted
from tests.engine.talk import Talk

if TYPE_CHECKING:
    from sluicegate.core.release.policies import ReleasePolicy
    from tests.engine.stage import Open

RELEASES: list[ReleasePolicy] = ["deferred", "preview", "progressive"]


LIMIT = 30.0
"""Seconds that only a defect reaches."""


async def free(n: int) -> dict[str, int]:
    """Look up."""
    return {"n": n}


LOCATE = client_tool("locate", "Where the user is.", {"type": "object", "properties": {}})


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("tools", [[free], [free, LOCATE]], ids=["free", "client-side"])
async def test_text_and_results_are_shown_at_once_without_gated_tools(
    open_stage: Open, release: ReleasePolicy, tools: list[object]
) -> None:
    steps = Steps()
    script = [
        calls(("free", {"n": 1}), text="Looking."),
        says("One two three", delta_chars=4, delay_ms=1),
    ]
    talk = Talk(await open_stage(scripted(script, tools, sleep=steps)), release)  # type: ignore[arg-type]
    question = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "go"}]}
    talk.messages.append(question)  # type: ignore[arg-type]
    reader = await talk.start({"message": question})
    shown: list[str] = []
    chunks = aiter(reader)
    steps.go(1)
    # The model is blocked before the second delta of its last answer.
    async with asyncio.timeout(LIMIT):
        while "tool-output-available" not in shown or shown[-1] != "text-delta":
            shown.append(kind(await anext(chunks)))
    assert shown.index("text-delta") < shown.index("tool-output-available")
    assert "finish" not in shown
    steps.go()
    rest = [kind(chunk) async for chunk in chunks]
    assert rest[-1] == "finish"
    assert "text-delta" in rest
    await reader.aclose()
