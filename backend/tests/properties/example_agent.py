"""An agent with every kind of tool, whose model plays the script that the user's text names.

The registries are the world outside the server: what a script says, and what tools really did.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from sluicegate.replay import ScriptedModel
from sluicegate.replay.scenario import ScriptedResponse, parse_scenarios
from sluicegate.replay.script_position import Position, read_position
from sluicegate.tools import client_tool

PIXEL = "aW1hZ2U="
SECRET = "words-of-an-exception"
BIG = 1000
"""From this number on `maybe` requires approval."""

SCRIPTS: dict[str, list[ScriptedResponse]] = {}
"""The responses of the model, by the user's text."""

HANGING: dict[tuple[str, int], asyncio.Event] = {}
"""Responses that never end, by text and number; the event is set once all of it is said."""

EFFECTS: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
"""Tools that really ran, with their argument, by chat."""


def script(text: str, responses: list[dict[str, Any]]) -> None:
    """Let the model answer a text with these responses, in the words of a scenario file."""
    scenario = {"match": "any", "responses": responses}
    SCRIPTS[text] = parse_scenarios({"scenarios": [scenario]}).scenarios[0].responses


class Player(ScriptedModel):
    """Looks its script up in `SCRIPTS`."""

    def choose_response(self, position: Position) -> ScriptedResponse:
        responses = SCRIPTS[position.text]
        if position.answered < len(responses):
            return responses[position.answered]
        return ScriptedResponse.model_validate({"parts": [{"text": "the end"}]})

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT002 - the signature is ADK's
    ) -> AsyncGenerator[LlmResponse, None]:
        position = read_position(llm_request)
        hangs = HANGING.get((position.text, position.answered))
        async for response in super().generate_content_async(llm_request, stream):
            if response.partial or hangs is None:
                yield response
        if hangs is not None:
            hangs.set()
            await asyncio.Event().wait()


def _effect(tool: str, n: int, context: ToolContext) -> dict[str, int]:
    EFFECTS[context.session.id].append((tool, int(n)))
    return {tool: int(n)}


async def free(n: int, tool_context: ToolContext) -> dict[str, int]:
    """Run without asking."""
    return _effect("free", n, tool_context)


async def free_breaks(n: int, tool_context: ToolContext) -> None:
    """Run without asking and raise."""
    _effect("free_breaks", n, tool_context)
    raise RuntimeError(SECRET)


async def draw(n: int, tool_context: ToolContext) -> dict[str, Any]:
    """Run without asking and make a picture."""
    data = b"\x89PNG\r\n\x1a\n" + int(n).to_bytes(4, "big")
    picture = types.Blob(data=data, mime_type="image/png")
    return {**_effect("draw", n, tool_context), "picture": types.Part(inline_data=picture)}


async def pay(n: int, tool_context: ToolContext) -> dict[str, int]:
    """Run after an approval."""
    return _effect("pay", n, tool_context)


def pay_slowly(n: int, tool_context: ToolContext) -> dict[str, int]:
    """Run in a thread after an approval."""
    return _effect("pay_slowly", n, tool_context)


async def breaks(n: int, tool_context: ToolContext) -> None:
    """Raise after an approval."""
    _effect("breaks", n, tool_context)
    raise RuntimeError(SECRET)


async def maybe(n: int, tool_context: ToolContext) -> dict[str, int]:
    """Require approval only for large numbers."""
    return _effect("maybe", n, tool_context)


def _is_big(n: int, tool_context: ToolContext) -> bool:
    return n >= BIG


async def asks(n: int, tool_context: ToolContext) -> dict[str, Any] | None:
    """Request approval while the call runs."""
    if tool_context.tool_confirmation is None:
        tool_context.request_confirmation(hint=f"Shall {n} be?", payload={"n": n})
        return None
    return _effect("asks", n, tool_context)


_NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}}

FREE = ("free", "free_breaks", "draw")
GATED = ("pay", "pay_slowly", "breaks", "asks")
CLIENT = ("here", "here_gated")
TOOLS = (*FREE, *GATED, "maybe", *CLIENT)

agent = LlmAgent(
    name="anything",
    model=Player(scenarios=parse_scenarios({"scenarios": [{"match": "any", "responses": [{}]}]})),
    tools=[
        FunctionTool(free),
        FunctionTool(free_breaks),
        FunctionTool(draw),
        FunctionTool(pay, require_confirmation=True),
        FunctionTool(pay_slowly, require_confirmation=True),
        FunctionTool(breaks, require_confirmation=True),
        FunctionTool(maybe, require_confirmation=_is_big),
        FunctionTool(asks),
        client_tool("here", "Ask the browser.", _NUMBER),
        client_tool("here_gated", "Ask the browser.", _NUMBER, require_confirmation=True),
    ],
)
