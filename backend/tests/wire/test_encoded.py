"""What is stored and sent of a chunk is what `to_json` and `chunk_for_major` say."""

from __future__ import annotations

import pytest

from sluicegate.wire.chunks import BaseChunk, TextDeltaChunk, chunk_for_major
from sluicegate.wire.encoding import encode_chunk, to_json
from tests.wire.chunk_samples import WIRE


@pytest.mark.parametrize(("chunk", "text"), WIRE)
def test_each_major_has_its_text(chunk: BaseChunk, text: str) -> None:
    entry = encode_chunk(chunk)
    fit = chunk_for_major(chunk, 6)
    assert entry.text_for(7) == text
    assert entry.text_for(6) == (None if fit is None else to_json(fit))
    assert entry.text.startswith(f'{{"type":"{entry.kind}"')


def test_a_chunk_for_both_majors_is_encoded_once() -> None:
    entry = encode_chunk(TextDeltaChunk(id="t", delta="x"))
    assert entry.text_for_6 is entry.text


@pytest.mark.parametrize("text", ["plain", "äöü", "😀"])
def test_its_size_is_that_of_its_bytes(text: str) -> None:
    chunk = TextDeltaChunk(id="t", delta=text)
    assert encode_chunk(chunk).size == len(to_json(chunk).encode())
