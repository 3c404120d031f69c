"""Live turns without approvals: typed and spoken, complete, interrupted, stopped and failed."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.sequential_agent import SequentialAgent

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.errors import (
    HeldByAnotherOwner,
    Malformed,
    NotRewindable,
    RequestError,
    TooManyRequests,
    TurnRunning,
    Unavailable,
)
from sluicegate.live.options import LiveTimings
from sluicegate.replay import ScriptedModel
from sluicegate.wire.live_frames import (
    ActivityFrame,
    GoAwayFrame,
    ImageFrame,
    InterruptedFrame,
    InterruptFrame,
    ReadyFrame,
    TranscriptFrame,
    TurnCompleteFrame,
    TurnFrame,
)
from tests.engine.stage import Counted, Steps, calls, says, scripted, words
from tests.live.caller import LIMIT, Caller, agree, calling, question, spoken_response, tone
from tests.live.model_input import record_input

if TYPE_CHECKING:
    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.wire.ui_messages import UIMessage
    from tests.engine.stage import Open

RELEASES: list[ReleasePolicy] = ["deferred", "progressive"]
MODELS = ["scripted", "gemini-3.1-flash-live-preview"]
"""Two ways to take turns: a result is answered in a turn of its own, or in the one of its call."""


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("release", RELEASES)
async def test_a_typed_message_is_answered(
    open_stage: Open, release: ReleasePolicy, model: str
) -> None:
    usage = {"prompt": 12, "output": 9}
    thought = {"parts": [{"thought": "Greet."}, {"text": "Hello there."}], "usage": usage}
    engine = await open_stage(scripted([thought], [Counted().tool()], model=model))
    async with calling(Caller(engine, release)) as caller:
        turn = await caller.say("hi")
        assert words(turn.message) == "Hello there."
        assert [p["text"] for p in turn.message["parts"] if p["type"] == "reasoning"] == ["Greet."]
        assert turn.finish_reason == "stop"
        assert turn.message["metadata"]["usage"]["totalTokens"] == 21
        await agree(caller)
        second = await caller.say("again")
        assert second.message["id"] != turn.message["id"]
        await agree(caller)
    await agree(caller)


async def test_text_is_streamed_when_no_tool_requires_approval(open_stage: Open) -> None:
    engine = await open_stage(scripted([says("Hello there.", delta_chars=4)]))
    async with calling(Caller(engine)) as caller:
        turn = await caller.say("hi")
    assert turn.types.count("text-delta") == 3


@pytest.mark.parametrize("model", MODELS)
async def test_a_spoken_message_is_transcribed_answered_with_audio_and_stored(
    open_stage: Open, model: str
) -> None:
    engine = await open_stage(scripted([spoken_response("I heard.")], model=model))
    async with calling(Caller(engine)) as caller:
        assert await caller.frame(ReadyFrame) == ReadyFrame(16_000, 24_000)
        caller.speak(440)
        turn = await caller.spoken_turn()
        assert words(turn.message) == "I heard."
        assert len(caller.audio) == 4800
        await caller.frame(TurnCompleteFrame)
        [question, answer] = (await caller.chats())["messages"]
        frame = await caller.frame(TurnFrame)
        assert (question["id"], answer["id"]) == (frame.user_message_id, frame.message_id)
        assert question["parts"] == [{"type": "text", "text": "a tone of 440 Hz"}]
        assert caller.said(question["id"]) == "a tone of 440 Hz"
        assert caller.said(answer["id"]) == "I heard."
        assert (await caller.chats())["title"] == "a tone of 440 Hz"
        await agree(caller)
        caller.speak(220)
        second = await caller.spoken_turn(2)
        assert second.message["id"] != turn.message["id"]
        assert len((await caller.chats())["messages"]) == 4
    await agree(caller)


async def test_transcripts_arrive_in_deltas_and_the_question_comes_first(
    open_stage: Open,
) -> None:
    engine = await open_stage(scripted([spoken_response("One two three.", delta_chars=4)]))
    async with calling(Caller(engine)) as caller:
        caller.speak()
        await caller.frame(TurnCompleteFrame)
    transcripts = [
        (f.role, f.text, f.final) for f in caller.frames if isinstance(f, TranscriptFrame)
    ]
    assert transcripts[-5:] == [
        ("assistant", "One ", False),
        ("assistant", "One two ", False),
        ("assistant", "One two thre", False),
        ("assistant", "One two three.", False),
        ("assistant", "One two three.", True),
    ]
    at = [type(frame) for frame in caller.frames].index(TurnFrame)
    question = caller.frames[at].user_message_id
    asked = TranscriptFrame(question, "user", "a tone of 440 Hz", final=True)
    assert asked in caller.frames[:at]


async def test_without_audio_the_spoken_answer_is_text(open_stage: Open) -> None:
    engine = await open_stage(scripted([spoken_response("I say so.")]))
    async with calling(Caller(engine), audio=False) as caller:
        turn = await caller.say("hi")
        assert words(turn.message) == "I say so."
        assert not caller.audio
        await agree(caller)


async def test_the_client_may_mark_where_speech_begins_and_ends(open_stage: Open) -> None:
    engine = await open_stage(scripted([spoken_response("Yes?")]))
    async with calling(Caller(engine), by_client=True) as caller:
        caller.chat.receive_frame(ActivityFrame(begins=True))
        caller.chat.receive_audio(tone(330))
        caller.chat.receive_frame(ActivityFrame(begins=False))
        await caller.spoken_turn()
        assert (await caller.chats())["title"] == "a tone of 330 Hz"


async def test_who_reads_the_end_of_a_spoken_turn_finds_its_chat_in_the_list(
    open_stage: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await open_stage(scripted([spoken_response("Yes?")]))
    touch = engine.resources.chats.touch
    async with calling(Caller(engine)) as caller:
        reading = asyncio.create_task(caller.spoken_turn())

        async def touch_late(chat: ChatKey, *, title: str | None) -> None:
            await asyncio.wait([reading], timeout=0.2)
            await touch(chat, title=title)

        monkeypatch.setattr(engine.resources.chats, "touch", touch_late)
        caller.speak(330)
        await reading
        assert (await caller.chats())["title"] == "a tone of 330 Hz"


async def test_marks_are_refused_where_the_model_detects_speech(open_stage: Open) -> None:
    engine = await open_stage(scripted([spoken_response("Yes?")]))
    async with calling(Caller(engine)) as caller:
        with pytest.raises(Malformed, match="activity=client"):
            caller.chat.receive_frame(ActivityFrame(begins=True))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("release", RELEASES)
async def test_a_tool_without_approval_runs_in_the_turn(
    open_stage: Open, release: ReleasePolicy, model: str
) -> None:
    pay, look = Counted(), []

    def see(n: int) -> dict[str, int]:
        """Look, in a thread."""
        look.append(n)
        return {"seen": n}

    script = [calls(("see", {"n": 1}), ("see", {"n": 2}), text="I look."), says("Seen.")]
    engine = await open_stage(scripted(script, [see, pay.tool()], model=model))
    async with calling(Caller(engine, release)) as caller:
        turn = await caller.say("look")
        assert sorted(look) == [1, 2]
        assert words(turn.message) == "I look.Seen."
        assert turn.finish_reason == "stop"
        await agree(caller)
    await agree(caller)


async def test_the_error_of_a_tool_is_redacted_and_the_run_continues(open_stage: Open) -> None:
    async def fail() -> None:
        """Fail."""
        raise LookupError("words-of-an-exception")

    engine = await open_stage(scripted([calls(("fail", {})), says("It failed.")], [fail]))
    async with calling(Caller(engine)) as caller:
        turn = await caller.say("go")
        assert words(turn.message) == "It failed."
        [part] = [p for p in turn.message["parts"] if p["type"] == "tool-fail"]
        assert part["state"] == "output-error"
        assert "words-of-an-exception" not in str(await caller.chats())
        await agree(caller)


async def test_an_agent_transfers_to_another(open_stage: Open) -> None:
    script = {
        "scenarios": [
            {
                "match": ".",
                "agent": "front",
                "responses": [calls(("transfer_to_agent", {"agent_name": "back"}))],
            },
            {"match": ".", "agent": "back", "responses": [says("Back here.")]},
        ]
    }
    model = ScriptedModel.from_data(script, root="front")
    back = LlmAgent(name="back", model=model, tools=[Counted().tool()])
    front = LlmAgent(name="front", model=model, sub_agents=[back])
    engine = await open_stage(front)
    async with calling(Caller(engine)) as caller:
        turn = await caller.say("hi")
        assert words(turn.message) == "Back here."
        await agree(caller)


async def test_a_root_that_hands_over_to_a_sequence_is_open_live(open_stage: Open) -> None:
    script = {"match": "", "agent": "front", "responses": [says("Hello.")]}
    model = ScriptedModel.from_data({"scenarios": [script]}, root="front")
    back = LlmAgent(name="back", model=model, tools=[Counted().tool()])
    rest = SequentialAgent(name="rest", sub_agents=[back])
    engine = await open_stage(LlmAgent(name="front", model=model, sub_agents=[rest]))
    async with calling(Caller(engine)) as caller:
        assert words((await caller.say("hi")).message) == "Hello."
        await agree(caller)


def slow_agent(steps: Steps, **more: Any) -> LlmAgent:
    """An agent that speaks one piece of its answer per step."""
    script = [spoken_response("One two three four.", delta_chars=4, **more), says("Next.")]
    return scripted(script, sleep=steps)


async def held_back(open_stage: Open, **more: Any) -> tuple[Caller, Steps]:
    """A chat with a model that speaks only as far as it is allowed to."""
    steps = Steps()
    return Caller(await open_stage(slow_agent(steps, **more))), steps


async def test_an_interruption_discards_audio_and_keeps_the_transcript(open_stage: Open) -> None:
    caller, steps = await held_back(open_stage)
    async with calling(caller):
        caller.speak()
        steps.go(5)
        await caller.until(lambda _: "One two " in [getattr(f, "text", "") for f in caller.frames])
        before = len(caller.audio)
        caller.chat.receive_frame(InterruptFrame())
        await caller.frame(InterruptedFrame)
        turn = await caller.spoken_turn()
        assert words(turn.message).startswith("One two ")
        assert "four" not in words(turn.message)
        assert turn.finish_reason == "other"
        await agree(caller)
        steps.go()
        second = await caller.say("and then?")
        assert words(second.message) == "One two three four."
        await agree(caller)
    assert before


async def test_speech_during_an_answer_interrupts_it(open_stage: Open) -> None:
    steps = Steps()
    agent = slow_agent(steps)
    model_input = record_input(agent)
    caller = Caller(await open_stage(agent))
    async with calling(caller):
        caller.speak()
        steps.go(5)
        await caller.until(lambda _: "One two " in [getattr(f, "text", "") for f in caller.frames])
        caller.speak(220)
        await model_input.audio(4)
        steps.go(1)
        await caller.frame(InterruptedFrame)
        first = await caller.spoken_turn()
        assert words(first.message).startswith("One two ")
        steps.go()
        second = await caller.spoken_turn(2)
        assert words(second.message) == "One two three four."
        assert len((await caller.chats())["messages"]) == 4
        await agree(caller)


async def test_a_stop_ends_the_turn_and_the_chat_continues(open_stage: Open) -> None:
    caller, steps = await held_back(open_stage, hang=False)
    async with calling(caller, timings=LiveTimings(stop_grace=LIMIT)):
        asking = asyncio.create_task(caller.say("hi"))
        steps.go(5)
        await caller.until(lambda _: "One two " in [getattr(f, "text", "") for f in caller.frames])
        await caller.engine.stop(caller.chat_id, user=caller.user)
        turn = await asking
        assert turn.finish_reason == "other"
        assert words(turn.message).startswith("One two ")
        stored = await caller.history()
        assert stored["metadata"]["stopped"] is turn.message["metadata"]["stopped"] is True
        await agree(caller)
        steps.go()
        assert words((await caller.say("go on")).message) == "One two three four."


async def test_a_stop_cancels_a_running_call(open_stage: Open) -> None:
    began = asyncio.Event()

    async def wait() -> None:
        """Take for ever."""
        began.set()
        await asyncio.Event().wait()

    script = {"wait": [calls(("wait", {}))], "hi": [says("Hello.")]}
    engine = await open_stage(scripted(script, [wait, Counted().tool()]))
    async with calling(Caller(engine)) as caller:
        asking = asyncio.create_task(caller.say("wait"))
        await began.wait()
        await engine.stop(caller.chat_id, user=caller.user)
        turn = await asking
        [part] = [p for p in turn.message["parts"] if p["type"] == "tool-wait"]
        assert part["state"] == "output-error"
        await agree(caller)
        assert words((await caller.say("hi")).message) == "Hello."


async def test_a_text_during_a_running_answer_is_refused(open_stage: Open) -> None:
    caller, steps = await held_back(open_stage)
    async with calling(caller):
        asking = asyncio.create_task(caller.say("hi"))
        await steps.reached(1)
        with pytest.raises(TurnRunning):
            await caller.start({"message": question("no")})
        with pytest.raises(HeldByAnotherOwner):
            await caller.start_elsewhere({"message": question("no")})
        steps.go()
        assert (await asking).finish_reason == "stop"


async def test_a_chat_goes_from_text_to_voice_and_back(open_stage: Open) -> None:
    script = {"hi": [says("Hello.")], "tone": [spoken_response("I heard.")]}
    engine = await open_stage(scripted(script))
    caller = Caller(engine)
    reader = await caller.start_elsewhere({"message": question("hi", "user-1")})
    await caller.read(reader)
    async with calling(caller):
        caller.speak()
        await caller.spoken_turn()
    reader = await caller.start_elsewhere({"message": question("hi", "user-2")})
    await caller.read(reader)
    assert [words(m) for m in (await caller.chats())["messages"]] == [
        "hi",
        "Hello.",
        "a tone of 440 Hz",
        "I heard.",
        "hi",
        "Hello.",
    ]


async def test_live_exchanges_cannot_be_regenerated(open_stage: Open) -> None:
    engine = await open_stage(scripted([spoken_response("I heard.")]))
    async with calling(Caller(engine)) as caller:
        caller.speak()
        turn = await caller.spoken_turn()
        again = {
            "trigger": "regenerate-message",
            "messageId": turn.message["id"],
            "message": caller.messages[0],
        }
        with pytest.raises(NotRewindable):
            await caller.start(again)
    with pytest.raises(NotRewindable):
        await caller.start_elsewhere(again)
    assert len((await caller.chats())["messages"]) == 2


async def test_the_run_reconnects_to_a_model_that_goes_away(open_stage: Open) -> None:
    script = [says("One.", go_away=True)]
    engine = await open_stage(scripted(script))
    async with calling(Caller(engine)) as caller:
        assert words((await caller.say("hi")).message) == "One."
        await caller.frame(GoAwayFrame)
        await caller.frame(ReadyFrame, 2)
        assert words((await caller.say("again")).message) == "One."
        assert len((await caller.chats())["messages"]) == 4


async def test_a_failing_model_ends_the_turn_and_the_chat_with_one_error_each(
    open_stage: Open,
) -> None:
    broken = {"parts": [], "error": {"code": 500, "message": "words-of-a-provider"}}
    engine = await open_stage(scripted([broken]))
    async with calling(Caller(engine)) as caller:
        turn = await caller.say("hi")
        assert turn.failed
        await caller.until(lambda _: caller.ended is not None)
        assert caller.ended is not None
        assert caller.ended.reason == "run_failed"
        with pytest.raises(Unavailable):
            await caller.start({"message": question("once more")})
    assert "words-of-a-provider" not in str(turn.chunks) + str(caller.frames)
    key = ChatKey(engine.resources.app, caller.user, caller.chat_id)
    assert "words-of-a-provider" not in str(await engine.resources.session_log.load(key))


@pytest.mark.parametrize("limit", [{"max_live_chats": 1}, {"max_live_chats_per_user": 1}])
async def test_a_chat_above_the_limit_is_not_opened(
    open_stage: Open, limit: dict[str, int]
) -> None:
    engine = await open_stage(scripted([says("Hello.")]), **limit)
    async with calling(Caller(engine)):
        with pytest.raises((Unavailable, TooManyRequests)) as caught:
            async with calling(Caller(engine)):
                pass
        assert isinstance(caught.value, RequestError)
        assert caught.value.retry_after
    async with calling(Caller(engine)) as caller:
        assert words((await caller.say("hi")).message) == "Hello."


async def test_a_chat_closed_during_an_answer_keeps_the_transcript(open_stage: Open) -> None:
    caller, steps = await held_back(open_stage)
    async with calling(caller, timings=LiveTimings(stop_grace=LIMIT)):
        caller.speak()
        steps.go(5)
        await caller.until(lambda _: "One two " in [getattr(f, "text", "") for f in caller.frames])
    [_, answer] = (await caller.chats())["messages"]
    assert words(answer).startswith("One two ")
    steps.go()
    reader = await caller.start_elsewhere({"message": question("and now?")})
    await caller.read(reader)
    assert len((await caller.chats())["messages"]) == 4


async def test_a_file_of_the_message_reaches_the_model_and_the_history(open_stage: Open) -> None:
    agent = scripted([says("I see.")], model="gemini-2.5-flash")
    model_input = record_input(agent)
    engine = await open_stage(agent)
    picture = base64.b64encode(bytes.fromhex(PIXEL)).decode()
    part = {"type": "file", "mediaType": "image/png", "url": f"data:image/png;base64,{picture}"}
    message: UIMessage = {
        "id": "user-1",
        "role": "user",
        "parts": [part, {"type": "text", "text": "What is it?"}],
    }
    async with calling(Caller(engine)) as caller:
        caller.messages.append(message)
        turn = await caller.post({"message": message})
        assert words(turn.message) == "I see."
        [stored, _] = (await caller.chats())["messages"]
        assert [p["type"] for p in stored["parts"]] == ["file", "text"]
        await agree(caller)
    assert [bool(p.inline_data) for p in model_input.contents[0].parts or []] != [False, False]


async def test_an_image_is_sent_to_the_model(open_stage: Open) -> None:
    engine = await open_stage(scripted([says("I see.")]))
    async with calling(Caller(engine)) as caller:
        caller.chat.receive_frame(ImageFrame("image/png", bytes.fromhex(PIXEL)))
        assert words((await caller.say("What is it?")).message) == "I see."
        await agree(caller)


PIXEL = (
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360000000000200015e221bc30000000049454e44ae426082"
)
