"""Several agents in one answer, with the real ADK: live, and again from the log."""

from __future__ import annotations

from google.adk.agents import BaseAgent, ParallelAgent

from tests.core.adk_conversations import AdkConversation, agent, call, price


async def test_a_transfer_changes_the_agent_and_is_no_call() -> None:
    child = agent([{"text": "Child here."}], name="child", description="c")
    root = agent([call("transfer_to_agent", agent_name="child")], name="root", sub_agents=[child])
    conversation = AdkConversation(root)
    await conversation.say("hi")
    assert await conversation.emitted() == [
        'data-agent {"name":"child"}',
        "step child",
        "text-1 Child here..",
        "end",
    ]


async def test_a_sub_agent_has_its_own_steps() -> None:
    child = agent([{"text": "Child here."}], name="child", description="c", mode="single_turn")
    root = agent(
        [call("child", request="go")], [{"text": "Done."}], name="root", sub_agents=[child]
    )
    conversation = AdkConversation(root)
    await conversation.say("hi")
    emitted = await conversation.emitted()
    branch = next(event.branch for event in conversation.live if event.author == "child")
    assert emitted[4:] == [
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


async def test_of_parallel_agents_the_first_to_begin_is_emitted_first() -> None:
    slow = {"parts": [{"text": "a long answer of the first"}], "delta_chars": 2}
    quick = {"parts": [{"text": "short"}], "delta_chars": 9}
    both: list[BaseAgent] = [agent(slow, name="first"), agent(quick, name="second")]
    conversation = AdkConversation(ParallelAgent(name="both", sub_agents=both))
    await conversation.say("go")
    whole = [e.author for e in conversation.live if e.content and not e.partial]
    assert whole == ["second", "first"]
    assert await conversation.emitted() == [
        "step both.first/first",
        "text-1 a long answer of the first.",
        "end",
        'data-agent {"name":"second"}',
        "step both.second/second",
        "text-2 short.",
        "end",
    ]


async def test_calls_of_parallel_agents_are_emitted_before_their_outcomes() -> None:
    slow = {"parts": [{"text": "a long answer of the first one"}], "delta_chars": 1}
    quick = agent([call("price", item="tea")], [{"text": "3"}], name="second", tools=[price])
    conversation = AdkConversation(
        ParallelAgent(name="both", sub_agents=[agent(slow, name="first"), quick])
    )
    await conversation.say("go")
    emitted = await conversation.emitted()
    assert emitted[3:] == [
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
