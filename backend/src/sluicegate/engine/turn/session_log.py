"""Events that the engine itself appends to sessions, while no Runner runs on them (A3, A5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from google.adk.events.event import Event
from google.genai import types

from sluicegate.core.event_reading import METADATA_KEY, notes_of
from sluicegate.core.function_responses_for_adk import Reply
from sluicegate.core.signals import NOT_FINISHED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.sessions.base_session_service import BaseSessionService
    from google.adk.sessions.session import Session

    from sluicegate.core.call_state import CallState
    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.core.translator import UnfinishedModelCall
    from sluicegate.core.turn_stamp import TurnStamp


@dataclass(frozen=True, slots=True)
class Closed:
    """A call that is closed: the response for the model, and the note of its outcome (T8)."""

    state: CallState
    response: dict[str, object]
    note: dict[str, str] | None
    was_unanswered: bool


class SessionLog:
    """Loads and appends to the sessions of chats; loaded events are shared and never changed."""

    def __init__(self, service: BaseSessionService) -> None:
        self._service = service

    async def load(self, chat: ChatKey) -> Session | None:
        """The whole session, or None."""
        return await self._service.get_session(
            app_name=chat.app, user_id=chat.user, session_id=chat.chat
        )

    async def create(self, chat: ChatKey) -> None:
        """Create the session of a new chat."""
        await self._service.create_session(
            app_name=chat.app, user_id=chat.user, session_id=chat.chat
        )

    async def delete(self, chat: ChatKey) -> None:
        """Delete the session."""
        await self._service.delete_session(
            app_name=chat.app, user_id=chat.user, session_id=chat.chat
        )

    async def append_replies(
        self, chat: ChatKey, groups: Sequence[Sequence[Reply]], stamp: TurnStamp
    ) -> None:
        """Append one user event per branch, in the branch of its requests (A3)."""
        session = await self.load(chat) if groups else None
        if session is None:
            return
        for group in groups:
            await self._append(session, _reply_event(session, group, stamp))

    async def append_closings(
        self, chat: ChatKey, closings: Sequence[Closed], invocation: str, stamp: TurnStamp
    ) -> None:
        """Append the end of calls that will not run: a denial, then the result (A5)."""
        session = await self.load(chat) if closings else None
        if session is None:
            return
        for closed in closings:
            request = closed.state.request
            if request is not None and closed.was_unanswered:
                denial: dict[str, object] = {"confirmed": False}
                reply = Reply(
                    request.confirmation_id, request.answer_name, denial, request.branch, invocation
                )
                await self._append(session, _reply_event(session, [reply], stamp))
            await self._append(session, _result_event(closed, invocation, stamp))

    async def append_unfinished(
        self,
        chat: ChatKey,
        pieces: Sequence[UnfinishedModelCall],
        invocation: str,
        stamp: TurnStamp,
    ) -> None:
        """Append the shown output of a model call that never ended (section 7).

        Its function calls get a response at once: their arguments were never complete.
        """
        session = await self.load(chat) if pieces else None
        if session is None:
            return
        for piece in pieces:
            await self._append(session, _partial_event(piece, invocation, stamp))
            if piece.calls:
                await self._append(session, _unfinished_event(piece, invocation, stamp))

    async def append_end(self, chat: ChatKey, stamp: TurnStamp, note: str) -> None:
        """Append a note of how a turn of the exchange has ended; ADK ignores such an event."""
        session = await self.load(chat)
        events = session.events if session is not None else ()
        stored = (e for e in reversed(events) if notes_of(e).get("message") == stamp.message)
        last = next(stored, None)
        if session is None or last is None:
            return
        await self._append(
            session,
            Event(
                invocation_id=last.invocation_id,
                author="user",
                custom_metadata={METADATA_KEY: {**stamp.as_metadata()[METADATA_KEY], note: True}},
            ),
        )

    async def _append(self, session: Session, event: Event) -> None:
        await self._service.append_event(session=session, event=event)


def _reply_event(session: Session, group: Sequence[Reply], stamp: TurnStamp) -> Event:
    """A user event with the replies of one branch.

    ADK: a reply is only seen in the branch and isolation scope of its request.
    """
    first = group[0]
    request = next(
        (
            event
            for event in reversed(session.events)
            if any(call.id == first.id for call in event.get_function_calls())
        ),
        None,
    )
    return Event(
        invocation_id=first.invocation,
        author="user",
        branch=request.branch if request is not None else first.branch,
        isolation_scope=request.isolation_scope if request is not None else None,
        content=replies_content(group),
        custom_metadata=stamp.as_metadata(),
    )


def _partial_event(piece: UnfinishedModelCall, invocation: str, stamp: TurnStamp) -> Event:
    """The text, thoughts and function calls of a model call that never ended."""
    parts = [
        types.Part(text=text, thought=True if kind == "thought" else None)
        for kind, text in piece.parts
    ]
    parts.extend(
        types.Part(
            function_call=types.FunctionCall(
                id=call.id,
                name=call.name,
                args=call.args if isinstance(call.args, dict) else {},
            )
        )
        for call in piece.calls
    )
    return Event(
        invocation_id=invocation,
        author=piece.author,
        branch=piece.branch,
        content=types.Content(role="model", parts=parts),
        interrupted=True,
        custom_metadata=_unfinished_metadata(piece, stamp),
    )


def _unfinished_event(piece: UnfinishedModelCall, invocation: str, stamp: TurnStamp) -> Event:
    """The responses to the function calls of a model call that never ended."""
    error: dict[str, Any] = {"error": NOT_FINISHED.text}
    responses = [
        types.FunctionResponse(id=call.id, name=call.name, response=error) for call in piece.calls
    ]
    return Event(
        invocation_id=invocation,
        author=piece.author,
        branch=piece.branch,
        content=types.Content(
            role="user", parts=[types.Part(function_response=each) for each in responses]
        ),
        interrupted=True,
        custom_metadata=_unfinished_metadata(piece, stamp),
    )


def _unfinished_metadata(piece: UnfinishedModelCall, stamp: TurnStamp) -> dict[str, Any]:
    note = stamp.as_metadata()[METADATA_KEY]
    if piece.ahead_of is not None:
        note["aheadOf"] = piece.ahead_of
    if piece.calls:
        outcome = {"kind": "error", "text": NOT_FINISHED.text}
        note["outcomes"] = {call.id: outcome for call in piece.calls}
    return {METADATA_KEY: note}


def _result_event(closed: Closed, invocation: str, stamp: TurnStamp) -> Event:
    """The function response of a call that is closed."""
    call = closed.state.call
    note = stamp.as_metadata()[METADATA_KEY]
    if closed.note is not None:
        note["outcomes"] = {call.id_in_adk: closed.note}
    response = Reply(call.id_in_adk, call.name, closed.response, call.branch, invocation)
    return Event(
        invocation_id=invocation,
        author=call.author,
        branch=call.branch,
        content=replies_content([response]),
        custom_metadata={METADATA_KEY: note},
    )


def replies_content(replies: Sequence[Reply]) -> types.Content:
    """Replies as the function responses of one message."""
    parts = [
        types.Part(
            function_response=types.FunctionResponse(
                id=reply.id, name=reply.name, response=dict(reply.response)
            )
        )
        for reply in replies
    ]
    return types.Content(role="user", parts=parts)
