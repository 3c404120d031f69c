"""The look of the chat page: title, logo, texts and stylesheet of the settings."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from sluicegate.errors import ConfigurationError
from sluicegate.server.app import build
from sluicegate.server.page_theme import MAX_FILE_BYTES
from sluicegate.server.settings import Settings, load_settings
from tests.server.exchange import client
from tests.server.fake_engine import PAGE, FakeEngine

SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


async def fetch(*paths: str, suggestions: tuple[str, ...] = (), **given: Any) -> Any:
    """Return the response for each path of a server with these settings."""
    settings = load_settings({}, given)
    app = build(FakeEngine().open, settings, suggestions=suggestions, page_folder=PAGE).app
    async with client(app) as http:
        return [await http.get(path) for path in paths]


def theme_of(page: httpx.Response) -> dict[str, Any]:
    match = re.search(r'name="sluicegate-page" content="([^"]*)"', page.text)
    assert match is not None
    theme: dict[str, Any] = json.loads(html.unescape(match[1]))
    return theme


def written(folder: Path, name: str, content: str) -> str:
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return str(path)


async def test_without_settings_the_page_has_its_own_title_and_logo() -> None:
    page, logo, stylesheet = await fetch("/", "/logo", "/theme.css")
    assert "<title>sluicegate</title>" in page.text
    assert '<link rel="icon" href="./favicon.svg" />' in page.text
    assert "theme.css" not in page.text
    assert theme_of(page) == {
        "title": "sluicegate",
        "logo": "./favicon.svg",
        "welcome": None,
        "suggestions": [],
    }
    assert (logo.status_code, stylesheet.status_code) == (404, 404)


async def test_texts_of_the_settings_reach_the_page_as_text() -> None:
    hostile = "</title><script>\"'&{{api}}"
    [page] = await fetch("/", title=hostile, welcome=hostile, suggestions=(hostile, "Wörter"))
    assert f"<title>{html.escape(hostile)}</title>" in page.text
    assert "<script>" not in page.text.replace('<script type="module"', "")
    theme = theme_of(page)
    assert theme["title"] == theme["welcome"] == hostile
    assert theme["suggestions"] == [hostile, "Wörter"]


async def test_suggestions_of_the_settings_replace_those_of_the_server() -> None:
    [page] = await fetch("/", suggestions=("Own",))
    assert theme_of(page)["suggestions"] == ["Own"]
    app = build(FakeEngine().open, Settings(), suggestions=["Demo"], page_folder=PAGE).app
    async with client(app) as http:
        assert theme_of(await http.get("/"))["suggestions"] == ["Demo"]


@pytest.mark.parametrize(
    ("name", "media_type"),
    [("a.svg", "image/svg+xml"), ("a.PNG", "image/png"), ("a.webp", "image/webp")],
)
async def test_a_logo_is_served_with_its_type_and_cannot_run_scripts(
    tmp_path: Path, name: str, media_type: str
) -> None:
    page, logo = await fetch("/", "/logo", logo=written(tmp_path, name, SVG))
    assert '<link rel="icon" href="./logo" />' in page.text
    assert theme_of(page)["logo"] == "./logo"
    assert logo.text == SVG
    assert logo.headers["content-type"] == media_type
    assert logo.headers["x-content-type-options"] == "nosniff"
    assert logo.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert logo.headers["cache-control"] == "no-cache"


async def test_a_stylesheet_comes_after_the_styles_of_the_page(tmp_path: Path) -> None:
    css = ":root { --color-accent: rebeccapurple; }"
    page, sheet = await fetch("/", "/theme.css", page_stylesheet=written(tmp_path, "a.css", css))
    assert page.text.index("assets/page-3c4d.css") < page.text.index('href="theme.css"')
    assert page.text.index('href="theme.css"') < page.text.index("</head>")
    assert "style-src 'self';" in page.headers["content-security-policy"]
    assert sheet.text == css
    assert sheet.headers["content-type"] == "text/css; charset=utf-8"
    assert sheet.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("setting", "name", "size", "reason"),
    [
        ("logo", "missing.svg", None, "cannot be read: No such file or directory"),
        ("page_stylesheet", "missing.css", None, "cannot be read: No such file or directory"),
        ("logo", "logo.html", 1, "must be a file whose name ends in .svg, .png"),
        ("page_stylesheet", "look.svg", 1, "must be a file whose name ends in .css"),
        ("logo", "logo.png", MAX_FILE_BYTES + 1, "is too large; it may have 512 KiB"),
    ],
)
async def test_a_file_that_cannot_be_used_stops_the_start_with_one_sentence(
    tmp_path: Path, setting: str, name: str, size: int | None, reason: str
) -> None:
    if size is not None:
        written(tmp_path, name, "x" * size)
    given: dict[str, Any] = {setting: str(tmp_path / name)}
    with pytest.raises(ConfigurationError, match=re.escape(reason)) as refused:
        await fetch("/", **given)
    assert str(refused.value).startswith(f"The {setting} ")


async def test_a_file_at_the_limit_is_served(tmp_path: Path) -> None:
    [logo] = await fetch("/logo", logo=written(tmp_path, "a.png", "x" * MAX_FILE_BYTES))
    assert len(logo.content) == MAX_FILE_BYTES
