"""Anthropic's messages with the rules about tools and files."""

from __future__ import annotations

import base64
import itertools
import json
import re
from typing import Any, Final

from sluicegate.testing.providers.messages import Message, Reply, Result
from sluicegate.testing.providers.openai_anthropic_files import FormFiles
from sluicegate.testing.providers.received_files import ReceivedFile, decoded
from sluicegate.testing.providers.refusal_exceptions import Refused

_PICTURES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
_SIGNATURE: Final = base64.b64encode(b"\xff signed by claude").decode()
_MAX_PICTURE: Final = 5 * 1024 * 1024


class FakeAnthropic:
    """Reads and writes as ``api.anthropic.com/v1/messages`` does."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._encrypted: set[str] = set()
        self.files = FormFiles("anthropic")

    def read(self, path: str, body: dict[str, Any]) -> list[Message]:
        """Read a request; raises Refused."""
        turns: list[Message] = []
        waiting: list[str] = []
        role = "assistant"
        for message in body["messages"]:
            if message["role"] == role:
                raise Refused("messages: roles must alternate between user and assistant")
            role = message["role"]
            content = message["content"]
            if isinstance(content, str):
                content = [{"type": "text", "text": content}]
            if not content:
                raise Refused("messages: all messages must have non-empty content")
            answered = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
            if sorted(answered) != sorted(waiting):
                raise Refused(
                    "`tool_use` ids were found without `tool_result` blocks immediately after, or "
                    f"the other way round: {waiting} and {answered}"
                )
            if [b["type"] for b in content[: len(answered)]] != ["tool_result"] * len(answered):
                raise Refused("tool_result blocks must come first in a message")
            waiting = [block["id"] for block in content if block["type"] == "tool_use"]
            if waiting and body.get("thinking"):
                self._check_thinking(content)
            turns.extend(self._turns(role, content))
        if waiting:
            raise Refused(f"`tool_use` without `tool_result`: {waiting}")
        return turns

    def _turns(self, role: str, content: list[dict[str, Any]]) -> list[Message]:
        said, results = Message("model" if role == "assistant" else "user"), Message("results")
        for block in content:
            match block["type"]:
                case "text":
                    if not block["text"].strip():
                        raise Refused("messages: text content blocks must be non-empty")
                    said.words.append(block["text"])
                case "tool_use":
                    if not _ID.fullmatch(block["id"]):
                        raise Refused("tool_use.id: String should match pattern")
                    said.calls.append((block["id"], block["name"]))
                case "tool_result":
                    results.results.append(self._result(block))
                case "image" | "document":
                    said.files.append(self._file(block))
                case "thinking" | "redacted_thinking":
                    self._check_thought(block)
                case kind:
                    raise Refused(f"messages: Input tag '{kind}' does not match any expected tag")
        return [
            turn
            for turn in (results, said)
            if turn.words or turn.calls or turn.results or turn.files
        ]

    def _check_thought(self, block: dict[str, Any]) -> None:
        if block["type"] == "redacted_thinking":
            if block["data"] not in self._encrypted:
                raise Refused("Invalid `data` in `redacted_thinking` block")
        elif block["signature"] != _SIGNATURE:
            raise Refused("Invalid `signature` in `thinking` block")

    def _check_thinking(self, content: list[dict[str, Any]]) -> None:
        """A model that thinks wants its thinking back before its calls, as it was."""
        kinds = [block["type"] for block in content]
        if kinds[:2] != ["thinking", "redacted_thinking"]:
            raise Refused(
                "Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` "
                f"is enabled, a final assistant message must start with a thinking block: {kinds}"
            )

    def _result(self, block: dict[str, Any]) -> Result:
        content = block["content"]
        if isinstance(content, str):
            return Result(block["tool_use_id"], content)
        words = "".join(inner["text"] for inner in content if inner["type"] == "text")
        files = [self._file(inner) for inner in content if inner["type"] != "text"]
        return Result(block["tool_use_id"], words, files)

    def _file(self, block: dict[str, Any]) -> ReceivedFile:
        allowed = {"image": _PICTURES, "document": ("application/pdf",)}.get(block["type"])
        source = block["source"]
        if source["type"] == "file":
            return self.files.find(source["file_id"])
        if allowed is None or source["type"] != "base64" or source["media_type"] not in allowed:
            raise Refused(f"Unsupported file: {block['type']} {source.get('media_type')}")
        if block["type"] == "image" and len(source["data"]) > _MAX_PICTURE * 4 / 3:
            raise Refused("image exceeds 5 MB maximum")
        return decoded(source["data"], source["media_type"])

    def write(self, path: str, body: dict[str, Any], said: Reply) -> tuple[str, str]:
        """A message, in events where the request wants them."""
        blocks: list[dict[str, Any]] = self._thinking() if body.get("thinking") else []
        blocks.extend([{"type": "text", "text": said.text}] if said.text else [])
        blocks.extend(
            {
                "type": "tool_use",
                "id": f"toolu_{next(self._numbers)}",
                "name": name,
                "input": arguments,
                "written": said.written(arguments),
            }
            for name, arguments in said.calls
        )
        reason = "tool_use" if said.calls else "end_turn"
        if said.is_cut_off:
            reason = "max_tokens"
        usage = {"input_tokens": 1, "output_tokens": 1}
        whole = {"id": "m", "type": "message", "role": "assistant", "model": body["model"]}
        if not body.get("stream"):
            for block in blocks:
                block.pop("written", None)
            answer = {**whole, "content": blocks, "stop_reason": reason, "usage": usage}
            return "application/json", json.dumps(answer)
        start = {**whole, "content": [], "stop_reason": None, "usage": usage}
        lines_sent: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
        for index, block in enumerate(blocks):
            lines_sent.extend(_pieces(index, block))
        delta = {"stop_reason": reason, "stop_sequence": None}
        lines_sent.append({"type": "message_delta", "delta": delta, "usage": usage})
        lines_sent.append({"type": "message_stop"})
        lines = (f"event: {item['type']}\ndata: {json.dumps(item)}\n\n" for item in lines_sent)
        return "text/event-stream", "".join(lines)

    def _thinking(self) -> list[dict[str, Any]]:
        data = base64.b64encode(f"encrypted {next(self._numbers)}".encode()).decode()
        self._encrypted.add(data)
        return [
            {"type": "thinking", "thinking": "I call it.", "signature": _SIGNATURE},
            {"type": "redacted_thinking", "data": data},
        ]

    def refuse(self, reason: str) -> dict[str, Any]:
        """A 400 in Anthropic's words."""
        return {"type": "error", "error": {"type": "invalid_request_error", "message": reason}}


def _pieces(index: int, block: dict[str, Any]) -> list[dict[str, Any]]:
    if block["type"] == "text":
        empty: dict[str, Any] = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": block["text"]}]
    elif block["type"] == "thinking":
        empty = {**block, "thinking": "", "signature": ""}
        deltas = [
            {"type": "thinking_delta", "thinking": block["thinking"]},
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    elif block["type"] == "redacted_thinking":
        empty, deltas = block, []
    else:
        deltas = [{"type": "input_json_delta", "partial_json": block.pop("written")}]
        empty = {**block, "input": {}}
    return [
        {"type": "content_block_start", "index": index, "content_block": empty},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]
