"""The answer of a model to a conversation, equal for every provider: calls, then a description.

The last words of the user say what to do: ``make png and green`` calls the tool twice at once,
``make png then green`` twice in a row, and ``look`` says everything there is to see. The content of
a picture is detected from its bytes.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from functools import cache
from typing import Final

from sluicegate.testing.providers import Message, ReceivedFile, Reply, Result

TOOL: Final = "make"
CUT_OFF: Final = "cut"
"""The kind of a call whose arguments end in the middle."""

_COLOURS: Final = {
    bytes((37, 99, 235)): "blue",
    bytes((22, 163, 74)): "green",
    bytes((234, 120, 8)): "orange",
    bytes((147, 51, 234)): "purple",
    bytes((220, 38, 38)): "red",
}


def reply(turns: list[Message]) -> Reply:
    """Continue the conversation."""
    wishes = [
        (index, words)
        for index, turn in enumerate(turns)
        for words in turn.words
        if turn.role == "user" and not words.startswith("[")
    ]
    last, wish = wishes[-1]
    if wish == "look":
        seen = [
            describe_file(seen)
            for turn in turns
            for seen in (*turn.files, *(file for result in turn.results for file in result.files))
        ]
        return Reply(f"In all I see {'; '.join(seen) or 'nothing'}.")
    steps = [step.split(" and ") for step in wish.removeprefix("make ").split(" then ")]
    done = [turn for turn in turns[last:] if turn.results]
    if len(done) < len(steps):
        kinds = steps[len(done)]
        calls = tuple((TOOL, {"kind": kind}) for kind in kinds)
        return Reply(calls=calls, is_cut_off=CUT_OFF in kinds)
    found = [_describe(result) for turn in done for result in turn.results]
    return Reply(f"I see {'; '.join(found)}.")


def _describe(result: Result) -> str:
    if result.files:
        return " and ".join(describe_file(seen) for seen in result.files)
    return f"words: {result.words}"


def describe_file(file: ReceivedFile) -> str:
    """The colour of a chart, or the type of another file."""
    if file.media_type == "image/png":
        return f"a {colour_of(file.data)} chart"
    return file.media_type


@cache
def colour_of(png: bytes) -> str:
    """The colour of the bars of a chart, by decoding its pixels."""
    width = struct.unpack(">I", png[16:20])[0]
    packed, at = b"", 8
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at : at + 8])
        if kind == b"IDAT":
            packed += png[at + 8 : at + 8 + length]
        at += 12 + length
    rows = zlib.decompress(packed)
    stride = 1 + 3 * width
    pixels: Counter[bytes] = Counter()
    for start in range(0, len(rows), stride):
        row = rows[start + 1 : start + stride]
        pixels.update(row[i : i + 3] for i in range(0, len(row), 3))
    found = [name for pixel, _ in pixels.most_common() if (name := _COLOURS.get(pixel))]
    return found[0] if found else "white"
