"""The live run of a chat with everything around it, from its start to its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Final

from sluicegate.engine.failures import describe, new_error_id
from sluicegate.engine.files.result_files import ResultFiles
from sluicegate.engine.guard.claims import RunningClaims
from sluicegate.engine.start_turn import caps_of, report_to_log
from sluicegate.errors import Unavailable
from sluicegate.live.asks import Asks
from sluicegate.live.desk import LiveDesk
from sluicegate.live.ears import Listening
from sluicegate.live.floor import Floor
from sluicegate.live.going_on import GoingOn
from sluicegate.live.line import PATIENCE, Line
from sluicegate.live.live_gate import LiveGate
from sluicegate.live.out import Ended
from sluicegate.live.run import LiveRun
from sluicegate.live.sorter import Sorter
from sluicegate.live.teller import Teller
from sluicegate.wire.live_frames import GoAwayFrame, ReadyFrame

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluicegate.core.release.policy import ReleasePolicy
    from sluicegate.engine.turn.runner import RunningTurn
    from sluicegate.live.connection import LiveConnection
    from sluicegate.live.exchange import LiveExchange
    from sluicegate.live.hold import Hold

logger = logging.getLogger("sluicegate")

FAREWELL: Final = 1.0
"""Seconds in which a run ends by itself when the connection to the model is closed."""

FAILED: Final = 1011
ENDED: Final = 1012
"""Close codes of the socket: the run failed; the model has ended it."""


class Talk:
    """One run: what hears it, sorts it, tells it, asks in it."""

    def __init__(
        self,
        hold: Hold,
        *,
        release: Callable[[], ReleasePolicy],
        marked_by_client: bool,
    ) -> None:
        """Prepare it. ``release`` is that of what is spoken."""
        self._hold = hold
        self._stopping = False
        self.asks = Asks(hold, self._look)
        self.line = Line(hold, release=release, stepped=self.asks.wake)
        self.floor = Floor(self.line.begin, self.line.first)
        self.line.floor = self.floor
        parts = hold.parts
        self._sorter = Sorter(self.floor, parts.survey, parts.options.page_tools)
        self._teller = Teller(hold, self._sorter, self.floor, self.line)
        self.going_on = GoingOn(hold, self.line, self._sorter, self.asks)
        self.line.goes_on = self.going_on.unasked
        self.line.flush = self._teller.flush
        self._desk = LiveDesk(
            self._sorter, self.line, self.asks, Listening(self._ready, self._going_away)
        )
        self.run = LiveRun(
            hold.parts.runner, hold.chat, self._gate(), marked_by_client=marked_by_client
        )
        self._desk.run = hold.run = self.run
        self._driving: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin the run; returns once it can be spoken to, or has failed."""
        self._driving = asyncio.create_task(self._drive())
        self._watching = asyncio.create_task(self.asks.watch())
        begun = asyncio.create_task(self._desk.has_begun.wait())
        await asyncio.wait([begun, self._driving], return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()

    async def end(self) -> None:
        """End the run: what waits goes on waiting in the log, claimed calls come to their end."""
        self.run.gate.stopping = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._hold.parts.options.tool_timeout + PATIENCE):
                await self.run.await_claimed()
        self.line.is_closed = True
        self.run.deafen()
        head = self.line.head
        turn = self.line.running(head) if head is not None else None
        if head is not None and turn is not None:
            await self._wind_up(head, turn)
        elif self.floor.speaking is not None and not self.run.is_over:
            await self._hush(self.floor.speaking)
        self._stopping = True
        self._teller.close()
        self.run.close()
        if self._driving is not None:
            await asyncio.wait([self._driving], timeout=FAREWELL)
        for task in (self._watching, self._driving):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])

    async def _wind_up(self, exchange: LiveExchange, turn: RunningTurn) -> None:
        """End a turn that is told: as one that waits, if one of its calls does."""
        if "waits" in exchange.calls.values() and not self.run.is_over:
            at_work = [name for name, phase in exchange.calls.items() if phase == "runs"]
            await self.run.drop_calls(at_work)
            for call_id in at_work:
                await self.run.give_up(call_id)
        else:
            turn.abort.set()
        await turn.done.wait()

    async def _hush(self, exchange: LiveExchange) -> None:
        """Keep what was said of an answer that nobody has been told yet."""
        exchange.is_ending = True
        self.run.cut()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await exchange.current.feed.ended.wait()

    async def clear(self) -> None:
        """Tell what is left, and end it; whoever does so has the lock."""
        while (head := self.line.head) is not None:
            await self.line.step()
            turn = self.line.running(head)
            if turn is not None:
                turn.abort.set()
                await turn.done.wait()
            elif head.phase == "waits":
                await self.going_on.close(head)

    def interrupt(self) -> None:
        """End what the model says; calls at work go on."""
        if self.run.is_over or not self.floor.is_taken:
            return
        first = self.line.first()
        if self.floor.speaking is None and first is not None and not first.calls:
            first.is_ending = True
        self._hold.out.cut()
        self.run.cut()

    def _gate(self) -> LiveGate:
        hold = self._hold
        parts = hold.parts
        return LiveGate(
            chat=hold.chat,
            owner=hold.owner,
            ledger=parts.ledger,
            rows={},
            caps=caps_of(parts.options),
            ttl=hold.approval_ttl,
            files=ResultFiles(parts.files, hold.chat, parts.options.result_limits),
            models=parts.models,
            policy=parts.policy,
            new_error_id=new_error_id,
            report=report_to_log(hold.chat, hold.owner),
            claims=RunningClaims(parts.options.tool_timeout),
            desk=self._desk,
            may_gate=parts.survey.may_gate,
        )

    async def _drive(self) -> None:
        await self.run.drive(self._teller.take)
        error, error_id = self.run.error, new_error_id()
        if error is not None:
            logger.error(
                "live run failed chat=%s error=%s %s",
                self._hold.chat.chat,
                error_id,
                describe(self.run.gate.model_error or error),
            )
        await self._fail(error)
        if self._stopping:
            return
        if error is None:
            told = Unavailable("The model has ended the conversation; connect again.")
            self._hold.out.frame(Ended(told, ENDED))
        else:
            told = Unavailable(f"The live model failed (error {error_id}); connect again.")
            self._hold.out.frame(Ended(told, FAILED))

    async def _fail(self, error: Exception | None) -> None:
        """End the turn that is told, and let it tell so itself (T10)."""
        head = self.line.head
        turn = self.line.running(head) if head is not None else None
        if head is None or turn is None:
            return
        turn.turn_gate.model_error = self.run.gate.model_error
        if error is None:
            head.current.feed.end(stopped=True)
        else:
            head.current.feed.fail(error)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await turn.done.wait()

    async def _look(self) -> None:
        """Somebody may have decided elsewhere, or nobody in time."""
        # Whoever decides here goes on by their own request.
        async with self._hold.alone(), self._hold.lock:
            head = self.line.head
            if head is None or head.phase != "waits" or head.is_foreign:
                return
            if self.line.is_closed or not self.asks.are_decided(head):
                return
            head.is_announced = False
            reader = await self.going_on.decided(head)
        if reader is not None:
            await reader.aclose()
            self.line.flush(head)
            self.line.announce(head)

    def _ready(self, connection: LiveConnection, before: LiveConnection | None) -> None:
        self.floor.one_turn = connection.one_turn
        if before is not None and self.floor.anew():
            connection.end_what_was_said(before)
        self._hold.out.frame(ReadyFrame())

    def _going_away(self) -> None:
        self._hold.out.frame(GoAwayFrame())
