"""A scripted live model that records the input which reaches it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from google.genai import types
from pydantic import Field

from sluicegate.adk_private import PartialContentConnection, send_content
from sluicegate.replay import ScriptedModel
from tests.live.caller import LIMIT

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from google.adk.agents.llm_agent import LlmAgent
    from google.adk.models.base_llm_connection import BaseLlmConnection, RealtimeInput
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse


@dataclass
class ModelContentSender:
    """The contents and the count of audio messages that a model has processed."""

    contents: list[types.Content] = field(default_factory=list)
    audio_messages: int = 0
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def audio(self, count: int) -> None:
        """Wait until so many audio messages are processed; `Caller.speak` sends two."""
        async with asyncio.timeout(LIMIT):
            while self.audio_messages < count:
                self._changed.clear()
                await self._changed.wait()

    def received(self, blob: RealtimeInput) -> None:
        """Count an audio message."""
        if isinstance(blob, types.Blob) and (blob.mime_type or "").startswith("audio/"):
            self.audio_messages += 1
            self._changed.set()


class _RecordedConnection(PartialContentConnection):
    def __init__(self, inner: BaseLlmConnection, received: ModelContentSender) -> None:
        self._inner = inner
        self._received = received

    async def send_history(self, history: list[types.Content]) -> None:
        await self._inner.send_history(history)

    async def send_partial(self, content: types.Content, *, partial: bool) -> None:
        self._received.contents.append(content)
        await send_content(self._inner, content, partial=partial)

    async def send_realtime(self, blob: RealtimeInput) -> None:
        await self._inner.send_realtime(blob)  # type: ignore[arg-type]  # as in ADK's flow
        self._received.received(blob)

    async def receive(self) -> AsyncGenerator[LlmResponse, None]:
        async for response in self._inner.receive():
            yield response

    async def close(self) -> None:
        await self._inner.close()


class _RecordingModel(ScriptedModel):
    received: ModelContentSender = Field(default_factory=ModelContentSender, exclude=True)

    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncIterator[BaseLlmConnection]:
        async with super().connect(llm_request) as connection:
            yield _RecordedConnection(connection, self.received)


def record_input(agent: LlmAgent) -> ModelContentSender:
    """Record the input of an agent's scripted model from now on."""
    model = agent.model
    assert isinstance(model, ScriptedModel)
    recording = _RecordingModel(
        scenarios=model.scenarios, root=model.root, sleep=model.sleep, model=model.model
    )
    agent.model = recording
    return recording.received
