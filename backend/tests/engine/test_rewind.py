"""Another answer, or another question: nothing that happened is forgotten (section 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.adk.tools.function_tool import FunctionTool

from sluicegate.errors import Superseded, Unknown, WouldForgetEffect
from sluicegate.testing.message_comparison import comparable
from tests.engine.stage import Counted, Prompts, calls, part_of, says, scripted, words
from tests.engine.talk import Talk, Turn, decide

if TYPE_CHECKING:
    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.tools.approval_terms import GatedCall
    from tests.engine.stage import Open

PAYS = [calls(("pay", {"n": 1}), text="I pay. "), says("Paid.")]
SCRIPT = {
    "pay": PAYS,
    "fail": [calls(("breaks", {})), says("It broke.")],
    "hello": [says("Hello.")],
    "bye": [says("Bye.")],
}


async def breaks() -> None:
    """Raise after the effect."""
    raise RuntimeError


async def regenerate(talk: Talk) -> Turn:
    """Truncate the messages, then post, as ``regenerate()`` of the client does."""
    talk.messages.pop()
    return await talk.post({"message": talk.messages[-1], "trigger": "regenerate-message"})


async def edit(talk: Talk, index: int, text: str) -> Turn:
    """Replace a message as ``sendMessage({messageId})`` does."""
    question: Any = {**talk.messages[index], "parts": [{"type": "text", "text": text}]}
    talk.messages[index:] = [question]
    return await talk.post({"message": question, "messageId": question["id"]})


async def roles_and_words(talk: Talk) -> list[tuple[str, str]]:
    chat = await talk.engine.get_chat(talk.chat_id, user=talk.user)
    return [(message["role"], words(message)) for message in chat["messages"]]


@pytest.fixture
async def talk(open_stage: Open, counted: Counted, prompts: Prompts) -> Talk:
    tools = [counted.tool(), FunctionTool(breaks, require_confirmation=True)]
    return Talk(await open_stage(scripted(SCRIPT, tools, before_model_callback=prompts)))


async def test_a_regenerated_answer_replaces_the_first(talk: Talk, prompts: Prompts) -> None:
    first = await talk.say("hello")
    second = await regenerate(talk)
    assert second.message["id"] != first.message["id"]
    assert await roles_and_words(talk) == [("user", "hello"), ("assistant", "Hello.")]
    assert prompts.texts == ["hello"]


async def test_an_edited_message_replaces_the_first_and_everything_after_it(
    talk: Talk, prompts: Prompts
) -> None:
    await talk.say("hello")
    await talk.say("hello again")
    await edit(talk, 0, "bye")
    assert await roles_and_words(talk) == [("user", "bye"), ("assistant", "Bye.")]
    assert prompts.texts == ["bye"]
    stored = await talk.history()
    assert comparable(stored) == comparable(talk.messages[-1])


async def test_a_regenerated_answer_supersedes_open_approvals(talk: Talk, counted: Counted) -> None:
    await talk.say("pay")
    old = talk.messages[-1]
    await regenerate(talk)
    assert counted.runs == []
    decide(old["parts"][-1], approved=True)
    with pytest.raises((Unknown, Superseded)):
        await talk.post({"message": old, "messageId": old["id"]})
    assert (await talk.approve()).finish_reason == "stop"
    assert counted.runs == [1]
    chats = await talk.engine.list_chats(user=talk.user, limit=10, after=None, query=None)
    assert chats["chats"][0]["pendingApprovals"] == 0


async def test_a_denied_call_may_be_discarded_and_is_requested_again(
    talk: Talk, counted: Counted
) -> None:
    await talk.say("pay")
    await talk.answer(approved=False)
    await regenerate(talk)
    assert len(talk.pending()) == 1
    await talk.approve()
    assert counted.runs == [1]


@pytest.mark.parametrize("text", ["pay", "fail"])
async def test_an_answer_with_an_effect_is_never_discarded(talk: Talk, text: str) -> None:
    await talk.say("hello")
    await talk.say(text)
    await talk.approve()
    chat = await talk.engine.get_chat(talk.chat_id, user=talk.user)
    for body in (
        {"message": talk.messages[2], "trigger": "regenerate-message"},
        {"message": talk.messages[2], "messageId": talk.messages[2]["id"]},
        {"message": talk.messages[0], "trigger": "regenerate-message"},
    ):
        with pytest.raises(WouldForgetEffect):
            await talk.start(body)
    assert await talk.engine.get_chat(talk.chat_id, user=talk.user) == chat


@pytest.mark.parametrize("release", ["deferred", "progressive"])
async def test_an_answer_says_that_it_cannot_be_replaced_as_soon_as_a_tool_has_run(
    open_stage: Open, counted: Counted, release: ReleasePolicy
) -> None:
    script = [calls(("pay", {"n": 1})), calls(("pay", {"n": 2})), says("Paid.")]
    talk = Talk(await open_stage(scripted(script, [counted.tool()])), release)
    await talk.say("pay")
    assert "rewindable" not in {
        **talk.messages[-1]["metadata"],
        **(await talk.history())["metadata"],
    }
    await talk.approve()
    # The second request waits, and the result of the first may be held.
    assert talk.messages[-1]["metadata"]["rewindable"] is False
    assert (await talk.history())["metadata"]["rewindable"] is False
    question = talk.messages[0]
    with pytest.raises(WouldForgetEffect):
        await talk.start({"message": question, "messageId": question["id"]})
    await talk.answer(approved=False)
    assert talk.messages[-1]["metadata"]["rewindable"] is False


async def test_an_answer_in_which_a_grant_ran_a_tool_cannot_be_replaced(
    talk: Talk, counted: Counted
) -> None:
    await talk.say("pay")
    await talk.approve(remember=dict.fromkeys(talk.asks(), "chat"))
    await talk.say("pay")
    assert counted.runs == [1, 1]
    assert talk.messages[-1]["metadata"]["rewindable"] is False
    with pytest.raises(WouldForgetEffect):
        await regenerate(talk)


async def test_an_answer_with_a_denied_or_refused_call_can_be_replaced(
    open_stage: Open, counted: Counted
) -> None:
    async def never(call: GatedCall, user: str) -> bool:
        return call.approval is None

    agent = scripted(SCRIPT, [counted.tool()])
    talk = Talk(await open_stage(agent, policy=never))
    for approved in (True, False):
        await talk.say("pay")
        await talk.answer(approved=approved)
        stored = await talk.history()
        assert "rewindable" not in {**talk.messages[-1]["metadata"], **stored["metadata"]}
        await regenerate(talk)
        await talk.answer(approved=False)
    assert counted.runs == []


async def test_an_answer_after_an_effect_may_be_regenerated(talk: Talk, counted: Counted) -> None:
    await talk.say("pay")
    await talk.approve()
    await talk.say("hello")
    await regenerate(talk)
    assert [role for role, _ in await roles_and_words(talk)] == ["user", "assistant"] * 2
    assert counted.runs == [1]
    chat = await talk.engine.get_chat(talk.chat_id, user=talk.user)
    assert part_of(chat["messages"][1], "pay")["state"] == "output-available"


async def test_a_regeneration_refers_to_the_message_that_it_replaces(talk: Talk) -> None:
    await talk.say("hello")
    answer = talk.messages.pop()
    body = {
        "message": talk.messages[-1],
        "messageId": answer["id"],
        "trigger": "regenerate-message",
    }
    await talk.post(body)
    assert await roles_and_words(talk) == [("user", "hello"), ("assistant", "Hello.")]


async def test_an_unknown_message_is_not_regenerated(talk: Talk) -> None:
    await talk.say("hello")
    stranger: Any = {"id": "nobody", "role": "user", "parts": [{"type": "text", "text": "hello"}]}
    with pytest.raises(Unknown):
        await talk.start({"message": stranger, "trigger": "regenerate-message"})


async def test_a_chat_is_deleted_with_its_approvals(talk: Talk, counted: Counted) -> None:
    await talk.say("pay")
    old = talk.messages[-1]
    await talk.engine.delete_chat(talk.chat_id, user=talk.user)
    with pytest.raises(Unknown):
        await talk.engine.get_chat(talk.chat_id, user=talk.user)
    decide(old["parts"][-1], approved=True)
    with pytest.raises(Unknown):
        await talk.post({"message": old, "messageId": old["id"]})
    talk.messages.clear()
    await talk.say("hello")
    chats = await talk.engine.list_chats(user=talk.user, limit=10, after=None, query=None)
    assert [chat["pendingApprovals"] for chat in chats["chats"]] == [0]
    assert counted.runs == []
