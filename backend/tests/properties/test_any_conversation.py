"""Random scripts and users: every invariant holds, nothing is lost, nothing runs twice."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.wire.encoding import to_json
from sluicegate.wire.ui_messages import is_tool_part, tool_name
from tests.properties.example_agent import EFFECTS, TOOLS
from tests.properties.example_scripts import prepared, profile
from tests.properties.random_scripts import UNFINISHED, Ended, Script, expected_outcome, scripts
from tests.properties.simulated_user import ACTIONS, Habits, SimulatedUser

IDS = re.compile(r"(?:msg|turn|chat)-[0-9a-f]{12,}|adk-[0-9a-f-]{36}|(?<=error )[0-9a-f]{8}")
MOMENTS = re.compile(r'\d{4}-\d\d-\d\dT[\d:.+]+Z?|(?<=At":)\d+\.\d+')


def habits() -> st.SearchStrategy[Habits]:
    return st.builds(
        Habits,
        release=st.sampled_from(["deferred", "deferred", "preview", "progressive"]),
        major=st.sampled_from([7, 7, 6]),
        other_major=st.sampled_from([7, 6]),
        rule=st.sampled_from(["stock", "stock or tool calls", "s2", "each"]),
        decisions=st.lists(st.booleans(), min_size=1, max_size=3).map(tuple),
        backwards=st.booleans(),
        actions=st.lists(st.sampled_from(ACTIONS), max_size=4).map(tuple),
        afterwards=st.sampled_from(["nothing", "nothing", "ask again", "regenerate"]),
    )


@profile
@given(said=scripts(), habits=habits(), style=st.sampled_from(["call", "call", "confirmation"]))
async def test_any_conversation_keeps_every_invariant(
    engines: dict[str, ChatEngine], said: Script, habits: Habits, style: str
) -> None:
    user = SimulatedUser(engines[style], habits, prepared(said))
    await user.converse()
    is_over = await check(said, user, style)
    if habits.afterwards == "ask again" and user.closed != "text":
        await user.ask_again(is_over=is_over)
        await check(said, user, style)
    elif habits.afterwards == "regenerate" and user.closed != "text":
        await user.regenerate()
        await check(said, user, style)


@settings(profile, max_examples=max(5, profile.max_examples // 10))
@given(said=scripts(), habits=habits(), style=st.sampled_from(["call", "confirmation"]))
async def test_the_same_conversation_gives_the_same_chunks_twice(
    engines: dict[str, ChatEngine], said: Script, habits: Habits, style: str
) -> None:
    """S2-R29: ids and moments aside."""
    runs = []
    for _ in range(2):
        user = SimulatedUser(engines[style], habits, prepared(said))
        await user.converse()
        chunks = [to_json(chunk) for turn in user.tab.talk.turns for chunk in turn.chunks]
        runs.append(normalised("\n".join(chunks)))
    assert runs[0] == runs[1]


def normalised(text: str) -> str:
    """The text with every id named by its place of first appearance, and without moments."""
    names: dict[str, str] = {}
    named = IDS.sub(lambda found: names.setdefault(found[0], f"id-{len(names)}"), text)
    return MOMENTS.sub("then", named)


async def check(said: Script, user: SimulatedUser, style: str) -> bool:
    """Check the stored answer against the script; returns whether it was played completely."""
    assert user.automatic <= len(user.cards) + 1
    chat = await user.engine.get_chat(user.chat, user=user.tab.talk.user)
    assert chat["status"] == "ready"
    answers = [message for message in chat["messages"] if message["role"] == "assistant"]
    assert len(answers) == 1 + (user.closed == "text")
    denied = "output-error" if style == "confirmation" else "output-denied"
    expected = expected_outcome(said, user.answers, closed=user.closed != "no", denied=denied)
    parts = answers[0]["parts"]
    assert Counter(EFFECTS[user.chat]) == expected.effects
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
