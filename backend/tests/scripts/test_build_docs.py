"""The documentation site: links that are rewritten, the navigation, the page of the HTTP API."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from scripts.build_docs import (
    GENERATED,
    ROOT,
    http_document,
    http_reference,
    navigation,
    pages,
    site_text,
)

PLACES = pages()
GUIDE = ROOT / "docs" / "how-to" / "approvals.md"


def test_every_page_of_the_checkout_has_one_place_in_the_site() -> None:
    assert PLACES[ROOT / "README.md"] == PurePosixPath("readme.md")
    assert PLACES[GUIDE] == PurePosixPath("how-to/approvals.md")
    assert len(set(PLACES.values())) == len(PLACES)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("[start](../../README.md#a-page)", "[start](../readme.md#a-page)"),
        ("[the facts](../adk-facts.md)", "[the facts](../adk-facts.md)"),
        ("[below](#edits)", "[below](#edits)"),
        ("[AI SDK](https://ai-sdk.dev)", "[AI SDK](https://ai-sdk.dev)"),
        ("[the code](../../backend/src/sluicegate/errors.py)", "the code"),
        ("`[none](../../README.md)`", "`[none](../../README.md)`"),
        ("```sh\n[none](../../README.md)\n```", "```sh\n[none](../../README.md)\n```"),
        ("```mermaid\na --> b\n```", "```text\na --> b\n```"),
    ],
)
def test_links_lead_to_the_pages_of_the_site(written: str, shown: str) -> None:
    assert site_text(written, GUIDE, PLACES) == shown


def test_the_navigation_is_the_order_of_the_index() -> None:
    index = (
        "# sluicegate\n\n## Learn\n\n- [Tutorial](tutorial.md): first.\n\n"
        "## Reference\n\n- [Protocol](reference/protocol.md): rules.\n"
    )

    lines = [line.strip() for line in navigation(index).splitlines()]

    assert lines[:6] == [
        "nav = [",
        '{ "Home" = "index.md" },',
        '{ "Try it" = "try-it.md" },',
        '{ "Learn" = [',
        '{ "Tutorial" = "tutorial.md" },',
        "] },",
    ]
    assert lines[6:8] == ['{ "Reference" = [', '{ "Protocol" = "reference/protocol.md" },']
    assert len(lines) == 8 + len(GENERATED) + 2


async def test_the_page_of_the_http_api_has_every_route_and_its_refusals() -> None:
    document = await http_document()
    page = http_reference(document)

    assert "## POST `/api/chat`\n\nSend a message or answers, and stream the turn." in page
    operations = sum(map(len, document["paths"].values()))
    assert page.count("\n## ") == 1 + operations + len(document["x-websockets"])
    assert "## WebSocket `/api/live`" in page
    assert ", [LastMessageRequest](#lastmessagerequest) or [WholeChatRequest](#" in page
    assert "| 409 | Refused; the body is one plain sentence. |" in page
    for name in document["components"]["schemas"]:
        assert f"### {name}" in page
