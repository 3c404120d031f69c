"""Any declaration, call or result is accepted, or refused in one sentence."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import types as mcp

from sluicegate.engine.page_tools import convert_page_tools
from sluicegate.errors import SluicegateError
from sluicegate.tools import (
    FunctionCall,
    FunctionDeclaration,
    FunctionResponse,
    Part,
    Schema,
    Tool,
    declare,
)
from sluicegate.tools.remote_tools import RemoteToolSettings, make_remote_tools
from sluicegate.tools.strict_genai import Declared
from sluicegate.tools.worker_calls_awaiting_input import HeldCalls
from sluicegate.tools.worker_client import ListedTools, WorkerClient
from sluicegate.wire.requests import PageTool

CLIENT = WorkerClient("shop", "http://shop/mcp", lambda: None)
EXAMPLES = settings(
    max_examples=500,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)
FEWER = settings(EXAMPLES, max_examples=100)
"""Where each example is checked against the schema of JSON schemas, which is slow."""

FIELDS = [
    name
    for kind in (Schema, FunctionDeclaration, Tool, FunctionCall, FunctionResponse, Part)
    for name, field in kind.model_fields.items()
    for name in (name, field.alias or name)
]
WORDS = st.sampled_from([*FIELDS, "$ref", "$defs", "OBJECT", "object", "STRING", "string", "B_c"])
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=9)
    | WORDS
    | st.binary(max_size=4)
)
JUNK: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(WORDS | st.text(max_size=4), inner, max_size=5)
    ),
    max_leaves=25,
)
TYPES = JUNK.filter(lambda value: value is not None)
"""None would leave the type open, which only schemas of google-genai may."""

SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    st.fixed_dictionaries({"type": st.sampled_from(["STRING", "NUMBER", "NULL"]) | TYPES}),
    lambda inner: st.fixed_dictionaries(
        {"type": st.sampled_from(["OBJECT", "ARRAY"]) | TYPES},
        optional={
            "items": inner,
            "properties": st.dictionaries(st.text(max_size=4), inner, max_size=3),
            "anyOf": st.lists(inner, max_size=2),
            "required": st.lists(st.text(max_size=2), max_size=2),
            "default": JUNK,
        },
    ),
    max_leaves=12,
)


def or_refused(take: Any) -> Any:
    """What it makes; None where it refuses in one sentence."""
    sentence = "."
    try:
        return take()
    except SluicegateError as error:
        sentence = str(error)
        return None
    finally:
        assert sentence.endswith(".")
        assert "\n" not in sentence


KINDS: list[type[Declared]] = [
    Schema,
    FunctionDeclaration,
    Tool,
    FunctionCall,
    FunctionResponse,
    Part,
]


@EXAMPLES
@given(schema=SCHEMAS, name=st.just("a") | st.text(max_size=3))
def test_any_schema_is_accepted_or_refused(schema: Any, name: str) -> None:
    read = or_refused(lambda: Schema.read(schema))
    if read is not None:
        again = Schema.read(read.to_json())
        assert again.to_json() == read.to_json()
        assert Schema.read(read.to_genai()).to_json() == read.to_json()
    declared = {"name": name, "description": "b", "parameters": schema}
    or_refused(lambda: Tool.read({"functionDeclarations": [declared]}))


@FEWER
@given(schema=SCHEMAS, name=st.just("a") | st.text(max_size=3))
def test_any_schema_of_a_page_or_a_worker_is_accepted_or_refused(schema: Any, name: str) -> None:
    lower = json.loads(json.dumps(schema, default=str).replace("OBJECT", "object"))
    or_refused(lambda: convert_page_tools([PageTool(name, "b", lower)]))
    tool = mcp.Tool(name="a", description="b", input_schema=lower)
    listing = or_refused(
        lambda: make_remote_tools(
            CLIENT, ListedTools([tool]), RemoteToolSettings(), frozenset(), HeldCalls(1)
        )
    )
    for made in [] if listing is None else listing.tools.values():
        made.argument_error({"a": 1})


@pytest.mark.filterwarnings("ignore:.* is not a valid ")
@EXAMPLES
@given(value=JUNK, kind=st.sampled_from(KINDS))
def test_any_json_is_parsed_or_refused(value: Any, kind: type[Declared]) -> None:
    read = or_refused(lambda: kind.read(value))
    if read is not None:
        or_refused(read.to_genai)


@EXAMPLES
@given(value=JUNK)
def test_any_arguments_are_validated_or_refused(value: Any) -> None:
    given_ = value if isinstance(value, dict) else {"x": value, "y": value}
    read = or_refused(lambda: TAKE.validate(given_))
    assert read is None or isinstance(read["y"], float | int)


def take(x: dict[str, list[int]], y: float = 1) -> None:
    """Take it."""


TAKE = declare(take)


@pytest.mark.parametrize(
    "value", [object(), {"a": {1, 2}}, b"\xff", float("nan"), {1: 2}, "\ud800"]
)
def test_any_result_is_a_response_or_refused(value: object) -> None:
    answer = or_refused(lambda: FunctionResponse.to(FunctionCall(name="a"), value))
    if answer is not None:
        json.dumps(answer.to_json(), allow_nan=False)
