"""A history as text alone: a live model refuses calls and results in its initial history."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from google.genai import types

from sluicegate.core.event_reading import CONFIRMATION, CREDENTIAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from google.adk.events.event import Event


def event_contents(events: Iterable[Event]) -> list[types.Content]:
    """Return what was said and done in events of a live run, as contents."""
    contents: list[types.Content] = []
    for event in events:
        if event.partial:
            continue
        speakers = (("user", event.input_transcription), ("model", event.output_transcription))
        for role, said in speakers:
            if said is not None and said.text and said.finished:
                contents.append(types.Content(role=role, parts=[types.Part(text=said.text)]))
        if event.content is not None and event.content.parts:
            role = "user" if event.author == "user" else event.content.role or "model"
            contents.append(types.Content(role=role, parts=event.content.parts))
    return contents


def as_text(contents: Sequence[types.Content]) -> list[types.Content]:
    """Return contents with calls and results in words; of several results of a call the last."""
    last: dict[str, types.FunctionResponse] = {}
    for content in contents:
        for part in content.parts or []:
            if part.function_response is not None:
                last[part.function_response.id or ""] = part.function_response
    texts: list[types.Content] = []
    for content in contents:
        parts: list[types.Part] = []
        for part in content.parts or []:
            call, result = part.function_call, part.function_response
            if call is not None and call.name not in (CONFIRMATION, CREDENTIAL):
                parts.append(types.Part(text=f"[I called {call_text(call)}.]"))
            elif result is not None and last[result.id or ""] is result:
                parts.append(types.Part(text=f"[{result_text(result, result.name or '')}]"))
            elif call is None and result is None and not part.thought:
                parts.append(part)
        if parts:
            texts.append(types.Content(role=content.role or "user", parts=parts))
    return texts


def call_text(call: types.FunctionCall) -> str:
    """Return a call in words."""
    return f"{call.name}({_json(call.args or {})})"


def result_text(result: types.FunctionResponse, call: str) -> str:
    """Return the result of a call, which is in words, in words."""
    return f"Result of {call}: {_json(result.response)}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
