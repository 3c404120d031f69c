"""What the engine itself appends to a session, only while no Runner runs on it (A3, A5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from google.adk.events.event import Event
from google.genai import types

from sluicegate.core.exchanges import METADATA_KEY, TurnStamp
from sluicegate.core.turn_plan import Reply

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.sessions.base_session_service import BaseSessionService
    from google.adk.sessions.session import Session

    from sluicegate.core.gate import CallState
    from sluicegate.core.keys import ChatKey
    from sluicegate.core.translator import Unfinished
    from sluicegate.wire.requests import UserMessage


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

    async def ensure(self, chat: ChatKey) -> None:
        """Create the session unless it is there."""
        if await self.load(chat) is None:
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
        """One user event per branch, with that branch and invocation (A3)."""
        events = [
            Event(
                invocation_id=group[0].invocation,
                author="user",
                branch=group[0].branch,
                content=replies_content(group),
                custom_metadata=stamp.as_metadata(),
            )
            for group in groups
        ]
        await self._append(chat, events)

    async def append_closings(
        self, chat: ChatKey, closings: Sequence[Closed], invocation: str, stamp: TurnStamp
    ) -> None:
        """Close calls that will not run: the user's no, then the agent's result (A5).

        ADK: both events carry the invocation id and branch of the request, or later answers
        would still run the call.
        """
        events: list[Event] = []
        for closed in closings:
            ask = closed.state.ask
            if ask is not None and closed.was_unanswered:
                refusal = Reply(
                    ask.confirmation_id,
                    ask.answer_name,
                    {"confirmed": False},
                    ask.branch,
                    invocation,
                )
                events.append(
                    Event(
                        invocation_id=invocation,
                        author="user",
                        branch=ask.branch,
                        content=replies_content([refusal]),
                        custom_metadata=stamp.as_metadata(),
                    )
                )
            events.append(_result(closed, invocation, stamp))
        await self._append(chat, events)

    async def append_unfinished(
        self, chat: ChatKey, pieces: Sequence[Unfinished], invocation: str, stamp: TurnStamp
    ) -> None:
        """Keep the text that was shown of a model call that never ended (section 7)."""
        events = [_fragment(piece, invocation, stamp) for piece in pieces]
        await self._append(chat, events)

    async def _append(self, chat: ChatKey, events: Sequence[Event]) -> None:
        session = await self.load(chat) if events else None
        if session is None:
            return
        for event in events:
            await self._service.append_event(session=session, event=event)


def _fragment(piece: Unfinished, invocation: str, stamp: TurnStamp) -> Event:
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
    return Event(
        invocation_id=invocation,
        author=piece.author,
        branch=piece.branch,
        content=types.Content(role="model", parts=parts),
        interrupted=True,
        custom_metadata={METADATA_KEY: noted},
    )


def _result(closed: Closed, invocation: str, stamp: TurnStamp) -> Event:
    call = closed.state.call
    noted = dict(stamp.as_metadata()[METADATA_KEY])
    if closed.note is not None:
        noted["outcomes"] = {call.id: closed.note}
    response = Reply(call.id, call.name, closed.response, call.branch, invocation)
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


def question_content(message: UserMessage) -> types.Content:
    """A user's message: files first, then its text."""
    parts = [
        types.Part(inline_data=types.Blob(data=file.data, mime_type=file.media_type))
        for file in message.files
        if file.data is not None
    ]
    parts.extend(types.Part(text=text) for text in message.texts)
    return types.Content(role="user", parts=parts)
