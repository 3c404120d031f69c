"""Typed declarations with a handler as tools of an agent, in a running server (S1-R12, S1-R27)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.adk.tools.tool_context import ToolContext

from sluicegate.errors import DeclarationError, ToolError
from sluicegate.tools import (
    FunctionDeclaration,
    GoogleSearch,
    Tool,
    declared_tool,
    declared_tools,
    gated,
)
from tests.engine.stage import Prompts, calls, says, scripted
from tests.server.page import Page, served

WEIGH = {
    "name": "weigh",
    "description": "Weigh a parcel.",
    "parameters": {
        "type": "OBJECT",
        "properties": {"parcelId": {"type": "STRING"}, "in-grams": {"type": "BOOLEAN"}},
        "required": ["parcelId"],
    },
}
SEND = {
    "name": "send",
    "description": "Send a parcel.",
    "parametersJsonSchema": {"type": "object", "properties": {"to": {"type": "string"}}},
}
SHOP = Tool.read({"functionDeclarations": [WEIGH, SEND]})


def weigh(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"weight": 7, "asked": arguments}


async def send(arguments: dict[str, Any], tool_context: ToolContext) -> str:
    if arguments["to"] == "nowhere":
        raise ToolError("There is no such place.")
    return f"{tool_context.user_id} sends to {arguments['to']}"


def chunks(read: list[dict[str, Any]], kind: str, field: str) -> list[Any]:
    return [chunk[field] for chunk in read if chunk["type"] == kind]


async def test_the_functions_of_a_tool_are_tools_of_an_agent(tmp_path: Path) -> None:
    prompts = Prompts()
    arguments = {"parcelId": "p1", "in-grams": True}
    script = [calls(("weigh", arguments), ("send", {"to": "Rome"})), says("done")]
    agent = scripted(
        script,
        declared_tools(SHOP, {"weigh": weigh, "send": send}),
        before_model_callback=prompts,
    )
    async with served(agent, tmp_path) as http:
        read = await Page(http).say("go")
    asked = {"weight": 7, "asked": arguments}
    assert prompts.results["weigh"] == {"result": asked}
    assert prompts.results["send"]["result"].endswith(" sends to Rome")
    assert prompts.descriptions == {"weigh": "Weigh a parcel.", "send": "Send a parcel."}
    assert {"result": asked} in chunks(read, "tool-output-available", "output")


@pytest.mark.parametrize("how", ["require_confirmation", "gated"])
async def test_a_declared_tool_runs_after_its_approval_and_not_with_invalid_arguments(
    tmp_path: Path, how: str
) -> None:
    if how == "gated":
        tool = gated(declared_tool(SEND, send))
    else:
        tool = declared_tool(SEND, send, require_confirmation=True)
    script = [calls(("send", {"to": 3})), calls(("send", {"to": "nowhere"})), says("pity")]
    async with served(scripted(script, [tool]), tmp_path) as http:
        page = Page(http)
        await page.say("go")
        [part] = page.pending()
        assert part["input"] == {"to": "nowhere"}
        read = await page.answer()
    invalid, refused = chunks(read, "tool-output-error", "errorText")
    assert invalid.startswith("Not run: the arguments do not fit: to: 3 is not of type")
    assert refused == "There is no such place."


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: declared_tools(SHOP, {"weigh": weigh}), "send: The function has no handler."),
        (
            lambda: declared_tools(Tool(), {"weigh": weigh}),
            "weigh: The function is not declared.",
        ),
        (
            lambda: declared_tools(Tool(google_search=GoogleSearch()), {}),
            "Tool: A built-in tool has no handler; give the agent ADK's own.",
        ),
        (
            lambda: declared_tool({"name": "weigh"}, weigh),
            "description: Field required.",
        ),
        (
            lambda: declared_tool(
                FunctionDeclaration(
                    name="weigh",
                    description="Weigh.",
                    parameters_json_schema={
                        "type": "object",
                        "properties": {"a": {"type": "string", "pattern": "(?=a)"}},
                    },
                ),
                weigh,
            ),
            "weigh: Its schema cannot be used: the pattern '(?=a)' is not valid",
        ),
    ],
)
def test_a_declaration_that_cannot_be_a_tool_is_refused(make: Any, sentence: str) -> None:
    with pytest.raises(DeclarationError) as raised:
        make()
    assert str(raised.value).startswith(sentence)
