"""Events as ADK makes them, made by hand."""

from __future__ import annotations

from typing import Any

from google.adk.events.event import Event
from google.genai import types

from sluicegate.core.tool_facts import ToolFacts
from tests.core.adk_conversations import function_call
from tests.core.signal_words import Tools

KINDS = Tools({"where": ToolFacts(kind="client"), "guard": ToolFacts(kind="gated-client")})


def model(*parts: types.Part, **more: Any) -> Event:
    content = types.Content(role="model", parts=list(parts))
    return Event(**{"author": "a", "invocation_id": "i", "content": content, **more})


def response_event(
    response: dict[str, Any],
    notes: dict[str, Any] | None = None,
    *,
    call_id: str = "1",
    name: str = "pay",
    **more: Any,
) -> Event:
    given = types.FunctionResponse(id=call_id, name=name, response=response)
    return model(types.Part(function_response=given), custom_metadata=notes, **more)


def outcome_note(kind: str, words: str) -> dict[str, Any]:
    return {"sluicegate": {"outcomes": {"1": {"kind": kind, "text": words}}}}


def confirmation_requests(*ids: str) -> Event:
    parts = [
        function_call(
            "adk_request_confirmation",
            id=f"q{call_id}",
            args={
                "originalFunctionCall": {"id": call_id, "name": "pay", "args": {"n": 1}},
                "toolConfirmation": {"hint": "Sure?", "payload": {"limit": 5}},
            },
        )
        for call_id in ids
    ]
    return model(*parts, long_running_tool_ids={f"q{call_id}" for call_id in ids})


ABORTED = "INVOCATION_ABORTED"
PAY = model(function_call("pay", id="1", args={}))
