"""Ranges of bytes, as RFC 9110 has them."""

from __future__ import annotations

import pytest

from sluicegate.server.files import requested_range

TAG = '"abc"'


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("bytes=0-0", "bytes 0-0/10"),
        ("bytes=0-9", "bytes 0-9/10"),
        ("bytes=3-", "bytes 3-9/10"),
        ("bytes=3-99", "bytes 3-9/10"),
        ("bytes=-4", "bytes 6-9/10"),
        ("bytes=-99", "bytes 0-9/10"),
        ("bytes = 1-2", "bytes 1-2/10"),
        ("bytes=10-", "bytes */10"),
        ("bytes=-0", "bytes */10"),
    ],
)
def test_a_range_is_read(asked: str, found: str) -> None:
    part = requested_range({"range": asked}, 10, TAG)
    assert part is not None
    assert part.content_range == found
    assert part.is_empty == found.startswith("bytes */")


@pytest.mark.parametrize(
    "asked",
    ["", "bytes", "bytes=-", "bytes=5-4", "bytes=0-1,3-4", "items=0-1", "bytes=a-b", "bytes=٣-٤"],
)
def test_what_is_no_range_means_the_whole(asked: str) -> None:
    assert requested_range({"range": asked}, 10, TAG) is None


def test_a_range_of_another_version_means_the_whole() -> None:
    headers = {"range": "bytes=0-1", "if-range": '"other"'}
    assert requested_range(headers, 10, TAG) is None
    assert requested_range({**headers, "if-range": TAG}, 10, TAG) is not None
