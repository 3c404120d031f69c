"""The page that explains the code, compared with the code."""

from __future__ import annotations

import ast
import contextlib
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

import pytest

from sluicegate.core.approvals import TRANSITIONS
from tests.agents.unhurried import yield_to_runner
from tests.docs.markdown import DOCS, ROOT, one_fence, rows
from tests.engine.stage import Counted, calls, says, scripted, words
from tests.live.caller import SILENCE, spoken_response, tone
from tests.transports.conversation import conversation
from tests.transports.live_client import opened_live

PAGE = DOCS / "how-it-works.md"
TEXT = PAGE.read_text("utf-8")
SOURCE = ROOT / "backend" / "src" / "sluicegate"
WALKS = [
    (title, int(count), body)
    for title, count, body in re.findall(
        r"^### ([^\n]+): (\d+) files\n(.*?)(?=^##)", TEXT, re.MULTILINE | re.DOTALL
    )
]
STEP = re.compile(r"^(\d+)\. `([\w/]+\.py)` `([\w.]+)` — ", re.MULTILINE)

_PREFIX = f"{SOURCE}/"

Function = tuple[str, str]
"""A file of the package and a function in it."""


class Calls(list[Function]):
    """The functions of the package in the order in which they are called or resumed."""

    def note(self, frame: FrameType, event: str, _value: object) -> None:
        """Note a call; the profile function of the interpreter."""
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(_PREFIX):
            self.append((code.co_filename.removeprefix(_PREFIX), code.co_qualname))

    def positions(self, steps: Sequence[Function], after: int) -> list[int]:
        """Where each step is called first after a position."""
        return [self.index(step, after) for step in steps]


@contextlib.contextmanager
def called() -> Iterator[Calls]:
    """Note the functions that this thread calls until the block ends."""
    calls = Calls()
    sys.setprofile(calls.note)
    try:
        yield calls
    finally:
        sys.setprofile(None)


def _steps(walk: int) -> list[Function]:
    """The steps of a walk."""
    return [(file, name) for _, file, name in STEP.findall(WALKS[walk][2])]


def _diagram() -> str:
    """The table of transitions as a mermaid diagram: states in the table's order."""
    order = list(TRANSITIONS)
    lines = ["stateDiagram-v2", f"    [*] --> {order[0]}"]
    for state, targets in TRANSITIONS.items():
        lines += [f"    {state} --> {target}" for target in sorted(targets, key=order.index)]
        if not targets:
            lines.append(f"    {state} --> [*]")
    return "\n".join(lines) + "\n"


def _names(file: Path) -> set[str]:
    """Functions, classes and methods of a module; methods as ``Class.method``."""
    found: set[str] = set()
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {
                f"{node.name}.{method.name}"
                for method in node.body
                if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef)
            }
    return found


def test_the_diagram_shows_exactly_the_transitions_of_the_table() -> None:
    drawn = one_fence(TEXT, "mermaid")

    assert drawn == _diagram(), f"the diagram should be:\n{_diagram()}"


def test_every_state_is_explained_once() -> None:
    explained = [row[0].strip("`") for row in rows(TEXT)]

    assert sorted(name for name in explained if name in TRANSITIONS) == sorted(TRANSITIONS)


def test_the_page_has_three_walks() -> None:
    assert len(WALKS) == 3


@pytest.mark.parametrize(("title", "count", "body"), WALKS, ids=[walk[0] for walk in WALKS])
def test_each_step_of_a_walk_names_a_function_of_its_file(
    title: str, count: int, body: str
) -> None:
    steps = STEP.findall(body)

    assert [int(number) for number, _, _ in steps] == list(range(1, count + 1)), title
    assert len({file for _, file, _ in steps}) == count, title
    for _, file, name in steps:
        assert name in _names(SOURCE / file), f"{file} has no {name}"


async def test_a_text_delta_takes_the_steps_of_its_walk(tmp_path: Path) -> None:
    agent = scripted([says("Hello there.", delta_chars=4)], sleep=yield_to_runner)
    steps = _steps(0)
    with called() as functions:
        async with conversation(agent, tmp_path, "sse") as chat:
            message = await chat.say("hi")
    assert words(message) == "Hello there."

    last_delta = len(functions) - 1 - functions[::-1].index(steps[0])
    found = functions.positions(steps[:-1], last_delta)
    sent = functions.index(steps[-1], found[-1])

    assert found == sorted(found)
    assert sent > found[-1]


async def test_an_approval_takes_the_steps_of_its_walk(tmp_path: Path) -> None:
    tool = Counted()
    agent = scripted([calls(("pay", {"n": 3})), says("It is paid.")], [tool.tool()])
    steps = _steps(1)
    with called() as functions:
        async with conversation(agent, tmp_path, "sse") as chat:
            await chat.say("pay")
            decided = len(functions)
            await chat.answer()
    assert tool.runs == [3]

    request = functions.positions(steps[:8], functions.index(steps[0]))
    decision = functions.positions(steps[8:19], decided)
    effect = functions.index(steps[19], decision[-1])

    assert request == sorted(request)
    assert request[-1] < decided
    assert decision == sorted(decision)
    assert effect > decision[-1]


async def test_a_gated_call_of_a_live_chat_takes_the_steps_of_its_walk(tmp_path: Path) -> None:
    tool = Counted()
    agent = scripted([calls(("pay", {"n": 3})), spoken_response("It is paid.")], [tool.tool()])
    steps = _steps(2)
    with called() as functions:
        async with conversation(agent, tmp_path, "sse") as chat:
            url = chat.http.base_url
            assert url.port is not None
            async with opened_live((url.host, url.port)) as caller:
                spoken = len(functions)
                await caller.send(tone(440))
                await caller.send(SILENCE)
                await caller.live("turn")
                await chat.http.get("/api/chat/c1/stream")
                held = (await chat.http.get("/api/chats/c1")).json()
                chat.messages = held["messages"]
                decided = len(functions)
                message = await chat.answer()
    assert tool.runs == [3]
    assert words(message) == "It is paid."

    audio = functions.positions(steps[1:4], spoken)
    request = functions.positions(steps[4:9], audio[-1])
    decision = functions.positions(steps[9:], decided)

    assert functions.index(steps[0]) < audio[0]
    assert audio == sorted(audio)
    assert request == sorted(request)
    assert request[-1] < decided
    assert decision == sorted(decision)


def test_the_files_to_read_first_have_the_documented_number_of_lines() -> None:
    promise = re.search(r"about ([\d,]+) lines:\n(.+)\n", TEXT)
    assert promise is not None
    said = int(promise[1].replace(",", ""))
    files = re.findall(r"`([\w/]+\.py)`", promise[2])

    lines = sum(len((SOURCE / file).read_text("utf-8").splitlines()) for file in files)

    assert abs(lines - said) <= 0.05 * lines, f"{lines} lines"
