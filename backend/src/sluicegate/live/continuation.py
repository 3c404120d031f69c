"""How an exchange of a live run goes on that waited, and how it is closed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from google.genai import types

from sluicegate.core.exchanges import notes
from sluicegate.core.function_responses import delivery
from sluicegate.core.history import rebuild
from sluicegate.core.plan import ContinueExchange
from sluicegate.core.signals import Settled
from sluicegate.engine.continue_turn import going_on, next_stamp, outputs_of
from sluicegate.engine.start_turn import TurnSetup, stamp_of
from sluicegate.engine.turn.close_open_calls import OpenCallCloser
from sluicegate.engine.turn.session_log import replies_content
from sluicegate.live.router import SILENT
from sluicegate.wire.decisions import PostedAssistantMessage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from sluicegate.core.history import RebuiltExchange
    from sluicegate.core.plan import ChatLog
    from sluicegate.core.release.policy import ReleasePolicy
    from sluicegate.core.signals import Signal
    from sluicegate.engine.turn.reader import TurnReader
    from sluicegate.live.approvals import PendingApprovals
    from sluicegate.live.context import LiveContext
    from sluicegate.live.exchange import LiveExchange
    from sluicegate.live.exchange_queue import ExchangeQueue
    from sluicegate.live.router import EventRouter
    from sluicegate.live.run import LiveRun
    from sluicegate.wire.chunks import BaseChunk


class LiveContinuation:
    """Takes exchanges from one turn to the next, through the run."""

    def __init__(
        self, hold: LiveContext, line: ExchangeQueue, sorter: EventRouter, asks: PendingApprovals
    ) -> None:
        self._hold = hold
        self._line = line
        self._sorter = sorter
        self._asks = asks

    async def unasked(self, exchange: LiveExchange) -> TurnSetup:
        """The next turn of an exchange of which there is more to tell, with nothing answered."""
        log = await self._hold.parts.chat_log(self._hold.chat)
        stamp = exchange.to_play[0].stamp
        rebuilt = self._before(exchange, log)
        return TurnSetup(self._line.key(exchange), stamp, exchange.release, rebuilt)

    async def decided(self, exchange: LiveExchange) -> TurnReader | None:
        """Go on with what is decided by now, without a request."""
        log = await self._hold.parts.chat_log(self._hold.chat)
        posted = PostedAssistantMessage(exchange.message, (), (), ())
        plan = ContinueExchange(self._before(exchange, log), posted)
        return await self.answered(exchange, log, plan, exchange.release, major=7)

    async def answered(
        self,
        exchange: LiveExchange,
        log: ChatLog,
        plan: ContinueExchange,
        release: ReleasePolicy,
        *,
        major: Literal[6, 7],
    ) -> TurnReader | None:
        """Tell ADK, and the calls that wait, what was decided; None when nothing is left to tell.

        Raises:
            RequestError, StoreError: the turn is not told; the decisions stay in the ledger.
        """
        hold, run = self._hold, self._run()
        plan = replace(plan, exchange=self._before(exchange, log))
        outputs = outputs_of(plan)
        told = delivery(plan.exchange, log.rows, outputs)
        if told is None:
            return None
        turn = exchange.to_play[0]
        stamp = next_stamp(plan, turn.stamp.turn, model=hold.parts.model)
        turn.stamp = replace(stamp, live=True, after=turn.stamp.after)
        setup = going_on(log, plan, self._line.key(exchange), turn.stamp, release)
        run.gate.client_outputs = {**run.gate.client_outputs, **setup.client_outputs}
        exchange.is_paused = False
        asked = [call_id for call_id in exchange.calls if self._asks.is_waiting(call_id)]
        exchange.calls.update(dict.fromkeys(asked, "runs"))
        reader = await self._line.play(exchange, setup, major=major)
        await run.log.append_replies(hold.chat, [*told.appended, told.message], turn.stamp)
        if outputs:
            run.answer(replies_content(outputs))
        for output in outputs:
            self._sorter.settled(exchange, output.id)
        confirmed = {
            reply.id: reply.response.get("confirmed") is True
            for reply in (*(each for group in told.appended for each in group), *told.message)
        }
        for state in plan.exchange.gate.calls.values():
            if state.ask is not None:
                yes = confirmed.get(state.ask.confirmation_id, False)
                self._asks.resolve(state.call.id_in_adk, confirmed=yes)
        await hold.parts.chats.touch(hold.chat, title=None)
        return reader

    async def close(self, exchange: LiveExchange) -> Sequence[BaseChunk]:
        """Close what an exchange waits for; returns what becomes of its cards (A5, D7)."""
        hold, run, parts = self._hold, self._run(), self._hold.parts
        rebuilt = self._before(exchange, await parts.chat_log(hold.chat))
        await run.drop_calls(list(exchange.calls))
        closing = OpenCallCloser(parts.ledger, run.log, parts.survey.terms)
        signals = await closing.close(
            hold.chat,
            rebuilt.gate,
            run.invocation,
            stamp_of(rebuilt.exchange),
            reason="it was superseded.",
        )
        told = _for_the_model(rebuilt, signals)
        if told.parts:
            run.answer(told)
        cards = await closing.cards(hold.chat, rebuilt.gate, exchange.message)
        self._line.drop(exchange)
        return cards

    def _before(self, exchange: LiveExchange, log: ChatLog) -> RebuiltExchange:
        """The exchange as it was told so far; what has come since is told by its next turn."""
        stored = next(e for e in log.exchanges if e.message_id == exchange.message)
        untold = {turn.stamp.turn for turn in exchange.to_play}
        told = [event for event in stored.events if notes(event).get("turn") not in untold]
        parts = self._hold.parts
        files_url = parts.files_url(self._hold.chat)
        return rebuild(replace(stored, events=told), log.rows, parts.survey, files_url=files_url)

    def _run(self) -> LiveRun:
        run = self._hold.run
        if run is None:
            raise RuntimeError("a live chat is asked to go on before it has begun")
        return run


def _for_the_model(rebuilt: RebuiltExchange, signals: Sequence[Signal]) -> types.Content:
    """How calls ended that will not run; the model need not answer that."""
    parts: list[types.Part] = []
    for signal in signals:
        if isinstance(signal, Settled):
            call = rebuilt.gate.calls[signal.call_id].call
            response = types.FunctionResponse(
                id=call.id_in_adk,
                name=call.name,
                response={"error": signal.outcome.text},
                scheduling=SILENT,
            )
            parts.append(types.Part(function_response=response))
    return types.Content(role="user", parts=parts)
