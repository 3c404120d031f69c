"""A process that approves a gated call and kills itself at a named point of it.

Run as ``python -m tests.faults.dying_server DATABASE CHAT POINT [AGENT]``; prints the message that
the client holds when the process dies. The agent is one of `paying_agents`, else the conformance
agent.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.continue_turn import ContinueTurn
from sluicegate.engine.options import EngineOptions
from sluicegate.engine.timeouts_and_intervals import EngineTimings
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.stores.sessions import ChatSessions
from tests.agents.conformance_agent import root_agent
from tests.engine.talk import Talk, decide
from tests.faults.kill_points import after
from tests.faults.paying_agents import AGENTS
from tests.patience import LEASE
from tests.stores.builders import PATIENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.events.event import Event

POINTS = ("pending", "decided", "claimed", "effect", "outcome", "released", "responded", "asked")


def die() -> None:
    """Die as a killed process does: nothing is flushed or closed."""
    os.kill(os.getpid(), signal.SIGKILL)


def plant(point: str) -> None:
    """Let the process die at the point."""
    if point == "decided":
        before(ContinueTurn, "run")
    elif point == "claimed":
        _after(Ledger, "claim")
    elif point == "effect":
        before(Ledger, "store_outcome")
    elif point == "outcome":
        _after(Ledger, "store_outcome")
    elif point == "released":
        _after(Ledger, "ask_again")
    elif point == "responded":
        after(ChatSessions, "append_event", _asks_again)
    elif point == "asked":
        after(ChatSessions, "append_event", _is_request)


def _asks_again(_: ChatSessions, *, event: Event, **__: Any) -> bool:
    return bool(event.get_function_responses()) and event.author != "user"


def _is_request(_: ChatSessions, *, event: Event, **__: Any) -> bool:
    return any(call.name == "adk_request_confirmation" for call in event.get_function_calls())


def before(owner: type, name: str) -> None:
    """Die instead of calling a method."""

    async def dying(*_: Any, **__: Any) -> None:
        die()

    setattr(owner, name, dying)


def _after(owner: type, name: str) -> None:
    original: Callable[..., Any] = getattr(owner, name)

    async def dying(*args: Any, **kwargs: Any) -> None:
        await original(*args, **kwargs)
        die()

    setattr(owner, name, dying)


async def main(database: str, chat: str, point: str, agent: str | None = None) -> None:
    """Send a message, decide, die."""
    url = f"sqlite+aiosqlite:///{database}"
    target = root_agent if agent is None else AGENTS[agent]
    options = EngineOptions(sessions=url, lease_ttl=LEASE)
    engine = await ChatEngine.open(target, options, timings=EngineTimings(database=PATIENT))
    talk = Talk(engine, chat_id=chat)
    await talk.say("story:approval")
    if point != "pending":
        decide(talk.pending()[0], approved=True)
    sys.stdout.write(json.dumps(talk.messages))
    sys.stdout.flush()
    plant(point)
    if point == "pending":
        die()
    await talk.post_last()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
