"""Comparison of messages that differ only in what the wire does not promise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sluicegate.wire.chunks import Major
    from sluicegate.wire.ui_messages import Part, UIMessage

_IGNORED_KEYS: Final = frozenset(
    {"rawInput", "providerMetadata", "callProviderMetadata", "resultProviderMetadata"}
)


def comparable(message: UIMessage, *, major: Major = 7, resumed: bool = False) -> list[Part]:
    """Normalize the parts of a message, so that two views of the same message are equal.

    A live, a resumed and a stored message have the same parts in the same order; steps, ``data-*``,
    raw input, provider metadata, the id of reasoning and the state of text and reasoning may
    differ. Of an approval only ``id``, ``approved`` and ``reason`` are compared.

    Args:
        message: One of the views; it is not changed.
        major: The AI SDK major of both views. AI SDK 6 has no automatic approvals: they are left
            out, and their calls count as ``input-available``.
        resumed: Whether one of the views was resumed by a client of AI SDK 6, to which decided
            approvals are not sent either.
    """
    return [
        _comparable_part(part, major=major, resumed=resumed)
        for part in message["parts"]
        if part["type"] != "step-start" and not part["type"].startswith("data-")
    ]


def _comparable_part(part: Part, *, major: Major, resumed: bool) -> Part:
    kept = {key: value for key, value in part.items() if key not in _IGNORED_KEYS}
    if part["type"] == "text":
        kept.pop("state", None)
    elif part["type"] == "reasoning":
        kept.pop("state", None)
        kept.pop("id", None)
    approval = kept.pop("approval", None)
    if approval is None:
        return kept
    decided = "approved" in approval
    if major == 6 and (approval.get("isAutomatic") is True or (resumed and decided)):
        if kept["state"] in ("approval-requested", "approval-responded"):
            kept["state"] = "input-available"
        return kept
    kept["approval"] = {
        key: approval[key] for key in ("id", "approved", "reason") if key in approval
    }
    return kept
