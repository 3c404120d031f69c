"""Tools that a page declares in its requests; other fields are ignored (section 2)."""

from __future__ import annotations

from typing import Any

import pytest

from sluicegate.wire.limits import RequestLimits
from sluicegate.wire.requests import PageTool, parse_chat_request

SCHEMA = {"type": "object", "properties": {"to_Place": {"type": "string"}}}
SCROLL = {"description": "Scroll.", "parameters": SCHEMA, "providerOptions": {"x": 1}}
USER: dict[str, Any] = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "up"}]}
ASSISTANT = {"id": "a1", "role": "assistant", "parts": [{"type": "step-start"}]}
LIMITS = RequestLimits(page_tools=frozenset({"scroll", "shine"}))


@pytest.mark.parametrize("message", [USER, ASSISTANT], ids=["a question", "an answer"])
def test_only_tools_that_the_server_lists_are_parsed_and_kept(message: Any) -> None:
    body: Any = {"id": "c1", "message": message, "tools": {"erase": 7, "scroll": SCROLL}}
    request = parse_chat_request(body, LIMITS)
    assert request.tools == (PageTool("scroll", "Scroll.", SCHEMA),)
    assert request.posted_body == {"id": "c1", "message": message, "tools": {"scroll": SCROLL}}


@pytest.mark.parametrize("tools", [None, 7, "x", {"scroll": 7}, {"erase": 7}])
def test_tools_are_ignored_if_the_server_lists_none(tools: Any) -> None:
    request = parse_chat_request({"id": "c1", "message": USER, "tools": tools})
    assert request.tools == ()
    assert "tools" not in request.posted_body


def test_tools_keep_the_order_of_the_page() -> None:
    shine = {"description": "Shine.", "parameters": {"type": "object"}}
    body: Any = {"id": "c1", "message": USER, "tools": {"shine": shine, "scroll": SCROLL}}
    names = [tool.name for tool in parse_chat_request(body, LIMITS).tools]
    assert names == ["shine", "scroll"]
