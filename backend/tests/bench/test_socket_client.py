"""The WebSocket client of the benchmark."""

from __future__ import annotations

import pytest

from bench.socket_client import masked, messages


def _frame(text: bytes, kind: int = 0x81) -> bytes:
    size = len(text)
    if size < 126:
        return bytes([kind, size]) + text
    if size < 65_536:
        return bytes([kind, 126]) + size.to_bytes(2, "big") + text
    return bytes([kind, 127]) + size.to_bytes(8, "big") + text


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
def test_a_message_of_any_length_is_read(size: int) -> None:
    text = b"x" * size

    assert messages(_frame(text) + _frame(b"last")) == [text, b"last"]


def test_binary_frames_are_skipped() -> None:
    assert messages(_frame(b"ping", 0x89) + _frame(b"text")) == [b"text"]


@pytest.mark.parametrize("size", [1, 125, 126, 70_000])
def test_a_client_frame_is_masked_and_contains_its_length(size: int) -> None:
    frame = masked(b"y" * size)

    assert frame[0] == 0x81
    assert frame[1] & 0x80
    assert frame.endswith(b"y" * size)
    unmasked = bytes([0x81, frame[1] & 0x7F]) + frame[2:].replace(bytes(4) + b"y", b"y", 1)
    assert messages(unmasked) == [b"y" * size]
