"""What the engine itself appends to a session, only while no Runner runs on it (A3, A5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from google.adk.events.event import Event
from google.genai import types

from sluicegate.core.events import METADATA_KEY
from sluicegate.core.function_responses import Reply
from sluicegate.core.signals import NOT_FINISHED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.sessions.base_session_service import BaseSessionService
    from google.adk.sessions.session import Session

    from sluicegate.core.calls import CallState
    from sluicegate.core.exchanges import TurnStamp
    from sluicegate.core.keys import ChatKey
    from sluicegate.core.translator import UnfinishedModelCall


@dataclass(frozen=True, slots=True)
class Closed:
    """A call that is closed: what the model is told, and the note of how it ended (T8)."""

    state: CallState
    response: dict[str, object]
    note: dict[str, str] | None
    was_unanswered: bool


class SessionLog:
    """The session of a chat, loaded afresh for each use."""

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
        """One user event per branch, where its requests stand (A3)."""
        session = await self.load(chat) if groups else None
        if session is None:
            return
        metadata = stamp.as_metadata()
        for group in groups:
            await self._append(session, _answer_event(session, group, metadata))

    async def append_closings(
        self, chat: ChatKey, closings: Sequence[Closed], invocation: str, stamp: TurnStamp
    ) -> None:
        """Close calls that will not run: the user's no, then the agent's result (A5)."""
        session = await self.load(chat) if closings else None
        if session is None:
            return
        for closed in closings:
            ask = closed.state.request
            if ask is not None and closed.was_unanswered:
                no: dict[str, object] = {"confirmed": False}
                reply = Reply(ask.confirmation_id, ask.answer_name, no, ask.branch, invocation)
                event = _answer_event(session, [reply], stamp.as_metadata())
                await self._append(session, event)
            await self._append(session, _result(closed, invocation, stamp))

    async def append_unfinished(
        self,
        chat: ChatKey,
        pieces: Sequence[UnfinishedModelCall],
        invocation: str,
        stamp: TurnStamp,
    ) -> None:
        """Keep what was shown of a model call that never ended (section 7).

        Its calls are answered at once: nobody waits for one whose arguments were never complete.
        """
        session = await self.load(chat) if pieces else None
        if session is None:
            return
        for piece in pieces:
            fragment = _fragment(piece, invocation, stamp)
            await self._append(session, fragment)
            if piece.calls:
                await self._append(session, _cut(piece, fragment))

    async def _append(self, session: Session, event: Event) -> None:
        await self._service.append_event(session=session, event=event)


def _answer_event(session: Session, group: Sequence[Reply], metadata: dict[str, Any]) -> Event:
    """A user event with answers of one branch.

    ADK: an answer is only seen in the branch and isolation scope of its request.
    """
    first = group[0]
    asking = next(
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
        branch=asking.branch if asking is not None else first.branch,
        isolation_scope=asking.isolation_scope if asking is not None else None,
        content=replies_content(group),
        custom_metadata=metadata,
    )


def _fragment(piece: UnfinishedModelCall, invocation: str, stamp: TurnStamp) -> Event:
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
    noted = dict(stamp.as_metadata()[METADATA_KEY])
    if piece.ahead_of is not None:
        noted["aheadOf"] = piece.ahead_of
    if piece.calls:
        cut = {"kind": "error", "text": NOT_FINISHED.text}
        noted["outcomes"] = {call.id: cut for call in piece.calls}
    return Event(
        invocation_id=invocation,
        author=piece.author,
        branch=piece.branch,
        content=types.Content(role="model", parts=parts),
        interrupted=True,
        custom_metadata={METADATA_KEY: noted},
    )


def _cut(piece: UnfinishedModelCall, fragment: Event) -> Event:
    """The answers to the calls of a fragment."""
    error: dict[str, Any] = {"error": NOT_FINISHED.text}
    responses = [
        types.FunctionResponse(id=call.id, name=call.name, response=error) for call in piece.calls
    ]
    return Event(
        invocation_id=fragment.invocation_id,
        author=piece.author,
        branch=piece.branch,
        content=types.Content(
            role="user", parts=[types.Part(function_response=each) for each in responses]
        ),
        interrupted=True,
        custom_metadata=fragment.custom_metadata,
    )


def _result(closed: Closed, invocation: str, stamp: TurnStamp) -> Event:
    call = closed.state.call
    noted = dict(stamp.as_metadata()[METADATA_KEY])
    if closed.note is not None:
        noted["outcomes"] = {call.id_in_adk: closed.note}
    response = Reply(call.id_in_adk, call.name, closed.response, call.branch, invocation)
    return Event(
        invocation_id=invocation,
        author=call.author,
        branch=call.branch,
        content=replies_content([response]),
        custom_metadata={METADATA_KEY: noted},
    )


def replies_content(replies: Sequence[Reply]) -> types.Content:
    """Function responses as one message."""
    parts = [
        types.Part(
            function_response=types.FunctionResponse(
                id=reply.id, name=reply.name, response=dict(reply.response)
            )
        )
        for reply in replies
    ]
    return types.Content(role="user", parts=parts)
