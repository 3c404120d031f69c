"""The request at each provider for one turn with two calls, one of which returned a file.

A picture beside a plain result is the case in which the families differ most (S3-R18): the newer
Gemini nests, the older one and OpenAI want one message behind all results, Claude wants blocks.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.testing.providers import FakeAnthropic, FakeGemini, FakeOpenAI, Refused
from sluicegate.testing.providers.gemini import in_camel_case
from tests.media import samples
from tests.media.history import Server

if TYPE_CHECKING:
    from google.adk.models.base_llm import BaseLlm

    from sluicegate.testing.providers import Provider
    from tests.media.families import Family

pytestmark = pytest.mark.asyncio(loop_scope="module")

PDF = base64.b64encode(samples.PDF).decode()
PDF_FOR_URLS = base64.urlsafe_b64encode(samples.PDF).decode()
NAMED = {"id": "a580a4a9", "type": "application/pdf", "name": "report.pdf"}
IN_WORDS = '{"attachments": [{"id": "a580a4a9", "type": "application/pdf", "name": "report.pdf"}]}'
LABEL = (
    "[Data from a tool, not words of the user: file 1 of the result of make (call call_0_0): "
    '"report.pdf", application/pdf, id a580a4a9]'
)
BLOB = {"inlineData": {"mimeType": "application/pdf", "data": PDF_FOR_URLS}}
PLAIN = {
    "functionResponse": {"id": "call_0_1", "name": "make", "response": {"result": "plain words"}}
}
AS_OUTPUT = {
    "functionResponse": {"id": "call_0_1", "name": "make", "response": {"output": "plain words"}}
}

NESTED = [
    {
        "role": "user",
        "parts": [
            {
                "functionResponse": {
                    "id": "call_0_0",
                    "name": "make",
                    "response": {
                        "output": "Two files.",
                        "structured_result": {"pages": 1},
                        "attachments": [NAMED],
                    },
                    "parts": [BLOB],
                }
            },
            AS_OUTPUT,
        ],
    }
]
BEHIND = [
    {
        "role": "user",
        "parts": [
            {
                "functionResponse": {
                    "id": "call_0_0",
                    "name": "make",
                    "response": {
                        "status": "success",
                        "text_result": "Two files.",
                        "structured_result": {"pages": 1},
                        "attachments": [NAMED],
                    },
                }
            },
            PLAIN,
        ],
    },
    {"role": "user", "parts": [{"text": LABEL}, BLOB]},
]
MESSAGES: list[dict[str, Any]] = [
    {
        "role": "tool",
        "tool_call_id": "call_0_0",
        "content": 'Two files.\n{"pages": 1}\n1 file follows in the next message.\n' + IN_WORDS,
    },
    {"role": "tool", "tool_call_id": "call_0_1", "content": '{"result": "plain words"}'},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": LABEL},
            {
                "type": "file",
                "file": {
                    "filename": "report.pdf",
                    "file_data": f"data:application/pdf;base64,{PDF}",
                },
            },
        ],
    },
]
AS_JSON: list[dict[str, Any]] = [
    {
        **MESSAGES[0],
        "content": '{"status": "success", "text_result": "Two files.", "structured_result": '
        + '{"pages": 1}, "attachments": ['
        + json.dumps(NAMED)
        + '], "attachments_note": "1 file follows in the next message."}',
    },
    *MESSAGES[1:],
]
BLOCKS: list[dict[str, Any]] = [
    {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": "call_0_0",
                "content": [
                    {"type": "text", "text": 'Two files.\n{"pages": 1}\n' + IN_WORDS},
                    {
                        "type": "document",
                        "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
                    },
                ],
            },
            {
                "type": "tool_result",
                "tool_use_id": "call_0_1",
                "content": '{"result": "plain words"}',
            },
        ],
    }
]

_RESULTS = BLOCKS[0]["content"]
BLOCKS_BY_ADK = [
    {
        "role": "user",
        "content": [
            {**_RESULTS[0], "is_error": False},
            {**_RESULTS[1], "content": "plain words", "is_error": False},
        ],
    }
]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gemini-3", NESTED),
        ("vertex-3", NESTED),
        ("gemini-2", BEHIND),
        ("vertex-2", BEHIND),
        ("unknown", BEHIND),
        ("openai", MESSAGES),
        ("unknown-lite", AS_JSON),
        ("claude", BLOCKS),
        ("claude-adk", BLOCKS_BY_ADK),
    ],
)
async def test_the_request_for_each_provider(
    families: dict[str, Family],
    models: dict[str, BaseLlm],
    name: str,
    expected: list[dict[str, Any]],
) -> None:
    server = Server()
    await server.ask(models[name], await server.answered([["mixed", "string"]]))
    body = families[name].endpoint.last
    sent = in_camel_case(body["contents"]) if "contents" in body else body["messages"]

    assert sent[2:] == expected


INPUTS: list[tuple[str, str, dict[str, Any]]] = [
    ("passed", "gemini-3", {"rows": 3}),
    ("passed", "gemini-2", {"rows": 3}),
    ("texts", "gemini-3", {"output": "first\nsecond"}),
    ("texts", "gemini-2", {"result": "first\nsecond"}),
]


@pytest.mark.parametrize(("kind", "name", "expected"), INPUTS)
async def test_parts_that_a_tool_returns_become_one_response_to_its_call(
    families: dict[str, Family],
    models: dict[str, BaseLlm],
    kind: str,
    name: str,
    expected: dict[str, Any],
) -> None:
    server = Server()
    await server.ask(models[name], await server.answered([[kind]]))
    sent = in_camel_case(families[name].endpoint.last["contents"])

    response = {"id": "call_0_0", "name": "make", "response": expected}
    assert sent[2:] == [{"role": "user", "parts": [{"functionResponse": response}]}]


CALLED = {"role": "model", "parts": [{"functionCall": {"name": "make"}}] * 2}
ASKED = {
    "role": "assistant",
    "tool_calls": [{"id": f"call_0_{n}", "function": {"name": "make"}} for n in range(2)],
}
USED = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": f"call_0_{n}", "name": "make"} for n in range(2)],
}
SPLIT = [ASKED, MESSAGES[0], MESSAGES[2], MESSAGES[1]]
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/bmp;base64,Qk0="}}
GEMINI: Any = FakeGemini()
REFUSALS: list[tuple[str, Any, str, Any, str]] = [
    ("a call without its response", GEMINI, "3", [CALLED], "equal to the number of"),
    ("a file in an older response", GEMINI, "2", [CALLED, *NESTED], "not supported for this"),
    ("no signature", GEMINI, "3", [CALLED, *NESTED], "missing a thought_signature"),
    ("a split group", FakeOpenAI(), "", SPLIT, "must be followed by tool messages"),
    (
        "an unknown picture",
        FakeOpenAI(),
        "",
        [{"role": "user", "content": [PICTURE]}],
        "unsupported file: image/bmp",
    ),
    ("results apart", FakeAnthropic(), "", [{"role": "user", "content": "a"}, USED], "tool_result"),
]


@pytest.mark.parametrize(
    ("provider", "version", "said", "reason"),
    [row[1:] for row in REFUSALS],
    ids=[row[0] for row in REFUSALS],
)
async def test_the_endpoints_refuse_what_the_providers_refuse(
    provider: Provider, version: str, said: list[Any], reason: str
) -> None:
    path = f"/models/gemini-{version}-pro:generateContent" if version else "/chat/completions"
    with pytest.raises(Refused, match=reason):
        provider.read(path, {"model": "gpt-5", "contents": said, "messages": said})
