"""An agent that pays once, and its payments, recorded outside of it."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext

from sluicegate.core.approvals import ApprovalRow
from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.wire.ui_messages import Part, UIMessage
from tests.engine.stage import calls, says, scripted
from tests.engine.talk import Talk
from tests.faults.kill_points import ModelDelay

_SCRIPT = {
    "pay": [calls(("pay", {"amount": 5})), says("All of it is paid.", delta_chars=4)],
    "go on": [says("I go on.")],
}


@dataclass(frozen=True)
class Effects:
    """A file with a line for each payment: its chat."""

    file: Path

    def add(self, chat: str) -> None:
        """Pay."""
        descriptor = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(descriptor, f"{chat}\n".encode())
        os.close(descriptor)

    def counts(self) -> Counter[str]:
        """Return the number of payments in each chat."""
        return Counter(self.file.read_text().split() if self.file.exists() else ())


def payer(effects: Effects, *, seconds: float = 0.0) -> LlmAgent:
    """Return the agent; its tool takes that many seconds, half of them before the effect."""

    async def pay(amount: int, tool_context: ToolContext) -> dict[str, int]:
        """Pay an amount of money."""
        await asyncio.sleep(seconds / 2)
        effects.add(tool_context.session.id)
        await asyncio.sleep(seconds / 2)
        return {"paid": amount}

    tool = FunctionTool(pay, require_confirmation=True)
    return scripted(_SCRIPT, [tool], sleep=ModelDelay())


def card_of(message: UIMessage) -> Part | None:
    """Return the part with the approval."""
    return next((part for part in message["parts"] if "approval" in part), None)


async def row_of(talk: Talk) -> ApprovalRow:
    """Return the ledger's only row of a chat."""
    parts = talk.engine.resources
    [row] = await parts.ledger.rows(ChatKey(parts.app, talk.user, talk.chat_id))
    return row


async def stored(engine: ChatEngine, talk: Talk) -> list[Any]:
    """Return the stored messages of a chat."""
    messages: list[Any] = (await engine.get_chat(talk.chat_id, user=talk.user))["messages"]
    return messages
