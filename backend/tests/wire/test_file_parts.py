import base64
from typing import Any

import pytest

from sluicegate.errors import Malformed, RequestError, TooLarge, UnsupportedMediaType
from sluicegate.wire.file_parts import FilePart, parse_file_part
from sluicegate.wire.requests import parse_chat_request

OWN = "/api/chats/chat/files/"
DATA = base64.b64encode(b"content").decode()


def parse(own_prefix: str | None = OWN, **part: Any) -> FilePart:
    return parse_file_part({"type": "file", **part}, max_bytes=1000, own_prefix=own_prefix)


@pytest.mark.parametrize(
    ("declared", "in_url", "media_type"),
    [
        ("image/png", "image/png", "image/png"),
        ("IMAGE/PNG", "", "image/png"),
        ("text/plain;charset=utf-8", "", "text/plain"),
        ("", "application/pdf", "application/pdf"),
        ("", "text/plain;charset=utf-8", "text/plain"),
        ("image", "image/jpeg", "image/jpeg"),
        ("image", "", "application/octet-stream"),
        ("", "", "application/octet-stream"),
        ("not a type", "a/b", "a/b"),
        ("a/b\n", "", "a/b"),
        ("x/" + "y" * 200, "a/b", "a/b"),
    ],
)
def test_a_data_url_is_decoded(declared: str, in_url: str, media_type: str) -> None:
    url = f"data:{in_url};base64,{DATA}"
    assert parse(mediaType=declared, url=url) == FilePart(media_type, b"content", None, None)


def test_the_type_may_be_missing_and_the_scheme_in_capitals() -> None:
    file = parse(url=f"DATA:text/plain;BASE64,{DATA}", filename="a b.txt")
    assert file == FilePart("text/plain", b"content", None, "a b.txt")


REFUSED: list[tuple[str, dict[str, Any], type[RequestError]]] = [
    ("no URL", {"mediaType": "a/b"}, Malformed),
    ("an empty URL", {"url": ""}, Malformed),
    ("a URL that is no text", {"url": 1}, Malformed),
    ("a type that is no text", {"url": f"data:;base64,{DATA}", "mediaType": 1}, Malformed),
    ("a type of null", {"url": f"data:;base64,{DATA}", "mediaType": None}, Malformed),
    ("a name that is no text", {"url": f"data:;base64,{DATA}", "filename": 1}, Malformed),
    ("a long name", {"url": f"data:;base64,{DATA}", "filename": "x" * 256}, Malformed),
    ("no comma", {"url": "data:image/png;base64"}, Malformed),
    ("not base64 by name", {"url": "data:text/plain,hello"}, Malformed),
    ("base64 in the wrong place", {"url": f"data:base64;a/b,{DATA}"}, Malformed),
    ("not base64", {"url": "data:a/b;base64,$$$$"}, Malformed),
    ("no padding", {"url": "data:a/b;base64,QQ"}, Malformed),
    ("too much padding", {"url": "data:a/b;base64,QQ==="}, Malformed),
    ("spaces in base64", {"url": "data:a/b;base64,QQ= ="}, Malformed),
    ("a newline in base64", {"url": "data:a/b;base64,QUFB\nQUFB"}, Malformed),
    ("base64 for URLs", {"url": "data:a/b;base64,-_-_"}, Malformed),
    ("letters beyond ASCII", {"url": "data:a/b;base64,ÄÄÄÄ"}, Malformed),
    ("empty", {"url": "data:a/b;base64,"}, Malformed),
    ("only padding", {"url": "data:a/b;base64,===="}, Malformed),
    ("SVG", {"mediaType": "image/svg+xml", "url": f"data:;base64,{DATA}"}, UnsupportedMediaType),
    (
        "SVG in the URL",
        {"mediaType": "image/png", "url": f"data:Image/SVG+xml;base64,{DATA}"},
        UnsupportedMediaType,
    ),
    (
        "SVG with a parameter",
        {"url": f"data:image/svg+xml;charset=utf-8;base64,{DATA}"},
        UnsupportedMediaType,
    ),
    (
        "HTML",
        {"mediaType": " text/HTML ; a=b", "url": f"data:;base64,{DATA}"},
        UnsupportedMediaType,
    ),
    ("XHTML", {"url": f"data:application/xhtml+xml;base64,{DATA}"}, UnsupportedMediaType),
    ("HTML of ours", {"mediaType": "text/html", "url": OWN + "a"}, UnsupportedMediaType),
    ("too large", {"url": "data:a/b;base64," + base64.b64encode(b"x" * 1001).decode()}, TooLarge),
    *(
        (url, {"url": url}, Malformed)
        for url in (
            "http://localhost/a.png",
            "https://example.com/a.png",
            "file:///etc/passwd",
            "blob:http://localhost/1",
            "gs://bucket/a",
            "javascript:alert(1)",
            "//example.com" + OWN + "a",
            "https://example.com" + OWN + "a",
            " " + OWN + "a",
            "/api/chats/other/files/a",
            OWN,
            *(
                OWN + name
                for name in (
                    *(".", "..", "%2e%2e", "../a", "..%2fa", "a/b", "a%2Fb", "a%5cb", "a\\b"),
                    *("a?b", "a#b", "a b", "a\n", "a%00", "a%0a", "ä", "%E2%80%AEa"),
                )
            ),
        )
    ),
]


@pytest.mark.parametrize(("part", "error"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_a_file_that_is_neither_own_nor_inline_is_refused(
    part: dict[str, Any], error: type[RequestError]
) -> None:
    with pytest.raises(error) as refused:
        parse(**part)
    assert refused.value.message.endswith(".")


@pytest.mark.parametrize("name", ["a.png", "0.b-c_d:e", "a%20b", "%C3%A4.png", "...", "a%252fb"])
def test_an_own_file_keeps_its_url(name: str) -> None:
    file = parse(mediaType="image/png", url=OWN + name)
    assert file == FilePart("image/png", None, OWN + name, None)


def test_without_own_files_every_url_is_refused() -> None:
    with pytest.raises(Malformed):
        parse(own_prefix=None, url=OWN + "a.png")


def test_the_largest_file_is_accepted() -> None:
    largest = base64.b64encode(b"x" * 1000).decode()
    assert parse(url=f"data:a/b;base64,{largest}").data == b"x" * 1000


@pytest.mark.parametrize(
    ("own_files", "url", "ours"),
    [
        ("/api/chats/{id}/files/", "/api/chats/c1/files/a.png", True),
        ("/api/chats/{id}/files/", "/api/chats/c2/files/a.png", False),
        ("/api/chats/{id}/files/", "/api/chats/{id}/files/a.png", False),
        ("https://host/files/", "https://host/files/a.png", True),
        (None, "/api/chats/c1/files/a.png", False),
    ],
)
def test_only_files_of_the_same_chat_are_own(own_files: str | None, url: str, ours: bool) -> None:
    part = {"type": "file", "mediaType": "image/png", "url": url}
    body: Any = {"id": "c1", "message": {"id": "u", "role": "user", "parts": [part]}}
    if ours:
        message = parse_chat_request(body, own_files=own_files).user_message
        assert message is not None
        assert message.files[0].url == url
    else:
        with pytest.raises(Malformed):
            parse_chat_request(body, own_files=own_files)
