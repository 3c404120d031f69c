"""What the server has sent may be posted back: stock clients post their whole history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.adk.tools.function_tool import FunctionTool

from sluicegate.core.json_values import MAX_DEPTH
from tests.engine.stage import calls, says, scripted
from tests.transports.card_stories import TRANSPORTS, tab_on


def nested(levels: int) -> Any:
    value: Any = "x"
    for level in range(levels):
        value = {"inner": value} if level % 2 else [value]
    return value


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("size", [0, 100_000], ids=["small", "large"])
@pytest.mark.parametrize("levels", [40, MAX_DEPTH, MAX_DEPTH + 1])
async def test_deep_arguments_and_outputs_may_be_posted_back(
    tmp_path: Path, transport: str, size: int, levels: int
) -> None:
    def look(at: Any) -> dict[str, Any]:
        """Look."""
        return {"found": nested(levels - 1), "text": "x" * size}

    script = [calls(("look", {"at": nested(levels - 1)})), says("done")]
    agent = scripted(script, [FunctionTool(look)])
    async with tab_on(agent, transport, tmp_path) as tab:
        await tab.say()
        [part] = tab.parts("look")
        assert part["state"] == "output-available"
        await tab.say("again")
        assert tab.read[-1]["finishReason"] == "stop"
        stored = (await tab.get("/api/chats/c1"))["messages"]
        # A page that loads the chat posts this.
        assert [message["role"] for message in stored] == ["user", "assistant"] * 2
        tab.messages[:] = stored
        await tab.say("and again")
        assert tab.read[-1]["finishReason"] == "stop"
