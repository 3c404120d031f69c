"""An engine that records the requests of its clients and the chunks that it sends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluicegate.engine.turn.reader import TurnReader
from sluicegate.errors import RequestError
from sluicegate.live.engine_with_live_chats import LiveEngine
from sluicegate.replay.file_recorder import FileRecorder

__all__ = ["FileRecorder", "RecordingEngine"]

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.engine.client_request_options import RequestingClient
    from sluicegate.engine.recorder import Recorder
    from sluicegate.engine.turn.live_chat_registry import ChatOwner
    from sluicegate.wire.requests import ChatRequest


class RecordingEngine(LiveEngine):
    """Records requests, refusals and sent chunks, in addition to what every engine records."""

    async def start(
        self,
        request: ChatRequest,
        *,
        user: str,
        client: RequestingClient,
        origin: ChatOwner | None = None,
    ) -> TurnReader:
        """Start or continue an exchange; a refusal is recorded too."""
        chat, recorder = self._key(user, request.chat_id), self._recorder
        turn = recorder.request(chat, {"type": "send", **_headers(client), **request.posted_body})
        try:
            reader = await super().start(request, user=user, client=client, origin=origin)
        except RequestError as error:
            refusal = {"type": "error", "errorText": error.message, "code": error.code}
            recorder.frame(chat, refusal, sender="server")
            recorder.flush(chat)
            raise
        return _RecordingReader(reader, recorder, chat, turn)

    async def resume(
        self, chat_id: str, *, user: str, client: RequestingClient
    ) -> TurnReader | None:
        """Resume the running turn; recorded only if there is one."""
        reader = await super().resume(chat_id, user=user, client=client)
        if reader is None:
            return None
        return self.resumed(reader, chat_id, user=user, client=client)

    def resumed(
        self, reader: TurnReader, chat_id: str, *, user: str, client: RequestingClient
    ) -> TurnReader:
        """Return a reader whose chunks are recorded."""
        chat, recorder = self._key(user, chat_id), self._recorder
        turn = recorder.request(chat, {"type": "resume", **_headers(client), "id": chat_id})
        return _RecordingReader(reader, recorder, chat, turn)

    async def stop(self, chat_id: str, *, user: str) -> None:
        """Stop the running turn; recorded if the chat has a recording."""
        chat = self._key(user, chat_id)
        self._recorder.request(chat, {"type": "stop", "id": chat_id})
        await super().stop(chat_id, user=user)
        self._recorder.flush(chat)

    @property
    def _recorder(self) -> Recorder:
        recorder = self.resources.recorder
        if recorder is None:
            raise RuntimeError("a RecordingEngine was opened without a recorder")
        return recorder


def _headers(client: RequestingClient) -> dict[str, Any]:
    headers = {"x-ai-sdk": str(client.major)}
    if client.release is not None:
        headers["x-release"] = client.release
    return {"headers": headers}


class _RecordingReader(TurnReader):
    """Records each text before it is sent; reads from another reader."""

    def __init__(self, reader: TurnReader, recorder: Recorder, chat: ChatKey, turn: int) -> None:
        self._reader = reader
        self._recorder = recorder
        self._chat = chat
        self._turn = turn

    @property
    def backlog(self) -> int:
        return self._reader.backlog

    async def texts(self) -> AsyncIterator[Sequence[str]]:
        async for batch in self._reader.texts():
            for text in batch:
                self._recorder.chunk(self._chat, self._turn, text)
            yield batch

    async def detach(self) -> None:
        await self._reader.detach()
        self._recorder.flush(self._chat)

    async def aclose(self, *, aborted: bool = False) -> None:
        await self._reader.aclose(aborted=aborted)
        self._recorder.flush(self._chat)
