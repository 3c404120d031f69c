"""The runs of one live chat, one after the other; between two of them the session is lent.

What waits since before a run is answered by a turn of another kind, which needs the session for
itself: the run ends, the turn runs, and the next run goes on with the history.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Final

from sluicegate.core.plan import ContinueExchange, still_open
from sluicegate.engine.continue_turn import AnswerTurn
from sluicegate.engine.start_turn import StartTurn, stamp_of
from sluicegate.errors import RequestError, StoreError
from sluicegate.live.asks import INTERVAL
from sluicegate.live.exchange import LiveExchange, LiveTurn
from sluicegate.live.lease import LiveLease
from sluicegate.live.talk import Talk
from sluicegate.wire.decisions import PostedAssistant
from sluicegate.wire.live_frames import TurnFrame

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluicegate.core.plan import ChatLog, NewExchange
    from sluicegate.core.release.policy import ReleasePolicy
    from sluicegate.engine.turn.reader import Client, TurnReader
    from sluicegate.engine.turn.runner import RunningTurn
    from sluicegate.live.hold import Hold
    from sluicegate.wire.chunks import BaseChunk

SPEAKING: Final = 10.0
"""Seconds for which an answer to what waits since before lets the model end what it says."""

logger = logging.getLogger("sluicegate")


class Runs:
    """Begins and ends them; whoever calls a method that says so has the lock of the chat."""

    def __init__(
        self, hold: Hold, *, release: Callable[[], ReleasePolicy], marked_by_client: bool
    ) -> None:
        """Take a chat whose lease is held; ``release`` is that of what is spoken."""
        self._hold = hold
        self._release = release
        self._marked_by_client = marked_by_client
        self._lease = LiveLease(hold)
        self._is_closing = False
        self._untold: list[LiveExchange] = []
        self._following: asyncio.Task[None] | None = None
        self.now = self._new()

    async def begin(self) -> None:
        """Begin a run; what waits since before goes on waiting, and speech comes after it."""
        log = await self._hold.parts.chat_log(self._hold.chat)
        self._tell_untold(log)
        last = log.last()
        if last is not None and last.is_unfinished:
            turn = LiveTurn(stamp_of(last.exchange))
            foreign = LiveExchange(
                turn, last.exchange.release, spoken=False, phase="waits", is_foreign=True
            )
            self.now.line.exchanges.append(foreign)
            asked = [state.ask for state in last.open_calls if state.ask is not None]
            self._follow({ask.approval_id for ask in asked})
        await self.now.start()

    async def close_before(self, plan: NewExchange | None) -> Sequence[BaseChunk]:
        """Close what waits since before; returns what becomes of its cards. Needs the lock."""
        parts, chat = self._hold.parts, self._hold.chat
        closes = plan.closes if plan is not None else None
        if closes is None:
            closes = (await parts.chat_log(chat)).last()
        if closes is None or not closes.is_unfinished:
            return ()
        await self._end()
        cards = await StartTurn(parts).close(chat, closes)
        self.now = self._new()
        await self.begin()
        return cards

    async def answer_before(
        self,
        log: ChatLog,
        plan: ContinueExchange,
        release: ReleasePolicy,
        client: Client,
        *,
        own: bool,
    ) -> TurnReader | None:
        """Let an exchange go on that waits since before, on the lent session. Needs the lock.

        Returns None when nothing waits for that. ``own``: who reads the turn is at the socket.

        Raises:
            RequestError: the decisions stay in the ledger.
        """
        if not plan.exchange.is_unfinished:
            return None
        parts, hold = self._hold.parts, self._hold
        await self._until_said()
        await self._end()
        reader: TurnReader | None = None
        try:
            await self._lease.lend()
            reader = await AnswerTurn(parts).start(log, plan, release, client)
        finally:
            running = parts.turns.running(hold.chat)
            if reader is None or running is None:
                await self._take_back()
            else:
                hold.soon(self._take_back_after(running))
        if reader is not None and not own:
            exchange = plan.exchange.exchange
            hold.out.frame(TurnFrame(exchange.message_id, exchange.user_message_id))
        return reader

    async def close(self) -> None:
        """End the run and give the lease back."""
        hold = self._hold
        self._is_closing = True
        async with hold.lock:
            if not self._lease.is_lent:
                await self._end()
        await hold.idle()
        if hold.parts.tape is not None:
            hold.parts.tape.rest(hold.chat)
        hold.parts.turns.holders.remove(hold.chat)
        await self._lease.give_back()

    def _new(self) -> Talk:
        return Talk(self._hold, release=self._release, marked_by_client=self._marked_by_client)

    async def _end(self) -> None:
        self._follow(())
        line = self.now.line
        self._untold += [e for e in line.exchanges if not (e.is_foreign or e.is_announced)]
        await self.now.end()

    async def _until_said(self) -> None:
        """Let the model end what it says and does; what it asks is asked again afterwards."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SPEAKING):
                while (busy := self.now.line.busy()) is not None and not self.now.run.is_over:
                    await busy.current.feed.ended.wait()

    def _tell_untold(self, log: ChatLog) -> None:
        """Tell what was said while an exchange of before waited, once it is part of the chat."""
        shown = {exchange.message_id for exchange in log.exchanges}
        last = log.last()
        for exchange in [each for each in self._untold if each.message in shown]:
            self._untold.remove(exchange)
            is_open = (
                last is not None
                and last.is_unfinished
                and last.exchange.message_id == exchange.message
            )
            for frame in exchange.frames:
                if frame.role == "user" or not is_open:
                    self._hold.out.frame(frame)
            self._hold.out.frame(TurnFrame(exchange.message, exchange.current.stamp.user_message))

    def _follow(self, approvals: set[str] | tuple[()]) -> None:
        """Look after these approvals from now on, and after no others."""
        if self._following is not None and self._following is not asyncio.current_task():
            self._following.cancel()
        self._following = None
        if approvals:
            self._following = self._hold.soon(self._watch(frozenset(approvals)))

    async def _watch(self, approvals: frozenset[str]) -> None:
        """Go on by itself when other processes have decided, or nobody has in time (A2, A5)."""
        ledger, chat = self._hold.parts.ledger, self._hold.chat
        while True:
            await asyncio.sleep(INTERVAL)
            # A database that does not answer now is asked again.
            with contextlib.suppress(StoreError):
                await ledger.expire(chat)
                rows = [row for row in await ledger.rows(chat) if row.approval_id in approvals]
                if len(rows) < len(approvals) or any(row.state == "requested" for row in rows):
                    continue
                await self._go_on_unasked()
                return

    async def _go_on_unasked(self) -> None:
        hold, parts = self._hold, self._hold.parts
        # Whoever decides here goes on by their own request.
        async with hold.alone(), hold.lock:
            if self._is_closing or self._following is not asyncio.current_task():
                return
            place = await parts.elsewhere.place(hold.chat)
            log = await parts.chat_log(hold.chat, place)
            last = log.last()
            if last is None or not last.is_unfinished:
                return
            name = last.exchange.message_id
            plan = ContinueExchange(last, PostedAssistant(name, (), (), ()))
            if still_open(plan):
                return
            try:
                release = last.exchange.release
                reader = await self.answer_before(log, plan, release, hold.client, own=False)
            except RequestError as error:
                # The same answer again makes it go on.
                logger.warning("a decided call waits on chat=%s %s", hold.chat.chat, error.code)
                return
        if reader is not None:
            await reader.detach()

    async def _take_back_after(self, running: RunningTurn) -> None:
        await running.done.wait()
        async with self._hold.lock:
            await self._take_back()

    async def _take_back(self) -> None:
        """Go on with the chat that was lent."""
        if not self._is_closing and await self._lease.take_back():
            self.now = self._new()
            await self.begin()
