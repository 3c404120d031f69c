"""The answer of a model to a conversation, equal for every provider: calls, then a description.

The last words of the user say what to do: ``make png and green`` calls the tool twice at once,
``make png then green`` twice in a row, and ``look`` says everything there is to see.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from tests.media.providers.seeing import ReceivedFile, Refused

TOOL: Final = "make"
_LABEL: Final = re.compile(
    r"\[Data from a tool, not words of the user: file \d+ of the result of (\w+).*? id (\w+)[,\]]"
)


@dataclass
class Result:
    """The result of one call: its text and its files."""

    call: str
    words: str
    files: list[ReceivedFile] = field(default_factory=list)


@dataclass
class Turn:
    """One message: text and files, calls, or results."""

    role: str
    words: list[str] = field(default_factory=list)
    files: list[ReceivedFile] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether the message is empty."""
        return not (self.words or self.files or self.calls or self.results)


@dataclass(frozen=True)
class Reply:
    """The answer of the model: a text, or calls of the tool by the kinds it is to make."""

    text: str = ""
    calls: tuple[str, ...] = ()


def give(turns: list[Turn], label: str, seen: ReceivedFile) -> None:
    """Give a file in a message of its own to the result that its label speaks of."""
    named = _LABEL.match(label)
    if named is None:
        raise Refused(f"a file stands without a label behind the results: {label!r}")
    last = next(turn for turn in reversed(turns) if turn.results)
    for result in last.results:
        if named[2] in result.words:
            result.files.append(seen)
            return
    raise Refused(f"no result speaks of the file {named[2]}")


def reply(turns: list[Turn]) -> Reply:
    """Continue the conversation."""
    wishes = [
        (index, words)
        for index, turn in enumerate(turns)
        for words in turn.words
        if turn.role == "user" and not words.startswith("[")
    ]
    last, wish = wishes[-1]
    if wish == "look":
        seen = [
            seen.words
            for turn in turns
            for seen in (*turn.files, *(file for result in turn.results for file in result.files))
        ]
        return Reply(f"In all I see {'; '.join(seen) or 'nothing'}.")
    steps = [step.split(" and ") for step in wish.removeprefix("make ").split(" then ")]
    done = [turn for turn in turns[last:] if turn.results]
    if len(done) < len(steps):
        return Reply(calls=tuple(steps[len(done)]))
    found = [_describe(result) for turn in done for result in turn.results]
    return Reply(f"I see {'; '.join(found)}.")


def _describe(result: Result) -> str:
    if result.files:
        return " and ".join(seen.words for seen in result.files)
    return f"words: {result.words}"


def arguments(kind: str) -> dict[str, Any]:
    """The arguments of a call."""
    return {"kind": kind}
