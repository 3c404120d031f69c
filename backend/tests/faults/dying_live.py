"""A process that approves a gated call in a live chat and kills itself at a named point of it.

Run as ``python -m tests.faults.dying_live DATABASE CHAT POINT``; prints the message that the client
holds when the process dies.
"""

from __future__ import annotations

import asyncio
import json
import sys

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.options import EngineOptions
from sluicegate.engine.timeouts_and_intervals import EngineTimings
from sluicegate.live.continue_exchange import LiveContinuation
from sluicegate.wire.live_frames import TurnCompleteFrame
from tests.agents.conformance_agent import root_agent
from tests.engine.talk import decide
from tests.faults.dying_server import before, die, plant
from tests.live.caller import Caller, calling
from tests.patience import LEASE
from tests.stores.builders import PATIENT


async def main(database: str, chat: str, point: str) -> None:
    """Send a message, another one while the approval is pending, decide, die."""
    url = f"sqlite+aiosqlite:///{database}"
    options = EngineOptions(sessions=url, lease_ttl=LEASE)
    engine = await ChatEngine.open(root_agent, options, timings=EngineTimings(database=PATIENT))
    async with calling(Caller(engine, chat_id=chat)) as caller:
        await caller.say("story:approval")
        caller.speak()
        await caller.frame(TurnCompleteFrame, 2)
        if point != "pending":
            decide(caller.pending()[0], approved=True)
        sys.stdout.write(json.dumps(caller.messages))
        sys.stdout.flush()
        if point == "pending":
            die()
        if point == "decided":
            before(LiveContinuation, "continue_exchange")
        else:
            plant(point)
        await caller.post_last()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
