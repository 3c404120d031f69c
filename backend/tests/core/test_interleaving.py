"""Several agents in one answer, through the real ADK: each story live, and again from its log."""

from __future__ import annotations

from google.adk.agents import BaseAgent, ParallelAgent

from tests.core.adk_conversations import Story, agent, call, price


async def test_a_transfer_is_a_change_of_agent_and_no_call() -> None:
    child = agent([{"text": "Child here."}], name="child", description="c")
    root = agent([call("transfer_to_agent", agent_name="child")], name="root", sub_agents=[child])
    story = Story(root)
    await story.say("hi")
    assert await story.told() == [
        'data-agent {"name":"child"}',
        "step child",
        "text-1 Child here..",
        "end",
    ]


async def test_a_sub_agent_speaks_in_steps_of_its_own() -> None:
    child = agent([{"text": "Child here."}], name="child", description="c", mode="single_turn")
    root = agent(
        [call("child", request="go")], [{"text": "Done."}], name="root", sub_agents=[child]
    )
    story = Story(root)
    await story.say("hi")
    told = await story.told()
    branch = next(event.branch for event in story.live if event.author == "child")
    assert told[4:] == [
        'data-agent {"name":"child"}',
        f"step {branch}/child",
        "text-1 Child here..",
        "end",
        'done c1 {"result":"Child here."}',
        'data-agent {"name":"root"}',
        "step root",
        "text-2 Done..",
        "end",
    ]


async def test_of_agents_that_run_at_once_the_first_to_speak_is_told_first() -> None:
    slow = {"parts": [{"text": "a long answer of the first"}], "delta_chars": 2}
    quick = {"parts": [{"text": "short"}], "delta_chars": 9}
    both: list[BaseAgent] = [agent(slow, name="first"), agent(quick, name="second")]
    story = Story(ParallelAgent(name="both", sub_agents=both))
    await story.say("go")
    whole = [e.author for e in story.live if e.content and not e.partial]
    assert whole == ["second", "first"]
    assert await story.told() == [
        "step both.first/first",
        "text-1 a long answer of the first.",
        "end",
        'data-agent {"name":"second"}',
        "step both.second/second",
        "text-2 short.",
        "end",
    ]


async def test_calls_of_agents_that_run_at_once_are_told_before_their_outcomes() -> None:
    slow = {"parts": [{"text": "a long answer of the first one"}], "delta_chars": 1}
    quick = agent([call("price", item="tea")], [{"text": "3"}], name="second", tools=[price])
    story = Story(ParallelAgent(name="both", sub_agents=[agent(slow, name="first"), quick]))
    await story.say("go")
    told = await story.told()
    assert told[3:] == [
        'data-agent {"name":"second"}',
        "step both.second/second",
        'input c1 price {"item":"tea"}',
        'call c1 price {"item":"tea"} free',
        "end",
        'done c1 {"result":3}',
        "step both.second/second",
        "text-2 3.",
        "end",
    ]
