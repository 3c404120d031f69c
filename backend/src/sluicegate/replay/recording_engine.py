"""An engine whose clients are recorded, whatever transport they use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluicegate.engine.turn.reader import TurnReader
from sluicegate.errors import RequestError
from sluicegate.live.engine import LiveEngine
from sluicegate.replay.recorder import FileRecorder

__all__ = ["FileRecorder", "RecordingEngine"]

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from sluicegate.core.keys import ChatKey
    from sluicegate.engine.recorder import Recorder
    from sluicegate.engine.turn.owner import ChatOwner
    from sluicegate.engine.turn.reader import Client
    from sluicegate.wire.requests import ChatRequest


class RecordingEngine(LiveEngine):
    """Tells its tape what clients ask and what they are sent, besides what every engine tells."""

    async def start(
        self, request: ChatRequest, *, user: str, client: Client, by: ChatOwner | None = None
    ) -> TurnReader:
        """Begin or continue an exchange; a refusal is recorded too."""
        chat = self._key(user, request.chat_id)
        tape = self._tape
        turn = tape.request(chat, {"type": "send", **_headers(client), **request.posted_body})
        try:
            reader = await super().start(request, user=user, client=client, by=by)
        except RequestError as error:
            refusal = {"type": "error", "errorText": error.message, "code": error.code}
            tape.frame(chat, refusal, sender="server")
            tape.rest(chat)
            raise
        return _recorded(reader, tape, chat, turn)

    async def resume(self, chat_id: str, *, user: str, client: Client) -> TurnReader | None:
        """Resume, which is recorded only where there is something to resume."""
        reader = await super().resume(chat_id, user=user, client=client)
        if reader is None:
            return None
        return self.resumed(reader, chat_id, user=user, client=client)

    def resumed(self, reader: TurnReader, chat_id: str, *, user: str, client: Client) -> TurnReader:
        """A reader that is recorded."""
        chat = self._key(user, chat_id)
        turn = self._tape.request(chat, {"type": "resume", **_headers(client), "id": chat_id})
        return _recorded(reader, self._tape, chat, turn)

    async def stop(self, chat_id: str, *, user: str) -> None:
        """Stop, which is recorded in chats that are recorded."""
        chat = self._key(user, chat_id)
        self._tape.request(chat, {"type": "stop", "id": chat_id})
        await super().stop(chat_id, user=user)
        self._tape.rest(chat)

    @property
    def _tape(self) -> Recorder:
        tape = self._parts.tape
        if tape is None:
            raise RuntimeError("an engine that records needs a tape")
        return tape


def _headers(client: Client) -> dict[str, Any]:
    said = {"x-ai-sdk": str(client.major)}
    if client.release is not None:
        said["x-release"] = client.release
    return {"headers": said}


def _recorded(reader: TurnReader, tape: Recorder, chat: ChatKey, turn: int) -> TurnReader:
    return _RecordedReader(
        reader, lambda text: tape.chunk(chat, turn, text), lambda: tape.rest(chat)
    )


class _RecordedReader(TurnReader):
    """Reads for another, and tells each text before it is sent."""

    def __init__(
        self, reader: TurnReader, note: Callable[[str], None], rest: Callable[[], None]
    ) -> None:
        self._reader = reader
        self._note = note
        self._rest = rest

    @property
    def behind(self) -> int:
        return self._reader.behind

    async def texts(self) -> AsyncIterator[Sequence[str]]:
        async for batch in self._reader.texts():
            for text in batch:
                self._note(text)
            yield batch

    async def detach(self) -> None:
        await self._reader.detach()
        self._rest()

    async def aclose(self, *, aborted: bool = False) -> None:
        await self._reader.aclose(aborted=aborted)
        self._rest()
