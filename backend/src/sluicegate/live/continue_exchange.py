"""Continues an exchange of a live run once its calls are decided, or closes it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from google.genai import types

from sluicegate.core.exchanges import closing_stamp
from sluicegate.core.function_responses_for_adk import delivery
from sluicegate.core.plan import ContinueExchange
from sluicegate.core.signals import Settled
from sluicegate.core.turn_stamp import STOPPED
from sluicegate.engine.continue_turn import continued_setup, next_stamp, output_replies
from sluicegate.engine.turn.close_undecided_calls import OpenCallCloser
from sluicegate.engine.turn.session_log import replies_content
from sluicegate.live.event_router import SILENT
from sluicegate.wire.posted_assistant_message import PostedAssistantMessage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from sluicegate.core.history import RebuiltExchange
    from sluicegate.core.plan import ChatLog
    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.core.signals import Signal
    from sluicegate.engine.turn.reader import TurnReader
    from sluicegate.live.context import LiveContext
    from sluicegate.live.event_router import EventRouter
    from sluicegate.live.exchange import LiveExchange
    from sluicegate.live.exchange_queue import ExchangeQueue
    from sluicegate.live.pending_approvals import PendingApprovals
    from sluicegate.live.run import LiveRun
    from sluicegate.wire.chunks import BaseChunk


class LiveContinuation:
    """Takes exchanges from one turn to the next through the run."""

    def __init__(
        self,
        context: LiveContext,
        run: LiveRun,
        exchange_queue: ExchangeQueue,
        router: EventRouter,
        pending: PendingApprovals,
    ) -> None:
        self._context = context
        self._run = run
        self._publisher = exchange_queue
        self._router = router
        self._pending = pending

    async def continue_decided(self, exchange: LiveExchange) -> TurnReader | None:
        """Continue with the decisions of the ledger, without a request."""
        log = await self._context.resources.logs.load(self._context.chat)
        posted = PostedAssistantMessage(exchange.message, (), (), ())
        plan = ContinueExchange(self._publisher.rebuild(exchange, log), posted)
        return await self.continue_exchange(exchange, log, plan, exchange.release, major=7)

    async def continue_exchange(
        self,
        exchange: LiveExchange,
        log: ChatLog,
        plan: ContinueExchange,
        release: ReleasePolicy,
        *,
        major: Literal[6, 7],
    ) -> TurnReader | None:
        """Give ADK and the waiting calls their answers; None when there is none to give.

        Raises:
            RequestError, StoreError: the turn is not published; the decisions stay in the ledger.
        """
        context, run = self._context, self._run
        plan = replace(plan, exchange=self._publisher.rebuild(exchange, log))
        outputs = output_replies(plan)
        replies = delivery(plan.exchange, log.rows, outputs)
        if replies is None:
            return None
        turn = exchange.unpublished[0]
        stamp = next_stamp(plan, turn.stamp.turn, model=context.resources.builder.model)
        turn.stamp = replace(stamp, live=True, after=turn.stamp.after)
        setup = continued_setup(log, plan, self._publisher.key(exchange), turn.stamp, release)
        run.records.client_outputs.update(setup.client_outputs)
        exchange.is_paused = False
        resumed = [call_id for call_id in exchange.open_calls if self._pending.is_waiting(call_id)]
        exchange.open_calls.update(dict.fromkeys(resumed, "running"))
        reader = await self._publisher.publish(exchange, setup, major=major)
        groups = [*replies.appended, replies.message]
        await run.log.append_replies(context.chat, groups, turn.stamp)
        if outputs:
            run.send_results(replies_content(outputs))
        for output in outputs:
            self._router.settle(exchange, output.id)
        confirmed = {
            reply.id: reply.response.get("confirmed") is True for group in groups for reply in group
        }
        for state in plan.exchange.buffer.calls.values():
            if state.request is not None:
                is_confirmed = confirmed.get(state.request.confirmation_id, False)
                self._pending.resolve(state.call.id_in_adk, confirmed=is_confirmed)
        await context.resources.chats.touch(context.chat, title=None)
        return reader

    async def close(self, exchange: LiveExchange, *, stopped: bool = False) -> Sequence[BaseChunk]:
        """Close the waiting calls of an exchange; return the chunks for their cards (A5, D7).

        ``stopped``: the user has stopped the exchange, instead of sending a message.
        """
        context, run, resources = self._context, self._run, self._context.resources
        rebuilt = self._publisher.rebuild(exchange, await resources.logs.load(context.chat))
        await run.cancel_calls(list(exchange.open_calls))
        closer = OpenCallCloser(resources.ledger, run.log, resources.survey)
        signals = await closer.close(
            context.chat,
            rebuilt.buffer,
            run.invocation,
            closing_stamp(rebuilt.exchange),
            reason="it was superseded.",
        )
        if stopped:
            await run.log.append_end(context.chat, closing_stamp(rebuilt.exchange), STOPPED)
        results = _silent_results(rebuilt, signals)
        if results.parts:
            run.send_results(results)
        cards = await closer.cards(context.chat, rebuilt.buffer, exchange.message)
        self._publisher.drop(exchange)
        return cards


def _silent_results(rebuilt: RebuiltExchange, signals: Sequence[Signal]) -> types.Content:
    """The outcomes of closed calls, which the model is not to answer."""
    parts: list[types.Part] = []
    for signal in signals:
        if isinstance(signal, Settled):
            call = rebuilt.buffer.calls[signal.call_id].call
            response = types.FunctionResponse(
                id=call.id_in_adk,
                name=call.name,
                response={"error": signal.outcome.text},
                scheduling=SILENT,
            )
            parts.append(types.Part(function_response=response))
    return types.Content(role="user", parts=parts)
