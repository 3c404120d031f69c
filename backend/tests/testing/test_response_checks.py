"""The checks of the test kit: each rule that a response breaks is reported by its id."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.testing import (
    RuleViolation,
    check_final_response,
    check_intermediate_response,
    check_response,
)
from sluicegate.testing.send_automatically_when import RULES, s2_bidi_literal, s2_sse_literal
from sluicegate.wire.chunks import BaseChunk, decode_chunk
from sluicegate.wire.reducer import reduce_chunks

if TYPE_CHECKING:
    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.wire.ui_messages import UIMessage

Chunk = dict[str, Any]
START: Chunk = {"type": "start", "messageId": "m1"}
STEP: Chunk = {"type": "start-step"}
STEP_END: Chunk = {"type": "finish-step"}
INPUT: Chunk = {"type": "tool-input-available", "toolCallId": "c1", "toolName": "pay", "input": {}}
REQUEST: Chunk = {"type": "tool-approval-request", "approvalId": "a1", "toolCallId": "c1"}
OUTPUT: Chunk = {"type": "tool-output-available", "toolCallId": "c1", "output": {}}
TEXT: list[Chunk] = [
    {"type": "text-start", "id": "t1"},
    {"type": "text-delta", "id": "t1", "delta": "Paid."},
    {"type": "text-end", "id": "t1"},
]
USAGE = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
METADATA = {"usage": USAGE, "model": "scripted", "createdAt": "2026-01-01T00:00:00.000+00:00"}
WAITS: Chunk = {"type": "finish", "finishReason": "tool-calls", "messageMetadata": METADATA}
ENDS: Chunk = {"type": "finish", "finishReason": "stop", "messageMetadata": METADATA}
ASKED = [START, STEP, INPUT, REQUEST, STEP_END, WAITS]
ANSWERED = [START, STEP, *TEXT, OUTPUT, STEP_END, ENDS]


def decoded(chunks: list[Chunk]) -> list[BaseChunk]:
    return [decode_chunk(json.dumps(chunk)) for chunk in chunks]


def asked() -> UIMessage:
    """The message after the request, as a client answers it."""
    message = reduce_chunks(decoded(ASKED))
    part = message["parts"][-1]
    part["state"] = "approval-responded"
    part["approval"] = {**part["approval"], "approved": True}
    return message


def check(
    chunks: list[Chunk],
    before: UIMessage | None = None,
    release: ReleasePolicy = "deferred",
    last: list[Chunk] | None = None,
) -> None:
    after: Any = {"id": "m1", "role": "assistant", "parts": last or [{"type": "step-start"}]}
    check_response(decoded(chunks), before, after, release=release)


def test_an_exchange_that_keeps_the_rules_is_accepted() -> None:
    check(ASKED)
    check(ANSWERED, asked())
    check([START, STEP, *TEXT, INPUT, REQUEST, STEP_END, WAITS], release="progressive")
    check_intermediate_response(decoded(ASKED))
    check_final_response(decoded(ANSWERED))


FINISHED = [{"type": "step-start"}, {"type": "tool-pay", "state": "output-available"}]
BROKEN: list[tuple[str, list[Chunk], bool, list[Chunk] | None]] = [
    ("T1 to T9: text-start", [START, *TEXT, ENDS], False, None),
    ("T1 to T9: start-step", [STEP, STEP_END, ENDS], False, None),
    ("T1 to T9: the response ended", [START, STEP, STEP_END], False, None),
    ("T4", [START, ENDS], True, None),
    ("T1", [{**START, "messageId": "m2"}, *ANSWERED[1:]], True, None),
    ("T5", ANSWERED, True, FINISHED),
    ("D1: text-start", [START, STEP, *TEXT, INPUT, REQUEST, STEP_END, WAITS], False, None),
    ("D1: tool-output-available", [START, STEP, OUTPUT, STEP_END, WAITS], True, None),
    ("D3", [START, STEP, OUTPUT, *TEXT, STEP_END, ENDS], True, None),
    ("D4", [START, STEP, *TEXT, {"type": "reset-step"}, STEP_END, ENDS], False, None),
]


@pytest.mark.parametrize(("rule", "chunks", "continues", "last"), BROKEN, ids=lambda v: str(v)[:24])
def test_a_broken_rule_is_reported(
    rule: str, chunks: list[Chunk], last: list[Chunk] | None, *, continues: bool
) -> None:
    with pytest.raises(RuleViolation) as found:
        check(chunks, asked() if continues else None, last=last)
    assert str(found.value).startswith(rule)
    assert rule.startswith(found.value.rule)


INTERMEDIATE = [
    ("S2-R04", [START, STEP, *TEXT, INPUT, REQUEST, STEP_END, WAITS]),
    ("S2-R06", [START, STEP, INPUT, REQUEST, OUTPUT, STEP_END, WAITS]),
    ("S2-R05", [START, STEP, INPUT, STEP_END, WAITS]),
    ("S2-R03", [START, STEP, REQUEST, INPUT, STEP_END, WAITS]),
    ("S2-R25", ASKED[:-1]),
    ("S2-R25", [*ASKED, WAITS]),
    (
        "S2-R48",
        [START, STEP, {"type": "file", "url": "data:,", "mediaType": "image/png"}, *ASKED[2:]],
    ),
]
FINAL = [
    ("S2-R20", [*ANSWERED[:-2], REQUEST, STEP_END, ENDS]),
    ("S2-R07", [START, STEP, *TEXT, STEP_END, ENDS]),
    ("S2-R07", [START, STEP, OUTPUT, *TEXT, STEP_END, ENDS]),
    ("S2-R25", ANSWERED[:-1]),
]


@pytest.mark.parametrize(("rule", "chunks"), INTERMEDIATE)
def test_an_intermediate_response_requests_and_shows_nothing_else(
    rule: str, chunks: list[Chunk]
) -> None:
    with pytest.raises(RuleViolation, match=rule):
        check_intermediate_response(decoded(chunks))


@pytest.mark.parametrize(("rule", "chunks"), FINAL)
def test_a_final_response_releases_everything(rule: str, chunks: list[Chunk]) -> None:
    with pytest.raises(RuleViolation, match=rule):
        check_final_response(decoded(chunks))


PARTS = {
    "responded": {"type": "tool-pay", "state": "approval-responded"},
    "requested": {"type": "tool-pay", "state": "approval-requested"},
    "done": {"type": "tool-pay", "state": "output-available"},
    "denied": {"type": "tool-pay", "state": "output-denied"},
    "text": {"type": "text", "text": "Hi.", "state": "done"},
    "step": {"type": "step-start"},
}
SENDS = [
    ("", ""),
    ("requested", ""),
    ("responded", "stock, s2, sse, bidi"),
    ("responded requested", "sse"),
    ("text responded", "stock"),
    ("text step responded", "stock"),
    ("done step responded", "stock"),
    ("denied step responded", "stock, sse, bidi"),
    ("responded step text", ""),
]


@pytest.mark.parametrize(("parts", "senders"), SENDS)
def test_a_rule_sends_where_its_document_says(parts: str, senders: str) -> None:
    message: Any = {
        "id": "m1",
        "role": "assistant",
        "parts": [dict(PARTS[name]) for name in parts.split()],
    }
    rules = {
        "stock": RULES["stock"],
        "s2": RULES["s2"],
        "sse": s2_sse_literal,
        "bidi": s2_bidi_literal,
    }
    sending = [name for name, rule in rules.items() if rule(message)]
    assert ", ".join(sending) == senders
