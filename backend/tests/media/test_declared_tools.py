"""The declarations of typed tools at the endpoint of each provider (S1-R13, S1-R21, S1-R24)."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any, Literal

import pytest
from google.adk.tools.base_tool import BaseTool
from google.genai import types
from pydantic import BaseModel

from sluicegate.tools import FunctionDeclaration, Schema, typed_tool
from sluicegate.wire.requests import parse_chat_request
from tests.engine.stage import words
from tests.engine.talk import Talk
from tests.media.families import Family

if TYPE_CHECKING:
    from tests.media.conftest import Open


class ByHand(BaseTool):
    """A tool that is declared without a function."""

    def _get_declaration(self) -> types.FunctionDeclaration:
        weight = Schema(type=types.Type.NUMBER, minimum=0)
        return FunctionDeclaration(
            name="weigh",
            description="Weigh it.",
            parameters=Schema(
                type=types.Type.OBJECT, properties={"in_Grams": weight}, required=["in_Grams"]
            ),
        )


class Row(BaseModel):
    Cell_Value: float


def make(
    kind: str,
    user_Name: str | None = None,
    rows: list[Row] = [],  # noqa: B006 - a default of a tool
    level: Literal["low", "high"] = "low",
    day: date | None = None,
) -> str:
    """Make something.

    Args:
        kind: What to make.
        user_Name: For whom.
        rows: Out of what.
        level: How well.
        day: For which day.
    """
    return f"{kind} {level} {day}"


ROW = {
    "type": "object",
    "title": "Row",
    "properties": {"Cell_Value": {"type": "number", "title": "Cell Value"}},
    "required": ["Cell_Value"],
}
SCHEMA = {
    "type": "object",
    "properties": {
        "kind": {"type": "string", "description": "What to make."},
        "user_Name": {
            "anyOf": [{"type": "string"}, {"type": "null"}],
            "default": None,
            "description": "For whom.",
        },
        "rows": {
            "type": "array",
            "items": {"$ref": "#/$defs/Row"},
            "default": [],
            "description": "Out of what.",
        },
        "level": {
            "type": "string",
            "enum": ["low", "high"],
            "default": "low",
            "description": "How well.",
        },
        "day": {
            "anyOf": [{"type": "string", "format": "date"}, {"type": "null"}],
            "default": None,
            "description": "For which day.",
        },
    },
    "required": ["kind"],
    "additionalProperties": False,
    "$defs": {"Row": ROW},
}
SCROLL = {"type": "object", "properties": {"to_Place": {"type": "string"}}}
PAGE = {"scroll": {"description": "Scroll.", "parameters": SCROLL}}
DECLARED = [("scroll", "Scroll.", SCROLL), ("make", "Make something.", SCHEMA)]
WEIGH = {
    "type": "object",
    "properties": {"in_Grams": {"type": "number", "minimum": 0.0}},
    "required": ["in_Grams"],
}
IN_CAPITALS = {
    **WEIGH,
    "type": "OBJECT",
    "properties": {"in_Grams": {"type": "NUMBER", "minimum": 0.0}},
}
ALL = [*DECLARED, ("weigh", "Weigh it.", WEIGH)]
TOLD: dict[str, Any] = {
    "gemini-3": [
        {
            "functionDeclarations": [
                # Google takes its fields in either case, and its client writes this one so.
                {"name": name, "description": said, "parameters_json_schema": schema}
                for name, said, schema in DECLARED
            ]
            + [{"name": "weigh", "description": "Weigh it.", "parameters": IN_CAPITALS}]
        }
    ],
    "openai": [
        {
            "type": "function",
            "function": {"name": name, "description": said, "parameters": schema},
        }
        for name, said, schema in ALL
    ],
    "claude": [
        {"type": "custom", "name": name, "description": said, "input_schema": schema}
        for name, said, schema in ALL
    ],
}


@pytest.mark.parametrize("name", TOLD)
async def test_the_declarations_for_each_provider(
    families: dict[str, Family], open_with: Open, name: str
) -> None:
    family = families[name]
    family.endpoint.refused.clear()
    tools = [typed_tool(make), ByHand(name="weigh", description="Weigh it.")]
    async with open_with(family.make(), tools=tools, page_tools=("scroll",)) as engine:
        message = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "make soap"}]}
        body: Any = {"id": "c1", "message": message, "tools": PAGE}
        request = parse_chat_request(body, engine.resources.options.request_limits)
        talk = Talk(engine, "progressive", chat_id="c1")
        turn = await talk.read(await engine.start(request, user="ann", client=talk.client))
    assert family.endpoint.last["tools"] == TOLD[name]
    assert "soap low None" in words(turn.message)
    assert family.endpoint.refused == []
