"""Shapes a request for the model that is called; the session stays unchanged (S3-R17, S3-R26).

Rule 1: every call of a parallel turn keeps its one response; no other part stands between the
responses of a turn (S3-R27). Rule 2: the contents that are passed in are never changed (S4-R14).
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from google.genai import types

from sluicegate.media.claude_encrypted_thinking import own_form
from sluicegate.media.file_inspection import matches_media_type
from sluicegate.media.file_labels import (
    FROM_BROWSER,
    attached_label,
    describe_file,
    following_files_text,
    left_out_label,
    left_out_notice,
    returned_files_text,
    tool_label,
)
from sluicegate.media.file_selection import (
    Choice,
    FileItem,
    LeftOut,
    ModelProfile,
    choose_files,
    is_status_shape,
)
from sluicegate.media.litellm_blocks import (
    TOKEN_KEY,
    data_url,
    decode_text,
    file_block,
    result_text,
    uploaded_block,
)
from sluicegate.media.thought_signature_filter import readable_parts
from sluicegate.media.tool_result_with_files import STATUSES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sluicegate.media.model_client_libraries import Route
    from sluicegate.wire.stored_files import StoredFile

FileForm: TypeAlias = Literal["bytes", "url", "upload", "jpeg", "jpeg-url"]


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """A file that was read: its bytes or, for LiteLLM, a data URL; its pixels and its pages.

    Of a file that was uploaded to the provider, ``url`` is the reference.
    """

    data: bytes = b""
    url: str = ""
    side: int = 0
    pages: int = 0


@dataclass(slots=True)
class ShapedRequest:
    """The contents to send; ``blocks`` replace the tokens in them when the client is called.

    ``uploads`` are the files that they refer to at the provider, each with its reference.
    """

    contents: list[types.Content]
    blocks: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    left_out: list[tuple[FileItem, LeftOut]] = field(default_factory=list)
    uploads: list[tuple[StoredFile, str]] = field(default_factory=list)

    @property
    def notices(self) -> list[str]:
        """Notices for the user: files that the model does not receive and did not have before."""
        return [
            left_out_notice(item.media_type, item.title, choice.reason)
            for item, choice in self.left_out
            if choice.is_new
        ]


class RequestShaper:
    """Shapes one request for one model.

    The files in `required` are loaded between construction and `shape`.
    """

    def __init__(self, contents: Sequence[types.Content], profile: ModelProfile) -> None:
        self._contents = contents
        self._profile = profile
        self._choices = choose_files(contents, profile)
        self._loaded: Mapping[tuple[str, FileForm], LoadedFile | None] = {}
        self._shaped = ShapedRequest([])

    @property
    def required(self) -> list[tuple[StoredFile, FileForm]]:
        """The stored files to load, each once per form."""
        files = [
            (item.file, self._form(item, choice))
            for item, choice in self._choices.values()
            if item.file is not None and choice in ("media", "text", "upload")
        ]
        return list({(file.name, form): (file, form) for file, form in files}.values())

    def _form(self, item: FileItem, choice: Choice) -> FileForm:
        if choice == "upload":
            return "upload"
        is_url = self._profile.hooked and choice == "media"
        if item.is_converted:
            return "jpeg-url" if is_url else "jpeg"
        return "url" if is_url else "bytes"

    def shape(self, loaded: Mapping[tuple[str, FileForm], LoadedFile | None]) -> ShapedRequest:
        """Build the request from the loaded files, by name and form; None if one cannot be read."""
        self._loaded = loaded
        results: list[int] = []
        for index, content in enumerate(self._contents):
            if any(part.function_response for part in content.parts or []):
                results.append(index)
                continue
            self._add_results(results)
            results = []
            message = self._message(index, content)
            # Without the thoughts of another model a content may be empty, which providers refuse.
            if message.parts or not content.parts:
                self._shaped.contents.append(message)
        self._add_results(results)
        return self._shaped

    def _message(self, index: int, content: types.Content) -> types.Content:
        """Shape a message of the user or of the model."""
        parts: list[types.Part] = []
        for number, part in enumerate(content.parts or []):
            chosen = self._choices.get((index, number, -1))
            if chosen is None:
                parts.append(part)
                continue
            item, choice = self._check_loaded(*chosen)
            label = attached_label(_described(item))
            if choice == "text":
                parts.append(types.Part(text=f"{label}\n{self._text(item)}"))
                continue
            if not isinstance(choice, LeftOut) and item.role == "user" and item.file is not None:
                parts.append(types.Part(text=label))
            parts.append(self._part(item, choice, part))
        if content.role == "model":
            parts = readable_parts(parts, self._profile.row)
            if self._profile.row.signatures == "anthropic":
                parts = [own_form(part, self._thinking_route) for part in parts]
        return content.model_copy(update={"parts": parts})

    @property
    def _thinking_route(self) -> Route:
        # Outside of the server the client of LiteLLM is ADK's, which knows no mark.
        is_unhooked = self._profile.route == "litellm" and not self._profile.hooked
        return "other" if is_unhooked else self._profile.route

    def _add_results(self, indexes: Sequence[int]) -> None:
        """Add the results of one turn: first all responses, then the files that follow them."""
        if not indexes:
            return
        responses: list[types.Part] = []
        siblings: list[types.Part] = []
        following: list[types.Part] = []
        parts = [
            (index, number, part)
            for index in indexes
            for number, part in enumerate(self._contents[index].parts or [])
        ]
        is_single = sum(part.function_response is not None for *_, part in parts) == 1
        for index, number, part in parts:
            if part.function_response is None:
                chosen = self._choices.get((index, number, -1))
                following.append(
                    part if chosen is None else self._part(*self._check_loaded(*chosen), part)
                )
                continue
            response, files = self._response_and_files((index, number), part.function_response)
            responses.append(part.model_copy(update={"function_response": response}))
            for label, file in files:
                if is_single and self._profile.results in ("siblings", "nested"):
                    siblings.append(file)
                else:
                    following.extend((types.Part(text=label), file))
        first = self._contents[indexes[0]]
        self._shaped.contents.append(first.model_copy(update={"parts": [*responses, *siblings]}))
        if following:
            self._shaped.contents.append(types.Content(role="user", parts=following))

    def _response_and_files(
        self, position: tuple[int, int], response: types.FunctionResponse
    ) -> tuple[types.FunctionResponse, list[tuple[str, types.Part]]]:
        """Return a function response, and the files outside of it with their labels."""
        positions = [(*position, offset) for offset in range(len(response.parts or []))]
        items = [self._check_loaded(*self._choices[at]) for at in positions if at in self._choices]
        nested: list[types.FunctionResponsePart] = []
        native: list[FileItem] = []
        outside: list[tuple[str, types.Part]] = []
        for number, (item, choice) in enumerate(items, 1):
            if choice not in ("media", "link", "upload"):
                continue
            is_nested = self._is_nested(item, choice)
            if is_nested and self._profile.results == "native":
                native.append(item)
            elif is_nested:
                nested.append(self._nested_part(item, choice))
            else:
                tool = response.name or "a tool"
                label = tool_label(number, tool, response.id, _described(item))
                outside.append((label, self._part(item, choice, None)))
        payload = self._payload(response, items, follows=len(outside))
        if self._profile.hooked and (native or self._profile.row.payload == "text"):
            payload = self._native_payload(payload, native)
        elif self._profile.route == "anthropic" and set(payload) != {"result"}:
            # ADK: it sends a text under this key as it is, and the rest of a response as JSON.
            payload = {"content": result_text(payload, STATUSES)}
        update = {"response": payload, "parts": nested or None}
        return response.model_copy(update=update), outside

    def _is_nested(self, item: FileItem, choice: Choice) -> bool:
        profile = self._profile
        if profile.results not in ("nested", "native"):
            return False
        if choice in ("link", "upload"):
            # Google's developer API refuses URLs in responses, Vertex AI accepts them.
            return profile.route == "vertex"
        return matches_media_type(item.media_type, profile.row.nested)

    def _payload(
        self,
        response: types.FunctionResponse,
        items: list[tuple[FileItem, Choice]],
        *,
        follows: int,
    ) -> dict[str, Any]:
        payload = dict(response.response or {})
        if response.name in self._profile.untrusted:
            payload = {"untrusted_output": payload, "note": FROM_BROWSER}
        payload = self._family_payload(payload, len(items))
        if items:
            payload["attachments"] = [self._entry(item, choice) for item, choice in items]
        if follows and self._profile.results == "message":
            payload["attachments_note"] = following_files_text(follows)
        return payload

    def _family_payload(self, payload: dict[str, Any], files: int) -> dict[str, Any]:
        """Convert a result to the model family's form (S0-R07 to S0-R09, S3-R06 to S3-R11)."""
        writes_output = self._profile.row.payload == "output" and self._profile.route != "litellm"
        if not is_status_shape(payload, STATUSES):
            if payload or not files:
                return _with_output(payload, files) if writes_output else payload
            payload = {"status": "success"}
        if files and "text_result" not in payload and "structured_result" not in payload:
            payload["text_result"] = returned_files_text(files)
        if not writes_output:
            return payload
        status = payload.pop("status", "success")
        text = payload.pop("text_result", None)
        if status == "error":
            return {"error": text or "The tool failed.", **payload}
        if text is not None:
            payload = {"output": text, **payload}
        return payload if status == "success" else {"status": status, **payload}

    def _entry(self, item: FileItem, choice: Choice) -> dict[str, Any]:
        """Describe a file in the payload of its result (S4-R53)."""
        entry = {"id": item.file_id, "type": item.media_type}
        if item.title:
            entry["name"] = item.title
        if item.description:
            entry["description"] = item.description
        if choice == "text":
            entry["content"] = self._text(item)
        elif isinstance(choice, LeftOut):
            self._shaped.left_out.append((item, choice))
            entry["not_shown"] = choice.reason
        return entry

    def _native_payload(self, payload: dict[str, Any], native: list[FileItem]) -> dict[str, Any]:
        """Replace the payload by a token for blocks in LiteLLM's message of the tool."""
        blocks = [{"type": "text", "text": result_text(payload, STATUSES)}]
        blocks.extend(file_block(item.media_type, self._url(item), item.title) for item in native)
        return {TOKEN_KEY: self._token(blocks)}

    def _part(self, item: FileItem, choice: Choice, part: types.Part | None) -> types.Part:
        """Return a part with the file, or with the label in its place."""
        if isinstance(choice, LeftOut):
            self._shaped.left_out.append((item, choice))
            return types.Part(text=left_out_label(_described(item), choice.reason))
        base = part if part is not None else types.Part()
        if choice == "upload" and self._profile.route in ("litellm", "anthropic"):
            is_litellm = self._profile.route == "litellm"
            block = uploaded_block(item.media_type, self._uploaded(item), litellm=is_litellm)
            return types.Part(text=self._token([block]))
        if choice in ("link", "upload"):
            uri = item.link if choice == "link" else self._uploaded(item)
            data = types.FileData(file_uri=uri, mime_type=item.media_type)
            return base.model_copy(update={"file_data": data, "inline_data": None})
        if self._profile.route == "litellm" and self._profile.hooked:
            block = file_block(item.media_type, self._url(item), item.title)
            return types.Part(text=self._token([block]))
        # One of Google's two backends refuses a display name (S0-R13).
        blob = types.Blob(data=self._bytes(item), mime_type=item.media_type)
        return base.model_copy(update={"inline_data": blob, "file_data": None})

    def _nested_part(self, item: FileItem, choice: Choice) -> types.FunctionResponsePart:
        if choice == "link":
            data = types.FunctionResponseFileData(file_uri=item.link, mime_type=item.media_type)
            return types.FunctionResponsePart(file_data=data)
        blob = types.FunctionResponseBlob(data=self._bytes(item), mime_type=item.media_type)
        return types.FunctionResponsePart(inline_data=blob)

    def _check_loaded(self, item: FileItem, choice: Choice) -> tuple[FileItem, Choice]:
        """Leave a file out if it was not loaded, or exceeds a limit of pixels or pages."""
        if choice not in ("media", "text", "upload") or item.file is None:
            return item, choice
        loaded = self._loaded.get((item.file.name, self._form(item, choice)))
        row = self._profile.row
        if loaded is None and choice == "upload":
            return item, LeftOut("it could not be uploaded to the provider of the model")
        if loaded is None and item.is_converted:
            return item, LeftOut("it could not be converted to an image that this model reads")
        if loaded is None:
            return item, LeftOut("it can no longer be read")
        if max(len(loaded.data), len(loaded.url) * 3 // 4) > row.max_file_bytes:
            return item, LeftOut(
                f"it is larger than the {row.max_file_bytes:,} bytes that this model reads"
            )
        if loaded.side > row.max_side:
            return item, LeftOut(
                f"its longer side has more than the {row.max_side:,} pixels allowed"
            )
        if loaded.pages > row.max_pages:
            return item, LeftOut(f"it has more than the {row.max_pages:,} pages allowed")
        return item, choice

    def _token(self, blocks: list[dict[str, Any]]) -> str:
        token = f"sluicegate-{secrets.token_hex(16)}"
        self._shaped.blocks[token] = blocks
        return token

    def _bytes(self, item: FileItem) -> bytes:
        if item.file is None:
            return item.blob or b""
        loaded = self._loaded.get((item.file.name, "jpeg" if item.is_converted else "bytes"))
        return loaded.data if loaded is not None else b""

    def _url(self, item: FileItem) -> str:
        if item.file is None:
            return data_url(item.blob or b"", item.media_type)
        form: FileForm = "jpeg-url" if item.is_converted else "url"
        loaded = self._loaded.get((item.file.name, form))
        return loaded.url if loaded is not None else ""

    def _uploaded(self, item: FileItem) -> str:
        loaded = self._loaded.get((item.file.name, "upload")) if item.file is not None else None
        if item.file is None or loaded is None:
            return ""
        self._shaped.uploads.append((item.file, loaded.url))
        return loaded.url

    def _text(self, item: FileItem) -> str:
        return decode_text(self._bytes(item))


def _with_output(payload: dict[str, Any], files: int) -> dict[str, Any]:
    """Return a text, or texts that were beside files, as the output of a response (S3-R06)."""
    result = payload.get("result") if len(payload) == 1 else None
    if isinstance(result, str):
        return {"output": result}
    if files and isinstance(result, list) and all(isinstance(text, str) for text in result):
        return {"output": "\n".join(result)}
    return payload


def _described(item: FileItem) -> str:
    return describe_file(item.file_id, item.media_type, item.title, item.description)
