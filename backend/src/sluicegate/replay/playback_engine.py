"""Plays a recorded chat: compares requests with the recorded ones and sends their responses."""

from __future__ import annotations

import asyncio
import logging
import secrets
from typing import TYPE_CHECKING, Any, Final

from sluicegate.engine.entitled_user_events import EntitledEvents
from sluicegate.engine.respond_without_turn import refusal
from sluicegate.engine.turn.reader import TurnReader
from sluicegate.errors import RecordingError, Unknown, error_from_code
from sluicegate.live.outgoing_frame_queue import LiveFrameQueue
from sluicegate.replay.client_request_comparison import difference
from sluicegate.replay.playback_live_chat import PlaybackLiveChat, cues_of
from sluicegate.replay.playback_state import PlaybackState
from sluicegate.replay.recording import compact, load_recording
from sluicegate.stores.cookie_sessions import MemoryCookieSessions
from sluicegate.stores.streams.user_events import MemoryUserEvents
from sluicegate.wire.chunks import decode_chunk
from sluicegate.wire.encoding import encode_chunk

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence

    from pydantic import JsonValue

    from sluicegate.engine.client_request_options import RequestingClient
    from sluicegate.engine.entitlement import RolesOf
    from sluicegate.replay.recording import RecordedTurn, Recording
    from sluicegate.stores.approvals.audit_reading import AuditEntry, HistoryFilter
    from sluicegate.stores.streams.valkey_shared_rate_limits import SharedLimit
    from sluicegate.tools.worker_registry import WorkerRegistry
    from sluicegate.wire.chunks import Major
    from sluicegate.wire.requests import ChatRequest

logger = logging.getLogger("sluicegate")

_MAX_PAUSE: Final = 3.0
"""Upper bound of a pause in seconds: recorded pauses include the time for decisions."""

_NOT_RECORDED: Final = "A recording is played here; only what was recorded can be had."


class PlaybackEngine:
    """An `Engine` that plays one recorded chat in every new chat.

    Requests are answered in the recorded order. A request that differs from the recorded one gets
    an error chunk with the first difference, and may be corrected and sent again.
    """

    def __init__(
        self,
        recording: Recording,
        *,
        paced: bool = False,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """``paced`` keeps the pauses between chunks, up to 3 s each."""
        self._turns = recording.turns
        self._cues = cues_of(recording)
        self._created = recording.header.created
        self._title = next(iter(self.suggestions), "A recording")[:80]
        self._sleep = sleep if paced else None
        self._chats: dict[tuple[str, str], PlaybackState] = {}
        self.approvals = _NoApprovals()
        self.history = _NoHistory()
        self.cookie_sessions = MemoryCookieSessions()
        self._events = MemoryUserEvents()

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], *, paced: bool = False) -> PlaybackEngine:
        """Play a file.

        Raises:
            RecordingError: The file cannot be read, or contains no request.
        """
        recording = load_recording(path)
        if not (any(turn.kind == "send" for turn in recording.turns) or cues_of(recording)):
            raise RecordingError(f"The recording {path} holds no request that could be answered.")
        return cls(recording, paced=paced)

    @property
    def suggestions(self) -> list[str]:
        """First messages that a page may suggest: the recorded texts, in order."""
        texts = (user_text(turn) for turn in self._turns)
        return list(dict.fromkeys(text for text in texts if text))

    async def ready(self) -> list[str]:
        """A recording is always ready."""
        return []

    def share_rate(self, limit: SharedLimit) -> None:
        """No effect: a recording is played by one process."""

    async def finish_turns(self, *, within: float, hurried: asyncio.Event) -> bool:
        """Return True at once: no turn runs."""
        return True

    async def drain(self, *, within: float, hurried: asyncio.Event) -> None:
        """Return at once: no turn runs."""

    async def close(self) -> None:
        """No effect: no resource is open."""

    async def start(
        self, request: ChatRequest, *, user: str, client: RequestingClient
    ) -> TurnReader:
        """Answer the next request as recorded.

        Raises:
            RequestError: The recorded request was refused with this error.
        """
        chat = self._chats.setdefault((user, request.chat_id), PlaybackState())
        turn = self._next(chat, "send")
        mismatch = _end_of_recording(chat.played) if turn is None else _mismatch(turn, request)
        if turn is None or mismatch is not None:
            logger.warning("%s", mismatch)
            message_id = request.message_id or f"msg-{secrets.token_hex(12)}"
            return refusal(message_id, mismatch or "", major=client.major)
        chat.played = turn.number
        if turn.refusal is not None:
            raise error_from_code(str(turn.refusal.get("code")), str(turn.refusal.get("errorText")))
        texts = list(_texts(turn, client.major))
        chat.append_response(request.posted_body["message"], texts)
        return _PlayedReader(texts, turn.pauses, self._sleep)

    async def resume(
        self, chat_id: str, *, user: str, client: RequestingClient
    ) -> TurnReader | None:
        """Resume if a resumption was recorded next; None if not."""
        chat = self._chats.get((user, chat_id))
        turn = self._next(chat, "resume") if chat is not None else None
        if chat is None or turn is None:
            return None
        chat.played = turn.number
        texts = list(_texts(turn, client.major))
        chat.append_resumed(texts)
        return _PlayedReader(texts, turn.pauses, self._sleep)

    async def open_live(
        self,
        chat_id: str,
        *,
        user: str,
        client: RequestingClient,
        with_audio: bool,
        marked_by_client: bool,
    ) -> PlaybackLiveChat:
        """Open a live chat that sends the recorded frames and audio."""
        chat = self._chats.setdefault((user, chat_id), PlaybackState())
        return PlaybackLiveChat(self, chat, self._cues, LiveFrameQueue(with_audio=with_audio))

    async def stop(self, chat_id: str, *, user: str) -> None:
        """No effect: no turn runs; a recorded stop is skipped."""

    async def read_events(self, after: str | None, *, user: str) -> EntitledEvents:
        """Return the user events of a recording: it publishes none."""
        return await EntitledEvents.open(self._events, user, after)

    async def list_chats(
        self, *, user: str, limit: int, after: str | None, query: str | None
    ) -> dict[str, Any]:
        """Return the chats that were started, newest first."""
        chats = [
            {
                "id": chat_id,
                "title": self._title,
                "updatedAt": self._created,
                "pendingApprovals": chat.waiting,
                "status": "waiting" if chat.waiting else "ready",
            }
            for (owner, chat_id), chat in reversed(self._chats.items())
            if owner == user
        ]
        return {"chats": chats[:limit], "next": None}

    async def get_chat(self, chat_id: str, *, user: str) -> dict[str, Any]:
        """Return the chat as its client has it.

        Raises:
            Unknown: The chat was not started.
        """
        chat = self._chats.get((user, chat_id))
        if chat is None:
            raise Unknown("There is no such chat.")
        status = "waiting" if chat.waiting else "ready"
        return {
            "id": chat_id,
            "title": self._title,
            "messages": chat.messages,
            "status": status,
        }

    async def get_version(
        self, chat_id: str, message_id: str, version: int, *, user: str
    ) -> dict[str, Any]:
        """Not recorded; raises Unknown."""
        raise Unknown(_NOT_RECORDED)

    async def rename_chat(self, chat_id: str, title: str, *, user: str) -> None:
        """Not recorded; raises Unknown."""
        raise Unknown(_NOT_RECORDED)

    async def delete_chat(self, chat_id: str, *, user: str) -> None:
        """Not recorded; raises Unknown."""
        raise Unknown(_NOT_RECORDED)

    async def save_file(
        self, chat_id: str, data: bytes, media_type: str, *, title: str | None, user: str
    ) -> dict[str, Any]:
        """Not recorded; raises Unknown."""
        raise Unknown(_NOT_RECORDED)

    async def get_file(self, chat_id: str, name: str, *, user: str) -> tuple[bytes, str]:
        """Not recorded; raises Unknown."""
        raise Unknown(_NOT_RECORDED)

    def ask_roles(self, roles_of: RolesOf) -> None:
        """No effect: a recording checks no roles."""

    async def record_roles(self, user: str, roles: frozenset[str]) -> None:
        """No effect: a recording checks no roles."""

    async def worker_registry(self) -> WorkerRegistry:
        """Not recorded; raises Unknown."""
        raise Unknown(_NOT_RECORDED)

    def _next(self, chat: PlaybackState, kind: str) -> RecordedTurn | None:
        """Return the next turn of a kind; others are skipped up to the next send."""
        for turn in self._turns[chat.played :]:
            if turn.kind == kind:
                return turn
            if turn.kind == "send":
                return None
        return None


class _NoApprovals:
    """The approvals of a recording: none can be listed or decided outside the chat."""

    async def waiting(self, *, user: str, **selected: Any) -> dict[str, Any]:
        raise Unknown(_NOT_RECORDED)

    async def unknown_outcomes(self, *, user: str, **selected: Any) -> dict[str, Any]:
        raise Unknown(_NOT_RECORDED)

    async def get(self, approval_id: str, *, user: str) -> dict[str, Any]:
        raise Unknown(_NOT_RECORDED)

    async def preview_image(self, approval_id: str, *, user: str) -> tuple[bytes, str]:
        raise Unknown(_NOT_RECORDED)

    async def decide(
        self, approval_id: str, body: Mapping[str, JsonValue], *, user: str, via: str
    ) -> dict[str, Any]:
        raise Unknown(_NOT_RECORDED)

    async def resolve(
        self, approval_id: str, body: Mapping[str, JsonValue], *, user: str, via: str
    ) -> dict[str, Any]:
        raise Unknown(_NOT_RECORDED)

    async def grants(self, chat_id: str, *, user: str) -> dict[str, Any]:
        raise Unknown(_NOT_RECORDED)

    async def revoke(self, chat_id: str, tool: str, *, user: str, via: str) -> None:
        raise Unknown(_NOT_RECORDED)


class _NoHistory:
    """The audit trail of a recording: there is none."""

    async def page(self, *, user: str, **selected: Any) -> dict[str, Any]:
        raise Unknown(_NOT_RECORDED)

    def entries(self, *, user: str, selection: HistoryFilter) -> AsyncIterator[AuditEntry]:
        raise Unknown(_NOT_RECORDED)

    async def verify(self) -> dict[str, Any]:
        raise Unknown(_NOT_RECORDED)


class _PlayedReader(TurnReader):
    """Reads recorded chunks unchanged."""

    def __init__(
        self,
        texts: Sequence[str],
        pauses: Sequence[int],
        sleep: Callable[[float], Awaitable[object]] | None,
    ) -> None:
        self._texts = texts
        self._pauses = pauses
        self._sleep = sleep

    @property
    def backlog(self) -> int:
        return 0

    async def texts(self) -> AsyncIterator[Sequence[str]]:
        if self._sleep is None:
            yield self._texts
            return
        for text, pause in zip(self._texts, self._pauses, strict=False):
            await self._sleep(min(pause / 1000, _MAX_PAUSE))
            yield [text]

    async def aclose(self, *, aborted: bool = False) -> None:
        pass


def _texts(turn: RecordedTurn, major: Major) -> Iterator[str]:
    recorded = str(turn.request.get("headers", {}).get("x-ai-sdk"))
    for chunk in turn.chunks:
        text = compact(chunk)
        if recorded == "7" and major == 6:
            fit = encode_chunk(decode_chunk(text)).text_for(6)
            if fit is not None:
                yield fit
        else:
            yield text


def _mismatch(turn: RecordedTurn, request: ChatRequest) -> str | None:
    mismatch = difference(turn.request, request.posted_body)
    return (
        None if mismatch is None else f"Turn {turn.number} differs from the recording: {mismatch}."
    )


def _end_of_recording(played: int) -> str:
    return f"The recording ends after turn {played}; start a new chat to play it again."


def user_text(turn: RecordedTurn) -> str | None:
    """Return the first text of the user's message of a turn, None if it has none."""
    message = turn.request.get("message") or {}
    if message.get("role") != "user":
        return None
    texts = (part.get("text") for part in message.get("parts", ()))
    return next((str(text) for text in texts if text), None)
