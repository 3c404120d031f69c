"""What a scripted live session remembers, small enough to travel in a resumption handle."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError

from sluicegate.replay.request import read_contents

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from google.genai import types

    from sluicegate.replay.request import Said

    Answered = Callable[[str, Sequence[Said]], int]


class Asked(BaseModel):
    """The calls of one response: response ``number`` to ``text``; ``open`` maps id to tool name."""

    model_config = ConfigDict(extra="forbid")

    text: str
    number: int
    open: dict[str, str]


class Memory(BaseModel):
    """The last user text, the count of responses to it, and the calls that have no result yet."""

    model_config = ConfigDict(extra="forbid")

    text: str = ""
    answered: int = 0
    asked: list[Asked] = []

    def learn(self, contents: Sequence[types.Content], answered: Answered) -> None:
        """Take over a conversation; ``answered`` counts the responses to a text."""
        results = {
            part.function_response.id
            for content in contents
            for part in content.parts or []
            if part.function_response
        }
        for index, content in enumerate(contents):
            calls = [part.function_call for part in content.parts or [] if part.function_call]
            waiting = {call.id or "": call.name or "" for call in calls if call.id not in results}
            if content.role == "model" and waiting:
                text, said = read_contents(contents[: index + 1])
                number = max(0, answered(text, said) - 1)
                self.asked.append(Asked(text=text, number=number, open=waiting))
        self.text, said = read_contents(contents)
        self.answered = answered(self.text, said)

    def asking(self, response: types.FunctionResponse) -> Asked | None:
        """The calls among which the result's own is open, the newest first; None for no call."""
        for asked in reversed(self.asked):
            if response.id in asked.open or (
                not response.id and response.name in asked.open.values()
            ):
                return asked
        return None

    def settle(self, response: types.FunctionResponse) -> Asked | None:
        """Note a result; its calls when none of them is open any more."""
        asked = self.asking(response)
        if asked is None:
            return None
        named = (id for id, name in asked.open.items() if name == response.name)
        del asked.open[response.id if response.id in asked.open else next(named)]
        if asked.open:
            return None
        self.asked.remove(asked)
        return asked

    @property
    def handle(self) -> str:
        """All of it as one word."""
        return base64.urlsafe_b64encode(self.model_dump_json().encode()).decode()

    @classmethod
    def from_handle(cls, handle: str) -> Memory | None:
        """What ``handle`` has held, None when it is no handle of a script."""
        try:
            return cls.model_validate_json(base64.urlsafe_b64decode(handle))
        except (binascii.Error, ValidationError, ValueError):
            return None
