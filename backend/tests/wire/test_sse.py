import json

import pytest

from sluicegate.wire.chunks import Chunk, DataChunk, TextDeltaChunk
from sluicegate.wire.sse import DONE, HEADERS, frame
from tests.wire.chunk_samples import WIRE


@pytest.mark.parametrize(("chunk", "text"), WIRE)
def test_a_frame_is_one_event_with_one_line_of_data(chunk: Chunk, text: str) -> None:
    assert frame(chunk) == f"data: {text}\n\n".encode()


@pytest.mark.parametrize("text", ["a\nb", "a\r\nb", "\n\ndata: [DONE]\n\n", "\u2028", "\ud83d"])
def test_no_text_can_end_its_event(text: str) -> None:
    sent = frame(TextDeltaChunk(id="t", delta=text))
    assert sent.endswith(b"\n\n")
    assert not set(sent[:-2]) & set(b"\r\n")
    json.loads(sent.removeprefix(b"data: "))


def test_a_number_that_is_not_finite_is_never_sent() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        frame(DataChunk(type="data-x", data=float("nan")))


def test_the_terminator_is_what_the_client_waits_for() -> None:
    assert DONE == b"data: [DONE]\n\n"


def test_the_headers_name_the_protocol_and_forbid_buffering() -> None:
    assert dict(HEADERS) == {
        "content-type": "text/event-stream",
        "cache-control": "no-cache",
        "x-accel-buffering": "no",
        "x-vercel-ai-ui-message-stream": "v1",
    }


def test_nobody_can_change_the_headers() -> None:
    with pytest.raises(TypeError):
        HEADERS["content-type"] = "text/plain"  # type: ignore[index]
