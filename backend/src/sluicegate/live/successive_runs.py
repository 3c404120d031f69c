"""The live runs of one chat, one after the other.

An exchange that was waiting before a run is continued by a turn that is not live, which needs the
session for itself: the run ends, the lease is released to the turn, and the next run continues with
the history.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from sluicegate.core.exchanges import closing_stamp
from sluicegate.core.plan import ContinueExchange, still_open
from sluicegate.engine.polling_backoff import Backoff
from sluicegate.errors import HeldByAnotherOwner, RequestError, StoreError
from sluicegate.live.exchange import LiveExchange, LiveTurn
from sluicegate.live.lease import LiveLease
from sluicegate.live.run_session import LiveRunSession
from sluicegate.wire.live_frames import TurnFrame
from sluicegate.wire.posted_assistant_message import PostedAssistantMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluicegate.core.plan import ChatLog, NewExchange
    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.engine.client_request_options import RequestingClient
    from sluicegate.engine.turn.reader import TurnReader
    from sluicegate.engine.turn.running_turn import RunningTurn
    from sluicegate.live.context import LiveContext
    from sluicegate.wire.chunks import BaseChunk

logger = logging.getLogger("sluicegate")


class LiveRunSupervisor:
    """Starts and ends the runs of one chat, whose lease is held."""

    def __init__(self, context: LiveContext, *, release: Callable[[], ReleasePolicy]) -> None:
        """``release`` returns the policy of a spoken exchange."""
        self._context = context
        self._release = release
        self._lease = LiveLease(context)
        self._is_closing = False
        self._unannounced: list[LiveExchange] = []
        """Exchanges of ended runs that the client has not been sent."""
        self._watching: asyncio.Task[None] | None = None
        self.current = self._new_session()

    async def start(self) -> None:
        """Start a run; an exchange that was waiting before it stays first in the queue."""
        log = await self._context.resources.logs.load(self._context.chat)
        self._announce_stored(log)
        last = log.last()
        if last is not None and last.is_unfinished:
            turn = LiveTurn(closing_stamp(last.exchange))
            earlier = LiveExchange(
                turn, last.exchange.release, spoken=False, phase="waiting", is_earlier=True
            )
            self.current.exchange_queue.exchanges.append(earlier)
            requests = [state.request for state in last.open_calls if state.request is not None]
            self._watch_approvals({request.approval_id for request in requests})
        await self.current.start()

    async def close_earlier(self, plan: NewExchange | None) -> Sequence[BaseChunk]:
        """Close the exchange that waits since before the run; return the chunks for its cards.

        The caller holds the lock.
        """
        resources, chat = self._context.resources, self._context.chat
        closes = plan.closes if plan is not None else None
        if closes is None:
            closes = (await resources.logs.load(chat)).last()
        if closes is None or not closes.is_unfinished:
            return ()
        await self._end_run()
        cards = await resources.start_turn.close(chat, closes, stopped=plan is None)
        self.current = self._new_session()
        await self.start()
        return cards

    async def continue_earlier(
        self,
        log: ChatLog,
        plan: ContinueExchange,
        release: ReleasePolicy,
        client: RequestingClient,
        *,
        own: bool,
    ) -> TurnReader | None:
        """Continue the exchange that waits since before the run, with the lease released.

        Returns None when it does not wait. ``own``: the socket reads the turn. The caller holds the
        lock.

        Raises:
            RequestError: the decisions stay in the ledger.
        """
        if not plan.exchange.is_unfinished:
            return None
        context, resources = self._context, self._context.resources
        await self._wait_for_answer()
        await self._end_run()
        exchange = plan.exchange.exchange
        frame = TurnFrame(exchange.message_id, exchange.user_message_id)
        try:
            await self._lease.release()
            reader = await resources.continue_turn.run(log, plan, release, client)
        except HeldByAnotherOwner:
            # A request on another replica has found the chat free, and continues the exchange.
            context.spawn(self._restart_after_replica(frame))
            raise
        except BaseException:
            await self._restart()
            raise
        running = resources.turns.running(context.chat)
        if reader is None or running is None:
            await self._restart()
        else:
            context.spawn(self._restart_after(running))
        if reader is not None and not own:
            context.outbox.send(frame)
        return reader

    async def close(self) -> None:
        """End the run and release the lease."""
        context = self._context
        self._is_closing = True
        async with context.lock:
            if self._lease.is_held:
                await self._end_run()
        await context.wait_for_tasks()
        if context.resources.recorder is not None:
            context.resources.recorder.flush(context.chat)
        context.resources.turns.chat_owners.remove(context.chat, context.owner)
        await self._lease.close()

    def _new_session(self) -> LiveRunSession:
        return LiveRunSession(self._context, release=self._release)

    async def _end_run(self) -> None:
        self._watch_approvals(set())
        exchanges = self.current.exchange_queue.exchanges
        self._unannounced += [e for e in exchanges if not (e.is_earlier or e.is_announced)]
        await self.current.end()

    async def _wait_for_answer(self) -> None:
        """Let the model finish; approvals that it requests are requested again in the next run."""
        session = self.current
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._context.timings.speech_grace):
                while (
                    busy := session.exchange_queue.first_busy()
                ) is not None and not session.run.is_over:
                    await busy.current.feed.ended.wait()

    def _announce_stored(self, log: ChatLog) -> None:
        """Send the client the exchanges of ended runs that the chat has by now."""
        stored = {exchange.message_id for exchange in log.exchanges}
        last = log.last()
        for exchange in [each for each in self._unannounced if each.message in stored]:
            self._unannounced.remove(exchange)
            is_open = (
                last is not None
                and last.is_unfinished
                and last.exchange.message_id == exchange.message
            )
            for frame in exchange.held_transcripts:
                if frame.role == "user" or not is_open:
                    self._context.outbox.send(frame)
            stamp = exchange.current.stamp
            self._context.outbox.send(TurnFrame(exchange.message, stamp.user_message))

    def _watch_approvals(self, approvals: set[str]) -> None:
        """Watch these approvals in place of all others."""
        if self._watching is not None and self._watching is not asyncio.current_task():
            self._watching.cancel()
        self._watching = None
        if approvals:
            self._watching = self._context.spawn(self._watch(frozenset(approvals)))

    async def _watch(self, approvals: frozenset[str]) -> None:
        """Continue when other replicas have decided, or the deadline has passed (A2, A5)."""
        ledger, chat = self._context.resources.ledger, self._context.chat
        while True:
            await asyncio.sleep(self._context.timings.approval_poll)
            # A ledger that is not available is read again later.
            with contextlib.suppress(StoreError):
                await ledger.expire(chat)
                rows = [row for row in await ledger.rows(chat) if row.approval_id in approvals]
                if len(rows) < len(approvals) or any(row.state == "requested" for row in rows):
                    continue
                await self._continue_decided()
                return

    async def _continue_decided(self) -> None:
        context, resources = self._context, self._context.resources
        # A decision on this replica is followed by a request, which continues the exchange.
        async with context.request_lock(), context.lock:
            if self._is_closing or self._watching is not asyncio.current_task():
                return
            location = await resources.replicas.locate(context.chat)
            log = await resources.logs.load(context.chat, location)
            last = log.last()
            if last is None or not last.is_unfinished:
                return
            posted = PostedAssistantMessage(last.exchange.message_id, (), (), ())
            plan = ContinueExchange(last, posted)
            if still_open(plan):
                return
            try:
                release = last.exchange.release
                reader = await self.continue_earlier(log, plan, release, context.client, own=False)
            except RequestError as error:
                # Posting the same decision again continues the exchange.
                logger.warning("a decided call waits on chat=%s %s", context.chat.chat, error.code)
                return
        if reader is not None:
            await reader.detach()

    async def _restart_after(self, running: RunningTurn) -> None:
        await running.done.wait()
        async with self._context.lock:
            await self._restart()

    async def _restart_after_replica(self, frame: TurnFrame) -> None:
        """Restart once no turn of another replica runs, and announce what it has answered."""
        context, resources = self._context, self._context.resources
        pause = Backoff(resources.options.longest_turn)
        # A store that is not available ends the chat.
        with contextlib.suppress(StoreError):
            while not self._is_closing and await resources.leases.has_turn(context.chat):
                if not await pause():
                    break
        async with context.lock:
            if await self._restart():
                context.outbox.send(frame)

    async def _restart(self) -> bool:
        """Reacquire the lease and start the next run; returns whether it was started."""
        if self._is_closing or not await self._lease.take_again():
            return False
        self.current = self._new_session()
        await self.start()
        return True
