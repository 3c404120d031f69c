"""What the end of a turn reports, and what an answer brings along: files and sources."""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.events.event import Event
from google.genai import types

from sluicegate.core.signals import ResultSignal
from sluicegate.core.translator import Translator
from sluicegate.wire.stored_files import StoredFile
from tests.core.adk_conversations import text
from tests.core.event_factory import KINDS, PAY, model, response_event
from tests.core.signal_words import FILES, translate, words


@pytest.mark.parametrize(
    ("usage", "found"),
    [
        (
            {"prompt_token_count": 10, "candidates_token_count": 4, "total_token_count": 14},
            (10, 4, 14, 0, 0),
        ),
        (
            {
                "prompt_token_count": 10,
                "candidates_token_count": 4,
                "thoughts_token_count": 6,
                "total_token_count": 20,
                "cached_content_token_count": 3,
            },
            (10, 10, 20, 6, 3),
        ),
        (
            {
                "prompt_token_count": 10,
                "candidates_token_count": 10,
                "thoughts_token_count": 6,
                "total_token_count": 20,
            },
            (10, 10, 20, 6, 0),
        ),
        (
            {
                "prompt_token_count": 1,
                "tool_use_prompt_token_count": 2,
                "candidates_token_count": 3,
            },
            (3, 3, 6, 0, 0),
        ),
        ({}, (0, 0, 0, 0, 0)),
    ],
)
def test_usage_counts_thoughts_once(usage: dict[str, int], found: tuple[int, ...]) -> None:
    translator = Translator(KINDS, files_url="")
    counted = types.GenerateContentResponseUsageMetadata(**usage)  # type: ignore[arg-type]
    translator.feed(model(text("a"), usage_metadata=counted, partial=True))
    translator.feed(model(text("a"), usage_metadata=counted))
    total = translator.facts.usage
    assert (
        total.input_tokens,
        total.output_tokens,
        total.total_tokens,
        total.reasoning_tokens,
        total.cached_input_tokens,
    ) == found


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([model(text("a"), finish_reason="STOP")], "stop"),
        ([model(text("a"), finish_reason="MAX_TOKENS")], "length"),
        ([model(text("a"), finish_reason="MAX_TOKENS"), model(text("b"))], "stop"),
        ([Event(author="a", error_code="PROHIBITED_CONTENT")], "content-filter"),
        ([Event(author="a", error_code="JAILBREAK", model_version="m")], "content-filter"),
        ([model(text("a"), finish_reason="LANGUAGE")], "other"),
        ([model(text("a"), finish_reason="SAFETY"), PAY, response_event({})], "stop"),
        ([model(text("a"), finish_reason="SAFETY"), Event(author="a")], "content-filter"),
    ],
)
def test_the_finish_reason_is_that_of_the_last_model_call(events: list[Event], reason: str) -> None:
    translator = Translator(KINDS, files_url="")
    for event in events:
        translator.feed(event)
    assert translator.facts.finish_reason == reason


@pytest.mark.parametrize(
    ("events", "emitted"),
    [
        ([Event(author="a", error_code="OTHER", model_version="m")], ["failed OTHER"]),
        ([Event(author="a", error_code="MAX_TOKENS", model_version="m")], []),
        ([Event(author="a", error_code="INVOCATION_ABORTED")], []),
        ([Event(author="a", error_code="ValueError")], ["failed ValueError"]),
        ([Event(author="a", error_code="ValueError", branch="b")] * 2, ["failed ValueError"]),
    ],
)
def test_an_error_code_is_a_failure_unless_it_is_a_reason_to_stop(
    events: list[Event], emitted: list[str]
) -> None:
    assert words(translate(events)) == emitted


def test_each_source_appears_once_in_an_exchange() -> None:
    def grounded(**kinds: Any) -> types.GroundingMetadata:
        return types.GroundingMetadata(grounding_chunks=[types.GroundingChunk(**kinds)])

    page = types.GroundingChunkWeb(uri="https://example.org/", title="T")
    stored = types.GroundingChunkRetrievedContext(uri="gs://b/notes.md")
    cited = types.CitationMetadata(
        citations=[types.Citation(uri="https://example.org/"), types.Citation(title="no uri")]
    )
    events = [
        model(text("a"), grounding_metadata=grounded(web=page), partial=True, id="x"),
        model(text("a"), grounding_metadata=grounded(web=page), id="x"),
        model(text("b"), citation_metadata=cited),
        Event(author="a", grounding_metadata=grounded(retrieved_context=stored)),
    ]
    emitted = words(translate(events))
    assert [line for line in emitted if line.startswith("source")] == [
        "source-1 https://example.org/ T",
        "source-2 notes.md text/markdown notes.md",
    ]


def test_file_names_depend_only_on_their_bytes() -> None:
    def blob(data: bytes) -> types.Part:
        return types.Part(inline_data=types.Blob(data=data, mime_type="image/jpeg"))

    stored = StoredFile.of(b"b", "image/png")
    response = types.FunctionResponse(
        id="1",
        name="pay",
        response={},
        parts=[
            types.FunctionResponsePart(
                inline_data=types.FunctionResponseBlob(data=b"a", mime_type="application/pdf")
            ),
            types.FunctionResponsePart(
                file_data=types.FunctionResponseFileData(
                    file_uri="https://example.org/x.png", mime_type="image/png"
                )
            ),
            types.FunctionResponsePart(
                file_data=types.FunctionResponseFileData(file_uri="gs://b/x", mime_type="image/png")
            ),
            types.FunctionResponsePart(
                file_data=types.FunctionResponseFileData(file_uri=stored.uri, mime_type="image/png")
            ),
        ],
    )
    event = model(blob(b"a"), blob(b""), types.Part(function_response=response))
    urls = [s.chunk for s in translate([PAY, event]) if isinstance(s, ResultSignal)]
    assert [getattr(chunk, "url", None) for chunk in urls] == [
        FILES + "ca978112ca1bbdcafac231b39a23dc4d.jpg",
        FILES + "e3b0c44298fc1c149afbf4c8996fb924.jpg",
        FILES + "ca978112ca1bbdcafac231b39a23dc4d.pdf",
        "https://example.org/x.png",
        FILES + stored.name,
    ]
