"""Thinking of Claude, of which some parts are encrypted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from google.adk.agents.llm_agent import LlmAgent
from google.genai import types

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.options import EngineOptions
from tests.engine.stage import words
from tests.engine.talk import Talk
from tests.media.conftest import close
from tests.media.making import maker

if TYPE_CHECKING:
    from pathlib import Path

    from tests.media.families import Family


async def test_encrypted_thinking_is_kept_and_sent_back(
    families: dict[str, Family], folder: Path
) -> None:
    """The endpoint refuses a call without the thinking before it, and thinking that is changed."""
    family = families["claude-adk"]
    family.endpoint.refused.clear()
    thinking = types.GenerateContentConfig(
        thinking_config=types.ThinkingConfig(thinking_budget=1024)
    )
    options = EngineOptions(
        sessions=f"sqlite+aiosqlite:///{folder}/sluicegate.db", artifacts=f"file:{folder}/files"
    )
    for wish in ("make green then red", "look"):
        model = family.make()
        agent = LlmAgent(
            name="maker", model=model, tools=[maker()], generate_content_config=thinking
        )
        engine = await ChatEngine.open(agent, options)
        talk = Talk(engine, "progressive", chat_id="c1")
        turn = await talk.say(wish)
        await engine.close()
        await close(model)
    assert words(turn.message) == "In all I see a green chart; a red chart."
    assert family.endpoint.refused == []
    sent = [block for message in family.endpoint.last["messages"] for block in message["content"]]
    redacted = [block["data"] for block in sent if block["type"] == "redacted_thinking"]
    assert len(redacted) == len(set(redacted)) == 3
    assert not any(data in json.dumps(turn.message) for data in redacted)
