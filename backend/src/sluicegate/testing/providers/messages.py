"""What a provider reads from a request, and what it is to answer."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from sluicegate.testing.providers.refusal_exceptions import Refused

if TYPE_CHECKING:
    from sluicegate.testing.providers.received_files import ReceivedFile

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
class Message:
    """One message as the provider reads it: text and files, calls, or results.

    ``role`` is ``user``, ``model`` or ``results``; a call is its id and the name of the tool.
    """

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
    """The answer of the model: a text, or calls, each as the name of a tool and its arguments.

    ``is_cut_off``: the limit of tokens was reached in the middle of the arguments.
    """

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    is_cut_off: bool = False

    def written(self, arguments: dict[str, Any]) -> str:
        """The arguments of a call as the model writes them."""
        whole = json.dumps(arguments)
        return whole[:-3] if self.is_cut_off else whole


def attach_to_result(messages: list[Message], label: str, seen: ReceivedFile) -> None:
    """Attach a file of a separate message to the result that its label names.

    Raises:
        Refused: There is no label, or no such result.
    """
    named = _LABEL.match(label)
    if named is None:
        raise Refused(f"a file stands without a label behind the results: {label!r}")
    last = next(message for message in reversed(messages) if message.results)
    for result in last.results:
        if named[2] in result.words:
            result.files.append(seen)
            return
    raise Refused(f"no result speaks of the file {named[2]}")
