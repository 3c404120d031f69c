"""Gates inside an AgentTool: the agent runs in the session of the chat, and is as if it did not.

Each conversation is compared with the one that plain ADK has without the gates: the same texts,
effects, states and requests of the models, apart from placeholders of calls that wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App, ResumabilityConfig
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.tool_context import ToolContext
from pydantic import BaseModel

from sluicegate.engine.agents.survey import survey
from sluicegate.engine.agents.unsupported_agents import refusals
from sluicegate.testing.message_comparison import comparable
from sluicegate.wire.ui_messages import is_tool_part, tool_name
from tests.engine.adk_story import Conversation, Story, answer, call, location, words_of
from tests.engine.stage import Counted, calls, part_of, says, scripted, words
from tests.engine.talk import Talk, decide
from tests.engine.test_transfers_to_shells import approve_all, plain, said, with_restarts
from tests.engine.topologies import RESUMED, delegate, singles

if TYPE_CHECKING:
    from sluicegate.engine.chat_engine import ChatEngine
    from tests.engine.stage import Open
    from tests.engine.topologies import Build

    OpenEngine = Callable[..., AbstractAsyncContextManager[ChatEngine]]

pytestmark = [
    pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated"),  # AgentTool's own
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
]


class Order(BaseModel):
    """What an agent is asked for, or answers with."""

    item: str
    count: int = 1


def _twice(s: Story) -> LlmAgent:
    """Two calls one after the other, with two gates each time."""
    a = LlmAgent(
        name="a",
        description="Does a.",
        instruction="Pay for {what?}.",
        model=s.model(
            [call("pay_a"), call("pay_b"), call("look")],
            call("pay_b"),
            "a done",
            call("pay_a"),
            "a done again",
        ),
        tools=[s.gated("pay_a"), s.gated("pay_b"), s.function("look")],
        output_key="said",
    )
    model = s.model(
        call("a", request="first"),
        call("a", request="second"),
        "root done",
        "root thanks",
    )
    return LlmAgent(
        name="root", description="Root.", instruction="{said?}", model=model, tools=[AgentTool(a)]
    )


def _twice_at_once(s: Story) -> LlmAgent:
    """Two calls of a ``single_turn`` agent at once, the second of which waits."""
    a = LlmAgent(
        name="a",
        description="Does a.",
        mode="single_turn",
        model=s.model("a done", call("pay_a"), "a done again"),
        tools=[s.gated("pay_a")],
    )
    return s.talker("root", *(call("a", request=n) for n in ("first", "second")), sub_agents=[a])


def _in_two_messages(s: Story) -> LlmAgent:
    a = LlmAgent(
        name="a",
        description="Does a.",
        model=s.model(call("pay_a"), "a done", call("pay_a"), "a done again"),
        tools=[s.gated("pay_a")],
    )
    model = s.model(
        call("a", request="first"), "root done", call("a", request="second"), "root done again"
    )
    return LlmAgent(name="root", description="Root.", model=model, tools=[AgentTool(a)])


def _nested(s: Story) -> LlmAgent:
    inner = AgentTool(s.asker("a"))
    middle = s.talker("m", *delegate("a"), tools=[inner])
    return s.talker("root", *delegate("m"), tools=[AgentTool(middle)])


def _nested_beside(s: Story) -> LlmAgent:
    inner = AgentTool(s.asker("a"))
    middle = s.talker("m", *delegate("a"), call("look"), tools=[inner, s.function("look")])
    return s.talker("root", *delegate("m"), tools=[AgentTool(middle)])


def _with_schemas(s: Story) -> LlmAgent:
    a = LlmAgent(
        name="a",
        description="Does a.",
        input_schema=Order,
        output_schema=Order,
        model=s.model(call("pay_a"), '{"item": "book", "count": 2}'),
        tools=[s.gated("pay_a")],
    )
    model = s.model(call("a", item="book"), "root done")
    return LlmAgent(name="root", description="Root.", model=model, tools=[AgentTool(a)])


def _with_state(s: Story) -> LlmAgent:
    async def note(tool_context: ToolContext) -> str:
        """Note."""
        tool_context.state["what"] = f"{tool_context.state.get('what', '')}x"
        s.effects.append(f"note {tool_context.state['what']}")
        return "noted"

    a = LlmAgent(
        name="a",
        description="Does a.",
        instruction="Pay for {what?}.",
        model=s.model(call("note"), call("pay_a"), call("note"), "a done"),
        tools=[s.gated("pay_a"), note],
    )
    return LlmAgent(
        name="root",
        description="Root.",
        instruction="State {what?}.",
        model=s.model(call("note"), call("a", request="please"), call("note"), "root done"),
        tools=[AgentTool(a), note],
    )


TREES: dict[str, tuple[Build, list[str]]] = {
    "one": (lambda s: s.talker("root", *delegate("a"), tools=[AgentTool(s.asker("a"))]), ["go"]),
    "two at once": (
        lambda s: s.talker(
            "root", *delegate("a", "b"), tools=[AgentTool(s.asker("a")), AgentTool(s.asker("b"))]
        ),
        ["go"],
    ),
    "beside a single_turn agent": (
        lambda s: s.talker(
            "root",
            *delegate("a"),
            tools=[AgentTool(s.asker("a"))],
            sub_agents=singles(s, "b"),
        ),
        ["go"],
    ),
    "below a transfer": (
        lambda s: s.hander(
            "root",
            m := s.talker("m", *delegate("a"), tools=[AgentTool(s.asker("a"))]),
            sub_agents=[m],
        ),
        ["go"],
    ),
    "two calls with two gates each": (_twice, ["go", "thanks"]),
    "two calls of a single_turn agent at once, one of which waits": (_twice_at_once, ["go"]),
    "in two messages": (_in_two_messages, ["go", "again"]),
    "an AgentTool in an AgentTool": (_nested, ["go"]),
    "input and output with schemas": (_with_schemas, ["go"]),
    "state": (_with_state, ["go"]),
    "an AgentTool in an AgentTool, beside a free tool": (_nested_beside, ["go"]),
    "skip_summarization": (
        lambda s: LlmAgent(
            name="root",
            description="Root.",
            model=s.model(call("a", request="please")),
            tools=[AgentTool(s.asker("a"), skip_summarization=True)],
        ),
        ["go"],
    ),
}


@pytest.mark.parametrize("name", TREES)
async def test_a_conversation_is_that_of_plain_adk_without_the_gates(
    open_stage: Open, name: str
) -> None:
    build, messages = TREES[name]
    free, story = Story(has_gates=False), Story()
    texts = await plain(build(free), messages)
    talk = Talk(await open_stage(build(story)))
    for text in messages:
        await talk.say(text)
        await approve_all(talk)
    assert "".join(said(talk)) == "".join(texts)
    assert Counter(story.effects) == Counter(free.effects)
    assert Counter(map(words_of, story.requests)) == Counter(map(words_of, free.requests))
    assert (await talk.history())["parts"][-1] == talk.messages[-1]["parts"][-1]


@pytest.mark.parametrize("name", TREES)
async def test_approvals_survive_a_restart_before_each_request(
    open_engine: OpenEngine, name: str
) -> None:
    build, messages = TREES[name]
    free = Story(has_gates=False, is_stateless=True)
    story = Story(is_stateless=True)
    texts = await plain(build(free), messages)
    talk = await with_restarts(open_engine, lambda: build(story), messages)
    assert "".join(said(talk)) == "".join(texts)
    assert Counter(story.effects) == Counter(free.effects)
    assert Counter(map(words_of, story.requests)) == Counter(map(words_of, free.requests))


async def test_each_call_of_a_single_turn_agent_has_a_place_of_its_own_in_the_log(
    open_stage: Open,
) -> None:
    """ADK: what has the same path in a later run goes on where the earlier one was."""
    build, [message] = TREES["two calls of a single_turn agent at once, one of which waits"]
    talk = Talk(await open_stage(build(Story())))
    await talk.say(message)
    await approve_all(talk)
    session = await talk.engine.resources.session_log.load(talk.key)
    assert session is not None
    places = {(each.branch, each.node_info.path) for each in session.events if each.author == "a"}
    assert len(places) == len({path for _, path in places}) == 2


async def test_a_denied_call_does_not_run_and_its_agent_goes_on(open_stage: Open) -> None:
    story = Story()
    talk = Talk(await open_stage(TREES["two at once"][0](story)))
    await talk.say("go")
    first, second = talk.pending()
    decide(first, approved=False, reason="Not now")
    decide(second, approved=True)
    await talk.post_last()
    assert story.effects == ["pay_b"]
    assert "The user denied this call." in story.requests[3]
    assert words(talk.messages[-1]) == "root done"


async def test_only_the_calls_that_wait_are_shown_of_an_agent_that_is_called(
    open_stage: Open,
) -> None:
    counted = Counted()
    inner = scripted(
        [
            calls(("look", {}), text="One moment, I look.", delta_chars=4),
            calls(("pay", {"n": 1})),
            says("It is paid.", delta_chars=4),
        ],
        [counted.tool(), look],
        description="Pays.",
    )
    inner.name = "payer"
    root = scripted([calls(("payer", {"request": "Pay."})), says("Done.")], [AgentTool(inner)])
    talk = Talk(await open_stage(root), "progressive")
    first = await talk.say("pay")
    assert [tool_name(p) for p in talk.messages[-1]["parts"] if is_tool_part(p)] == ["payer", "pay"]
    assert words(talk.messages[-1]) == ""
    assert "One moment" not in repr(first.chunks)
    [part] = talk.pending()
    assert part["toolMetadata"]["agent"] == "stage/payer"
    await approve_all(talk)
    assert counted.runs == [1]
    message = talk.messages[-1]
    assert words(message) == "Done."
    [payer] = [p for p in message["parts"] if is_tool_part(p) and tool_name(p) == "payer"]
    assert payer["output"] == {"result": "It is paid."}
    assert comparable(await talk.history()) == comparable(message)


async def test_a_tool_of_the_page_answers_inside_an_agent_that_is_called(open_stage: Open) -> None:
    story = Story()
    inner = story.talker("a", call("get_location"), tools=[location()])
    talk = Talk(await open_stage(story.talker("root", *delegate("a"), tools=[AgentTool(inner)])))
    await talk.say("where am I?")
    part = part_of(talk.messages[-1], "get_location")
    assert part["state"] == "input-available"
    part.update(state="output-available", output={"city": "Rome"})
    assert not (await talk.post_last()).failed
    assert "Rome" in story.requests[-2]
    assert words(talk.messages[-1]) == "root done"


async def test_what_an_agent_that_is_called_fails_with_is_told_to_nobody(
    open_stage: Open,
) -> None:
    story = Story()
    inner = story.asker("a")
    root = story.talker("root", *delegate("a"), tools=[AgentTool(inner)])
    inner.instruction = failing
    talk = Talk(await open_stage(root))
    turn = await talk.say("go")
    assert part_of(talk.messages[-1], "a")["state"] == "output-error"
    assert words(talk.messages[-1]) == "root done"
    assert "secret" not in repr(turn.chunks)
    assert "secret" not in repr(story.requests)


async def lost_in_adk(root: BaseAgent, folder: Path) -> Conversation:
    """A conversation with plain ADK, in which everything that waits was approved once."""
    app = App(
        name="plain", root_agent=root, resumability_config=ResumabilityConfig(is_resumable=True)
    )
    conversation = Conversation(root, folder, app)
    await conversation.say("go")
    with suppress(IndexError):
        await conversation.run([answer(each) for each in await conversation.waiting()])
    return conversation


async def test_adk_forgets_what_a_single_turn_agent_was_asked_after_an_approval(
    tmp_path: Path,
) -> None:
    story = Story()
    root = story.talker("root", *delegate("a"), sub_agents=singles(story, "a"))
    await (await lost_in_adk(root, tmp_path)).close()
    asked = [request for request in story.requests if "'pay_a'" in request]
    assert ["please" in request for request in asked] == [True, False]


async def test_adk_loses_the_approval_of_a_single_turn_agent_below_another_one(
    tmp_path: Path,
) -> None:
    story = Story()
    middle = story.talker("m", *delegate("a"), sub_agents=singles(story, "a"), mode="single_turn")
    root = story.talker("root", *delegate("m"), sub_agents=[middle])
    await (await lost_in_adk(root, tmp_path)).close()
    assert story.effects == []
    assert "'response': {'result': None}" in story.requests[3]


async def test_adk_continues_an_earlier_call_of_a_single_turn_agent_at_a_later_one(
    tmp_path: Path,
) -> None:
    story = Story()
    root = RESUMED["single_turn: a second call after an approval"](story)
    assert isinstance(root, BaseAgent)
    conversation = await lost_in_adk(root, tmp_path)
    asked = [request for request in story.requests if "'pay_a'" in request]
    assert "please" not in asked[2]
    await conversation.close()


async def look() -> str:
    """Look."""
    return "seen"


def failing(_: Any) -> str:
    raise RuntimeError("secret 4711")


async def test_an_agent_that_stands_at_two_places_is_refused() -> None:
    story = Story()
    shared = AgentTool(story.asker("a"))
    colleague = story.talker("m", *delegate("a"), tools=[shared])
    root = story.talker("root", *delegate("a"), tools=[shared], sub_agents=[colleague])
    [sentence] = refusals(root, await survey(root))
    assert "'a' stands at several places" in sentence


async def test_an_agent_tool_without_gates_stays_an_agent_tool() -> None:
    free = Story(has_gates=False)
    found = await survey(free.talker("root", *delegate("a"), tools=[AgentTool(free.asker("a"))]))
    assert not found.inline_agents
    assert not found.is_hidden("a")
