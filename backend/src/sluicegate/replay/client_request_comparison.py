"""Comparison of a client's request with the recorded one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from sluicegate.replay.redaction import REDACTED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_OUTPUTS: Final = frozenset({"output-available", "output-error"})
_SHOWN: Final = 60


def difference(request: Mapping[str, Any], posted: Mapping[str, Any]) -> str | None:
    """Return the first difference of a posted request from the recorded one, as a sentence.

    Compared are the fields that a server reads: text and files of the user's message, or decisions
    and outputs of client-side tools. Ids that the client chooses are not compared, and a redacted
    value equals any other.
    """
    recorded, given = dict(_compared_fields(request)), dict(_compared_fields(posted))
    for what, words in recorded.items():
        if what not in given:
            return f"{what} is missing, which was {_shortened(words)}"
        if not _is_equal(words, given[what]):
            return f"{what} is {_shortened(given[what])} and was {_shortened(words)}"
    for what, words in given.items():
        if what not in recorded:
            return f"{what} is {_shortened(words)} and was not there"
    return None


def _compared_fields(body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    message = body.get("message") or {}
    role = message.get("role")
    yield "the message's role", role
    yield "the trigger", body.get("trigger", "submit-message")
    parts = [part for part in message.get("parts") or () if isinstance(part, dict)]
    if role == "user":
        yield "the text", "\n".join(str(part["text"]) for part in parts if part.get("text"))
        files = [part for part in parts if part.get("type") == "file"]
        for number, part in enumerate(files, start=1):
            yield f"file {number}", part.get("mediaType")
        return
    for part in parts:
        yield from _decisions_and_outputs(part)
    for what in ("edits", "remember", "payload", "response"):
        if body.get(what):
            yield f"what it says under {what}", body[what]


def _decisions_and_outputs(part: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    tool = part.get("toolName") or str(part.get("type")).removeprefix("tool-")
    approval = part.get("approval")
    if isinstance(approval, dict) and "approved" in approval:
        which = f"{tool} ({approval.get('id')})"
        yield f"the answer to {which}", approval["approved"]
        if approval.get("reason") is not None:
            yield f"the reason given to {which}", approval["reason"]
    if part.get("state") in _OUTPUTS and not part.get("providerExecuted"):
        which = f"{tool} ({part.get('toolCallId')})"
        yield f"the output of {which}", part.get("output", part.get("errorText"))


def _is_equal(recorded: Any, given: Any) -> bool:
    if recorded == REDACTED:
        return True
    if isinstance(recorded, dict) and isinstance(given, dict):
        return recorded.keys() == given.keys() and all(
            _is_equal(value, given[key]) for key, value in recorded.items()
        )
    if isinstance(recorded, list) and isinstance(given, list):
        return len(recorded) == len(given) and all(map(_is_equal, recorded, given))
    return type(recorded) is type(given) and bool(recorded == given)


def _shortened(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
