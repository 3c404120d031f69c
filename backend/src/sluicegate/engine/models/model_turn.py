"""What stands around a model knows of the turn that calls it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from google.adk.models.base_llm_connection import BaseLlmConnection
    from google.adk.models.llm_request import LlmRequest

    from sluicegate.core.keys import ChatKey
    from sluicegate.engine.files.notices import Notices
    from sluicegate.engine.models.fast_lane import FastLanes


class ModelTurn(Protocol):
    """A turn as its models see it."""

    chat: ChatKey
    lanes: FastLanes
    model_error: Exception | None
    """What a model raised; only its type and place are told, and only to the log."""

    @property
    def notices(self) -> Notices:
        """What the user is told that belongs to no call."""
        ...

    def connect(
        self,
        connected: Callable[[LlmRequest], AbstractAsyncContextManager[BaseLlmConnection]],
        request: LlmRequest,
    ) -> AbstractAsyncContextManager[BaseLlmConnection]:
        """Open a live connection for this turn."""
        ...


MODEL_TURN: ContextVar[ModelTurn | None] = ContextVar("sluicegate_model_turn", default=None)
"""The turn that runs in this context, None outside turns; ADK's tasks inherit it."""
