"""A request as the model that is called now wants it; the session stays as it is (S3-R17, S3-R26).

Rule 1: every call of a parallel turn keeps its one response; nothing stands between the responses
of a turn (S3-R27). Rule 2: what is handed in is never changed (S4-R14).
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from google.genai import types

from sluicegate.media import selection as labels
from sluicegate.media.file_types import matches_media_type
from sluicegate.media.litellm_blocks import (
    TOKEN_KEY,
    data_url,
    decode_text,
    file_block,
    result_text,
)
from sluicegate.media.selection import (
    MADE_BY_ANOTHER_MODEL,
    SENT_CHOICES,
    SENT_EARLIER,
    Choice,
    FileItem,
    FilePosition,
    ModelProfile,
    choose_files,
)
from sluicegate.media.signatures import readable_parts
from sluicegate.media.tool_result import STATUSES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sluicegate.wire.files import StoredFile


FileForm: TypeAlias = Literal["bytes", "url"]


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """A file as it was read: its bytes or, for LiteLLM, a data URL; pixels, and pages."""

    data: bytes = b""
    url: str = ""
    side: int = 0
    pages: int = 0


@dataclass(slots=True)
class ShapedRequest:
    """What is sent; ``blocks`` are what LiteLLM is handed in place of the tokens in it."""

    contents: list[types.Content]
    blocks: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    left_out: list[tuple[FileItem, str]] = field(default_factory=list)

    @property
    def notices(self) -> list[str]:
        """What the user is to know: files that the model lacks, but for those it has had before."""
        return [
            labels.left_out_notice(item.media_type, item.title, reason)
            for item, reason in self.left_out
            if reason not in (SENT_EARLIER, MADE_BY_ANOTHER_MODEL)
        ]


class RequestShaper:
    """One request on its way to one model."""

    def __init__(self, contents: Sequence[types.Content], shape: ModelProfile) -> None:
        """Take the conversation with its references, and the model."""
        self._contents = contents
        self._shape = shape
        self._choices = choose_files(contents, shape)
        self._loaded: Mapping[tuple[str, FileForm], LoadedFile | None] = {}
        self._shaped = ShapedRequest([])

    @property
    def wanted(self) -> list[tuple[StoredFile, FileForm]]:
        """The stored files that are needed, each once, and in which form."""
        found = [
            (item.file, self._form(choice))
            for item, choice in self._choices.values()
            if item.file is not None and choice in ("media", "text")
        ]
        return list({(file.name, form): (file, form) for file, form in found}.values())

    def _form(self, choice: Choice) -> FileForm:
        return "url" if self._shape.hooked and choice == "media" else "bytes"

    def shaped(self, loaded: Mapping[tuple[str, FileForm], LoadedFile | None]) -> ShapedRequest:
        """Build the request from what was read, by name and form; None where nothing was."""
        self._loaded = loaded
        run: list[int] = []
        for index, content in enumerate(self._contents):
            if any(part.function_response for part in content.parts or []):
                run.append(index)
                continue
            self._answers(run)
            run = []
            said = self._said(index, content)
            # A content of foreign thoughts alone has no parts left, which no provider takes.
            if said.parts or not content.parts:
                self._shaped.contents.append(said)
        self._answers(run)
        return self._shaped

    def _said(self, index: int, content: types.Content) -> types.Content:
        """A message of the user or of the model."""
        parts: list[types.Part] = []
        for number, part in enumerate(content.parts or []):
            found = self._choices.get((index, number, -1))
            if found is None:
                parts.append(part)
                continue
            item, choice = self._judged(*found)
            label = labels.attached_label(_described(item))
            if choice == "text":
                parts.append(types.Part(text=f"{label}\n{self._text(item)}"))
                continue
            if choice in SENT_CHOICES and item.role == "user" and item.file is not None:
                parts.append(types.Part(text=label))
            parts.append(self._part(item, choice, part))
        if content.role == "model":
            parts = readable_parts(parts, self._shape.row)
        return content.model_copy(update={"parts": parts})

    def _answers(self, run: Sequence[int]) -> None:
        """The results of one turn: first all responses, then what follows them."""
        if not run:
            return
        answers: list[types.Part] = []
        beside: list[types.Part] = []
        following: list[types.Part] = []
        places = [
            (index, number, part)
            for index in run
            for number, part in enumerate(self._contents[index].parts or [])
        ]
        alone = sum(part.function_response is not None for *_, part in places) == 1
        for index, number, part in places:
            if part.function_response is None:
                found = self._choices.get((index, number, -1))
                following.append(part if found is None else self._part(*self._judged(*found), part))
                continue
            answer, sent = self._answer((index, number, -1), part.function_response)
            answers.append(part.model_copy(update={"function_response": answer}))
            for label, media in sent:
                if alone and self._shape.results in ("siblings", "nested"):
                    beside.append(media)
                else:
                    following.extend((types.Part(text=label), media))
        first = self._contents[run[0]]
        self._shaped.contents.append(first.model_copy(update={"parts": [*answers, *beside]}))
        if following:
            self._shaped.contents.append(types.Content(role="user", parts=following))

    def _answer(
        self, place: FilePosition, answer: types.FunctionResponse
    ) -> tuple[types.FunctionResponse, list[tuple[str, types.Part]]]:
        """A function response, and the files that stand outside it with their labels."""
        items = [
            self._judged(*self._choices[place[0], place[1], position])
            for position in range(len(answer.parts or []))
            if (place[0], place[1], position) in self._choices
        ]
        inside: list[types.FunctionResponsePart] = []
        native: list[FileItem] = []
        outside: list[tuple[str, types.Part]] = []
        for number, (item, choice) in enumerate(items, 1):
            if choice not in ("media", "link"):
                continue
            nests = self._nests(item, choice)
            if nests and self._shape.results == "native":
                native.append(item)
            elif nests:
                inside.append(self._nested(item, choice))
            else:
                tool = answer.name or "a tool"
                label = labels.tool_label(number, tool, answer.id, _described(item))
                outside.append((label, self._part(item, choice, None)))
        response = self._response(answer, items, follows=len(outside))
        if self._shape.hooked and (native or self._shape.row.payload == "text"):
            response = self._native(response, native)
        fresh = {"response": response, "parts": inside or None}
        return answer.model_copy(update=fresh), outside

    def _nests(self, item: FileItem, choice: Choice) -> bool:
        shape = self._shape
        if shape.results not in ("nested", "native"):
            return False
        if choice == "link":
            # Google's developer API refuses addresses in responses, Vertex takes them.
            return shape.route == "vertex"
        return matches_media_type(item.media_type, shape.row.nested)

    def _response(
        self, answer: types.FunctionResponse, items: list[tuple[FileItem, Choice]], *, follows: int
    ) -> dict[str, Any]:
        response = dict(answer.response or {})
        if answer.name in self._shape.untrusted:
            response = {"untrusted_output": response, "note": labels.FROM_BROWSER}
        response = self._worded(response, len(items))
        if items:
            response["attachments"] = [self._entry(item, choice) for item, choice in items]
        if follows and self._shape.results == "message":
            response["attachments_note"] = labels.following_files_text(follows)
        return response

    def _worded(self, response: dict[str, Any], count: int) -> dict[str, Any]:
        """The words of a result in the family's own form (S0-R07 to S0-R09, S3-R06 to S3-R11)."""
        by_author = labels.is_status_shape(response, STATUSES)
        if not by_author:
            if response or not count:
                return response
            response = {"status": "success"}
        if count and "text_result" not in response and "structured_result" not in response:
            response["text_result"] = labels.returned_files_text(count)
        if self._shape.row.payload != "output" or self._shape.route == "litellm":
            return response
        status = response.pop("status", "success")
        text = response.pop("text_result", None)
        if status == "error":
            return {"error": text or "The tool failed.", **response}
        if text is not None:
            response = {"output": text, **response}
        return response if status == "success" else {"status": status, **response}

    def _entry(self, item: FileItem, choice: Choice) -> dict[str, Any]:
        """How a result names one of its files (S4-R53)."""
        entry = {"id": item.file_id, "type": item.media_type}
        if item.title:
            entry["name"] = item.title
        if item.description:
            entry["description"] = item.description
        if choice == "text":
            entry["content"] = self._text(item)
        elif choice not in SENT_CHOICES:
            self._shaped.left_out.append((item, choice))
            entry["not_shown"] = choice
        return entry

    def _native(self, response: dict[str, Any], native: list[FileItem]) -> dict[str, Any]:
        """Leave a token for the tool's own message; what it stands for goes to LiteLLM."""
        blocks = [{"type": "text", "text": result_text(response, STATUSES)}]
        blocks.extend(file_block(item.media_type, self._url(item), item.title) for item in native)
        return {TOKEN_KEY: self._token(blocks)}

    def _part(self, item: FileItem, choice: Choice, part: types.Part | None) -> types.Part:
        """A file as a part of its own, or the words in its place."""
        if choice not in SENT_CHOICES:
            self._shaped.left_out.append((item, choice))
            return types.Part(text=labels.left_out_label(_described(item), choice))
        whole = part if part is not None else types.Part()
        if choice == "link":
            data = types.FileData(file_uri=item.link, mime_type=item.media_type)
            return whole.model_copy(update={"file_data": data, "inline_data": None})
        if self._shape.route == "litellm" and self._shape.hooked:
            block = file_block(item.media_type, self._url(item), item.title)
            return types.Part(text=self._token([block]))
        # A display name is refused by one of Google's two backends (S0-R13).
        blob = types.Blob(data=self._bytes(item), mime_type=item.media_type)
        return whole.model_copy(update={"inline_data": blob, "file_data": None})

    def _nested(self, item: FileItem, choice: Choice) -> types.FunctionResponsePart:
        if choice == "link":
            data = types.FunctionResponseFileData(file_uri=item.link, mime_type=item.media_type)
            return types.FunctionResponsePart(file_data=data)
        blob = types.FunctionResponseBlob(data=self._bytes(item), mime_type=item.media_type)
        return types.FunctionResponsePart(inline_data=blob)

    def _judged(self, item: FileItem, choice: Choice) -> tuple[FileItem, Choice]:
        """Judge once more, by what only the bytes tell."""
        if choice not in ("media", "text") or item.file is None:
            return item, choice
        loaded = self._loaded.get((item.file.name, self._form(choice)))
        row = self._shape.row
        if loaded is None:
            return item, "it can no longer be read"
        if loaded.side > row.max_side:
            return item, f"its longer side has more than the {row.max_side:,} pixels allowed"
        if loaded.pages > row.max_pages:
            return item, f"it has more than the {row.max_pages:,} pages allowed"
        return item, choice

    def _token(self, blocks: list[dict[str, Any]]) -> str:
        token = f"sluicegate-{secrets.token_hex(16)}"
        self._shaped.blocks[token] = blocks
        return token

    def _bytes(self, item: FileItem) -> bytes:
        if item.file is None:
            return item.blob or b""
        loaded = self._loaded.get((item.file.name, "bytes"))
        return loaded.data if loaded is not None else b""

    def _url(self, item: FileItem) -> str:
        if item.file is None:
            return data_url(item.blob or b"", item.media_type)
        loaded = self._loaded.get((item.file.name, "url"))
        return loaded.url if loaded is not None else ""

    def _text(self, item: FileItem) -> str:
        return decode_text(self._bytes(item))


def _described(item: FileItem) -> str:
    return labels.describe_file(item.file_id, item.media_type, item.title, item.description)
