"""The fast lane makes no difference to a client: the same chunks with it and without it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents._streaming_mode import StreamingMode
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps.app import App
from google.adk.events.event import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

from sluicegate.core.release.policies import ReleasePolicy
from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.models.text_fast_lane import MAX_IN_RUNNER, FastLaneCall, is_plain_text
from sluicegate.engine.turn.running_turn import RunningTurn
from sluicegate.testing.message_comparison import comparable
from sluicegate.wire.chunks import TextDeltaChunk
from sluicegate.wire.encoding import to_json
from sluicegate.wire.ui_messages import is_tool_part, tool_name
from tests.agents.conformance_agent import SCENARIOS
from tests.agents.topologies import TOPOLOGIES
from tests.agents.unhurried import unhurried_agent
from tests.engine.stage import Open, Steps, calls, says, scripted, words
from tests.engine.talk import Talk, decide
from tests.parts import long_table

OpenEngine = Callable[..., AbstractAsyncContextManager[ChatEngine]]

ENDLESS = {"stop", "stop_after_approval"}
SAME_AS_OTHERS = {"after", "twenty_one_in_sequence"}
OF_SEVERAL_PEOPLE = {"two_people"}
STORIES = sorted(
    set(re.findall(r"\^story:(\w+)", SCENARIOS.read_text("utf-8")))
    - (ENDLESS | SAME_AS_OTHERS | OF_SEVERAL_PEOPLE)
)
AT_ONCE = {"parallel", "sequential_around_parallel", "two_single_turn", "workflow_fan_out"}
"""Trees whose branches begin in an order that is up to chance."""
TREES = sorted(set(TOPOLOGIES) - {"agent_tool"})
RELEASES: list[ReleasePolicy] = ["deferred", "progressive"]

_MADE_UP = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|(?<=msg-)[0-9a-f]{24}|(?<=/chat-)[0-9a-f]{12}|(?<=error )[0-9a-f]{8}"
)
_MOMENT = re.compile(r'\d{4}-\d\d-\d\dT[\d:.+]+|(?<=At":)\d+\.\d+')


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that took the lane."""
    texts: list[str] = []
    say = FastLaneCall.emit

    async def noting(call: FastLaneCall, response: LlmResponse) -> None:
        parts = (response.content and response.content.parts) or []
        texts.append("".join(part.text or "" for part in parts))
        await say(call, response)

    monkeypatch.setattr(FastLaneCall, "emit", noting)
    return texts


class Named:
    """Replace generated ids by their order of appearance, so that runs can be compared."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        timeless = _MOMENT.sub("then", text)
        return _MADE_UP.sub(
            lambda found: self._names.setdefault(found[0], f"#{len(self._names)}"), timeless
        )


def answer_all(talk: Talk, answered: int) -> int:
    """Decide the open approvals, denying every third; returns the number of decisions so far."""
    for part in filter(is_tool_part, talk.messages[-1]["parts"]):
        if part["state"] == "approval-requested":
            answered += 1
            decide(part, approved=answered % 3 != 0)
        elif part["state"] == "input-available" and tool_name(part).startswith(("locate", "adk_")):
            part["state"], part["output"] = "output-available", {"result": "blue"}
    return answered


async def chunks_by_turn(engine: ChatEngine, text: str, release: ReleasePolicy) -> list[list[str]]:
    """The chunks of each turn, from the question to the end of the exchange."""
    talk, answered = Talk(engine, release), 0
    turn = await talk.say(text)
    while turn.finish_reason == "tool-calls":
        answered = answer_all(talk, answered)
        turn = await talk.post_last()
    assert comparable(await talk.history()) == comparable(talk.messages[-1])
    named = Named()
    return [[named(to_json(chunk)) for chunk in each.chunks] for each in talk.turns]


@long_table
@pytest.mark.parametrize("story", STORIES)
async def test_a_story_produces_the_same_chunks(open_engine: OpenEngine, story: str) -> None:
    both = []
    for fast_lane in ("off", "auto"):
        async with open_engine(unhurried_agent(), fast_lane=fast_lane) as engine:
            both.append(
                [await chunks_by_turn(engine, f"story:{story}", release) for release in RELEASES]
            )
    assert both[0] == both[1]


@long_table
@pytest.mark.parametrize("tree", TREES)
async def test_an_agent_tree_produces_the_same_chunks(open_engine: OpenEngine, tree: str) -> None:
    both: list[Any] = []
    for fast_lane in ("off", "auto"):
        async with open_engine(TOPOLOGIES[tree](), fast_lane=fast_lane) as engine:
            both.append([await chunks_by_turn(engine, "go", release) for release in RELEASES])
    if tree in AT_ONCE:
        both = [[sorted(map(message_chunks, turns)) for turns in said] for said in both]
    assert both[0] == both[1]


def message_chunks(turn: list[str]) -> list[str]:
    """The chunks of a turn that are kept in the message, sorted and without ids."""
    without_names = (re.sub(r"#\d+|text-\d+", "", chunk) for chunk in turn)
    return sorted(chunk for chunk in without_names if '"transient"' not in chunk)


MIXED = {
    "parts": [
        {"thought": "I think about it for a while. "},
        {"text": "I say a little of it first. "},
        {"call": {"name": "note", "args": {"text": "something longer"}, "stream": True}},
        {"text": "And then I say the rest of it. "},
        {"thought": "That was all of it. "},
    ],
    "delta_chars": 4,
}


def note(text: str) -> str:
    """Note a text."""
    return text


async def test_partial_events_of_every_kind_keep_their_order(
    open_engine: OpenEngine, taken: list[str]
) -> None:
    both = []
    for fast_lane in ("off", "auto"):
        agent = scripted([MIXED, says("The end of it.", delta_chars=3)], [note])
        async with open_engine(agent, fast_lane=fast_lane) as engine:
            both.append(await chunks_by_turn(engine, "go", "progressive"))
    assert both[0] == both[1]
    assert len(taken) > 20


async def test_a_stop_in_the_middle_leaves_the_same_text(
    open_engine: OpenEngine, taken: list[str]
) -> None:
    both = []
    for fast_lane in ("off", "auto"):
        steps = Steps()
        agent = scripted([says("x" * 40, delta_chars=1)], sleep=steps)
        async with open_engine(agent, fast_lane=fast_lane) as engine:
            talk = Talk(engine, "progressive")
            reader = await talk.start(question(talk))
            chunks = []
            async for chunk in reader:
                chunks.append(chunk)
                if isinstance(chunk, TextDeltaChunk):
                    if sum(isinstance(each, TextDeltaChunk) for each in chunks) < 10:
                        # One at a time, so that each is emitted before the next.
                        steps.go(1)
                    else:
                        await engine.stop(talk.chat_id, user=talk.user)
            talk.take(chunks)
            named = Named()
            both.append([named(to_json(chunk)) for chunk in chunks])
            assert comparable(await talk.history()) == comparable(talk.messages[-1])
            assert words(talk.messages[-1]) == "x" * 10
    assert both[0] == both[1]
    assert taken


def question(talk: Talk) -> dict[str, Any]:
    message: Any = {"id": "user-1", "role": "user", "parts": [{"type": "text", "text": "go"}]}
    talk.messages.append(message)
    return {"message": message}


LONG = says("A long answer, in many pieces.", delta_chars=1)


async def test_only_the_first_partial_events_pass_through_the_runner(
    open_stage: Open, taken: list[str]
) -> None:
    steps = Steps()
    talk = Talk(await open_stage(scripted([LONG], sleep=steps)))
    reading = asyncio.create_task(talk.say("go"))
    for pieces in range(1, 30):
        # The model waits before each delta, so the previous one has been emitted.
        await steps.reached(pieces)
        steps.go(1)
    assert words((await reading).message) == "A long answer, in many pieces."
    assert 25 <= len(taken) <= 29


class Watching(BasePlugin):
    """Counts partial events."""

    def __init__(self) -> None:
        super().__init__("watching")
        self.partial = 0

    async def on_event_callback(self, *, invocation_context: Any, event: Event) -> None:
        self.partial += bool(event.partial)


async def test_a_plugin_that_observes_events_receives_every_partial_event(
    open_stage: Open, taken: list[str]
) -> None:
    plugin = Watching()
    app = App(name="app", root_agent=scripted([LONG]), plugins=[plugin])
    turn = await Talk(await open_stage(app)).say("go")
    assert words(turn.message) == "A long answer, in many pieces."
    assert (plugin.partial, taken) == (30, [])


async def test_the_setting_disables_the_fast_lane(open_stage: Open, taken: list[str]) -> None:
    await Talk(await open_stage(scripted([LONG]), fast_lane="off")).say("go")
    assert taken == []


async def test_an_agent_used_as_a_tool_emits_no_chunks(open_stage: Open, taken: list[str]) -> None:
    inner = LlmAgent(name="inner", model=scripted([LONG]).model)
    agent = scripted([calls(("inner", {"request": "x"})), says("done")], [AgentTool(inner)])
    turn = await Talk(await open_stage(agent), "progressive").say("go")
    assert words(turn.message) == "done"
    assert "".join(taken) in "done"


async def test_a_failure_while_a_partial_event_is_emitted_ends_the_turn_and_not_the_model(
    open_stage: Open, taken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = Talk(await open_stage(scripted([LONG])), "progressive")

    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("words-of-a-failure")

    monkeypatch.setattr("sluicegate.core.translator.Translator.append_text", broken)
    turn = await talk.say("go")
    assert turn.failed
    assert "words-of-a-failure" not in "".join(to_json(chunk) for chunk in turn.chunks)


class Burst(BaseLlm):
    """A model that never yields; ``seen`` returns the number of emitted deltas."""

    pieces: int = 0
    seen: Callable[[], int]
    most_ahead: int = 0

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT002
    ) -> AsyncGenerator[LlmResponse, None]:
        for number in range(self.pieces):
            yield _text("word ", partial=True)
            type(self).most_ahead = max(type(self).most_ahead, number - self.seen())
        yield _text("word " * self.pieces)


def _text(text: str, *, partial: bool = False) -> LlmResponse:
    content = types.Content(role="model", parts=[types.Part(text=text)])
    return LlmResponse(content=content, partial=partial)


@pytest.mark.parametrize("fast_lane", ["auto", "off"])
async def test_a_model_that_never_yields_is_bounded(
    open_stage: Open, monkeypatch: pytest.MonkeyPatch, fast_lane: str
) -> None:
    told_so_far = 0
    publish = RunningTurn.publish

    async def counting(turn: RunningTurn, chunks: Any) -> None:
        nonlocal told_so_far
        told_so_far += sum(isinstance(chunk, TextDeltaChunk) for chunk in chunks)
        await publish(turn, chunks)

    monkeypatch.setattr(RunningTurn, "publish", counting)
    Burst.most_ahead = 0
    model = Burst(model="burst", pieces=1_500, seen=lambda: told_so_far)
    agent = LlmAgent(name="a", model=model)
    talk = Talk(await open_stage(agent, fast_lane=fast_lane, reader_patience=60.0))
    turn = await talk.say("go")
    assert words(turn.message) == "word " * 1_500
    assert Burst.most_ahead <= MAX_IN_RUNNER


async def test_adk_lets_a_model_that_never_yields_run_ahead_without_bound() -> None:
    Burst.most_ahead, came_out = 0, 0
    model = Burst(model="burst", pieces=500, seen=lambda: came_out)
    runner = InMemoryRunner(LlmAgent(name="a", model=model), app_name="ahead")
    await runner.session_service.create_session(app_name="ahead", user_id="u", session_id="s")
    config = RunConfig(streaming_mode=StreamingMode.SSE)
    message = types.UserContent("go")
    async for _ in runner.run_async(
        user_id="u", session_id="s", new_message=message, run_config=config
    ):
        came_out += 1
    await runner.close()
    assert came_out == 501
    assert Burst.most_ahead == 499


async def test_adk_reads_a_session_in_the_order_of_its_timestamps(folder: Path) -> None:
    sessions = DatabaseSessionService(f"sqlite+aiosqlite:///{folder}/times.db")
    session = await sessions.create_session(app_name="a", user_id="u", session_id="s")
    for author, moment in (("later", 2_000.0), ("earlier", 1_000.0)):
        await sessions.append_event(session, Event(author=author, timestamp=moment))
    read = await sessions.get_session(app_name="a", user_id="u", session_id="s")
    await sessions.close()
    assert read is not None
    assert [event.author for event in read.events] == ["earlier", "later"]


def _partial(*parts: types.Part, **more: Any) -> LlmResponse:
    return LlmResponse(content=types.Content(parts=list(parts)), partial=True, **more)


CALL = types.FunctionCall(name="pay", args={})
RESPONSES = {
    "text": (_partial(types.Part(text="a")), True),
    "a thought": (_partial(types.Part(text="a", thought=True)), True),
    "both": (_partial(types.Part(text="a", thought=True), types.Part(text="b")), True),
    "with a count": (
        _partial(types.Part(text="a"), usage_metadata=None, finish_reason="STOP"),
        True,
    ),
    "spelled out": (_partial(types.Part(text="a", function_call=None)), True),
    "a call": (_partial(types.Part(function_call=CALL)), False),
    "text and a call": (_partial(types.Part(text="a"), types.Part(function_call=CALL)), False),
    "text in a call's part": (_partial(types.Part(text="a", function_call=CALL)), False),
    "no text": (_partial(types.Part(text="")), False),
    "no parts": (_partial(), False),
    "nothing": (LlmResponse(partial=True), False),
    "a failure": (_partial(types.Part(text="a"), error_code="SAFETY"), False),
    "a cut": (_partial(types.Part(text="a"), interrupted=True), False),
    "sources": (
        _partial(types.Part(text="a"), grounding_metadata=types.GroundingMetadata()),
        False,
    ),
}


@pytest.mark.parametrize("name", RESPONSES)
def test_only_partial_text_without_other_content_is_plain_text(name: str) -> None:
    response, plain = RESPONSES[name]
    assert is_plain_text(response) is plain
