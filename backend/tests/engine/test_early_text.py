"""The final text of a run is shown when its model call ends, not when the run does (D4)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from google.adk.agents.loop_agent import LoopAgent
from google.adk.agents.sequential_agent import SequentialAgent

from sluicegate.testing.message_comparison import comparable
from tests.engine.stage import Counted, calls, kinds, says, scripted, stays_pending, words
from tests.engine.talk import Talk, decide

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.agents.callback_context import CallbackContext

    from sluicegate.core.release.base import ApprovalStyle
    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.engine.turn.reader import TurnReader
    from sluicegate.wire.chunks import BaseChunk
    from sluicegate.wire.ui_messages import UIMessage
    from tests.engine.stage import Open

RELEASES: list[ReleasePolicy] = ["deferred", "preview", "progressive"]


@dataclass
class HeldEnd:
    """An ``after_agent_callback`` that waits, as one that writes to a slow system."""

    may_end: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, callback_context: CallbackContext) -> None:
        await self.may_end.wait()


def question(text: str) -> UIMessage:
    return {"id": "user-1", "role": "user", "parts": [{"type": "text", "text": text}]}


async def read_until(reader: TurnReader, kind: str) -> list[BaseChunk]:
    chunks: list[BaseChunk] = []
    async with asyncio.timeout(30):
        async for chunk in reader:
            chunks.append(chunk)
            if kinds([chunk]) == [kind]:
                return chunks
    raise AssertionError(f"no {kind} in {kinds(chunks)}")


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("style", ["call", "confirmation"])
async def test_the_text_of_the_last_model_call_does_not_wait_for_callbacks(
    open_stage: Open, release: ReleasePolicy, style: ApprovalStyle
) -> None:
    held, counted = HeldEnd(), Counted()
    script = {"plain": [says("Good morning.")], "pay": [calls(("pay", {"n": 1})), says("Paid.")]}
    agent = scripted(script, [counted.tool()], after_agent_callback=held)
    talk = Talk(await open_stage(agent, approval_style=style), release)
    talk.messages.append(question("plain"))
    reader = await talk.start({"message": talk.messages[-1]})
    begun = await read_until(reader, "text-end")
    held.may_end.set()
    rest = [chunk async for chunk in reader]
    assert words(talk.take([*begun, *rest]).message) == "Good morning."

    await talk.say("pay")
    held.may_end.clear()
    decide(talk.pending()[0], approved=True)
    reader = await talk.start({"message": talk.messages[-1], "messageId": talk.messages[-1]["id"]})
    begun = await read_until(reader, "text-end")
    held.may_end.set()
    turn = talk.take([*begun, *[chunk async for chunk in reader]])
    assert words(turn.message) == "Paid."
    assert counted.runs == [1]
    assert comparable(await talk.history()) == comparable(turn.message)


def in_sequence(agents: list[BaseAgent]) -> BaseAgent:
    return SequentialAgent(name="root", sub_agents=agents)


def in_a_loop(agents: list[BaseAgent]) -> BaseAgent:
    return LoopAgent(name="root", sub_agents=agents, max_iterations=1)


@pytest.mark.parametrize("build", [in_sequence, in_a_loop])
async def test_the_text_of_an_agent_that_another_may_follow_stays_held(
    open_stage: Open, build: Callable[[list[BaseAgent]], BaseAgent]
) -> None:
    held = HeldEnd()
    first = scripted([says("First.")], after_agent_callback=held)
    second = scripted([calls(("pay", {"n": 1})), says("Paid.")], [Counted().tool()])
    second.name = "second"
    talk = Talk(await open_stage(build([first, second])))
    talk.messages.append(question("go"))
    reader = await talk.start({"message": talk.messages[-1]})
    text = asyncio.create_task(read_until(reader, "text-end"))
    assert await stays_pending(text)
    held.may_end.set()
    with pytest.raises(AssertionError, match="no text-end"):
        await text
    await reader.aclose()
