"""Random scripts under random people: every promise holds, nothing is lost, nothing runs twice."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.wire.encoding import to_json
from sluicegate.wire.messages import is_tool_part, tool_name
from tests.properties.person import DEEDS, Habits, Person
from tests.properties.playground import EFFECTS, TOOLS
from tests.properties.scripts import UNFINISHED, Ended, Script, scripts, upshot
from tests.properties.world import prepared, profile

IDS = re.compile(r"(?:msg|turn|chat)-[0-9a-f]{12,}|adk-[0-9a-f-]{36}|(?<=error )[0-9a-f]{8}")
MOMENTS = re.compile(r"\d{4}-\d\d-\d\dT[\d:.+]+Z?")


def habits() -> st.SearchStrategy[Habits]:
    return st.builds(
        Habits,
        release=st.sampled_from(["deferred", "deferred", "preview", "progressive"]),
        major=st.sampled_from([7, 7, 6]),
        other_major=st.sampled_from([7, 6]),
        rule=st.sampled_from(["stock", "stock or tool calls", "s2", "each"]),
        verdicts=st.lists(st.booleans(), min_size=1, max_size=3).map(tuple),
        backwards=st.booleans(),
        deeds=st.lists(st.sampled_from(DEEDS), max_size=4).map(tuple),
        afterwards=st.sampled_from(["nothing", "nothing", "ask again", "regenerate"]),
    )


@profile
@given(said=scripts(), habits=habits(), style=st.sampled_from(["call", "call", "confirmation"]))
async def test_any_conversation_keeps_every_promise(
    engines: dict[str, ChatEngine], said: Script, habits: Habits, style: str
) -> None:
    person = Person(engines[style], habits, prepared(said))
    await person.converse()
    is_over = await check(said, person, style)
    if habits.afterwards == "ask again" and person.closed != "text":
        await person.ask_again(is_over=is_over)
        await check(said, person, style)
    elif habits.afterwards == "regenerate" and person.closed != "text":
        await person.regenerate()
        await check(said, person, style)


@settings(profile, max_examples=max(5, profile.max_examples // 10))
@given(said=scripts(), habits=habits(), style=st.sampled_from(["call", "confirmation"]))
async def test_the_same_conversation_is_told_the_same_way_twice(
    engines: dict[str, ChatEngine], said: Script, habits: Habits, style: str
) -> None:
    """S2-R29: ids and moments aside."""
    told = []
    for _ in range(2):
        person = Person(engines[style], habits, prepared(said))
        await person.converse()
        chunks = [to_json(chunk) for turn in person.tab.talk.turns for chunk in turn.chunks]
        told.append(normalised("\n".join(chunks)))
    assert told[0] == told[1]


def normalised(text: str) -> str:
    """The text with every id named by its place of first appearance, and without moments."""
    names: dict[str, str] = {}
    named = IDS.sub(lambda found: names.setdefault(found[0], f"id-{len(names)}"), text)
    return MOMENTS.sub("then", named)


async def check(said: Script, person: Person, style: str) -> bool:
    """The stored answer is what the script comes to; whether that is all the model had to say."""
    assert person.automatic <= len(person.cards) + 1
    chat = await person.engine.get_chat(person.chat, user=person.tab.talk.user)
    assert chat["status"] == "ready"
    answers = [message for message in chat["messages"] if message["role"] == "assistant"]
    assert len(answers) == 1 + (person.closed == "text")
    denied = "output-error" if style == "confirmation" else "output-denied"
    expected = upshot(said, person.answers, closed=person.closed != "no", denied=denied)
    parts = answers[0]["parts"]
    assert Counter(EFFECTS[person.chat]) == expected.effects
    assert words(parts, "text") == "".join(expected.texts)
    assert words(parts, "reasoning") == "".join(expected.thoughts)
    assert Counter(ends(parts)) == expected.calls
    assert sum(part["type"] == "file" for part in parts) == expected.files
    assert sum(part["type"] == "source-url" for part in parts) == expected.sources
    return expected.is_over


def words(parts: list[dict[str, Any]], kind: str) -> str:
    return "".join(part["text"] for part in parts if part["type"] == kind)


def ends(parts: list[dict[str, Any]]) -> list[Ended]:
    """How each call of the script stands in the message; a card of a confirmation is no call."""
    found: list[Ended] = []
    for part in parts:
        if not is_tool_part(part) or tool_name(part) not in TOOLS:
            continue
        output = part.get("output", "")
        if isinstance(output, dict):
            output = {k: v for k, v in output.items() if k != "picture"}
        found.append(
            Ended(
                tool_name(part), int(part["input"].get("n", UNFINISHED)), part["state"], str(output)
            )
        )
    return found
