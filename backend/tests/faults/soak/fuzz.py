"""Mutated frames, bodies and answers of workers: each is refused in one sentence, or accepted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from random import Random
from typing import Any, Final, Literal, TypeAlias

import httpx
from mcp import types as mcp

from sluicegate.errors import RequestError, ToolError
from sluicegate.tools.mcp_result_conversion import error_text, result_from_mcp
from sluicegate.tools.worker_client import WorkerClient, WorkerRequest
from sluicegate.tools.worker_questions import WorkerQuestions
from sluicegate.wire import strict_json
from sluicegate.wire.decisions import StagedOptions, parse_decision, with_staged_options
from sluicegate.wire.frames import parse_frame
from sluicegate.wire.limits import DEFAULT_LIMITS
from sluicegate.wire.live_frames import parse_live_frame
from sluicegate.wire.requests import parse_chat_request
from tests.faults.soak.portions import play_portions
from tests.faults.soak.tally import Tally, failure

Kind: TypeAlias = Literal["frames", "bodies", "worker answers"]
KINDS: Final[tuple[Kind, ...]] = ("frames", "bodies", "worker answers")

PORTION: Final = 2_000
SECONDS: Final = 0.5
"""What a worker may take; a call without an answer of its own ends then."""

TOKENS: Final = (
    b"null",
    b"true",
    b"-0",
    b"1e999",
    b"NaN",
    b"9007199254740993",
    b'"__proto__":{}',
    b'"constructor":{"prototype":1}',
    b"[" * 40,
    b"{" * 40,
    b'"\\ud800"',
    b"\\u0000",
    b"\xff\xfe",
    b"\x00",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xae",
    b'""',
    b'"adk_request_confirmation"',
    b',"type":"send"',
)
VALUES: Final[tuple[Any, ...]] = (
    None,
    True,
    -1,
    2**53,
    1.5,
    "",
    "x" * 300,
    "\u202e",
    [],
    {},
    [[]],
    {"id": None},
)

_PART: Final[dict[str, Any]] = {
    "type": "tool-pay",
    "toolCallId": "call-1",
    "state": "approval-responded",
    "input": {"n": 1},
    "approval": {"id": "adk-1", "approved": True, "reason": "ok"},
}
_BODY: Final[dict[str, Any]] = {
    "id": "chat-1",
    "trigger": "submit-message",
    "messageId": "m1",
    "messages": [
        {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Hi"}]},
        {"id": "m1", "role": "assistant", "parts": [{"type": "step-start"}, _PART]},
    ],
    "edits": {"adk-1": {"n": 2}},
    "remember": {"adk-1": "chat"},
}
FRAMES: Final[tuple[dict[str, Any], ...]] = (
    {"type": "send", "requestId": "r1", "headers": {"x-ai-sdk": "7"}, **_BODY},
    {"type": "resume", "requestId": "r1", "id": "chat-1", "headers": {}, "body": {"a": 1}},
    {"type": "abort", "requestId": "r1"},
    {"type": "image", "requestId": "live", "mediaType": "image/png", "data": "aW1hZ2U="},
    {"type": "interrupt", "requestId": "live"},
)
_TOOL: Final[dict[str, Any]] = {
    "name": "pay",
    "description": "Pay.",
    "inputSchema": {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}},
}
_RESULT: Final[dict[str, Any]] = {
    "content": [
        {"type": "text", "text": "done"},
        {"type": "image", "data": "aW1hZ2U=", "mimeType": "image/png"},
        {"type": "resource_link", "uri": "https://example.test/a", "name": "a"},
    ],
    "structuredContent": {"paid": True},
    "isError": False,
}
_ANSWERS: Final[dict[str, dict[str, Any]]] = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "worker", "version": "1"},
    },
    "tools/list": {"tools": [_TOOL]},
    "tools/call": _RESULT,
}


def mutated(rng: Random, value: Any) -> Any:
    """A JSON value with some places changed."""
    if rng.random() < 0.04:
        return rng.choice(VALUES)
    if isinstance(value, dict):
        members = {key: mutated(rng, item) for key, item in value.items() if rng.random() > 0.02}
        if rng.random() < 0.03:
            members[rng.choice(("__proto__", "constructor", "", "type", "id"))] = rng.choice(VALUES)
        return members
    if isinstance(value, list):
        items = [mutated(rng, item) for item in value]
        return items * 2 if rng.random() < 0.02 else items
    return value


def mutated_bytes(rng: Random, data: bytes) -> bytes:
    """Bytes with some places changed."""
    for _ in range(rng.choice((0, 0, 1, 2, 5))):
        at = rng.randrange(len(data) + 1)
        until = min(len(data), at + rng.choice((0, 0, 1, 8)))
        data = data[:at] + rng.choice(TOKENS) + data[until:]
    return data[: rng.randrange(len(data) + 1)] if rng.random() < 0.05 else data


def fuzz_frame(rng: Random) -> None:
    """Parse a mutated frame: it never raises."""
    data = mutated_bytes(rng, json.dumps(mutated(rng, rng.choice(FRAMES))).encode())
    parse_frame(data)
    parse_live_frame(data, max_image=1_000)


def fuzz_body(rng: Random) -> None:
    """Parse a mutated body: it is a request, or it is refused in one sentence."""
    data = mutated_bytes(rng, json.dumps(mutated(rng, _BODY)).encode())
    try:
        body = strict_json.loads(data)
        if isinstance(body, dict):
            parse_chat_request(body, DEFAULT_LIMITS)
        approval = mutated(rng, _PART["approval"])
        if isinstance(approval, dict):
            staged = StagedOptions(mutated(rng, _BODY["edits"]), mutated(rng, _BODY["remember"]))
            with_staged_options(parse_decision(approval, DEFAULT_LIMITS), staged)
    except RequestError as error:
        _check_sentence(str(error))


class FuzzedWorker(WorkerClient):
    """A client of a worker that answers mutated results."""

    rng: Random

    def _connections(self) -> Any:
        return httpx.MockTransport(self._mutated_answer)

    async def _mutated_answer(self, request: httpx.Request) -> httpx.Response:
        asked = json.loads(request.content or b"{}")
        result = _ANSWERS.get(str(asked.get("method")))
        if result is None:
            return httpx.Response(202, request=request)
        is_first = asked["method"] == "initialize" and self.rng.random() < 0.9
        answer = {"jsonrpc": "2.0", "id": asked.get("id"), "result": result}
        data = json.dumps(answer if is_first else mutated(self.rng, answer)).encode()
        if not is_first:
            data = mutated_bytes(self.rng, data)
        if self.rng.random() < 0.3:
            data = b"event: message\ndata: " + data.replace(b"\n", b"") + b"\n\n"
            return httpx.Response(200, content=data, headers={"content-type": "text/event-stream"})
        status = 200 if is_first else self.rng.choice((200, 200, 200, 404, 500))
        return httpx.Response(status, content=data, headers={"content-type": "application/json"})


async def fuzz_worker(rng: Random) -> None:
    """Read a worker's mutated answers: a result, or a `ToolError` in one sentence."""
    worker = FuzzedWorker("shop", "http://worker.test/mcp", lambda: None)
    worker.rng = rng
    try:
        if rng.random() < 0.5:
            await worker.tools(SECONDS)
        else:
            request = WorkerRequest("pay", {"n": 1}, {})
            result = await worker.call(request, _decline, _ignore_progress, SECONDS)
            if isinstance(result, mcp.InputRequiredResult):
                WorkerQuestions.required("shop", result)
            else:
                if result.is_error:
                    _check_sentence(error_text(result))
                result_from_mcp(result)
    except ToolError as error:
        _check_sentence(str(error))
    finally:
        await worker.close()


async def _decline(params: mcp.ElicitRequestFormParams) -> mcp.ElicitResult:
    return mcp.ElicitResult(action="decline")


async def _ignore_progress(progress: float, total: float | None, message: str | None) -> None:
    return


def _check_sentence(text: str) -> None:
    if not text or "\n" in text or "Traceback" in text or len(text) > 1_000:
        raise AssertionError(f"not one sentence: {text[:200]!r}")


async def _fuzz_frame(rng: Random) -> None:
    fuzz_frame(rng)


async def _fuzz_body(rng: Random) -> None:
    fuzz_body(rng)


_FUZZERS: Final[dict[Kind, Callable[[Random], Awaitable[None]]]] = {
    "frames": _fuzz_frame,
    "bodies": _fuzz_body,
    "worker answers": fuzz_worker,
}


def fuzz(kind: Kind, first: int, count: int, processes: int) -> Tally:
    """Play that many seeds of a kind from the first on, in that many processes at a time."""
    return play_portions(
        Tally(f"fuzzed {kind}"),
        partial(play, kind),
        range(first, first + count),
        portion=PORTION,
        processes=processes,
    )


async def play(kind: Kind, seeds: range) -> list[tuple[str, str]]:
    """Play seeds; returns their failures."""
    failures = []
    for seed in seeds:
        try:
            await _FUZZERS[kind](Random(seed))
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it is counted
            failures.append(failure(error, f"seed {seed}"))
    return failures
