"""What an edit or another answer replaced stays readable, and nothing in it can be answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.errors import Superseded, Unknown
from sluicegate.testing.message_comparison import comparable
from sluicegate.wire.ui_messages import UIMessage
from tests.engine.stage import Counted, calls, part_of, says, scripted, words
from tests.engine.stores import on_every_store
from tests.engine.talk import Talk, Turn, decide

if TYPE_CHECKING:
    from tests.engine.stage import Open

pytestmark = on_every_store

SCRIPT = {
    "pay": [calls(("pay", {"n": 1}), text="I pay. "), says("Paid.")],
    "hello": [says("Hello.")],
    "bye": [says("Bye.")],
    "fail": [says("I begin", error={"code": 500, "message": "no"})],
}


async def regenerate(talk: Talk) -> Turn:
    talk.messages.pop()
    return await talk.post({"message": talk.messages[-1], "trigger": "regenerate-message"})


async def edit(talk: Talk, index: int, text: str) -> Turn:
    question: Any = {**talk.messages[index], "parts": [{"type": "text", "text": text}]}
    talk.messages[index:] = [question]
    return await talk.post({"message": question, "messageId": question["id"]})


async def version(talk: Talk, message: UIMessage, number: int) -> list[UIMessage]:
    found = await talk.engine.get_version(talk.chat_id, message["id"], number, user=talk.user)
    assert found["version"] == number
    messages: list[UIMessage] = found["messages"]
    return messages


async def all_words(talk: Talk, message: UIMessage, number: int) -> list[str]:
    return [words(each) for each in await version(talk, message, number)]


def number_of(message: UIMessage) -> int | None:
    """The number of the version, which the first one does not have."""
    number: int | None = message["metadata"].get("version")
    return number


@pytest.fixture
async def talk(open_stage: Open, counted: Counted) -> Talk:
    return Talk(await open_stage(scripted(SCRIPT, [counted.tool()])))


async def test_a_regenerated_and_an_edited_answer_stay_readable(talk: Talk) -> None:
    first = (await talk.say("hello")).message
    assert number_of(first) is None
    second = (await regenerate(talk)).message
    third = (await edit(talk, 0, "bye")).message
    assert [number_of(each) for each in (second, third, await talk.history())] == [2, 3, 3]
    assert await all_words(talk, third, 1) == ["hello", "Hello."]
    old = await version(talk, third, 2)
    assert [each["id"] for each in old] == [talk.messages[0]["id"], second["id"]]
    assert comparable(old[1]) == comparable(second)
    assert number_of(old[1]) == 2
    assert await all_words(talk, second, 1) == ["hello", "Hello."]


async def test_an_edit_replaces_the_later_messages_with_their_own_versions(talk: Talk) -> None:
    await talk.say("hello")
    await talk.say("hello again")
    inner = (await edit(talk, 2, "bye")).message
    outer = (await edit(talk, 0, "bye")).message
    assert (number_of(inner), number_of(outer)) == (2, 2)
    assert await all_words(talk, outer, 1) == ["hello", "Hello.", "bye", "Bye."]
    assert await all_words(talk, inner, 1) == ["hello again", "Hello."]


async def test_an_answer_that_failed_is_a_version_of_the_next_attempt(talk: Talk) -> None:
    await talk.say("fail", message_id="u1")
    question = talk.messages[0]
    talk.messages[:] = [question]
    await talk.post({"message": question})
    stored = await talk.history()
    assert number_of(stored) == 2
    assert await all_words(talk, stored, 1) == ["fail", "I begin"]


async def test_an_approval_of_an_earlier_version_is_settled_and_cannot_be_answered(
    talk: Talk, counted: Counted
) -> None:
    await talk.say("pay")
    old = talk.messages[-1]
    approval = old["parts"][-1]["approval"]["id"]
    new = (await regenerate(talk)).message
    [_, replaced] = await version(talk, new, 1)
    part = part_of(replaced, "pay")
    assert (part["state"], part["approval"]["approved"]) == ("output-denied", False)
    assert replaced["metadata"]["approvals"][approval]["state"] == "superseded"
    assert words(replaced) == "I pay. "
    decide(old["parts"][-1], approved=True)
    with pytest.raises(Superseded):
        await talk.post({"message": old, "messageId": old["id"]})
    with pytest.raises(Superseded):
        await talk.engine.approvals.decide(approval, {"approved": True}, user="ann", via="test")
    await talk.approve()
    assert number_of(talk.messages[-1]) == 2
    assert counted.runs == [1]


async def test_an_answer_that_an_edit_has_replaced_is_closed_and_not_unknown(
    talk: Talk, counted: Counted
) -> None:
    await talk.say("hello")
    old = (await talk.say("pay")).message
    question = talk.messages[-2]
    await edit(talk, 0, "bye")
    decide(old["parts"][-1], approved=True)
    with pytest.raises(Superseded, match="replaced by another"):
        await talk.post({"message": old, "messageId": old["id"]})
    again = {"message": question, "messageId": old["id"], "trigger": "regenerate-message"}
    with pytest.raises(Superseded, match="replaced by another"):
        await talk.post(again)
    with pytest.raises(Unknown):
        await talk.post({**again, "messageId": "unknown"})
    with pytest.raises(Unknown):
        await talk.post({"message": {**old, "id": "unknown"}, "messageId": "unknown"})
    assert counted.runs == []


async def test_an_answer_is_closed_before_the_one_that_replaces_it_has_begun(talk: Talk) -> None:
    old = (await talk.say("pay")).message
    resources = talk.engine.resources
    [exchange] = (await resources.logs.load(talk.key)).exchanges
    await resources.start_turn.runner.rewind_async(
        user_id=talk.user,
        session_id=talk.chat_id,
        rewind_before_invocation_id=exchange.invocation,
    )
    decide(old["parts"][-1], approved=True)
    with pytest.raises(Superseded, match="replaced by another"):
        await talk.post({"message": old, "messageId": old["id"]})


async def test_only_an_earlier_version_in_a_chat_of_the_user_is_found(talk: Talk) -> None:
    await talk.say("hello")
    new = (await regenerate(talk)).message
    for chat, message, number, user in [
        (talk.chat_id, new["id"], 2, "ann"),
        (talk.chat_id, new["id"], 0, "ann"),
        (talk.chat_id, talk.messages[0]["id"], 1, "ann"),
        (talk.chat_id, new["id"], 1, "bob"),
        ("another", new["id"], 1, "ann"),
    ]:
        with pytest.raises(Unknown):
            await talk.engine.get_version(chat, message, number, user=user)


async def test_the_versions_are_deleted_with_their_chat(talk: Talk) -> None:
    await talk.say("hello")
    new = (await regenerate(talk)).message
    await talk.engine.delete_chat(talk.chat_id, user=talk.user)
    with pytest.raises(Unknown):
        await talk.engine.get_version(talk.chat_id, new["id"], 1, user=talk.user)


async def test_many_versions_are_found_in_one_pass(talk: Talk) -> None:
    await talk.say("hello")
    for _ in range(24):
        await regenerate(talk)
    last = talk.messages[-1]
    assert number_of(last) == 25
    assert await all_words(talk, last, 1) == await all_words(talk, last, 24)
    with pytest.raises(Unknown):
        await talk.engine.get_version(talk.chat_id, "unknown", 1, user=talk.user)
