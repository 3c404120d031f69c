import json

import pytest

from sluicegate.wire.chunks import Chunk, DataChunk, TextDeltaChunk
from sluicegate.wire.encoding import DONE, HEADERS, encode_events, to_json
from tests.wire.chunk_samples import WIRE


@pytest.mark.parametrize(("chunk", "text"), WIRE)
def test_a_chunk_is_one_event_with_one_line_of_data(chunk: Chunk, text: str) -> None:
    assert encode_events([to_json(chunk)]) == f"data: {text}\n\n".encode()


def test_chunks_that_are_written_together_are_events_of_their_own() -> None:
    texts = [text for _, text in WIRE[:3]]
    assert encode_events(texts) == b"".join(encode_events([text]) for text in texts)


@pytest.mark.parametrize("text", ["a\nb", "a\r\nb", "\n\ndata: [DONE]\n\n", "\u2028", "\ud83d"])
def test_no_text_can_end_its_event(text: str) -> None:
    sent = encode_events([to_json(TextDeltaChunk(id="t", delta=text))])
    assert sent.endswith(b"\n\n")
    assert not set(sent[:-2]) & set(b"\r\n")
    json.loads(sent.removeprefix(b"data: "))


def test_a_number_that_is_not_finite_is_never_sent() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json(DataChunk(type="data-x", data=float("nan")))


def test_the_terminator_is_what_the_client_waits_for() -> None:
    assert DONE == b"data: [DONE]\n\n"


def test_the_headers_name_the_protocol_and_forbid_buffering() -> None:
    assert dict(HEADERS) == {
        "content-type": "text/event-stream",
        "cache-control": "no-cache",
        "x-accel-buffering": "no",
        "x-vercel-ai-ui-message-stream": "v1",
    }


def test_the_headers_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        HEADERS["content-type"] = "text/plain"  # type: ignore[index]
