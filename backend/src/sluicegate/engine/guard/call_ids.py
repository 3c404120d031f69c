"""Ids of function calls: within a chat, no two calls have the same id.

ADK: it keeps the ids that a provider sends and finds calls by them, also when it matches approvals
and results. Some providers number the calls of each response anew, so the second ``call_0`` of an
exchange would be taken for the first.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.models.llm_response import LlmResponse

    Source = tuple[str, str | None]
    """An agent and its branch: it runs one model call at a time."""


@dataclass(slots=True)
class _ModelCallIds:
    """The ids of one model call: those that were kept, and new ones by the provider's."""

    kept: set[str] = field(default_factory=set)
    renamed: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class CallIds:
    """The ids of a turn's calls; fragments of a response and their aggregate get the same ids."""

    _taken: set[str] | None = None
    _running: dict[Source, _ModelCallIds] = field(default_factory=dict)

    def start_model_call(self, context: CallbackContext) -> None:
        """Start a model call: the ids of the agent's previous one are taken from now on."""
        if self._taken is None:
            self._taken = {
                call.id or ""
                for event in context.session.events
                for call in event.get_function_calls()
            }
        previous = self._running.pop(_source(context), None)
        if previous is not None:
            self._taken |= previous.kept
            self._taken.update(previous.renamed.values())

    def assign(self, context: CallbackContext, response: LlmResponse) -> None:
        """Replace, in place, the ids in a response that belong to other calls of the chat."""
        for part in (response.content and response.content.parts) or ():
            if part.function_call is not None and part.function_call.id:
                source = _source(context)
                part.function_call.id = self._unique(source, part.function_call.id)

    def _unique(self, source: Source, call_id: str) -> str:
        ids = self._running.setdefault(source, _ModelCallIds())
        if call_id in ids.kept or call_id in ids.renamed.values():
            return call_id
        if call_id in ids.renamed:
            return ids.renamed[call_id]
        others = (ids.kept for other, ids in self._running.items() if other != source)
        if call_id in (self._taken or ()) or any(call_id in kept for kept in others):
            ids.renamed[call_id] = f"adk-{uuid.uuid4()}"
            return ids.renamed[call_id]
        ids.kept.add(call_id)
        return call_id


def _source(context: CallbackContext) -> Source:
    return context.agent_name, context.branch
