"""The end of a process: turns come to their ends, claimed calls first of all."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sluicegate.engine.running.turns import Turns

CUT_SECONDS: Final = 3.0
"""How long turns may take to end whose claimed calls are cut."""

logger = logging.getLogger("sluicegate")


async def end_all(turns: Turns, *, within: float, hurried: asyncio.Event) -> None:
    """Take no more turns and end those that run; what waits for a person goes on waiting.

    A turn in which a claimed call runs ends after that call, whose outcome is stored. After
    ``within`` seconds, or once ``hurried`` is set, such calls are cut, and nobody knows what they
    did.
    """
    turns.begin_to_end()
    ended = asyncio.create_task(_ended(turns))
    hurry = asyncio.create_task(hurried.wait())
    await asyncio.wait([ended, hurry], timeout=within, return_when=asyncio.FIRST_COMPLETED)
    hurry.cancel()
    if ended.done():
        return
    for turn in turns.all():
        logger.warning("turn cut chat=%s turn=%s", turn.chat.chat, turn.stamp.turn)
        turn.cut()
    await asyncio.wait([ended], timeout=CUT_SECONDS)
    ended.cancel()


async def _ended(turns: Turns) -> None:
    await turns.holders.close()
    while running := turns.all():
        await asyncio.gather(*(turn.done.wait() for turn in running))
