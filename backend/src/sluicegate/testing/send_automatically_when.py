"""The rules with which clients send automatically, as functions of the last message.

Those of the AI SDK and of S2; the literal rules of S2 are not safe in production.
"""

from __future__ import annotations

from collections.abc import Callable

from sluicegate.wire.ui_messages import Part, UIMessage, current_step, is_tool_part

Rule = Callable[[UIMessage], bool]

_ENDED = ("output-error", "output-denied")


def _is_done(part: Part) -> bool:
    is_output = part["state"] == "output-available" and part.get("preliminary") is not True
    return is_output or part["state"] == "output-error"


def stock(message: UIMessage) -> bool:
    """``lastAssistantMessageIsCompleteWithApprovalResponses``."""
    tools = [part for part in current_step(message["parts"]) if is_tool_part(part)]
    return any(part["state"] == "approval-responded" for part in tools) and all(
        _is_done(part) or part["state"] in ("output-denied", "approval-responded") for part in tools
    )


def tool_calls(message: UIMessage) -> bool:
    """``lastAssistantMessageIsCompleteWithToolCalls``."""
    step = current_step(message["parts"])
    found = [i for i, p in enumerate(step) if is_tool_part(p) and not p.get("providerExecuted")]
    if not found or not all(_is_done(step[index]) for index in found):
        return False
    rest = step[found[-1] + 1 :]
    return not any(part["type"] == "text" and part.get("state") != "done" for part in rest)


def stock_or_tool_calls(message: UIMessage) -> bool:
    """Both stock rules, as the AI SDK's examples combine them."""
    return stock(message) or tool_calls(message)


def s2_sse_literal(message: UIMessage) -> bool:
    """The rule of S2 for SSE as written; it ignores open requests (S2-R10 to R12, R14)."""
    tools = [part for part in message["parts"] if is_tool_part(part)]
    return (
        any(part["state"] == "approval-responded" for part in tools)
        and not any(part["type"] == "text" for part in message["parts"])
        and not any(part["state"] in ("output-available", "output-error") for part in tools)
    )


def s2_bidi_literal(message: UIMessage) -> bool:
    """The rule of S2 for BIDI as written: as for SSE, and no open request (S2-R13)."""
    tools = [part for part in message["parts"] if is_tool_part(part)]
    return s2_sse_literal(message) and not any(
        part["state"] == "approval-requested" for part in tools
    )


def s2(message: UIMessage) -> bool:
    """The corrected rule of S2: any text, any finished tool and any open request hold it back."""
    tools = [part for part in message["parts"] if is_tool_part(part)]
    return (
        not any(part["state"] == "approval-requested" for part in tools)
        and any(part["state"] == "approval-responded" for part in tools)
        and not any(part["type"] == "text" for part in message["parts"])
        and not any(part["state"] in ("output-available", *_ENDED) for part in tools)
    )


RULES: dict[str, Rule] = {
    "stock": stock,
    "stock or tool calls": stock_or_tool_calls,
    "s2": s2,
}
