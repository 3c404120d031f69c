"""Ids of function calls: one call of a chat, one id.

ADK: it takes a provider's ids as they are and finds calls by them, also when it matches approvals
and results. Some providers number the calls of each answer anew, so the second ``call_0`` of an
exchange would be taken for the first.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.models.llm_response import LlmResponse

    Speaker = tuple[str, str | None]


@dataclass(slots=True)
class ModelIds:
    """The ids of one model call: those it keeps, and the new ones by what the provider said."""

    kept: set[str] = field(default_factory=set)
    renamed: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class CallIds:
    """Follows the model calls of a turn; fragments and their aggregate get the same ids."""

    _taken: set[str] | None = None
    _speaking: dict[Speaker, ModelIds] = field(default_factory=dict)

    def begin(self, context: CallbackContext) -> None:
        """A model is about to be called."""
        if self._taken is None:
            self._taken = {
                call.id or ""
                for event in context.session.events
                for call in event.get_function_calls()
            }
        over = self._speaking.pop(_speaker(context), None)
        if over is not None:
            self._taken |= over.kept
            self._taken.update(over.renamed.values())

    def rename(self, context: CallbackContext, response: LlmResponse) -> None:
        """Give the calls of a response ids of their own, in place."""
        for part in (response.content and response.content.parts) or ():
            if part.function_call is not None and part.function_call.id:
                speaker = _speaker(context)
                part.function_call.id = self._own(speaker, part.function_call.id)

    def _own(self, speaker: Speaker, call_id: str) -> str:
        mine = self._speaking.setdefault(speaker, ModelIds())
        if call_id in mine.kept or call_id in mine.renamed.values():
            return call_id
        if call_id in mine.renamed:
            return mine.renamed[call_id]
        others = (ids.kept for other, ids in self._speaking.items() if other != speaker)
        if call_id in (self._taken or ()) or any(call_id in kept for kept in others):
            mine.renamed[call_id] = f"adk-{uuid.uuid4()}"
            return mine.renamed[call_id]
        mine.kept.add(call_id)
        return call_id


def _speaker(context: CallbackContext) -> Speaker:
    return context.agent_name, context.branch
