"""Declarations of tools, converted to google-genai and back (S1-R04 to S1-R13, S1-R43)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.genai import types

from sluicegate.errors import DeclarationError, SluicegateError
from sluicegate.tools import (
    FunctionCall,
    FunctionDeclaration,
    FunctionResponse,
    GoogleSearch,
    Part,
    Schema,
    Tool,
)
from sluicegate.tools.strict_genai import Declared

STRING = types.Schema(type=types.Type.STRING)
DEEP = types.Schema(
    type=types.Type.OBJECT,
    properties={
        "user_Name": types.Schema(type=types.Type.STRING, min_length=1, max_length=9, title="N"),
        "Any-Of": types.Schema(any_of=[types.Schema(type=types.Type.NULL), STRING]),
        "rows": types.Schema(
            type=types.Type.ARRAY,
            max_items=3,
            items=types.Schema(
                type=types.Type.OBJECT,
                properties={
                    "kind": types.Schema(
                        type=types.Type.STRING, format="enum", enum=["a", "b"], nullable=True
                    ),
                    "cells": types.Schema(
                        type=types.Type.ARRAY,
                        items=types.Schema(
                            type=types.Type.NUMBER, minimum=0, maximum=1, default=0.5
                        ),
                    ),
                    "more": types.Schema(ref="#/defs/Node"),
                },
                required=["cells"],
            ),
        ),
        "map": types.Schema(type=types.Type.OBJECT, additional_properties=STRING),
        "flag": types.Schema(type=types.Type.BOOLEAN, example=False),
    },
    property_ordering=["rows", "user_Name"],
    required=["rows"],
    defs={"Node": STRING},
)
DECLARATION = types.FunctionDeclaration(
    name="find_rows",
    description="Find rows.",
    parameters=DEEP,
    response=types.Schema(type=types.Type.INTEGER),
    behavior=types.Behavior.NON_BLOCKING,
)
CALL = types.FunctionCall(id="c1", name="find_rows", args={"user_Name": "Ada"})
LATER = types.FunctionResponse(
    id="c1",
    name="find_rows",
    response={"rows": [1]},
    will_continue=True,
    scheduling=types.FunctionResponseScheduling.WHEN_IDLE,
    parts=[
        types.FunctionResponsePart(
            inline_data=types.FunctionResponseBlob(data=b"\x00\xff", mime_type="image/png")
        )
    ],
)


@pytest.mark.parametrize(
    ("kind", "theirs"),
    [
        (Schema, DEEP),
        (FunctionDeclaration, DECLARATION),
        (
            FunctionDeclaration,
            types.FunctionDeclaration(
                name="a", description="b", parameters_json_schema={"type": "object", "x_Y": [None]}
            ),
        ),
        (Tool, types.Tool(function_declarations=[DECLARATION])),
        (Tool, types.Tool(google_search=GoogleSearch(exclude_domains=["a.example"]))),
        (
            Tool,
            types.Tool(code_execution=types.ToolCodeExecution(), url_context=types.UrlContext()),
        ),
        (FunctionCall, CALL),
        (FunctionCall, types.FunctionCall(name="find_rows")),
        (FunctionResponse, LATER),
        (Part, types.Part(function_call=CALL, thought_signature=b"\x00\xff")),
        (Part, types.Part(function_response=LATER)),
        (Part, types.Part(text="", thought=True, thought_signature=b"s")),
        (Part, types.Part(thought_signature=b"s")),
        (Part, types.Part(inline_data=types.Blob(data=b"\xfe", mime_type="a/b"))),
        (
            Part,
            types.Part(
                executable_code=types.ExecutableCode(code="1", language=types.Language.PYTHON)
            ),
        ),
    ],
    ids=lambda value: "" if isinstance(value, type) else type(value).__name__,
)
def test_conversion_from_google_genai_and_back_loses_nothing(
    kind: type[Declared], theirs: Any
) -> None:
    ours = kind.read(theirs)
    assert isinstance(ours, type(theirs)), "it can be handed to ADK as it is"
    assert ours.to_genai() == theirs
    assert type(ours.to_genai()) is type(theirs)
    over = kind.read(json.loads(json.dumps(ours.to_json())))
    assert over.to_json() == theirs.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert over.to_json() == ours.to_json()


def test_a_schema_of_google_genai_may_leave_its_type_open() -> None:
    theirs = types.Schema(type=types.Type.ARRAY, items=types.Schema(title="any"))
    assert Schema.read(theirs).to_genai() == theirs


def test_the_json_has_camel_case_fields_and_unchanged_properties() -> None:
    tool = Tool(
        function_declarations=[
            FunctionDeclaration(
                name="find_rows",
                description=" Find rows. ",
                parameters=Schema(
                    type=types.Type.OBJECT,
                    properties={
                        "user_name": Schema(type=types.Type.STRING, max_length=9),
                        "anyOf": Schema(type=types.Type.INTEGER),
                        "Any_Of": Schema(any_of=[Schema(type=types.Type.STRING)], type=None),
                    },
                    property_ordering=["user_name", "anyOf"],
                    required=["user_name"],
                ),
            )
        ],
        google_search=GoogleSearch(),
    )
    assert tool.to_json() == {
        "functionDeclarations": [
            {
                "name": "find_rows",
                "description": "Find rows.",
                "parameters": {
                    "type": "OBJECT",
                    "properties": {
                        "user_name": {"type": "STRING", "maxLength": 9},
                        "anyOf": {"type": "INTEGER"},
                        "Any_Of": {"anyOf": [{"type": "STRING"}]},
                    },
                    "propertyOrdering": ["user_name", "anyOf"],
                    "required": ["user_name"],
                },
            }
        ],
        "googleSearch": {},
    }


def test_a_tool_is_empty_by_default() -> None:
    assert Tool().function_declarations == []
    assert Tool().to_json() == {}


def test_every_tool_of_google_genai_is_accepted() -> None:
    markers = set(types.Tool.model_fields) - {"function_declarations", "mcp_servers"}
    for name in markers:
        theirs = types.Tool.model_validate({name: {}})
        assert Tool.read(theirs).to_genai() == theirs


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "STRING"}
    for _ in range(depth):
        schema = {"type": "OBJECT", "properties": {"in": {"type": "ARRAY", "items": schema}}}
    return schema


def test_schemas_may_be_deep() -> None:
    assert Schema.read(nested(5)).to_json() == nested(5)


OBJECT = {"type": "OBJECT"}
NAMED = {"name": "a", "description": "b"}


@pytest.mark.parametrize(
    ("kind", "value", "sentence"),
    [
        (Schema, {}, "type: Field required."),
        (Schema, {"type": "str"}, "type: Input should be one of ARRAY, BOOLEAN,"),
        (Schema, {"type": ["STRING"]}, "type: Input should be one of"),
        (Schema, {"type": "ARRAY"}, "Schema: An array needs items."),
        (
            Schema,
            {**OBJECT, "properties": {"a": {"type": "ARRAY", "items": {"type": "ARRAY"}}}},
            "properties.a.items: An array needs items.",
        ),
        (
            Schema,
            {**OBJECT, "properties": {"a": {"type": "STRING"}}, "required": ["b"]},
            "Schema: The required 'b' is not among the properties.",
        ),
        (Schema, {"type": "STRING", "const": 1}, "const: Extra inputs are not permitted."),
        (Schema, nested(400), "Schema: It is nested too deep."),
        (Schema, 5, "Schema: Input should be a valid dictionary"),
        (FunctionDeclaration, {"name": "a"}, "description: Field required."),
        (FunctionDeclaration, {"name": "a", "description": " "}, "description: String should"),
        (FunctionDeclaration, {**NAMED, "name": "1a"}, "name: A name is a letter or _"),
        (FunctionDeclaration, {**NAMED, "name": "a" * 65}, "name: A name is a letter or _"),
        (FunctionDeclaration, {**NAMED, "name": "a b"}, "name: A name is a letter or _"),
        (
            FunctionDeclaration,
            {**NAMED, "parameters": {"type": "STRING"}},
            "parameters: The arguments of a function are an OBJECT.",
        ),
        (
            FunctionDeclaration,
            {**NAMED, "parametersJsonSchema": {"type": "string"}},
            "parametersJsonSchema: The arguments of a function are an object.",
        ),
        (
            FunctionDeclaration,
            {**NAMED, "parameters": OBJECT, "parametersJsonSchema": {"type": "object"}},
            "FunctionDeclaration: parameters and parametersJsonSchema exclude each other.",
        ),
        (FunctionDeclaration, {**NAMED, "behavior": "LAZY"}, "behavior: Input should be one of"),
        (
            Tool,
            {"functionDeclarations": [NAMED, NAMED]},
            "functionDeclarations: There are two functions named 'a'.",
        ),
        (
            Tool,
            {"functionDeclarations": [NAMED, {**NAMED, "parameters": {**OBJECT, "items": {}}}]},
            "functionDeclarations.1.parameters.items.type: Field required.",
        ),
        (FunctionCall, {"args": {}}, "name: Field required."),
        (FunctionCall, {"name": ""}, "name: String should have at least 1 character."),
        (FunctionCall, {"name": "a", "args": "{"}, "args: Input should be JSON."),
        (FunctionCall, {"name": "a", "args": "[1]"}, "args: Input should be a valid dictionary."),
        (FunctionResponse, {"name": "a"}, "response: Field required."),
        (FunctionResponse, {"name": "a", "response": 1}, "response: Input should be"),
        (Part, {}, "Part: A part holds something."),
        (
            Part,
            {"text": "", "functionCall": {"name": "a"}},
            "Part: A part holds one thing, not function_call and text.",
        ),
        (Part, {"functionCall": {"args": {}}}, "functionCall.name: Field required."),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_an_invalid_declaration_is_refused_by_its_path(
    kind: type[Declared], value: Any, sentence: str
) -> None:
    with pytest.raises(DeclarationError) as refused:
        kind.read(value)
    assert str(refused.value).startswith(sentence)
    assert isinstance(refused.value, ValueError | SluicegateError)


def test_a_constructor_refuses_as_read_does() -> None:
    with pytest.raises(DeclarationError, match=r"^items\.type: Input should be one of ARRAY"):
        Schema(type=types.Type.ARRAY, items={"type": "LIST"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("args", "read"),
    [(None, {}), ({}, {}), ('{"a": [1]}', {"a": [1]}), ({"a": None}, {"a": None})],
)
def test_arguments_may_be_missing_or_in_a_string(args: Any, read: dict[str, Any]) -> None:
    assert FunctionCall.read({"name": "a", "args": args}).args == read
    assert FunctionCall.read({"name": "a"}).args == {}


@pytest.mark.parametrize(
    ("result", "response"),
    [
        ({"a": 1}, {"result": {"a": 1}}),
        (None, {"result": None}),
        ([1, "a"], {"result": [1, "a"]}),
        (
            types.FileData(file_uri="a"),
            {"result": {"displayName": None, "fileUri": "a", "mimeType": None}},
        ),
    ],
    ids=str,
)
def test_a_response_has_the_name_and_the_id_of_its_call(
    result: object, response: dict[str, Any]
) -> None:
    answer = FunctionResponse.to(FunctionCall.read(CALL), result)
    assert (answer.name, answer.id, answer.response) == ("find_rows", "c1", response)


def test_parallel_calls_of_one_tool_keep_their_ids() -> None:
    calls = [FunctionCall(name="a", id=f"c{number}") for number in range(3)]
    assert [FunctionResponse.to(call, 1).id for call in calls] == ["c0", "c1", "c2"]
    assert FunctionResponse.to(FunctionCall(name="a"), 1).to_json() == {
        "name": "a",
        "response": {"result": 1},
    }


def test_a_failed_response_is_an_error() -> None:
    answer = FunctionResponse.failed(FunctionCall.read(CALL), "It is closed.")
    assert answer.response == {"error": "It is closed."}


def test_a_result_that_is_not_json_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"^find_rows: A object is no result in JSON"):
        FunctionResponse.to(FunctionCall.read(CALL), object())


def test_an_unknown_part_is_unchanged() -> None:
    """Instead of becoming an empty text, which would lose its signature (S1-R15)."""
    wire = {"hologram": {"a_b": [1]}, "thoughtSignature": "AP8="}
    part = Part.read(wire)
    assert (part.to_json(), part.thought_signature) == (wire, b"\x00\xff")
    with pytest.raises(DeclarationError, match=r"^hologram: google-genai has no such part"):
        part.to_genai()
