import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.wire.media_types import file_extension
from sluicegate.wire.stored_files import StoredFile, is_stored_file_name, parse_file_uri

FILE = StoredFile.of(b"content", "image/png", title="chart & more.png", description="Sales?")


def test_a_file_is_named_by_its_content_and_its_type() -> None:
    digest = hashlib.sha256(b"content").hexdigest()
    assert (FILE.name, FILE.size, FILE.digest) == (f"{digest[:32]}.png", 7, digest)


@given(title=st.none() | st.text(min_size=1), description=st.none() | st.text(min_size=1))
def test_a_uri_is_parsed_as_it_was_built(title: str | None, description: str | None) -> None:
    file = StoredFile.of(b"x", "text/plain", title=title, description=description)
    read = parse_file_uri(file.uri, "text/plain")
    assert read is not None
    assert (read.name, read.size, read.digest) == (file.name, 1, file.digest)
    for said, heard in ((title, read.title), (description, read.description)):
        assert heard == (None if said is None else said.encode("utf-8", "replace").decode())


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "https://example.com/a.png",
        "gs://bucket/a.png",
        "sluicegate:",
        f"sluicegate:{FILE.name}",
        FILE.uri.replace(FILE.digest, "0" * 64),
        FILE.uri.replace("size=7", "size=-7"),
        FILE.uri.replace("size=7", "size=" + "7" * 16),
        FILE.uri.replace(FILE.name, "../../etc/passwd"),
        FILE.uri + "&a=1" * 20,
        "SLUICEGATE:" + FILE.uri.partition(":")[2],
    ],
)
def test_other_uris_are_not_stored_files(uri: str) -> None:
    assert parse_file_uri(uri, "image/png") is None


@given(uri=st.text().map("sluicegate:".__add__))
def test_parsing_never_fails(uri: str) -> None:
    parse_file_uri(uri, None)


@pytest.mark.parametrize("name", ["a" * 32 + ".png", FILE.name])
def test_the_name_of_a_stored_file_is_recognised(name: str) -> None:
    assert is_stored_file_name(name)


@pytest.mark.parametrize(
    "name", ["", "a.png", "../" + FILE.name, FILE.name + "/x", FILE.name.upper(), FILE.name + "\n"]
)
def test_other_names_are_not_stored_files(name: str) -> None:
    assert not is_stored_file_name(name)


@pytest.mark.parametrize(
    ("media_type", "found"),
    [
        ("image/png", "png"),
        ("IMAGE/JPEG", "jpg"),
        ("audio/pcm;rate=24000", "pcm"),
        ("image/svg+xml", "svg"),
        ("text/x-../../etc", "xetc"),
        ("text/html; charset=utf-8", "html"),
        ("application/x-sh", "bin"),
        ("video/", "bin"),
        ("", "bin"),
    ],
)
def test_extensions_consist_of_letters_and_digits(media_type: str, found: str) -> None:
    assert file_extension(media_type) == found
