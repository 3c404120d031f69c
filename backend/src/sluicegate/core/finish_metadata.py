"""What ``finish`` reports (T3), read from the events as they pass."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from sluicegate.core.events import attribute, code_of, parts_of, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import JsonValue

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.core.release.base import ReleaseBuffer
    from sluicegate.core.signals import TurnFacts, Usage

FinishReason = Literal["stop", "length", "content-filter", "other"]

_LENGTH: Final = frozenset({"MAX_TOKENS"})
_FILTERED: Final = frozenset(
    {
        "SAFETY",
        "RECITATION",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
        "MODEL_ARMOR",
        "JAILBREAK",
    }
)


def is_failure(code: str) -> bool:
    """Whether an error code is more than the reason why a model stopped (T10)."""
    return bool(code) and code not in _LENGTH and code not in _FILTERED


def note_facts(facts: TurnFacts, event: object) -> None:
    """Add a whole event: usage is a sum over model calls, the rest is of the last one."""
    _add_usage(facts.usage, attribute(event, "usage_metadata"))
    facts.model = text(event, "model_version") or facts.model
    reason = code_of(event)
    stopped = attribute(event, "finish_reason")
    word = getattr(stopped, "value", stopped) or reason
    if isinstance(word, str) and word:
        facts.finish_reason = _reason(word)
    elif attribute(event, "content", "role") == "model" and parts_of(event):
        facts.finish_reason = "stop"


def _reason(word: str) -> FinishReason:
    if word in _LENGTH:
        return "length"
    if word in _FILTERED:
        return "content-filter"
    return "stop" if word == "STOP" else "other"


def _add_usage(total: Usage, found: object) -> None:
    if found is None:
        return
    prompt = _count(found, "prompt_token_count") + _count(found, "tool_use_prompt_token_count")
    candidates = _count(found, "candidates_token_count")
    thoughts = _count(found, "thoughts_token_count")
    whole = _count(found, "total_token_count")
    # ADK: Gemini counts thoughts beside the answer, LiteLLM counts them in it.
    beside = not whole or prompt + candidates + thoughts <= whole
    output = candidates + thoughts if beside else candidates
    total.input_tokens += prompt
    total.output_tokens += output
    total.total_tokens += whole or prompt + output
    total.reasoning_tokens += thoughts
    total.cached_input_tokens += _count(found, "cached_content_token_count")


def _count(found: object, name: str) -> int:
    value = attribute(found, name)
    return value if type(value) is int and value > 0 else 0


def metadata(
    facts: TurnFacts, *, created_at: float, edits: Mapping[str, JsonValue]
) -> dict[str, Any]:
    """``messageMetadata`` of ``finish``: the exchange's total so far (T3).

    ``edits`` are the arguments that were approved in place of others, by approval id (A7).
    """
    usage = facts.usage
    found: dict[str, Any] = {
        "usage": {
            "inputTokens": usage.input_tokens,
            "outputTokens": usage.output_tokens,
            "totalTokens": usage.total_tokens,
            "reasoningTokens": usage.reasoning_tokens,
            "cachedInputTokens": usage.cached_input_tokens,
        },
        "createdAt": datetime.fromtimestamp(created_at, UTC).isoformat(timespec="milliseconds"),
    }
    if facts.model is not None:
        found["model"] = facts.model
    if edits:
        found["approvals"] = {name: {"edits": arguments} for name, arguments in edits.items()}
    return found


def edits_in(gate: ReleaseBuffer, rows: Iterable[ApprovalRow]) -> dict[str, JsonValue]:
    """What people changed in the calls of this exchange before they approved them (A7)."""
    asked = {state.ask.approval_id for state in gate.calls.values() if state.ask is not None}
    return {
        row.approval_id: row.edits
        for row in rows
        if row.edits is not None and row.approval_id in asked
    }
