"""Cost of an approval in a tree of agents, compared with the same tree without gates."""

from __future__ import annotations

import asyncio
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.sequential_agent import SequentialAgent
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool

from bench.client import BenchError
from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.options import EngineOptions
from sluicegate.replay import ScriptedModel
from sluicegate.replay.scenario import parse_scenarios
from sluicegate.testing import ChatClient

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_WARM: Final = 3


@dataclass(frozen=True, slots=True)
class TreeCost:
    """Seconds of the turns of a conversation.

    ``asking`` is the turn that ends with the card, ``approved`` the one that goes on after the yes,
    ``free`` the only turn of the tree without a gate, in which the models give the same answers.
    """

    tree: str
    asking: tuple[float, ...]
    approved: tuple[float, ...]
    free: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """How much longer the turn after the yes takes than the turn without a gate."""
        return statistics.median(self.approved) / statistics.median(self.free)


def measure_trees(folder: Path, *, count: int) -> list[TreeCost]:
    """Have conversations with and without a gate in turn, each in a chat of its own.

    Raises:
        BenchError: a tool did not run.
    """
    return [asyncio.run(_measure(name, build, folder, count)) for name, build in _TREES.items()]


async def _measure(
    name: str, build: Callable[[FunctionTool], LlmAgent], folder: Path, count: int
) -> TreeCost:
    ran: list[float] = []

    async def pay(amount: float) -> dict[str, float]:
        """Pay an amount of money."""
        ran.append(amount)
        return {"paid": amount}

    engines = []
    for is_gated in (True, False):
        place = folder / f"{name.replace(' ', '-')}-{is_gated}"
        options = EngineOptions(
            sessions=f"sqlite+aiosqlite:///{place}.db",
            artifacts=f"file:{place}",
            max_turns_per_minute=100_000,
            max_messages_per_minute=100_000,
        )
        tool = FunctionTool(pay, require_confirmation=is_gated)
        engines.append(await ChatEngine.open(build(tool), options))
    gated: list[tuple[float, float]] = []
    free: list[float] = []
    try:
        for _ in range(_WARM + count):
            gated.append(await _converse(engines[0]))
            free.append((await _converse(engines[1]))[0])
    finally:
        for engine in engines:
            await engine.close()
    if len(ran) != 2 * (_WARM + count):
        raise BenchError(f"Of {2 * (_WARM + count)} tools {len(ran)} ran.")
    asking, approved = zip(*gated[_WARM:], strict=True)
    return TreeCost(name, asking, approved, tuple(free[_WARM:]))


async def _converse(engine: ChatEngine) -> tuple[float, float]:
    """Return the seconds of the first turn, and of the one after its approval, if it asked."""
    chat = ChatClient(engine)
    began = time.perf_counter()
    await chat.say("pay")
    asked = time.perf_counter()
    if chat.pending():
        await chat.approve()
    return asked - began, time.perf_counter() - asked


def _agent(name: str, *turns: Any, **settings: Any) -> LlmAgent:
    responses = [{"parts": [turn]} for turn in turns]
    script: Any = {"scenarios": [{"match": ".", "responses": responses}]}
    model = ScriptedModel(scenarios=parse_scenarios(script))
    return LlmAgent(name=name, description=name, model=model, **settings)


def _call(name: str, **args: Any) -> dict[str, Any]:
    return {"call": {"name": name, "args": args}}


def _payer(tool: FunctionTool) -> LlmAgent:
    return _agent("payer", _call("pay", amount=5), {"text": "Paid."}, tools=[tool])


def _calling(tool: FunctionTool) -> LlmAgent:
    turns = (_call("payer", request="Pay."), {"text": "Done."})
    return _agent("root", *turns, tools=[AgentTool(_payer(tool))])


def _handing(tool: FunctionTool) -> LlmAgent:
    steps: list[Any] = [_payer(tool), _agent("last", {"text": "Done."})]
    rest = SequentialAgent(name="rest", description="Pays.", sub_agents=steps)
    turn = _call("transfer_to_agent", agent_name="rest")
    return _agent("root", turn, sub_agents=[rest])


_TREES: Final[dict[str, Callable[[FunctionTool], LlmAgent]]] = {
    "an agent": _payer,
    "an AgentTool": _calling,
    "a transfer to a sequence": _handing,
}
"""ADK resumes the first by itself."""
