import copy
import json
from pathlib import Path
from typing import Any

import pytest

from sluicegate.wire.chunks import DataChunk, decode_chunk
from sluicegate.wire.messages import UIMessage
from sluicegate.wire.reducer import reduce_chunks
from tests.wire.chunk_samples import WIRE

CLIENT_MESSAGES: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("client_messages.json").read_text(encoding="utf-8")
)
"""Random chunks, and the message that ``readUIMessageStream`` of ai 7.0.173 made of them."""


def without_guesses(message: UIMessage) -> UIMessage:
    """Leave out what the client keeps of arguments that are still being written."""
    message = copy.deepcopy(message)
    for part in message["parts"]:
        part.pop("rawInput", None)
        if part.get("state") == "input-streaming" and part.get("inputEncoding") != "text":
            part.pop("input", None)
    return message


@pytest.mark.parametrize("case", CLIENT_MESSAGES)
def test_the_message_is_the_one_that_the_client_builds(case: dict[str, Any]) -> None:
    chunks = [decode_chunk(json.dumps(chunk)) for chunk in case["chunks"]]
    built = reduce_chunks(chunks, case["continues"])
    assert built == without_guesses(case["message"])


def test_the_client_was_asked_about_every_chunk_that_it_reads() -> None:
    asked = {chunk["type"] for case in CLIENT_MESSAGES for chunk in case["chunks"]}
    known = {chunk.type for chunk, _ in WIRE if not isinstance(chunk, DataChunk)}
    assert known - asked == {"abort", "error"}


def test_the_message_that_is_continued_stays_as_it_was() -> None:
    for case in CLIENT_MESSAGES:
        before = copy.deepcopy(case["continues"])
        reduce_chunks(
            [decode_chunk(json.dumps(chunk)) for chunk in case["chunks"]], case["continues"]
        )
        assert case["continues"] == before
