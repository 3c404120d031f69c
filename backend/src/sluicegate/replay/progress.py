"""How far a script has come, read from what the agent has said.

A live connection cuts one response into several contents: each text, the transcript and the calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluicegate.replay.request import Said
    from sluicegate.replay.scenario import ScriptedResponse


def answered(said: Sequence[Said], responses: Sequence[ScriptedResponse]) -> int:
    """The count of responses that the contents of the agent amount to.

    A content is another one, unless it follows directly and says what its response still lacks.
    """
    count = 0
    rest: _Rest | None = None
    for each in said:
        if rest is not None and not each.first and rest.takes(each):
            continue
        rest = _Rest(responses[count]) if count < len(responses) else None
        count += 1
        if rest is not None and not rest.takes(each):
            rest = None
    return count


class _Rest:
    """What of a response has not been said yet."""

    def __init__(self, response: ScriptedResponse) -> None:
        parts = response.parts
        written = "".join(part.text or "" for part in parts)
        transcripts = (part.transcript for part in parts if part.transcript is not None)
        spoken = "".join(each.text for each in transcripts if each.role == "model")
        self._words = [written, spoken]
        self._calls = sum(part.call is not None for part in parts)

    def takes(self, said: Said) -> bool:
        if said.calls > self._calls or not (said.text or said.calls):
            return False
        if said.text:
            fitting = (
                place for place, left in enumerate(self._words) if left.startswith(said.text)
            )
            place = next(fitting, None)
            if place is None:
                return False
            self._words[place] = self._words[place][len(said.text) :]
        self._calls -= said.calls
        return True
