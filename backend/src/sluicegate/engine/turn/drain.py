"""The end of all turns at the shutdown of the server."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sluicegate.engine.turn.local_turns import LocalTurns


logger = logging.getLogger("sluicegate")

CUT_SECONDS: Final = 3.0
"""How long turns may take to end whose claimed calls are cut."""


async def finish_turns(turns: LocalTurns, *, within: float, hurried: asyncio.Event) -> bool:
    """Wait until no turn runs, ``within`` seconds at most, or until ``hurried`` is set.

    Live chats are not waited for: their clients reconnect when they are asked to. Returns whether
    no turn runs.
    """

    async def finish() -> None:
        while running := [t for t in turns.running_turns() if not turns.chat_owners.of(t.chat)]:
            await asyncio.gather(*(turn.done.wait() for turn in running))

    finished = asyncio.create_task(finish())
    await _until(finished, within, hurried)
    finished.cancel()
    return finished.done()


async def drain(turns: LocalTurns, *, within: float, hurried: asyncio.Event) -> None:
    """Refuse new turns and end those that run; open approvals stay open.

    A turn in which a claimed call runs ends after that call, whose outcome is stored. After
    ``within`` seconds, or once ``hurried`` is set, such calls are cut, and their effect is unknown.
    """
    turns.begin_drain()
    ended = asyncio.create_task(_all_ended(turns))
    await _until(ended, within, hurried)
    if ended.done():
        return
    for turn in turns.running_turns():
        logger.warning("turn cut chat=%s turn=%s", turn.chat.chat, turn.stamp.turn)
        turn.cut()
    await asyncio.wait([ended], timeout=CUT_SECONDS)
    ended.cancel()


async def _until(task: asyncio.Task[None], within: float, hurried: asyncio.Event) -> None:
    hurry = asyncio.create_task(hurried.wait())
    await asyncio.wait([task, hurry], timeout=within, return_when=asyncio.FIRST_COMPLETED)
    hurry.cancel()


async def _all_ended(turns: LocalTurns) -> None:
    await turns.chat_owners.close()
    while running := turns.running_turns():
        await asyncio.gather(*(turn.done.wait() for turn in running))
