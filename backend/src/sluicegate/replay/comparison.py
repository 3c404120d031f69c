"""What a client says in a request, and where it differs from what was recorded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from sluicegate.replay.redaction import REDACTED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_OUTPUTS: Final = frozenset({"output-available", "output-error"})
_SHOWN: Final = 60


def difference(asked: Mapping[str, Any], posted: Mapping[str, Any]) -> str | None:
    """The first thing that a posted request says otherwise than the recorded one, as a sentence.

    Compared is what a server reads: the words and files of the user's message, or the answers to
    approvals and the outputs of the browser's tools. Ids that the client chooses are not, and what
    was redacted is anything.
    """
    recorded, given = dict(_said(asked)), dict(_said(posted))
    for what, words in recorded.items():
        if what not in given:
            return f"{what} is missing, which was {_shown(words)}"
        if not _same(words, given[what]):
            return f"{what} is {_shown(given[what])} and was {_shown(words)}"
    for what, words in given.items():
        if what not in recorded:
            return f"{what} is {_shown(words)} and was not there"
    return None


def _said(body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
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
        yield from _answers(part)
    for what in ("edits", "remember"):
        if body.get(what):
            yield f"what it says under {what}", body[what]


def _answers(part: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
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


def _same(recorded: Any, given: Any) -> bool:
    if recorded == REDACTED:
        return True
    if isinstance(recorded, dict) and isinstance(given, dict):
        return recorded.keys() == given.keys() and all(
            _same(value, given[key]) for key, value in recorded.items()
        )
    if isinstance(recorded, list) and isinstance(given, list):
        return len(recorded) == len(given) and all(map(_same, recorded, given))
    return type(recorded) is type(given) and bool(recorded == given)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
