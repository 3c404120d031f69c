"""Every kind of result for every family: parallel and in sequence, fresh, reloaded and switched.

What is looked at is the JSON that the providers' own clients send, by endpoints that refuse what
the providers refuse; the answer says what arrived, and with which call.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.media.families import ALL, Family
from tests.media.history import Server, reloaded
from tests.media.making import COLOURS, FILES, KINDS, LINKS
from tests.parts import long_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.adk.models.base_llm import BaseLlm

pytestmark = pytest.mark.asyncio(loop_scope="module")

VERTEX = ("vertex-3", "vertex-2")
GEMINI = ("gemini-3", "gemini-2", *VERTEX)
CLAUDE = ("claude", "claude-adk")
UNKNOWN = ("unknown", "unknown-lite")
READ_BY: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("jpeg", "webp", "pdf", "mixed", "everything", "answer", "mcp"), ALL),
    "gif": ("openai", *CLAUDE, *UNKNOWN),
    "text": ("gemini-3", "vertex-3"),
    **dict.fromkeys(("wav", "mp4"), (*GEMINI, *UNKNOWN)),
    "google": (*GEMINI, "openai"),
    "web": ("openai", *VERTEX),
    "bucket": VERTEX,
}
"""The families that receive the file itself; the others receive a label."""

WORDS: Mapping[str, str] = {
    "gif": "this model does not read files of the type image/gif",
    "bmp": "this model does not read files of the type image/bmp",
    "docx": "this model does not read files of the type application/vnd",
    "wav": "this model does not read files of the type audio/wav",
    "mp4": "this model does not read files of the type video/mp4",
    "svg": "<svg xmlns=",
    "text": "na\\u00efve text",
    "csv": "quarter,sales",
    "web": "this model does not read files at its address",
    "bucket": "this model does not read files at its address",
    "google": "this model does not read files at its address",
    "string": "plain words",
    "nothing": "null",
    "number": "7",
    "mapping": '"rows": 3',
    "passed": '"rows": 3',
    "texts": "first\\nsecond",
    "lie": "A file was left out: it is declared as image/png",
    "failure": "It went wrong.",
}


def expected(kind: str, name: str) -> str:
    """The description of a kind by a family, or the label in its place."""
    if kind in COLOURS:
        return f"a {kind} chart"
    if kind == "several":
        return "a blue chart and a green chart and a orange chart"
    if name in READ_BY.get(kind, ()):
        if kind in LINKS:
            return "image/png by its address"
        if kind == "everything":
            return "image/jpeg and application/pdf"
        if kind == "mcp":
            return "image/jpeg"
        return "application/pdf" if kind in ("mixed", "answer") else FILES[kind][1]
    return WORDS[kind]


ROUTE = (*ALL, ALL[0])
"""A chat that changes its model after each answer, and comes back."""


@long_table
@pytest.mark.parametrize("kind", KINDS)
async def test_the_files_of_a_tool_arrive_with_its_call(
    families: dict[str, Family], models: dict[str, BaseLlm], kind: str
) -> None:
    for steps in ([["number", kind, "green"]], [["green"], [kind]]):
        server = Server()
        contents = await server.answered(steps)
        before = [content.model_dump_json() for content in contents]
        told = [await server.ask(models[name], contents) for name in ROUTE]
        assert told[0] == told[-1]
        for name, words in zip(ROUTE, told, strict=True):
            assert "a green chart" in words
            assert expected(kind, name) in plain(words)
        restarted = server.restarted()
        for name, words in zip(ALL, told, strict=False):
            assert await restarted.ask(models[name], reloaded(contents)) == words
        assert [content.model_dump_json() for content in contents] == before
    assert [family.endpoint.refused for family in families.values()] == [[]] * len(ALL)


def plain(words: str) -> str:
    """Words that hold JSON in JSON, as far as it is compared."""
    return json.dumps(words).replace("\\\\", "\\").replace('\\\\"', '"').replace('\\"', '"')


@pytest.mark.parametrize("name", ALL)
async def test_no_request_contains_references_of_the_session(
    families: dict[str, Family], models: dict[str, BaseLlm], name: str
) -> None:
    server = Server()
    contents = await server.answered([list(KINDS)])
    await server.ask(models[name], contents)
    text = json.dumps(families[name].endpoint.last)
    for word in ("sluicegate", "display_name", "displayName", "$ref", "partMetadata"):
        assert word not in text
    assert families[name].endpoint.refused == []
