"""The metadata of ``finish`` (T3), read from the events of the exchange."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from sluicegate.core.event_reading import attribute, code_of, parts_of, text
from sluicegate.wire.iso_times import iso_time

if TYPE_CHECKING:
    from collections.abc import Mapping

FinishReason = Literal["stop", "length", "content-filter", "other"]


@dataclass(slots=True)
class Usage:
    """Token counts of the exchange so far (T3)."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    reasoning_tokens: int = 0
    cached_input_tokens: int = 0


@dataclass(slots=True)
class TurnFacts:
    """What ``finish`` reports of the exchange; the translator adds each event."""

    usage: Usage = field(default_factory=Usage)
    model: str | None = None
    finish_reason: FinishReason = "stop"


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


def add_facts(facts: TurnFacts, event: object) -> None:
    """Add a whole event: usage is a sum over model calls, the rest is of the last one."""
    _add_usage(facts.usage, attribute(event, "usage_metadata"))
    facts.model = text(event, "model_version") or facts.model
    stopped = attribute(event, "finish_reason")
    reason = getattr(stopped, "value", stopped) or code_of(event)
    if isinstance(reason, str) and reason:
        facts.finish_reason = _finish_reason(reason)
    elif attribute(event, "content", "role") == "model" and parts_of(event):
        facts.finish_reason = "stop"


def _finish_reason(reason: str) -> FinishReason:
    if reason in _LENGTH:
        return "length"
    if reason in _FILTERED:
        return "content-filter"
    return "stop" if reason == "STOP" else "other"


def _add_usage(total: Usage, usage: object) -> None:
    if usage is None:
        return
    prompt = _count(usage, "prompt_token_count") + _count(usage, "tool_use_prompt_token_count")
    candidates = _count(usage, "candidates_token_count")
    thoughts = _count(usage, "thoughts_token_count")
    whole = _count(usage, "total_token_count")
    # ADK: Gemini counts thoughts beside the answer, LiteLLM counts them in it.
    beside = not whole or prompt + candidates + thoughts <= whole
    output = candidates + thoughts if beside else candidates
    total.input_tokens += prompt
    total.output_tokens += output
    total.total_tokens += whole or prompt + output
    total.reasoning_tokens += thoughts
    total.cached_input_tokens += _count(usage, "cached_content_token_count")


def _count(usage: object, name: str) -> int:
    value = attribute(usage, name)
    return value if type(value) is int and value > 0 else 0


def metadata(
    facts: TurnFacts,
    *,
    created_at: float,
    version: int,
    stopped: bool,
    rewindable: bool,
    approvals: Mapping[str, dict[str, Any]],
) -> dict[str, Any]:
    """``messageMetadata`` of ``finish``: the exchange's total so far (T3).

    ``version`` is the number of this version of the exchange, which is left out if it is the first.
    ``stopped``: the exchange was stopped before its end. ``rewindable``: it can be replaced.
    ``approvals`` are the traces of its approvals, by approval id.
    """
    usage = facts.usage
    reported: dict[str, Any] = {
        "usage": {
            "inputTokens": usage.input_tokens,
            "outputTokens": usage.output_tokens,
            "totalTokens": usage.total_tokens,
            "reasoningTokens": usage.reasoning_tokens,
            "cachedInputTokens": usage.cached_input_tokens,
        },
        "createdAt": iso_time(created_at),
    }
    if facts.model is not None:
        reported["model"] = facts.model
    if version > 1:
        reported["version"] = version
    if stopped:
        reported["stopped"] = True
    if not rewindable:
        reported["rewindable"] = False
    if approvals:
        reported["approvals"] = dict(approvals)
    return reported
