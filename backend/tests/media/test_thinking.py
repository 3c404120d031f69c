"""Thinking of Claude, of which some parts are encrypted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.llm_request import LlmRequest
from google.genai import types

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.options import EngineOptions
from tests.engine.stage import words
from tests.engine.talk import Talk
from tests.media.conftest import close
from tests.media.history import Server, said
from tests.media.making import maker

if TYPE_CHECKING:
    from pathlib import Path

    from tests.media.families import Family


ROUTES = [
    ("claude-adk", "claude-adk"),
    ("claude", "claude"),
    ("claude-adk", "claude"),
    ("claude", "claude-adk"),
]


@pytest.mark.parametrize("routes", ROUTES, ids="-then-".join)
async def test_encrypted_thinking_is_kept_and_sent_back(
    families: dict[str, Family], folder: Path, routes: tuple[str, str]
) -> None:
    """The endpoint refuses a call without the thinking before it, and thinking that is changed."""
    families["claude"].endpoint.refused.clear()
    thinking = types.GenerateContentConfig(
        thinking_config=types.ThinkingConfig(thinking_budget=1024)
    )
    options = EngineOptions(
        sessions=f"sqlite+aiosqlite:///{folder}/sluicegate.db",
        artifacts=f"file:{folder}/files",
    )
    for name, wish in zip(routes, ("make green then red", "look"), strict=True):
        family = families[name]
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
    thoughts = [part["text"] for part in turn.message["parts"] if part["type"] == "reasoning"]
    assert set(thoughts) <= {"I call it."}


async def test_encrypted_thinking_of_a_whole_response_is_kept_through_litellm(
    families: dict[str, Family],
) -> None:
    family = families["claude"]
    family.endpoint.refused.clear()
    model = Server().models.wrap(family.make())
    thinking = types.ThinkingConfig(thinking_budget=1024)
    declared = maker()._get_declaration()
    assert declared is not None
    config = types.GenerateContentConfig(
        thinking_config=thinking, tools=[types.Tool(function_declarations=[declared])]
    )
    contents = [said("make green")]
    for _ in range(2):
        request = LlmRequest(model=model.model, contents=list(contents), config=config)
        [response] = [one async for one in model.generate_content_async(request)]
        assert response.content is not None
        contents.append(response.content)
        for part in response.content.parts or []:
            if part.function_call is not None:
                answer = types.FunctionResponse(
                    id=part.function_call.id, name="make", response={"result": "green"}
                )
                contents.append(said(types.Part(function_response=answer)))
    await close(model)
    assert family.endpoint.refused == []
    [sent] = [one for one in family.endpoint.last["messages"] if one["role"] == "assistant"]
    assert [block["type"] for block in sent["content"]] == [
        "thinking",
        "redacted_thinking",
        "tool_use",
    ]
    assert [part.text for part in contents[1].parts or [] if part.thought] == ["I call it.", None]
