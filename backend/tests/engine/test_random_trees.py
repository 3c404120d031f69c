"""Random agent trees: with every gate decided, a conversation is that of plain ADK without them."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from sluicegate.wire.messages import comparable
from tests.engine.adk_story import Story
from tests.engine.random_trees import RandomTree, converse
from tests.engine.test_shell_root import plain, said

if TYPE_CHECKING:
    from tests.engine.random_trees import OpenEngine

pytestmark = [
    pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated"),  # AgentTool's own
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
]


def words_of(request: str) -> tuple[str, ...]:
    """A request without the order of its instructions, and of results that came at once."""
    return tuple(sorted(re.findall(r"\w+", request.replace("\\n", " "))))


@pytest.mark.parametrize("seed", range(200))
async def test_a_random_tree_does_what_plain_adk_does_without_the_gates(
    open_engine: OpenEngine, seed: int
) -> None:
    free, story = Story(has_gates=False), Story()
    texts = await plain(RandomTree(free, seed).root, ["go"])
    talk, stored = await converse(open_engine, lambda: RandomTree(story, seed), seed)
    assert Counter("".join(said(talk)).split(".")) == Counter("".join(texts).split("."))
    assert Counter(story.effects) == Counter(free.effects)
    # Each branch of parallel agents has an order of its own.
    assert Counter(map(words_of, story.requests)) == Counter(map(words_of, free.requests))
    shown = comparable({**talk.messages[-1], "parts": stored})
    assert comparable(talk.messages[-1]) == shown
