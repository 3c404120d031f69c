"""Gemini's ``generateContent`` with the rules of its two generations and its two backends."""

from __future__ import annotations

import base64
import itertools
import json
import re
from dataclasses import dataclass
from typing import Any, Final

from sluicegate.testing.providers.endpoint import events
from sluicegate.testing.providers.messages import Message, Reply, Result, attach_to_result
from sluicegate.testing.providers.received_files import ReceivedFile, decoded
from sluicegate.testing.providers.refusal_exceptions import NotFound, Refused

_MODEL: Final = re.compile(r"/models/([^:/]+):")
_READS: Final = (
    "image/png",
    "image/jpeg",
    "image/webp",
    "image/heic",
    "image/heif",
    "application/pdf",
    "text/plain",
    "audio/",
    "video/",
)
_NESTS: Final = ("image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain")
_FETCHES: Final = ("https://generativelanguage.googleapis.com/", "https://www.youtube.com/")
_VERTEX_FETCHES: Final = ("https://", "gs://")
_MAX_REQUEST: Final = 20 * 1024 * 1024


@dataclass(frozen=True)
class _Rules:
    """The files that one model on one backend accepts."""

    is_new: bool
    is_vertex: bool
    reads: tuple[str, ...]


class FakeGemini:
    """Reads and writes as ``generativelanguage.googleapis.com`` does, as far as tools go.

    Under the paths of Vertex it has the rules of that backend; a model that is no Gemini reads
    pictures of one more kind.
    """

    def __init__(self) -> None:
        self._signed: set[str] = set()
        self._numbers = itertools.count(1)

    def read(self, path: str, body: dict[str, Any]) -> list[Message]:
        """Read a request; raises Refused."""
        named = _MODEL.search(path)
        name = "" if named is None else named[1]
        if "-live" in name or "native-audio" in name:
            raise NotFound(
                f"models/{name} is not found for API version v1beta, or is not supported for "
                "generateContent."
            )
        rules = _Rules(
            name.startswith("gemini-3"),
            "/publishers/" in path,
            _READS if name.startswith("gemini") else (*_READS, "image/gif"),
        )
        if len(json.dumps(body)) > _MAX_REQUEST:
            raise Refused("Request payload size exceeds the limit: 20971520 bytes.")
        contents = in_camel_case(body["contents"])
        self._pair(contents)
        if rules.is_new:
            self._check_signatures(contents)
        turns: list[Message] = []
        for content in contents:
            self._turn(content, turns, rules)
        return turns

    def _pair(self, contents: list[dict[str, Any]]) -> None:
        """As many responses as calls, in the content right behind."""
        for content, following in zip(contents, [*contents[1:], {"parts": []}], strict=True):
            calls = [p for p in content["parts"] if "functionCall" in p]
            answers = [p for p in following["parts"] if "functionResponse" in p]
            if calls and len(calls) != len(answers):
                raise Refused(
                    "Please ensure that the number of function response parts is equal to the "
                    "number of function call parts of the function call turn."
                )
            if answers and not calls:
                raise Refused(
                    "Please ensure that function response turn comes immediately after a "
                    "function call turn."
                )

    def _check_signatures(self, contents: list[dict[str, Any]]) -> None:
        """The first call of each step since the user's last words needs a signature of ours."""
        start = max(
            (
                index
                for index, content in enumerate(contents)
                if content.get("role") == "user" and any("text" in p for p in content["parts"])
            ),
            default=0,
        )
        for content in contents[start:]:
            call = next((p for p in content["parts"] if "functionCall" in p), None)
            if call is None:
                continue
            signature = call.get("thoughtSignature")
            if signature is None:
                raise Refused("Function call is missing a thought_signature in functionCall parts.")
            data = base64.b64decode(signature.replace("-", "+").replace("_", "/"))
            if data != b"skip_thought_signature_validator" and data.decode() not in self._signed:
                raise Refused("Thought signature is not valid.")

    def _turn(self, content: dict[str, Any], turns: list[Message], rules: _Rules) -> None:
        turn = Message(content.get("role", "user"))
        label = ""
        for part in content["parts"]:
            if "text" in part:
                label = part["text"]
                turn.words.append(label)
            elif "functionCall" in part:
                turn.calls.append(
                    (part["functionCall"].get("id", ""), part["functionCall"]["name"])
                )
            elif "functionResponse" in part:
                turn.results.append(self._result(part["functionResponse"], rules))
            elif "inlineData" in part or "fileData" in part:
                seen = self._file(part, rules)
                if len(turn.results) == 1:
                    turn.results[0].files.append(seen)
                elif turn.results:
                    raise Refused("a file stands among several responses")
                elif label.startswith("[Data from a tool"):
                    attach_to_result(turns, label, seen)
                else:
                    turn.files.append(seen)
            else:
                raise Refused(f"contents.parts.data: required oneof field must have one of: {part}")
        turns.append(turn)

    def _result(self, answer: dict[str, Any], rules: _Rules) -> Result:
        if answer.get("parts") and not rules.is_new:
            raise Refused("Multimodal function response is not supported for this model.")
        if "$ref" in json.dumps(answer):
            raise Refused("Unknown name \"$ref\" at 'contents.parts.function_response'.")
        result = Result(answer.get("id", ""), json.dumps(answer["response"]))
        for part in answer.get("parts", []):
            if "fileData" in part and not rules.is_vertex:
                raise Refused("File data is not supported in function responses.")
            seen = self._file(part, rules)
            if seen.data and seen.media_type not in _NESTS:
                raise Refused(f"Unsupported MIME type in function response: {seen.media_type}")
            result.files.append(seen)
        return result

    def _file(self, part: dict[str, Any], rules: _Rules) -> ReceivedFile:
        data = part.get("inlineData") or part["fileData"]
        if "displayName" in data:
            raise Refused("display_name parameter is not supported in Gemini API.")
        media_type = data.get("mimeType", "")
        if not media_type.startswith(rules.reads):
            raise Refused(f"Unsupported MIME type: {media_type}")
        if "fileUri" in data:
            if not data["fileUri"].startswith(_VERTEX_FETCHES if rules.is_vertex else _FETCHES):
                raise Refused(f"Unsupported file URI type: {data['fileUri']}")
            return ReceivedFile(media_type + " by its address", b"")
        return decoded(data["data"], media_type)

    def write(self, path: str, body: dict[str, Any], said: Reply) -> tuple[str, str]:
        """One candidate; signed, as newer models sign their calls."""
        parts: list[dict[str, Any]] = [{"text": said.text}] if said.text else []
        for number, (name, arguments) in enumerate(said.calls):
            part: dict[str, Any] = {"functionCall": {"name": name, "args": arguments}}
            if number == 0:
                self._signed.add(signature := f"signature {next(self._numbers)} \u2713")
                part["thoughtSignature"] = base64.b64encode(signature.encode()).decode()
            parts.append(part)
        answer = {
            "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 1, "totalTokenCount": 1},
        }
        if "stream" in path:
            return "text/event-stream", events(answer)
        return "application/json", json.dumps(answer)

    def refuse(self, reason: str) -> dict[str, Any]:
        """A 400 in Google's words."""
        return {"error": {"code": 400, "message": reason, "status": "INVALID_ARGUMENT"}}


def in_camel_case(value: Any) -> Any:
    """Google accepts its fields in either case; arguments and results of tools are unchanged."""
    if isinstance(value, list):
        return [in_camel_case(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        re.sub(r"_(\w)", lambda found: found[1].upper(), key): (
            item if key in ("args", "response") else in_camel_case(item)
        )
        for key, item in value.items()
    }
