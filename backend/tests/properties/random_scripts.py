"""Random scripts of a model, and the expected result of each under a user's answers."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from hypothesis import strategies as st

from tests.properties.example_agent import BIG, CLIENT, FREE, GATED, PIXEL, TOOLS

Kind = Literal["text", "thought", "call", "image", "source", "code"]
Ending = Literal["whole", "cut", "error", "hang"]


@dataclass(frozen=True)
class ScriptPart:
    """One part of a response; of a call, ``n`` is its argument."""

    kind: Kind
    text: str = ""
    tool: str = ""
    n: int = 0
    stream: bool = False
    id: str | None = None

    @property
    def call(self) -> tuple[str, int]:
        return (self.tool, self.n)

    @property
    def asks(self) -> bool:
        return self.tool in (*GATED, "here_gated") or (self.tool == "maybe" and self.n >= BIG)


@dataclass(frozen=True)
class Response:
    """One model call."""

    parts: tuple[ScriptPart, ...]
    ending: Ending = "whole"

    @property
    def calls(self) -> list[ScriptPart]:
        return [part for part in self.parts if part.kind == "call"]

    @property
    def ends_in_code(self) -> bool:
        """ADK: a model whose last words are code that ran is called once more."""
        spoken = [part for part in self.parts if part.kind != "source"]
        return bool(spoken) and spoken[-1].kind == "code"

    def as_data(self) -> dict[str, Any]:
        """The response in the words of a scenario file."""
        data: dict[str, Any] = {"parts": [_data(part) for part in self.parts], "delta_chars": 5}
        if self.ending == "cut":
            data["finish"] = "MAX_TOKENS"
        elif self.ending == "error":
            data["error"] = {"code": 503, "message": "words-of-an-exception"}
        return data


Script = tuple[Response, ...]

UNFINISHED = -1
"""Represents the argument of a call whose arguments were cut off."""


def _data(part: ScriptPart) -> dict[str, Any]:
    match part.kind:
        case "text" | "thought":
            return {part.kind: part.text}
        case "call":
            call = {"name": part.tool, "args": {"n": part.n}, "stream": part.stream}
            return {"call": call | ({} if part.id is None else {"id": part.id})}
        case "image":
            return {"image": {"media_type": "image/png", "base64": PIXEL}}
        case "source":
            return {"source": {"uri": f"https://example.com/{part.text}", "title": part.text}}
        case "code":
            return {"code": {"code": part.text, "result": part.text}}


_WORDS = st.builds(
    ScriptPart,
    kind=st.sampled_from(["text", "text", "text", "thought", "image", "source", "code"]),
    text=st.sampled_from(["a", "some words", "quite a number of words, one after the other"]),
)


def _calls(*, stream: bool) -> st.SearchStrategy[ScriptPart]:
    return st.builds(
        ScriptPart,
        kind=st.just("call"),
        tool=st.sampled_from([*TOOLS, *GATED]),
        n=st.sampled_from([0, 0, 0, 1, 2, BIG, BIG]),
        stream=st.just(stream),
    )


_TALKING = st.lists(_WORDS, max_size=3)
_CALLING = st.builds(
    lambda words, calls: [*words, *calls],
    st.lists(_WORDS, max_size=2),
    st.one_of(
        st.lists(_calls(stream=False), min_size=1, max_size=3),
        st.lists(_calls(stream=True), min_size=1, max_size=3),
    ),
)
_ENDINGS: tuple[Ending, ...] = (*("whole",) * 12, "cut", "error", "hang")


def scripts() -> st.SearchStrategy[Script]:
    """Scripts of up to four model calls with calls, and one without."""
    calling = st.builds(Response, _CALLING.map(tuple), st.sampled_from(_ENDINGS))
    talking = st.builds(Response, _TALKING.map(tuple), st.sampled_from(_ENDINGS))
    return st.builds(
        lambda calls, last, has_ids: _numbered([*calls, last], has_ids=has_ids),
        st.lists(calling, max_size=4),
        talking,
        st.booleans(),
    )


def _numbered(responses: Sequence[Response], *, has_ids: bool) -> Script:
    """Give every part words or a number of its own; a call drawn with 1 or 2 repeats another.

    ``has_ids``: the model names its calls itself, and begins with the same names in each response.
    """
    count = 0
    earlier: list[ScriptPart] = []
    numbered: list[Response] = []
    for response in responses:
        parts: list[ScriptPart] = []
        for part in response.parts:
            count += 1
            said = ScriptPart(part.kind, f"{part.text}-{count} ", part.tool, count, part.stream)
            if part.kind == "call":
                said = _with_number(part, count, earlier)
                if has_ids:
                    said = replace(said, id=f"call_{sum(p.kind == 'call' for p in parts)}")
                earlier.append(said)
            parts.append(said)
        ending = response.ending
        if ending == "cut" and (not parts or parts[-1].kind != "text"):
            ending = "whole"
        if ending in ("error", "hang"):
            # Of a model call that never ended only words and calls are kept.
            parts = [part for part in parts if part.kind in ("text", "thought", "call")]
        numbered.append(Response(tuple(parts), ending))
    return tuple(numbered)


def _with_number(part: ScriptPart, count: int, earlier: Sequence[ScriptPart]) -> ScriptPart:
    if part.n in (1, 2) and len(earlier) >= part.n:
        again = earlier[-part.n]
        return ScriptPart("call", "", again.tool, again.n, part.stream)
    n = count + BIG if part.tool == "maybe" and part.n >= BIG else count
    return ScriptPart("call", "", part.tool, n, part.stream)


@dataclass
class Answers:
    """The decisions of a user, by tool and number, in the order of the requests."""

    said: defaultdict[tuple[str, int], list[bool]]
    outputs: dict[tuple[str, int], Any]


@dataclass(frozen=True)
class Ended:
    """How a call ends in the message: the state of its part and its output."""

    tool: str
    n: int
    state: str
    output: str = ""


@dataclass
class ExpectedOutcome:
    """The expected result of a script: texts and thoughts in order, calls, effects."""

    denied: str
    texts: list[str]
    thoughts: list[str]
    calls: Counter[Ended]
    effects: Counter[tuple[str, int]]
    files: int
    sources: int
    is_over: bool = True
    """Whether the model has played its whole script."""


def expected_outcome(
    script: Script, answers: Answers, *, closed: bool, denied: str
) -> ExpectedOutcome:
    """Play a script by hand.

    ``closed``: the user left while something was open, so what was open did not run. ``denied``
    is the state of the part of a call that the user denied.
    """
    found = ExpectedOutcome(denied, [], [], Counter(), Counter(), 0, 0)
    said = {call: deque(yes) for call, yes in answers.said.items()}
    refused: set[tuple[str, int]] = set()
    for response in script:
        _say(found, response)
        if response.ending in ("error", "hang"):
            # A call is emitted as soon as its arguments stream, else only once it is complete.
            cut = [part for part in response.calls if part.stream]
            found.is_over = False
            found.calls.update(Ended(part.tool, UNFINISHED, "output-error") for part in cut)
            return found
        if not response.calls and not response.ends_in_code:
            return found
        decisions = [(part, _decision(part, said, refused)) for part in response.calls]
        stays = closed and any(_is_open(part, yes, answers) for part, yes in decisions)
        refused.update(part.call for part, yes in decisions if part.asks and yes is False)
        for part, yes in decisions:
            _end(found, part, yes, answers, is_closed=stays)
        if stays:
            found.is_over = False
            return found
    found.texts.append("the end")
    return found


def _say(found: ExpectedOutcome, response: Response) -> None:
    found.texts.extend(part.text for part in response.parts if part.kind == "text")
    found.thoughts.extend(part.text for part in response.parts if part.kind == "thought")
    found.files += sum(part.kind == "image" for part in response.parts)
    found.sources += sum(part.kind == "source" for part in response.parts)


def _decision(
    part: ScriptPart,
    said: Mapping[tuple[str, int], deque[bool]],
    denied: Iterable[tuple[str, int]],
) -> bool | Literal["refused"] | None:
    if not part.asks:
        return True
    if part.call in denied:
        return "refused"
    yes = said.get(part.call)
    return yes.popleft() if yes else None


def _is_open(part: ScriptPart, yes: bool | Literal["refused"] | None, answers: Answers) -> bool:
    is_clients = part.tool in CLIENT and yes is True
    return yes is None or (is_clients and part.call not in answers.outputs)


def _end(
    found: ExpectedOutcome,
    part: ScriptPart,
    yes: bool | Literal["refused"] | None,
    answers: Answers,
    *,
    is_closed: bool,
) -> None:
    tool, n = part.call
    if yes == "refused":
        found.calls[Ended(tool, n, "output-error")] += 1
    elif part.asks and not yes:
        found.calls[Ended(tool, n, found.denied)] += 1
    elif is_closed and (part.asks or tool in CLIENT):
        found.calls[Ended(tool, n, "output-error")] += 1
    elif tool in CLIENT:
        output = answers.outputs[part.call]
        state = "output-error" if output is None else "output-available"
        found.calls[Ended(tool, n, state, "" if output is None else str(output))] += 1
    elif tool in ("breaks", "free_breaks"):
        found.effects[part.call] += 1
        found.calls[Ended(tool, n, "output-error")] += 1
    else:
        found.effects[part.call] += 1
        found.files += tool == "draw"
        found.calls[Ended(tool, n, "output-available", str({tool: n}))] += 1


__all__ = [
    "FREE",
    "Answers",
    "Ended",
    "ExpectedOutcome",
    "Response",
    "Script",
    "ScriptPart",
    "expected_outcome",
    "scripts",
]
