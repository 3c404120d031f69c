"""Who is told how the connection to a live model fares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.models.base_llm import BaseLlm
    from google.genai import types

    from sluicegate.live.connection import LiveConnection
    from sluicegate.live.run import LiveRun


@dataclass(frozen=True, slots=True)
class Listening:
    """What is called when the model listens, and when it will go away."""

    ready: Callable[[LiveConnection, LiveConnection | None], None]
    """Takes the connection, and the one before it."""
    going_away: Callable[[], None]


class Ears:
    """The listener of one connection (`connection.Listener`)."""

    def __init__(
        self, run: LiveRun, listening: Listening, model: BaseLlm | None, name: str | None
    ) -> None:
        """Take the run that connects, and the model; ``name`` is what the request calls it."""
        self._run = run
        self._listening = listening
        self._model = model
        self._name = name

    @property
    def is_first(self) -> bool:
        """Whether the run has not been connected before."""
        return self._run.connection is None

    def opened(self, connection: LiveConnection) -> None:
        """The model listens."""
        before = self._run.connection
        self._run.opened(connection)
        self._listening.ready(connection, before)

    def going_away(self) -> None:
        """The model will end the connection."""
        self._listening.going_away()

    def failed(self, error: Exception) -> None:
        """The model has failed; the log is told what with."""
        self._run.gate.model_error = error

    async def ending(self, *, connects_again: bool) -> None:
        """Let claimed calls come to their end: with the run, ADK would cancel them (A1)."""
        if not (connects_again and self._run.is_resumable):
            await self._run.await_claimed()

    async def shaped(self, contents: list[types.Content]) -> list[types.Content]:
        """The contents with the files they refer to."""
        models = self._run.gate.models
        if self._model is None:
            return contents
        return list((await models.shape(contents, self._model, self._name)).contents)

    def is_whole(self, content: types.Content) -> bool:
        """Whether a content is a whole message."""
        return self._run.is_whole(content)

    def own_id(self, call_id: str) -> str:
        """The id of a call in this chat."""
        return self._run.own_id(call_id)

    def models_id(self, call_id: str) -> str:
        """The model's own id of a call."""
        return self._run.models_id(call_id)
