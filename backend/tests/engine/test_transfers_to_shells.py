"""A root that hands over to sequences, loops or parallel agents, with gates in them.

Each conversation is compared with the one that plain ADK has without the gates: the same texts,
effects and requests of the models, apart from placeholders of calls that wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.loop_agent import LoopAgent
from google.adk.apps.app import App
from google.adk.runners import InMemoryRunner
from google.genai import types

from tests.engine.adk_story import Story, call, words_of
from tests.engine.lost_topologies import LOST, TO_SHELLS
from tests.engine.stage import words
from tests.engine.talk import Talk, decide
from tests.engine.topologies import parallel, runs_at_once, sequence

if TYPE_CHECKING:
    from google.adk.workflow import BaseNode

    from sluicegate.engine.chat_engine import ChatEngine
    from tests.engine.stage import Open
    from tests.engine.topologies import Build

    OpenEngine = Callable[..., AbstractAsyncContextManager[ChatEngine]]


def _with_colleague(story: Story) -> LlmAgent:
    """An agent with a colleague that keeps the conversation, and a sequence."""
    booker = LlmAgent(
        name="booker",
        description="Books.",
        model=story.model("Where to?", call("pay_booker"), "Booked."),
        tools=[story.gated("pay_booker")],
    )
    rest = sequence(story.asker("a"), parallel(story.asker("b"), story.asker("c")))
    model = story.model(call("transfer_to_agent", agent_name="booker"))
    return LlmAgent(name="root", model=model, description="Hands on.", sub_agents=[booker, rest])


def _two_levels(story: Story) -> LlmAgent:
    inner = sequence(story.asker("a"), story.talker("b"))
    middle = story.hander("m", inner, sub_agents=[inner])
    return story.hander("root", middle, sub_agents=[middle])


def _and_back(story: Story) -> LlmAgent:
    """A colleague that hands back to the root, which then hands on to the sequence."""
    colleague = LlmAgent(
        name="m",
        description="Hands back.",
        model=story.model(call("transfer_to_agent", agent_name="root")),
    )
    rest = sequence(story.asker("a"), story.asker("b"))
    model = story.model(
        call("transfer_to_agent", agent_name="m"), call("transfer_to_agent", agent_name="seq")
    )
    return LlmAgent(name="root", model=model, description="Hands on.", sub_agents=[colleague, rest])


TREES: dict[str, tuple[Build, list[str]]] = {
    **{name: (LOST[name][0], ["go"]) for name in TO_SHELLS},
    "a colleague that keeps the conversation": (_with_colleague, ["go", "to Rome"]),
    "two levels of transfers": (_two_levels, ["go"]),
    "a transfer back to the root": (_and_back, ["go"]),
}


def _review(story: Story) -> LlmAgent:
    """A transfer to a loop of parallel agents and a reviewer, two rounds."""
    writers = []
    for name in "ab":
        turns: list[types.Part | str] = [call(f"pay_{name}"), f"{name} done"] * 2
        tools: list[Any] = [story.gated(f"pay_{name}")]
        writers.append(LlmAgent(name=name, model=story.model(*turns), tools=tools))
    reviewer = LlmAgent(name="reviewer", model=story.model("Again.", "Good."))
    rounds: list[Any] = [parallel(*writers), reviewer]
    loop = LoopAgent(name="loop", max_iterations=2, sub_agents=rounds)
    return story.hander("root", loop, sub_agents=[loop])


async def plain(target: BaseNode | App, messages: list[str]) -> list[str]:
    """The texts of plain ADK."""
    texts: list[str] = []
    app = target if isinstance(target, App) else App(name="root", root_agent=target)
    runner = InMemoryRunner(app=app)
    await runner.session_service.create_session(app_name=app.name, user_id="u", session_id="s")
    for text in messages:
        message = types.Content(role="user", parts=[types.Part(text=text)])
        async for event in runner.run_async(user_id="u", session_id="s", new_message=message):
            texts += [p.text for p in (event.content and event.content.parts) or () if p.text]
    await runner.close()
    return texts


async def approve_all(talk: Talk) -> None:
    """Approve what waits until nothing does."""
    while talk.pending():
        for part in talk.pending():
            decide(part, approved=True)
        assert not (await talk.post_last()).failed


async def with_restarts(
    open_engine: OpenEngine, build: Callable[[], BaseNode | App], messages: list[str]
) -> Talk:
    """Have a conversation in which everything is approved, each request at a new server."""
    talk: Talk | None = None
    waiting = list(messages)
    while waiting or (talk is not None and talk.pending()):
        async with open_engine(build()) as engine:
            talk = Talk(engine) if talk is None else talk
            talk.engine = engine
            if talk.messages and talk.pending():
                for part in talk.pending():
                    decide(part, approved=True)
                assert not (await talk.post_last()).failed
            else:
                await talk.say(waiting.pop(0))
    assert talk is not None
    return talk


def said(talk: Talk) -> list[str]:
    return [words(each) for each in talk.messages if each["role"] == "assistant"]


@pytest.mark.parametrize("name", TREES)
async def test_a_conversation_is_that_of_plain_adk_without_the_gates(
    open_stage: Open, name: str
) -> None:
    build, messages = TREES[name]
    free, story = Story(has_gates=False), Story()
    texts = await plain(tree := build(free), messages)
    talk = Talk(await open_stage(build(story)))
    for text in messages:
        await talk.say(text)
        await approve_all(talk)
    if runs_at_once(tree):
        assert sorted("".join(said(talk))) == sorted("".join(texts))
        assert Counter(story.effects) == Counter(free.effects)
        assert Counter(map(words_of, story.requests)) == Counter(map(words_of, free.requests))
    else:
        assert "".join(said(talk)) == "".join(texts)
        assert (story.effects, story.requests) == (free.effects, free.requests)
    assert (await talk.history())["parts"][-1] == talk.messages[-1]["parts"][-1]


@pytest.mark.parametrize("name", TREES)
async def test_approvals_survive_a_restart_before_each_request(
    open_engine: OpenEngine, name: str
) -> None:
    build, messages = TREES[name]
    free, story = Story(has_gates=False), Story(is_stateless=True)
    texts = await plain(tree := build(free), messages)
    talk = await with_restarts(open_engine, lambda: build(story), messages)
    order = sorted if runs_at_once(tree) else str
    assert order("".join(said(talk))) == order("".join(texts))
    assert Counter(story.effects) == Counter(free.effects)


async def test_adk_shows_a_reviewer_only_to_the_parallel_agent_that_ended_last() -> None:
    free = Story(has_gates=False)
    await plain(_review(free), ["go"])
    assert _readers_of_the_review(free) == 1


async def test_parallel_agents_of_a_later_round_all_see_the_reviewer(open_stage: Open) -> None:
    story = Story()
    talk = Talk(await open_stage(_review(story)))
    await talk.say("go")
    await approve_all(talk)
    assert _readers_of_the_review(story) == 2


def _readers_of_the_review(story: Story) -> int:
    """How many of the parallel agents see in the second round what the reviewer said."""
    last = [[each for each in story.requests if f"['pay_{name}'], [" in each][-1] for name in "ab"]
    return sum("Again." in request for request in last)


# In a loop the same call is not asked again (A6).
@pytest.mark.parametrize("name", [name for name in TO_SHELLS if "loop" not in name])
async def test_a_denied_call_does_not_run_and_the_rest_goes_on(open_stage: Open, name: str) -> None:
    story = Story()
    talk = Talk(await open_stage(LOST[name][0](story)))
    await talk.say("go")
    decide(talk.pending()[0], approved=False)
    denied = talk.pending()
    for part in denied:
        decide(part, approved=True)
    await talk.post_last()
    await approve_all(talk)
    assert len(story.effects) == 1
    assert "done" in words(talk.messages[-1])
