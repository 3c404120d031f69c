"""The files in results of tools: stored, and named in the result by reference."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from google.genai import types

from sluicegate.core.json_values import json_safe
from sluicegate.errors import MediaError, StoreError
from sluicegate.media.attachments_and_links import Attachment, FileSource, Link
from sluicegate.media.check_and_store_file import FileImporter
from sluicegate.media.extract_result_files import ExtractedResult, extract_files, is_native
from sluicegate.media.storable_results import FILES_KEY, StorableResult, as_storable, part_of
from sluicegate.media.tool_result_with_files import ToolResult

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from pydantic import JsonValue

    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.media.chat_files import ChatFiles
    from sluicegate.media.result_limits import ResultLimits
    from sluicegate.wire.stored_files import StoredFile

logger = logging.getLogger("sluicegate")


_MAX_DEPTH: Final = 20
"""Depth of an output at which files are still searched."""

_PREVIEW: Final = 2_000
"""Characters of a text that stay in the result when it is stored as a file."""


@dataclass(frozen=True, slots=True)
class ResultFiles:
    """Stores the files of results and events of one chat."""

    store: ChatFiles
    chat: ChatKey
    limits: ResultLimits

    async def outcome_of(
        self, result: object, *, is_claimed: bool
    ) -> tuple[JsonValue, dict[str, Any] | None]:
        """Return the outcome of a result for the ledger, and its replacement in ADK, if any."""
        native = is_native(result)
        if native and not is_claimed:
            return None, None
        stored = await self.store_result(result)
        replacement = None if native or not stored.is_changed else stored.for_adk
        return json_safe(stored.outcome), replacement

    async def store_result(self, result: object) -> StorableResult:
        """Extract and store a result's files, and make the rest JSON; failures become notes."""
        extracted = extract_files(result)
        files: list[StoredFile | Link] = []
        for file in extracted.files:
            if len(files) >= self.limits.files:
                extracted.problems.append(
                    f"Files were left out: a result may have {self.limits.files}."
                )
                break
            imported = await self._import(file, extracted)
            if imported is not None:
                files.append(imported)
        cleaned = as_storable(extracted.response)
        response = extracted.response if cleaned is None else cleaned
        if not isinstance(response, dict):
            # ADK: any other value is wrapped under this name.
            response = {"result": response}
        long = await self._shorten(response)
        if long is not None:
            response = long.response
            files.extend(long.files)
        notes = [*extracted.notes, *extracted.problems]
        if notes:
            response = {**response, "note": " ".join(notes)}
        changed = extracted.is_changed or cleaned is not None or long is not None
        return StorableResult(response, files, changed or bool(files or notes))

    async def replace_files(self, event: Event) -> None:
        """Replace bytes by references in an event; a partial event keeps its bytes."""
        if event.output is not None and not event.partial:
            event.output = await self._without_bytes(event.output, 0)
        content = event.content
        parts = content.parts if content is not None else None
        if content is None or not parts:
            return
        if event.partial:
            for part in parts:
                if part.inline_data is not None:
                    await self._store_blob(part)
            return
        if any(_has_bytes(part) for part in parts):
            fresh = [
                await self._with_references(part) if _has_bytes(part) else part for part in parts
            ]
            event.content = content.model_copy(update={"parts": fresh})

    async def _without_bytes(self, value: Any, depth: int) -> Any:
        """Replace bytes in the output of a node; ADK leaves files in place there."""
        if isinstance(value, types.Part | types.Blob | Attachment | ToolResult):
            stored = await self.store_result(value)
            files = [part_of(file).model_dump(exclude_none=True) for file in stored.files]
            if isinstance(value, ToolResult) or not files:
                return {**stored.response, FILES_KEY: files} if files else stored.response
            return files[0]
        if depth < _MAX_DEPTH and type(value) is dict:
            return {key: await self._without_bytes(item, depth + 1) for key, item in value.items()}
        if depth < _MAX_DEPTH and type(value) is list:
            return [await self._without_bytes(item, depth + 1) for item in value]
        return value

    async def _with_references(self, part: types.Part) -> types.Part:
        response = part.function_response
        if response is None:
            file = await self._store_blob(part)
            if file is None:
                return part
            data = types.FileData(file_uri=file.uri, mime_type=file.media_type)
            return part.model_copy(update={"inline_data": None, "file_data": data})
        stored = await self.store_result(response)
        fresh = response.model_copy(
            update={
                "response": stored.response,
                "parts": [_response_part(file) for file in stored.files] or None,
            }
        )
        return part.model_copy(update={"function_response": fresh})

    async def _store_blob(self, part: types.Part) -> StoredFile | None:
        """Store a file of a model under the media type that the model states."""
        blob = part.inline_data
        if blob is None or not blob.data:
            return None
        media_type = blob.mime_type or "application/octet-stream"
        try:
            return await self.store.store(self.chat, blob.data, media_type)
        except StoreError as error:
            logger.error("a file of a model was not stored chat=%s %s", self.chat.chat, error)
            return None

    async def _import(
        self, file: FileSource, extracted: ExtractedResult
    ) -> StoredFile | Link | None:
        title = getattr(file, "title", None)
        subject = f"The file {title!r}" if title else "A file"
        try:
            return await FileImporter(self.store, self.chat, self.limits).import_file(file)
        except MediaError as error:
            problem = f"{subject} was left out: {_after_colon(str(error))}"
            extracted.problems.append(problem)
        except StoreError as error:
            logger.error("a file of a tool was not stored chat=%s %s", self.chat.chat, error)
            extracted.problems.append(f"{subject} was left out: it could not be stored.")
        return None

    async def _shorten(self, response: dict[str, Any]) -> StorableResult | None:
        """Store a long result as a file; returns its preview, None for a short one (S4-R54)."""
        text = json.dumps(response, ensure_ascii=False)
        if len(text) * 4 <= self.limits.text_bytes:
            return None
        size = len(text.encode("utf-8", "replace"))
        if size <= self.limits.text_bytes:
            return None
        only = response.get("result") if set(response) == {"result"} else None
        if isinstance(only, str):
            text, media_type, title = only, "text/plain", "result.txt"
        else:
            media_type, title = "application/json", "result.json"
        data = text.encode("utf-8", "replace")
        short: dict[str, Any] = {"preview": text[:_PREVIEW]}
        if response.get("status") in ("success", "error", "denied", "pending"):
            short["status"] = response["status"]
        whole = f"The result has {size:,} bytes, more than a model is given at once; "
        try:
            if len(data) > self.limits.file_bytes:
                raise StoreError("a result is larger than a file may be")
            file = await self.store.store(self.chat, data, media_type, title=title)
        except StoreError as error:
            logger.error("a long result was cut chat=%s %s", self.chat.chat, error)
            return StorableResult({**short, "note": f"{whole}it was cut."})
        return StorableResult(
            {**short, "note": f"{whole}the whole is attached as {title}."}, [file]
        )


def _has_bytes(part: types.Part) -> bool:
    answer = part.function_response
    if answer is None:
        return part.inline_data is not None and bool(part.inline_data.data)
    if any(item.inline_data is not None for item in answer.parts or []):
        return True
    result = (answer.response or {}).get("result")
    return isinstance(result, ToolResult | types.Part | types.Blob | Attachment)


def _response_part(file: StoredFile | Link) -> types.FunctionResponsePart:
    data = types.FunctionResponseFileData(file_uri=file.uri, mime_type=file.media_type)
    return types.FunctionResponsePart(file_data=data)


def _after_colon(sentence: str) -> str:
    """Return a sentence in the form that follows a colon."""
    plain = sentence.replace("The file is", "it is", 1)
    return plain[:1].lower() + plain[1:]
