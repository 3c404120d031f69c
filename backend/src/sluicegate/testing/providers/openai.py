"""OpenAI's chat completions with the rules about tools and files."""

from __future__ import annotations

import itertools
import json
from typing import Any, Final

from sluicegate.testing.providers.endpoint import events
from sluicegate.testing.providers.messages import Message, Reply, Result, attach_to_result
from sluicegate.testing.providers.openai_anthropic_files import FormFiles
from sluicegate.testing.providers.received_files import ReceivedFile, decoded
from sluicegate.testing.providers.refusal_exceptions import Refused

_PICTURES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")


class FakeOpenAI:
    """Reads and writes as ``api.openai.com/v1/chat/completions`` does.

    Servers of other models speak the same; of those, this one plays sound and video too.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self.files = FormFiles("openai")

    def read(self, path: str, body: dict[str, Any]) -> list[Message]:
        """Read a request; raises Refused."""
        if not path.endswith("/chat/completions"):
            raise Refused(f"Nothing is uploaded here: {path}")
        turns: list[Message] = []
        open_calls: list[str] = []
        plays = not body["model"].startswith("gpt")
        for message in body["messages"]:
            role = message["role"]
            if open_calls and role != "tool":
                raise Refused(
                    "An assistant message with 'tool_calls' must be followed by tool messages "
                    f"responding to each 'tool_call_id'. Missing: {open_calls}"
                )
            if role == "system":
                continue
            if role == "tool":
                self._result(message, turns, open_calls)
                continue
            turn = Message("model" if role == "assistant" else "user")
            for call in message.get("tool_calls") or []:
                open_calls.append(call["id"])
                turn.calls.append((call["id"], call["function"]["name"]))
            if not (turn.calls and message.get("content") is None):
                self._content(message, turn, turns, plays=plays)
            turns.append(turn)
        if open_calls:
            raise Refused(f"No tool message answers {open_calls}.")
        return turns

    def _result(self, message: dict[str, Any], turns: list[Message], open_calls: list[str]) -> None:
        call = message["tool_call_id"]
        if call not in open_calls:
            raise Refused("messages with role 'tool' must be a response to a preceding message")
        open_calls.remove(call)
        content = message["content"]
        if isinstance(content, list):
            if any(block["type"] != "text" for block in content):
                raise Refused("Invalid content type. image_url is only supported by user messages.")
            content = "".join(block["text"] for block in content)
        if not turns[-1].results:
            turns.append(Message("results"))
        turns[-1].results.append(Result(call, content))

    def _content(
        self, message: dict[str, Any], turn: Message, turns: list[Message], *, plays: bool
    ) -> None:
        content = message["content"]
        if isinstance(content, str):
            turn.words.append(content)
            return
        if not content:
            raise Refused("Invalid content: a message is empty.")
        label = ""
        for block in content:
            if block["type"] == "text":
                label = block["text"]
                turn.words.append(label)
                continue
            if turn.role == "model":
                raise Refused(f"Invalid content type in an assistant message: {block['type']}")
            seen = self._played(block) if plays else None
            seen = seen or self._file(block)
            if label.startswith("[Data from a tool"):
                attach_to_result(turns, label, seen)
            else:
                turn.files.append(seen)

    def _played(self, block: dict[str, Any]) -> ReceivedFile | None:
        match block["type"]:
            case "input_audio":
                sound = block["input_audio"]
                return decoded(sound["data"], f"audio/{sound['format']}")
            case "video_url":
                media_type, _, data = block["video_url"]["url"][5:].partition(";base64,")
                return decoded(data, media_type)
        return None

    def _file(self, block: dict[str, Any]) -> ReceivedFile:
        allowed: tuple[str, ...]
        match block["type"]:
            case "image_url":
                url = block["image_url"]["url"]
                if url.startswith("https://"):
                    return ReceivedFile("image/png by its address", b"")
                allowed = _PICTURES
            case "file" if "file_id" in block["file"]:
                if set(block["file"]) != {"file_id"}:
                    raise Refused(f"Unknown parameter in 'file': {sorted(block['file'])}")
                return self.files.find(block["file"]["file_id"])
            case "file":
                url = block["file"]["file_data"]
                if not block["file"].get("filename"):
                    raise Refused("Missing required parameter: 'file.filename'.")
                allowed = ("application/pdf",)
            case kind:
                raise Refused(f"Invalid value: '{kind}'. Supported values: text, image_url, file.")
        media_type, _, data = url.removeprefix("data:").partition(";base64,")
        if media_type not in allowed:
            raise Refused(f"You uploaded an unsupported file: {media_type}")
        return decoded(data, media_type)

    def write(self, path: str, body: dict[str, Any], said: Reply) -> tuple[str, str]:
        """A completion, in pieces where the request wants them."""
        calls = [
            {
                "index": index,
                "id": f"call_{next(self._numbers)}",
                "type": "function",
                "function": {"name": name, "arguments": said.written(arguments)},
            }
            for index, (name, arguments) in enumerate(said.calls)
        ]
        message: dict[str, Any] = {"role": "assistant", "content": said.text or None}
        if calls:
            message["tool_calls"] = calls
        reason = "tool_calls" if calls else "stop"
        if said.is_cut_off:
            reason = "length"
        whole = {"id": "c", "created": 1, "model": body["model"]}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": reason}
            answer = {**whole, "object": "chat.completion", "choices": [choice], "usage": usage}
            return "application/json", json.dumps(answer)
        piece = {**whole, "object": "chat.completion.chunk"}
        first = {**piece, "choices": [{"index": 0, "delta": message, "finish_reason": None}]}
        last = {**piece, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
        count = {**piece, "choices": [], "usage": usage}
        return "text/event-stream", events(first, last, count) + "data: [DONE]\n\n"

    def refuse(self, reason: str) -> dict[str, Any]:
        """A 400 in OpenAI's words."""
        return {"error": {"message": reason, "type": "invalid_request_error", "code": None}}
