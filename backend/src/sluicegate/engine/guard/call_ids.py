"""Ids of function calls: within a chat, no two calls have the same id.

ADK: it keeps the ids that a provider sends and finds calls by them, also when it matches approvals
and results. Some providers number the calls of each response anew, so the second ``call_0`` of an
exchange would be taken for the first; others use one id for two calls of a response.
"""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sluicegate.core.reserved_call_names import is_reserved_id

if TYPE_CHECKING:
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.models.llm_response import LlmResponse
    from google.genai import types

    Source = tuple[str, str | None]
    """An agent and its branch: it runs one model call at a time."""


@dataclass(slots=True)
class _StreamedCall:
    """A call whose fragments arrive: how many calls before it have its id, and its name."""

    occurrence: int
    name: str | None
    continues: bool = True


@dataclass(slots=True)
class _ModelCallIds:
    """The ids of one model call.

    ``assigned`` are the chat's ids by the provider's and its occurrence, ``new`` those among them
    that replace the provider's. ``streamed`` are the calls whose fragments arrive, by the
    provider's id; ``current`` is the one that a fragment without an id continues.
    """

    assigned: dict[tuple[str, int], str] = field(default_factory=dict)
    new: set[str] = field(default_factory=set)
    streamed: dict[str, _StreamedCall] = field(default_factory=dict)
    current: _StreamedCall | None = None


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
        self._end(_source(context))

    def assign(self, context: CallbackContext, response: LlmResponse) -> None:
        """Replace, in place, the ids in a response that belong to other calls of the chat."""
        parts = (response.content and response.content.parts) or ()
        calls = [part.function_call for part in parts if part.function_call is not None]
        if not calls:
            return
        source = _source(context)
        ids = self._running.setdefault(source, _ModelCallIds())
        seen: Counter[str] = Counter()
        for call in calls:
            occurrence = seen[call.id or ""]
            if response.partial:
                occurrence = _streamed_occurrence(ids, call)
            if call.id:
                seen[call.id] += 1
                call.id = self._unique(source, call.id, occurrence)
        if not response.partial:
            self._end(source)

    def _end(self, source: Source) -> None:
        ended = self._running.pop(source, None)
        if ended is not None and self._taken is not None:
            self._taken.update(ended.assigned.values())

    def _unique(self, source: Source, call_id: str, occurrence: int) -> str:
        ids = self._running[source]
        key = (call_id, occurrence)
        if key not in ids.assigned:
            if call_id in ids.new:
                # Models may yield one content again and again.
                return call_id
            is_taken = call_id in (self._taken or ()) or any(
                call_id in others.assigned.values() for others in self._running.values()
            )
            ids.assigned[key] = call_id
            if is_taken or is_reserved_id(call_id):
                ids.assigned[key] = f"adk-{uuid.uuid4()}"
                ids.new.add(ids.assigned[key])
        return ids.assigned[key]


def _streamed_occurrence(ids: _ModelCallIds, fragment: types.FunctionCall) -> int:
    """How many calls before that of a fragment have its id in this response.

    Fragments of two calls with one id and one name cannot be distinguished.
    """
    more = fragment.will_continue
    if fragment.id and (fragment.partial_args or more is not None):
        streamed = ids.streamed.get(fragment.id)
        is_renamed = streamed is not None and fragment.name not in (None, streamed.name)
        if streamed is None or is_renamed or not streamed.continues:
            before = -1 if streamed is None else streamed.occurrence
            streamed = _StreamedCall(before + 1, fragment.name)
            ids.streamed[fragment.id] = streamed
        ids.current = streamed
    if ids.current is not None and more is not None:
        ids.current.continues = more
    return 0 if ids.current is None else ids.current.occurrence


def _source(context: CallbackContext) -> Source:
    return context.agent_name, context.branch
