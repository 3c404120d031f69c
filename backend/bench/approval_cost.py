"""Cost of ledger and lease per approval: the time in which the turn waits for them."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.function_tool import FunctionTool

from bench.client import BenchError
from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.client_request_options import RequestingClient
from sluicegate.engine.options import EngineOptions
from sluicegate.engine.timeouts_and_intervals import EngineTimings
from sluicegate.replay import ScriptedModel
from sluicegate.replay.scenario import parse_scenarios
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.stores.leases.database_leases import DatabaseLeases
from sluicegate.wire.requests import parse_chat_request
from tests.real_stores.postgres import Postgres
from tests.stores.builders import LIMIT, PATIENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SQLITE_BUDGET: Final = 3e-3
POSTGRESQL_BUDGET: Final = 5e-3
"""Maximum seconds that ledger and lease may add to an approval."""

_WARM: Final = 5
_SCRIPT: Final[Any] = {
    "scenarios": [
        {
            "match": ".",
            "responses": [
                {"parts": [{"call": {"name": "transfer", "args": {"amount": 5}}}]},
                {"parts": [{"text": "Done."}]},
            ],
        }
    ]
}


@dataclass(frozen=True, slots=True)
class ApprovalCost:
    """Seconds per approval on one store, from the answer to the end of its turn."""

    store: str
    budget: float
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Seconds."""
        return statistics.median(self.seconds)


def measure_costs(folder: Path, *, count: int) -> list[ApprovalCost]:
    """Decide approvals sequentially, each in its own chat, on each database.

    Raises:
        BenchError: a tool did not run.
    """
    sqlite = asyncio.run(_measure(f"sqlite+aiosqlite:///{folder}/cost.db", folder, count))
    server = Postgres(folder / "postgres", is_durable=True)
    server.create()
    server.start()
    try:
        postgresql = asyncio.run(_measure(server.url(), folder, count))
    finally:
        server.stop()
    return [
        ApprovalCost("SQLite", SQLITE_BUDGET, tuple(sqlite)),
        ApprovalCost("PostgreSQL", POSTGRESQL_BUDGET, tuple(postgresql)),
    ]


async def _measure(url: str, folder: Path, count: int) -> list[float]:
    ran: list[float] = []

    async def transfer(amount: float) -> dict[str, float]:
        """Transfer an amount of money."""
        ran.append(amount)
        return {"transferred": amount}

    model = ScriptedModel(scenarios=parse_scenarios(_SCRIPT))
    tools: list[Any] = [FunctionTool(transfer, require_confirmation=True)]
    agent = LlmAgent(name="gated", model=model, tools=tools)
    options = EngineOptions(sessions=url, artifacts=f"file:{folder}")
    spent: list[float] = []
    # A turn that reaches a limit measures nothing.
    timings = EngineTimings(decision=LIMIT, database=PATIENT)
    engine = await ChatEngine.open(agent, options, timings=timings)
    try:
        for number in range(_WARM + count):
            spent.append(await _answer(engine, f"user-{number}"))
    finally:
        await engine.close()
    if len(ran) != len(spent):
        raise BenchError(f"Of {len(spent)} approved tools {len(ran)} ran.")
    return spent[_WARM:]


async def _answer(engine: ChatEngine, user: str) -> float:
    question: Any = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "pay"}]}
    request = parse_chat_request({"id": "chat", "message": question})
    reader = await engine.start(request, user=user, client=RequestingClient(7))
    async for _ in reader.texts():
        pass
    await reader.aclose()
    waiting = await engine.approvals.waiting(user=user, limit=1, after=None)
    with _watched() as spent:
        approval_id = waiting["approvals"][0]["approvalId"]
        said = {"approved": True}
        await engine.approvals.decide(approval_id, said, user=user, via="bench")
        reader_of_rest = await engine.resume("chat", user=user, client=RequestingClient(7))
        if reader_of_rest is not None:
            async for _ in reader_of_rest.texts():
                pass
            await reader_of_rest.aclose()
        return spent()


@contextlib.contextmanager
def _watched() -> Iterator[Callable[[], float]]:
    """Sum the time spent in the ledger and the leases."""
    total = 0.0
    inside = contextvars.ContextVar("inside", default=False)

    def timed(method: Callable[..., Any]) -> Callable[..., Any]:
        async def timing(*args: Any, **options: Any) -> Any:
            nonlocal total
            # Nested calls are not counted twice.
            token = None if inside.get() else inside.set(True)
            began = time.perf_counter()
            try:
                return await method(*args, **options)
            finally:
                if token is not None:
                    total += time.perf_counter() - began
                    inside.reset(token)

        return timing

    originals = [
        (owner, name, method)
        for owner in (Ledger, DatabaseLeases)
        for name, method in vars(owner).items()
        if inspect.iscoroutinefunction(method) and not name.startswith("_")
    ]
    for owner, name, method in originals:
        setattr(owner, name, timed(method))
    try:
        yield lambda: total
    finally:
        for owner, name, method in originals:
            setattr(owner, name, method)
