"""Continues exchanges: decisions into the ledger, then all replies to ADK at once (A3)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from sluicegate.core.approvers import not_entitled
from sluicegate.core.chat_and_turn_keys import TurnKey
from sluicegate.core.function_responses_for_adk import (
    Reply,
    delivery,
    outcome_of,
    response_of,
    shape_of,
)
from sluicegate.core.history import for_reader
from sluicegate.core.plan import ChatLog, ContinueExchange, check_winners, still_open
from sluicegate.core.signals import CONNECTED, Answered
from sluicegate.core.turn_stamp import TurnStamp
from sluicegate.engine.entitlement import rule_of
from sluicegate.engine.polling_backoff import Backoff
from sluicegate.engine.repeated_requests import (
    as_repeats,
    first_missing,
    has_ended,
    was_continued,
)
from sluicegate.engine.respond_without_turn import begun, not_yet, repeated
from sluicegate.engine.turn.builder import TurnSetup, new_turn_id
from sluicegate.engine.turn.closed_approval_cards import closed_cards
from sluicegate.engine.turn.lease_owner_ids import turn_owner
from sluicegate.engine.turn.remote_turns import UNREAD, ChatLocation
from sluicegate.engine.turn.running_turn import can_read, run_events
from sluicegate.engine.turn.session_log import replies_content
from sluicegate.errors import HeldByAnotherOwner, NotEntitled, Unavailable
from sluicegate.tools.approval_terms import GatedCall

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from google.adk.runners import Runner

    from sluicegate.core.approvals import Decision, NewApproval
    from sluicegate.core.approvers import ApproverRule
    from sluicegate.core.call_state import CallState
    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.core.exchanges import Exchange
    from sluicegate.core.function_responses_for_adk import Delivery
    from sluicegate.core.history import RebuiltExchange
    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.engine.client_request_options import RequestingClient
    from sluicegate.engine.entitlement import Entitlement
    from sluicegate.engine.load_chat_log import ChatLogs
    from sluicegate.engine.preview_edited_calls import PreviewEdits
    from sluicegate.engine.turn.builder import TurnBuilder
    from sluicegate.engine.turn.chat_leases import ChatLeases
    from sluicegate.engine.turn.live_chat_registry import ChatOwner
    from sluicegate.engine.turn.local_turns import LocalTurns
    from sluicegate.engine.turn.reader import TurnReader
    from sluicegate.engine.turn.remote_turns import Replicas
    from sluicegate.stores.chats import ChatIndex
    from sluicegate.wire.chunks import BaseChunk

logger = logging.getLogger("sluicegate")

OPEN_LIVE: Final = "This chat is open live elsewhere; write there, or close it first."

_LIVE_ANSWER_TIMEOUT: Final = 6.0
"""Seconds for the answer of a remote live model after the last result, if it gives one."""


@dataclass(frozen=True, slots=True)
class ContinueOptions:
    """How a client wants an exchange continued; ``origin`` is the live chat that it came to."""

    release: ReleasePolicy
    client: RequestingClient
    origin: ChatOwner | None


@dataclass(frozen=True, slots=True)
class ContinueTurn:
    """Continues exchanges; the caller holds the lock of the chat's requests.

    ``alone``: no other process can use the database.
    """

    runner: Runner
    builder: TurnBuilder
    turns: LocalTurns
    replicas: Replicas
    leases: ChatLeases
    logs: ChatLogs
    chats: ChatIndex
    alone: bool
    entitlement: Entitlement
    preview_edits: PreviewEdits

    async def continue_exchange(
        self,
        log: ChatLog,
        plan: ContinueExchange,
        location: ChatLocation,
        options: ContinueOptions,
    ) -> TurnReader:
        """Record the decisions, then run on, or say which calls are open.

        ``location`` was read before ``log``.

        Raises:
            RequestError: nothing has changed, or the decisions stay in the ledger.
        """
        chat = log.chat
        log, plan = await self._decide(log, plan, options.client)
        if location.remote is None and not self.turns.is_local(chat):
            # The lease shows whether another owner has written since the log was read.
            with contextlib.suppress(HeldByAnotherOwner):
                return await self._run_or_wait(log, plan, location, options)
        while True:
            found = await self._wait_for_running(chat, plan, options.client)
            if not isinstance(found, ChatLocation):
                return found
            try:
                now = await self._reload(chat, plan, found)
                return await self._run_or_wait(*now, found, options)
            except HeldByAnotherOwner:
                if self.alone:
                    raise
                # Another owner has taken the chat in between, perhaps with these decisions.
                await asyncio.sleep(0)

    async def run(
        self, log: ChatLog, plan: ContinueExchange, release: ReleasePolicy, client: RequestingClient
    ) -> TurnReader | None:
        """Reply to everything that ADK waits for and run on, also after a crash; else None.

        Raises:
            RequestError: the chat or the server is busy; the decisions stay in the ledger.
        """
        replies = delivery(plan.exchange, log.rows, output_replies(plan))
        if replies is None:
            return await self.run_on(
                log, plan.exchange, release, client, first_missing=first_missing(plan)
            )
        return await self._launch(
            log,
            next_stamp(plan, new_turn_id(), model=self.builder.model),
            lambda key, stamp: continued_setup(log, plan, key, stamp, release),
            client,
            replies=replies,
        )

    async def run_on(
        self,
        log: ChatLog,
        exchange: RebuiltExchange,
        release: ReleasePolicy,
        client: RequestingClient,
        *,
        first_missing: int | None,
    ) -> TurnReader | None:
        """Continue where a crash ended the last turn (A4); None if no crash did.

        The response begins with the turns from ``first_missing`` on, if the client lacks any.

        Raises:
            RequestError: the chat or the server is busy.
        """
        if not exchange.is_abandoned:
            return None
        stamp = stamp_of(exchange.exchange, new_turn_id(), model=self.builder.model)
        head = () if first_missing is None else begun(exchange, first_missing)
        return await self._launch(
            log,
            stamp,
            lambda key, stamp: TurnSetup(key, stamp, release, exchange),
            client,
            head=for_reader(head, major=client.major),
        )

    async def _launch(
        self,
        log: ChatLog,
        stamp: TurnStamp,
        setup_of: Callable[[TurnKey, TurnStamp], TurnSetup],
        client: RequestingClient,
        *,
        replies: Delivery | None = None,
        head: Sequence[BaseChunk] = (),
    ) -> TurnReader:
        chat = log.chat
        self.turns.admit(chat.user)
        owner = turn_owner(stamp.turn)
        fence = await self.leases.acquire(chat, owner, after=log.fence)
        try:
            if replies is not None:
                await self.logs.session_log.append_replies(chat, replies.appended, stamp)
            setup = setup_of(TurnKey(chat, stamp.turn, fence), stamp)
            setup = replace(setup, tools=client.tools, rows=list(log.rows.values()))
            turn = await self.builder.build(setup)
            await self.chats.touch(chat, title=None)
            message = None if replies is None else replies_content(replies.message)
            events = run_events(self.runner, turn, message, self.builder.options)
            return await self.turns.launch(turn, events, major=client.major, head=head)
        except BaseException:
            await asyncio.shield(self.leases.release(chat, owner, fence))
            raise

    async def _decide(
        self, log: ChatLog, plan: ContinueExchange, client: RequestingClient
    ) -> tuple[ChatLog, ContinueExchange]:
        """Record the decisions, which needs no lease (A2); returns the log and the plan with them.

        The first decision wins.
        """
        if not plan.decisions:
            return log, plan
        chat, ttl = log.chat, self.builder.approval_ttl
        requests = (decision.request for decision in plan.decisions)
        decisions = [
            replace(decision, request=replace(request, ttl=ttl(request.agent, request.tool)))
            for decision, request in zip(plan.decisions, requests, strict=True)
        ]
        ledger, recorder = self.logs.ledger, self.builder.recorder
        by = client.decided_by or chat.user
        decisions = await self.preview_edits(log, decisions, by=by, via=client.via)
        decisions, revoked = await self._entitled(log, decisions, by)
        rows = await ledger.record_decisions(decisions, by=by, via=client.via, revoked=revoked)
        if recorder is not None and rows:
            recorder.approvals(chat, rows)
        check_winners(plan.decisions, rows, by)
        if not self.alone:
            # Of two requests that bring the last two decisions at once, one must see both.
            rows = await ledger.rows(chat)
        log = replace(log, rows={**log.rows, **{row.approval_id: row for row in rows}})
        return log, _on(log, plan)

    async def _entitled(
        self, log: ChatLog, decisions: Sequence[Decision], by: str
    ) -> tuple[list[Decision], set[str]]:
        """Add the rules of the requests; also return people whose earlier yes no longer counts.

        Raises:
            NotEntitled: the request is not in the ledger yet, and other people decide it.
        """
        revoked: set[str] = set()
        ruled: list[Decision] = []
        for decision in decisions:
            request = decision.request
            row = log.rows.get(request.approval_id)
            rule = await self._lost_rule(log.chat, request) if row is None else row.approvers
            if rule is not None and row is None:
                roles = await self.entitlement.roles(by)
                if not rule.entitles(by, roles, requester=log.chat.user):
                    raise NotEntitled(not_entitled(rule))
            if rule is not None and row is not None:
                earlier = set(row.approved_by)
                revoked |= earlier - await self.entitlement.entitled_among(row, earlier)
            ruled.append(replace(decision, request=replace(request, approvers=rule)))
        return ruled, revoked

    async def _lost_rule(self, chat: ChatKey, request: NewApproval) -> ApproverRule | None:
        """The rule of a request whose row a crash has lost."""
        terms = self.builder.survey.of_chat(chat).terms(request.agent, request.tool)
        if terms.approvers is None:
            return None
        arguments = request.arguments if isinstance(request.arguments, dict) else {}
        call = GatedCall(*chat, tool=request.tool, arguments=arguments, approval=None)
        try:
            return await rule_of(terms, call)
        except Exception as error:
            logger.exception("who approves %s could not be determined", request.tool)
            raise Unavailable from error

    async def _run_or_wait(
        self,
        log: ChatLog,
        plan: ContinueExchange,
        location: ChatLocation,
        options: ContinueOptions,
    ) -> TurnReader:
        """Run on if no call is open any more, else say which are."""
        chat, client = log.chat, options.client
        waiting = still_open(plan)
        unreported = any(row.is_expiry_unreported for row in log.rows.values())
        if waiting or unreported:
            # An expired approval blocks nothing any more (A5).
            changed = await self.logs.ledger.expire(chat)
            if changed or unreported:
                log, plan = await self._reload(chat, plan, location)
                waiting = still_open(plan)
        if waiting:
            return not_yet(plan, [s.call.id for s in waiting], major=client.major)
        owner = self.turns.chat_owners.of(chat)
        if owner is None:
            reader = await self.run(log, plan, options.release, client)
        else:
            own = owner is options.origin
            reader = await owner.continue_exchange(log, plan, options.release, client, own=own)
        return repeated(as_repeats(plan), major=client.major) if reader is None else reader

    async def _wait_for_running(
        self, chat: ChatKey, plan: ContinueExchange, client: RequestingClient
    ) -> TurnReader | ChatLocation:
        """Wait for the turn that runs on the chat, or read it if it is the continuation."""
        running = self.turns.running(chat)
        if running is not None:
            if not plan.decisions and can_read(running, client.major):
                return await self.turns.reader(running, major=client.major)
            await running.done.wait()
        known = {turn.id for turn in plan.exchange.turns}
        message = plan.exchange.exchange.message_id
        pause = Backoff(self.builder.options.longest_turn)
        while (remote := (location := await self.replicas.locate(chat)).remote) is not None:
            if remote.description is not None and remote.description.message == message:
                is_later = remote.stream is not None and remote.stream.key.turn not in known
                if is_later or not plan.decisions:
                    reader = await self.replicas.turn_reader(remote, client.major)
                    if reader is not None:
                        return reader
            elif remote.is_live:
                reader = await self._read_remote_live(chat, plan, known, client)
                if reader is not None:
                    return reader
            if not await pause():
                raise HeldByAnotherOwner
        return location

    async def _read_remote_live(
        self,
        chat: ChatKey,
        plan: ContinueExchange,
        known: Collection[str],
        client: RequestingClient,
    ) -> TurnReader | None:
        """The stored answer of a live run of another process, once it has continued."""
        _, now = await self._reload(chat, plan, UNREAD)
        if was_continued(now, known):
            pause = Backoff(_LIVE_ANSWER_TIMEOUT)
            while not has_ended(now) and await pause():
                _, now = await self._reload(chat, plan, UNREAD)
            return repeated(as_repeats(now), major=client.major)
        if plan.outputs:
            # Only the owner of the chat can take outputs.
            raise HeldByAnotherOwner(OPEN_LIVE)
        return None

    async def _reload(
        self, chat: ChatKey, plan: ContinueExchange, location: ChatLocation
    ) -> tuple[ChatLog, ContinueExchange]:
        """The conversation as it is now, and the plan on it."""
        log = await self.logs.load(chat, location)
        return log, _on(log, plan)


def next_stamp(plan: ContinueExchange, turn: str, *, model: str) -> TurnStamp:
    """The stamp of the turn that continues the exchange; ``model`` where it names none."""
    stamp = stamp_of(plan.exchange.exchange, turn, model=model)
    return replace(stamp, outputs=_shapes(plan))


def stamp_of(exchange: Exchange, turn: str, *, model: str) -> TurnStamp:
    """The stamp of another turn of an exchange; ``model`` where it names none."""
    return TurnStamp(
        message=exchange.message_id,
        turn=turn,
        user_message=exchange.user_message_id,
        release=exchange.release,
        style=exchange.style,
        created_at=exchange.created_at,
        model=exchange.model or model,
        version=exchange.version,
        text_from_results=exchange.text_from_results,
    )


def continued_setup(
    log: ChatLog, plan: ContinueExchange, key: TurnKey, stamp: TurnStamp, release: ReleasePolicy
) -> TurnSetup:
    """The input of the turn that continues an exchange.

    The exchange's buffer is fed the outputs that the page shows already.
    """
    rebuilt = plan.exchange
    # The outputs are read first: what the buffer was fed has an outcome.
    outputs, shown = _gated_outputs(plan), _shown_outputs(plan)
    rebuilt.turns[-1].chunks.extend(
        rebuilt.buffer.feed_all([each for each in shown if each.outcome is not CONNECTED])
    )
    # The page keeps the provider's credential to itself: its part says only that there is one.
    connected = [each for each in shown if each.outcome is CONNECTED]
    opening = [*_late_cards(log, plan), *rebuilt.buffer.feed_all(connected)]
    return TurnSetup(key, stamp, release, rebuilt, client_outputs=outputs, opening=opening)


def output_replies(plan: ContinueExchange) -> list[Reply]:
    """The outputs of ungated client-side calls as function responses."""
    return [
        Reply(
            id=state.call.id_in_adk,
            name=state.call.name,
            response=_response(plan, state),
            branch=state.call.branch,
            invocation=plan.exchange.exchange.invocation,
        )
        for state in _with_outputs(plan)
        if state.request is None
    ]


def _gated_outputs(plan: ContinueExchange) -> dict[str, dict[str, Any]]:
    return {
        state.call.id_in_adk: _response(plan, state)
        for state in _with_outputs(plan)
        if state.request is not None
    }


def _response(plan: ContinueExchange, state: CallState) -> dict[str, Any]:
    return response_of(state, plan.outputs[state.call.id], plan.exchange.exchange.events)


def _shown_outputs(plan: ContinueExchange) -> list[Answered]:
    return [
        Answered(state.call.id, outcome=outcome_of(state, plan.outputs[state.call.id]))
        for state in _with_outputs(plan)
    ]


def _late_cards(log: ChatLog, plan: ContinueExchange) -> list[BaseChunk]:
    """Cards for the decisions of this request that came too late (A5)."""
    decided = [decision.request.approval_id for decision in plan.decisions]
    rows = [log.rows[approval_id] for approval_id in decided if approval_id in log.rows]
    return closed_cards(rows, plan.exchange.exchange.message_id)


def _with_outputs(plan: ContinueExchange) -> list[CallState]:
    calls = plan.exchange.buffer.calls.values()
    return [state for state in calls if state.call.id in plan.outputs and state.outcome is None]


def _shapes(plan: ContinueExchange) -> dict[str, str]:
    return {
        state.call.id: shape
        for state in _with_outputs(plan)
        if (shape := shape_of(state, plan.outputs[state.call.id])) is not None
    }


def _on(log: ChatLog, plan: ContinueExchange) -> ContinueExchange:
    """The plan on another state of the conversation."""
    message_id = plan.exchange.exchange.message_id
    exchange = next(e for e in log.exchanges if e.message_id == message_id)
    return replace(plan, exchange=log.rebuild(exchange))
