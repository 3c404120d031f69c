from __future__ import annotations

import struct
import zlib

import pytest

from sluicegate.demo.png_bar_chart import HEIGHT, WIDTH, Colour, bar_chart

WHITE = b"\xff\xff\xff"


def blocks(png: bytes) -> dict[bytes, bytes]:
    """The blocks of a PNG, each checked against its checksum."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    found: dict[bytes, bytes] = {}
    place = 8
    while place < len(png):
        length, kind = struct.unpack(">I4s", png[place : place + 8])
        content = png[place + 8 : place + 8 + length]
        (checksum,) = struct.unpack(">I", png[place + 8 + length : place + 12 + length])
        assert checksum == zlib.crc32(kind + content)
        found[kind] = content
        place += 12 + length
    return found


def pixels(png: bytes) -> list[list[bytes]]:
    rows = zlib.decompress(blocks(png)[b"IDAT"])
    width = 1 + 3 * WIDTH
    assert len(rows) == HEIGHT * width
    lines = [rows[y * width : (y + 1) * width] for y in range(HEIGHT)]
    assert {line[0] for line in lines} == {0}
    return [[line[x : x + 3] for x in range(1, width, 3)] for line in lines]


def bars(png: bytes) -> list[int]:
    """The height of each bar, from left to right, read from the middle of its columns."""
    columns = list(zip(*pixels(png), strict=True))
    inked = [sum(len(set(pixel)) > 1 for pixel in column) for column in columns]
    heights: list[int] = []
    before = 0
    for height in inked:
        if height and not before:
            heights.append(height)
        before = height
    return heights


def test_the_chart_is_a_png_of_the_declared_size() -> None:
    found = blocks(bar_chart([1, 2], "blue"))
    assert list(found) == [b"IHDR", b"IDAT", b"IEND"]
    assert struct.unpack(">IIBBBBB", found[b"IHDR"]) == (WIDTH, HEIGHT, 8, 2, 0, 0, 0)


def test_the_height_of_a_bar_is_proportional_to_its_value() -> None:
    assert bars(bar_chart([12, 24, 6], "green")) == [78, 156, 39]


def test_there_is_a_bar_for_every_value() -> None:
    assert len(bars(bar_chart(range(1, 31), "red"))) == 30


@pytest.mark.parametrize("values", [[], [0, 0], [-3, -1]])
def test_values_below_the_axis_have_no_bar(values: list[float]) -> None:
    assert bars(bar_chart(values, "red")) == []


def test_the_same_arguments_give_the_same_chart() -> None:
    assert bar_chart([1, 2, 3], "purple") == bar_chart([1, 2, 3], "purple")


def test_colours_differ() -> None:
    colours: list[Colour] = ["blue", "green", "orange", "purple", "red"]
    inks = set()
    for colour in colours:
        found = {pixel for line in pixels(bar_chart([1], colour)) for pixel in line} - {WHITE}
        inks.add(frozenset(found))
    assert len(inks) == 5
