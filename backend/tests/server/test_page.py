"""The chat page: its files, their headers, and its content security policy."""

from __future__ import annotations

import gzip
import html
import re
import shutil
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from sluicegate.server import page
from sluicegate.server.app import build
from sluicegate.server.settings import Settings
from tests.server.exchange import client
from tests.server.fake_engine import PAGE, FakeEngine, fake_app

FILES = {
    "/assets/page-1a2b.js": "text/javascript; charset=utf-8",
    "/assets/page-3c4d.css": "text/css; charset=utf-8",
    "/favicon.svg": "image/svg+xml",
}
HASHED = [path for path in FILES if path.startswith("/assets/")]


async def fetch(path: str, **headers: str) -> httpx.Response:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    async with client(fake_app(FakeEngine())) as http:
        return await http.get(path, headers={"accept-encoding": "identity"} | given)


@pytest.mark.parametrize("path", FILES)
async def test_every_file_has_its_media_type_and_a_restrictive_policy(path: str) -> None:
    response = await fetch(path)
    assert response.status_code == 200
    assert response.headers["content-type"] == FILES[path]
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["content-security-policy"] == "default-src 'none'; sandbox"


async def test_the_page_allows_only_its_own_scripts_and_styles() -> None:
    response = await fetch("/")
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["referrer-policy"] == "no-referrer"
    policy = dict(
        part.strip().split(" ", 1)
        for part in response.headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert not [value for value in policy.values() if "unsafe" in value or "http" in value]


async def test_the_page_itself_is_not_cached() -> None:
    response = await fetch("/")
    assert response.headers["cache-control"] == "no-cache"
    assert "etag" not in response.headers


@pytest.mark.parametrize(("prefix", "told"), [("/api", "api"), ("/a/b", "a/b"), ("", ".")])
async def test_the_page_contains_the_path_of_the_api(prefix: str, told: str) -> None:
    async with client(fake_app(FakeEngine(), prefix=prefix)) as http:
        text = (await http.get("/")).text
    assert f'name="sluicegate-api" content="{told}"' in text
    assert "{{" not in text


@pytest.mark.parametrize(
    ("prefix", "chat", "url"),
    [
        ("/api", "trip-1", "api/chats/trip-1"),
        ("/a/b", "user:1", "a/b/chats/user%3A1"),
        ("", "trip-1", "./chats/trip-1"),
    ],
)
async def test_the_browser_loads_the_chat_together_with_the_page(
    prefix: str, chat: str, url: str
) -> None:
    async with client(fake_app(FakeEngine(), prefix=prefix)) as http:
        response = await http.get("/", params={"chat": chat})
    assert response.headers["link"] == f"<{url}>; rel=preload; as=fetch; crossorigin=anonymous"


@pytest.mark.parametrize("query", ["", "?chat=", "?chat=..", "?chat=a>;rel=x", "?chat=a%0D%0Ab"])
async def test_without_a_valid_chat_the_page_loads_nothing_else(query: str) -> None:
    response = await fetch(f"/{query}")
    assert response.status_code == 200
    assert "link" not in response.headers


@pytest.mark.parametrize("path", FILES)
async def test_files_with_a_content_hash_are_cached_permanently(path: str) -> None:
    caching = (await fetch(path)).headers["cache-control"]
    assert caching == ("public, max-age=31536000, immutable" if path in HASHED else "no-cache")


@pytest.mark.parametrize("path", FILES)
@pytest.mark.parametrize(
    ("accepted", "packed"),
    [("gzip", True), ("br, gzip;q=0.5", True), ("gzip;q=0", False), ("br", False), ("", False)],
)
async def test_a_file_is_compressed_if_the_client_accepts_it(
    path: str, accepted: str, *, packed: bool
) -> None:
    plain = await fetch(path)
    response = await fetch(path, accept_encoding=accepted)
    assert response.content == plain.content
    assert ("content-encoding" in response.headers) == packed
    assert response.headers["vary"] == "accept-encoding"


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip, deflate, br, zstd", "br"),
        ("br", "br"),
        ("gzip, br;q=0", "gzip"),
        ("gzip", "gzip"),
        ("", None),
    ],
)
async def test_a_file_that_the_build_packed_with_brotli_is_sent_so_if_the_client_accepts_it(
    tmp_path: Path, accepted: str, coding: str | None
) -> None:
    built = tmp_path / "built"
    shutil.copytree(PAGE, built)
    packed = built / page.ASSETS / "page-1a2b.js.br"
    packed.write_bytes(b"packed")
    app = build(FakeEngine().open, Settings(), page_folder=built).app
    async with client(app) as http:
        url = "/assets/page-1a2b.js"
        async with http.stream("GET", url, headers={"accept-encoding": accepted}) as response:
            content = b"".join([piece async for piece in response.aiter_raw()])
        assert response.headers.get("content-encoding") == coding
        assert response.headers["vary"] == "accept-encoding"
        assert (content == b"packed") == (coding == "br")
        assert (await http.get(f"{url}.br")).status_code == 404


async def test_streams_and_api_responses_are_never_compressed() -> None:
    response = await fetch("/api/chats", accept_encoding="gzip")
    assert "content-encoding" not in response.headers


async def test_a_file_that_has_not_changed_is_not_sent_again() -> None:
    first = await fetch("/favicon.svg")
    again = await fetch("/favicon.svg", if_none_match=first.headers["etag"])
    other = await fetch("/favicon.svg", if_none_match='"other"')
    assert (again.status_code, again.content) == (304, b"")
    assert other.status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/assets/other.js", "/assets/page-1a2b.js.map", "/assets/..%2Findex.html", "/index.html"],
)
async def test_only_the_files_of_the_page_are_served(path: str) -> None:
    response = await fetch(path)
    assert (response.status_code, response.headers["x-error-code"]) == (404, "unknown")


async def test_the_page_can_be_left_out() -> None:
    async with client(fake_app(FakeEngine(), page=False)) as http:
        for path in ("/", *FILES):
            assert (await http.get(path)).status_code == 404
        assert (await http.get("/api/chats")).status_code == 200


async def test_the_packed_page_is_reproducible() -> None:
    packed = []
    for _ in range(2):
        async with (
            client(fake_app(FakeEngine())) as http,
            http.stream("GET", "/assets/page-1a2b.js") as response,
        ):
            packed.append(b"".join([piece async for piece in response.aiter_raw()]))
    assert packed[0] == packed[1]
    assert gzip.decompress(packed[0]) == (PAGE / "assets" / "page-1a2b.js").read_bytes()


async def test_without_a_build_the_page_explains_how_to_build_it(tmp_path: Path) -> None:
    app = build(FakeEngine().open, Settings(), page_folder=tmp_path).app
    async with client(app) as http:
        response = await http.get("/")
        assert (response.status_code, response.text) == (503, page.NOT_BUILT)
        assert (response.headers["retry-after"], response.headers["refresh"]) == ("2", "2")
        assert (await http.get("/favicon.svg")).status_code == 404
        assert (await http.get("/api/chats")).status_code == 200


async def test_a_later_build_is_served_and_the_previous_one_remains_available(
    tmp_path: Path,
) -> None:
    built = tmp_path / "built"
    app = build(FakeEngine().open, Settings(), page_folder=built).app
    async with client(app) as http:
        assert (await http.get("/")).status_code == 503
        shutil.copytree(PAGE, built)
        assert "page-1a2b.js" in (await http.get("/")).text
        assert (await http.get("/favicon.svg")).status_code == 200
        shutil.rmtree(built)
        assert "page-1a2b.js" in (await http.get("/")).text
        (built / page.ASSETS).mkdir(parents=True)
        (built / page.ASSETS / "page-5e6f.js").write_text("let later;")
        (built / page.INDEX).write_text('<script src="assets/page-5e6f.js"></script>')
        assert "page-5e6f.js" in (await http.get("/")).text
        for name in ("page-1a2b.js", "page-5e6f.js"):
            assert (await http.get(f"/assets/{name}")).status_code == 200


def test_the_page_of_a_wheel_takes_precedence_over_a_checkout(tmp_path: Path) -> None:
    assert page.built_page((tmp_path, tmp_path)) is None
    assert page.built_page((tmp_path, PAGE)) == PAGE
    (tmp_path / page.INDEX).write_text("")
    assert page.built_page((tmp_path, PAGE)) == tmp_path
    assert page.built_page() in (None, page.IN_PACKAGE, page.IN_CHECKOUT)


INBOX = {
    "/inbox": "./",
    "/inbox?view=history": "./",
    "/inbox/": "../",
    "/inbox/adk-1": "../",
    "/inbox/inv%3Awf%2Fpay%401": "../",
    "/inbox/a/b": "../../",
    "/inbox/inbox/b": "../../",
    "/inbox/%2e%2e%2fadmin": "../",
}
"""Paths of the inbox, and the URL of the chat page relative to each."""


@pytest.mark.parametrize("path", INBOX)
@pytest.mark.parametrize("mounted", ["", "/some/where", "/inbox"])
async def test_the_inbox_finds_its_files_and_the_api_from_each_of_its_paths(
    path: str, mounted: str
) -> None:
    app = fake_app(FakeEngine())
    if mounted:
        app = Starlette(routes=[Mount(mounted, app)])
    async with client(app) as http:
        response = await http.get(f"{mounted}{path}")
        assert response.status_code == 200
        assert "script-src 'self'" in response.headers["content-security-policy"]
        assert "link" not in response.headers
        root = INBOX[path]
        api = "api" if root == "./" else f"{root}api"
        assert f'name="sluicegate-root" content="{root}"' in response.text
        assert f'name="sluicegate-api" content="{api}"' in response.text
        assert html.escape(f'"logo": "{root}favicon.svg"') in response.text
        url = httpx.URL(str(http.base_url)).join(f"{mounted}{path}")
        for name in re.findall(r'(?:src|href)="([^"]+)"', response.text):
            loaded = await http.get(url.join(name))
            assert loaded.status_code == 200, (name, loaded.url)


async def test_an_approval_in_the_path_is_not_written_into_the_page() -> None:
    response = await fetch("/inbox/%22%3E%3Cscript%3Ealert(1)%3C/script%3E")
    assert "alert(1)" not in response.text


async def test_a_title_that_looks_like_a_url_is_not_changed() -> None:
    async with client(fake_app(FakeEngine(), title='"./x" {{api}}')) as http:
        text = (await http.get("/inbox/a")).text
    assert html.escape('"./x" {{api}}') in text
