"""What models say, through the real ADK: each conversation live, and again from its log."""

from __future__ import annotations

import base64

import pytest
from google.adk.code_executors import UnsafeLocalCodeExecutor
from google.adk.planners import PlanReActPlanner

from sluicegate.core.translator import Translator
from sluicegate.wire.stored_files import StoredFile
from tests.core.adk_conversations import (
    GATED,
    AdkConversation,
    agent,
    call,
    fragment,
    price,
    raw,
    text,
    whole,
)
from tests.core.signal_words import replayed, translate, words

PNG = b"\x89PNG picture"


async def test_a_plain_answer_is_one_step_with_its_thoughts_and_its_text() -> None:
    conversation = AdkConversation(
        agent([{"thought": "Easy."}, {"text": "Hello there, how are you?"}])
    )
    await conversation.say("hi")
    assert await conversation.emitted() == [
        "step helper",
        "reasoning-1 Easy..",
        "text-1 Hello there, how are you?.",
        "end",
    ]


async def test_an_answer_without_fragments_has_the_same_signals() -> None:
    conversation = AdkConversation(
        agent(
            [{"thought": "Easy."}, {"text": "Hello."}, call("price", item="tea")],
            [{"text": "3"}],
            tools=[price],
        ),
        streaming=False,
    )
    await conversation.say("hi")
    assert not any(event.partial for event in conversation.live)
    assert await conversation.emitted() == [
        "step helper",
        "reasoning-1 Easy..",
        "text-1 Hello..",
        'input c1 price {"item":"tea"}',
        'call c1 price {"item":"tea"} free',
        "end",
        'done c1 {"result":3}',
        "step helper",
        "text-2 3.",
        "end",
    ]


async def test_code_media_and_sources_keep_the_order_of_the_model() -> None:
    picture = {"media_type": "image/png", "base64": base64.b64encode(PNG).decode()}
    source = {"uri": "https://example.org/a", "title": "A"}
    conversation = AdkConversation(
        agent(
            [
                {"text": "Look:"},
                {"code": {"code": "6*7", "result": "42"}},
                {"image": picture},
                {"text": "So."},
                {"source": source},
                {"source": source},
                {"source": {"uri": "gs://bucket/b.pdf"}},
            ]
        )
    )
    await conversation.say("hi")
    name = StoredFile.of(PNG, "image/png").name
    assert await conversation.emitted() == [
        "step helper",
        "text-1 Look:.",
        'call code-1 code_execution {"language":"python","code":"6*7"} free dynamic',
        'done code-1 {"outcome":"OUTCOME_OK","output":"42"}',
        f"file /files/{name} image/png",
        "text-2 So..",
        "source-1 https://example.org/a A",
        "source-2 b.pdf application/pdf b.pdf",
        "end",
    ]


async def test_a_model_that_raises_leaves_its_text_unfinished() -> None:
    conversation = AdkConversation(
        agent({"parts": [{"text": "I was about to"}], "error": {"code": 500, "message": "secret"}})
    )
    with pytest.raises(Exception, match="secret"):
        await conversation.say("hi")
    assert words(translate(conversation.live)) == [
        "step helper",
        "text-1 I was about to.",
        "end",
        "failed INTERNAL",
    ]


@pytest.mark.parametrize(
    ("finish", "reason", "failed"),
    [
        ("MAX_TOKENS", "length", False),
        ("SAFETY", "content-filter", False),
        ("PROHIBITED_CONTENT", "content-filter", False),
        ("MALFORMED_FUNCTION_CALL", "other", True),
    ],
)
async def test_a_finish_reason_is_a_failure_only_if_the_model_failed(
    finish: str, reason: str, failed: bool
) -> None:
    conversation = AdkConversation(agent({"parts": [{"text": "So far"}], "finish": finish}))
    await conversation.say("hi")
    translator = Translator(GATED, files_url="")
    signals = [signal for event in conversation.live for signal in translator.feed(event)]
    emitted = ["step helper", "text-1 So far.", "end"]
    assert words(signals) == emitted + ([f"failed {finish}"] if failed else [])
    assert translator.facts.finish_reason == reason


async def test_usage_is_the_sum_over_model_calls() -> None:
    usage = {"prompt": 10, "output": 4}
    one = {"parts": [call("price", item="a")], "usage": usage}
    two = {"parts": [{"text": "1"}], "usage": usage}
    conversation = AdkConversation(agent(one, two, tools=[price]))
    await conversation.say("hi")
    for events in (conversation.live, await conversation.stored()):
        translator = Translator(GATED, files_url="")
        for event in events:
            translator.feed(event)
        found = translator.facts.usage
        assert (found.input_tokens, found.output_tokens, found.total_tokens) == (20, 8, 28)
        assert translator.facts.model == "scripted"


async def test_a_stop_ends_open_text() -> None:
    conversation = AdkConversation(agent([{"text": "First a long text, word by word."}]))
    await conversation.say("go", stop_after=2)
    emitted = words(translate(conversation.live))
    assert emitted[0] == "step helper"
    assert emitted[1].startswith("text-1 First")
    assert emitted[2:] == ["end"]


async def test_code_that_the_agent_runs_itself_follows_the_text_it_was_written_in() -> None:
    written = "Let me see.\n```python\nprint(6*7)\n```\nafter"
    helper = raw(
        [fragment(text(written[:9])), fragment(text(written[9:])), whole(text(written))],
        [fragment(text("42")), whole(text("42"))],
        code_executor=UnsafeLocalCodeExecutor(),
    )
    conversation = AdkConversation(helper)
    await conversation.say("compute")
    emitted = words(translate(conversation.live))
    code = '{"language":"python","code":"print(6*7)"}'
    assert emitted[:4] == [
        "step helper",
        f"text-1 {written}.",
        f"call code-1 code_execution {code} free dynamic",
        "end",
    ]
    assert emitted[4].startswith('done code-1 {"outcome":"OUTCOME_OK"')
    assert emitted[5:] == ["step helper", "text-2 42.", "end"]
    # ADK: the text around the code is cut off before the answer is stored.
    from_log = words(replayed(await conversation.stored()))
    assert from_log == [emitted[0], "text-1 Let me see.\n.", *emitted[2:]]


async def test_a_plan_that_the_planner_turns_into_a_thought_is_emitted_once() -> None:
    planned = "/*PLANNING*/ Think first. /*FINAL_ANSWER*/ Four."
    conversation = AdkConversation(agent([{"text": planned}], planner=PlanReActPlanner()))
    await conversation.say("2+2?")
    assert words(translate(conversation.live)) == ["step helper", f"text-1 {planned}.", "end"]
