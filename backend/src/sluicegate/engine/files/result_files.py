"""Results and events on their way into the session: files into the store, references in place.

Rule 1: what the session keeps is small and the same for every model (S4-R29); the shape that a
model wants is given to it when it is asked. Rule 2: a file that cannot be kept never ends a turn:
one sentence in the result tells the model and the user (S4-R37).
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from google.genai import types

from sluicegate.core.json_safe import json_safe
from sluicegate.engine.files.file_intake import FileIntake
from sluicegate.engine.files.notices import Notices
from sluicegate.engine.files.tool_results import is_native, storable
from sluicegate.errors import MediaError, StoreError
from sluicegate.media.found import Attachment, Found, Link
from sluicegate.media.intake import Taken, take
from sluicegate.media.tool_result import ToolResult

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from pydantic import JsonValue

    from sluicegate.core.keys import ChatKey
    from sluicegate.engine.files.chat_files import ChatFiles
    from sluicegate.engine.files.result_limits import ResultLimits
    from sluicegate.wire.stored_files import StoredFile

logger = logging.getLogger("sluicegate")
FILES_KEY: Final = "sluicegate_files"
"""Where a result hands its files to ADK, which takes them out again."""

_DEPTH: Final = 20
"""Containers of an output in which files are looked for."""

_PREVIEW: Final = 2_000
"""Characters that are left of a text that became a file."""


@dataclass(frozen=True, slots=True)
class Settled:
    """A result that can be stored: JSON, and files by reference."""

    response: dict[str, Any]
    files: list[StoredFile | Link] = field(default_factory=list)
    is_changed: bool = False

    @property
    def answer(self) -> dict[str, Any]:
        """The result as ADK takes it."""
        if not self.files:
            return self.response
        return {**self.response, FILES_KEY: [_part(file) for file in self.files]}

    @property
    def outcome(self) -> dict[str, Any]:
        """The result as the ledger keeps it."""
        if not self.files:
            return self.response
        files = [{"uri": file.uri, "mediaType": file.media_type} for file in self.files]
        return {"response": self.response, FILES_KEY: files}


def restored(outcome: dict[str, Any]) -> dict[str, Any]:
    """What `Settled.outcome` kept, as ADK takes it."""
    kept = outcome.get(FILES_KEY)
    if not isinstance(kept, list):
        return dict(outcome)
    parts = [
        types.Part(file_data=types.FileData(file_uri=item["uri"], mime_type=item["mediaType"]))
        for item in kept
    ]
    return {**outcome["response"], FILES_KEY: parts}


@dataclass(frozen=True, slots=True)
class ResultFiles:
    """Settles the results of one chat."""

    store: ChatFiles
    chat: ChatKey
    limits: ResultLimits
    notices: Notices = field(default_factory=Notices)

    async def after(
        self, result: object, *, is_claimed: bool
    ) -> tuple[JsonValue, dict[str, Any] | None]:
        """What the ledger keeps of a result, and what ADK is given in its place, if anything.

        A result whose files ADK finds is left to it and to the callbacks of the user; the event is
        neutralised then.
        """
        native = is_native(result)
        if native and not is_claimed:
            return None, None
        settled = await self.settle(result)
        answer = None if native or not settled.is_changed else settled.answer
        return json_safe(settled.outcome), answer

    async def settle(self, result: object) -> Settled:
        """Take a result apart, store its files and make the rest JSON; never raises."""
        taken = take(result)
        files: list[StoredFile | Link] = []
        for file in taken.files:
            if len(files) >= self.limits.files:
                taken.problems.append(
                    f"Files were left out: a result may have {self.limits.files}."
                )
                break
            kept = await self._keep(file, taken)
            if kept is not None:
                files.append(kept)
        cleaned = storable(taken.response)
        response = taken.response if cleaned is None else cleaned
        if not isinstance(response, dict):
            # ADK: what is not an object is wrapped under this name.
            response = {"result": response}
        long = await self._long_text(response)
        if long is not None:
            response = long.response
            files.extend(long.files)
        if taken.problems:
            response = {**response, "note": " ".join(taken.problems)}
        changed = taken.is_changed or cleaned is not None or long is not None
        return Settled(response, files, changed or bool(files or taken.problems))

    async def neutralise(self, event: Event) -> None:
        """Put references in the place of bytes in an event that will be stored."""
        if event.output is not None and not event.partial:
            event.output = await self._light(event.output, 0)
        content = event.content
        parts = content.parts if content is not None else None
        if content is None or not parts:
            return
        if event.partial:
            for part in parts:
                if part.inline_data is not None:
                    await self._said(part)
            return
        if any(_is_heavy(part) for part in parts):
            fresh = [await self._neutral(part) for part in parts]
            event.content = content.model_copy(update={"parts": fresh})

    async def _light(self, value: Any, depth: int) -> Any:
        """The output of a node: ADK leaves files where they are in it, so they stay in place."""
        if isinstance(value, types.Part | types.Blob | Attachment | ToolResult):
            settled = await self.settle(value)
            files = [_part(file).model_dump(exclude_none=True) for file in settled.files]
            if isinstance(value, ToolResult) or not files:
                return {**settled.response, FILES_KEY: files} if files else settled.response
            return files[0]
        if depth < _DEPTH and type(value) is dict:
            return {key: await self._light(item, depth + 1) for key, item in value.items()}
        if depth < _DEPTH and type(value) is list:
            return [await self._light(item, depth + 1) for item in value]
        return value

    async def _neutral(self, part: types.Part) -> types.Part:
        answer = part.function_response
        if answer is None:
            file = await self._said(part)
            if file is None:
                return part
            data = types.FileData(file_uri=file.uri, mime_type=file.media_type)
            return part.model_copy(update={"inline_data": None, "file_data": data})
        settled = await self.settle(answer)
        fresh = answer.model_copy(
            update={
                "response": settled.response,
                "parts": [_response_part(file) for file in settled.files] or None,
            }
        )
        return part.model_copy(update={"function_response": fresh})

    async def _said(self, part: types.Part) -> StoredFile | None:
        """Store a file that a model made; its type is what the model says."""
        blob = part.inline_data
        if blob is None or not blob.data:
            return None
        media_type = blob.mime_type or "application/octet-stream"
        try:
            return await self.store.store(self.chat, blob.data, media_type)
        except StoreError as error:
            logger.error("a file of a model was not stored chat=%s %s", self.chat.chat, error)
            return None

    async def _keep(self, file: Found, taken: Taken) -> StoredFile | Link | None:
        name = getattr(file, "title", None)
        called = f"The file {name!r}" if name else "A file"
        try:
            return await FileIntake(self.store, self.chat, self.limits).keep(file)
        except MediaError as error:
            taken.problems.append(f"{called} was left out: {_after_colon(str(error))}")
        except StoreError as error:
            logger.error("a file of a tool was not stored chat=%s %s", self.chat.chat, error)
            taken.problems.append(f"{called} was left out: it could not be stored.")
        return None

    async def _long_text(self, response: dict[str, Any]) -> Settled | None:
        """Put a long result into a file and leave a preview of it (S4-R54)."""
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
            return Settled({**short, "note": f"{whole}it was cut."})
        return Settled({**short, "note": f"{whole}the whole is attached as {title}."}, [file])


def _is_heavy(part: types.Part) -> bool:
    answer = part.function_response
    if answer is None:
        return part.inline_data is not None and bool(part.inline_data.data)
    if any(item.inline_data is not None for item in answer.parts or []):
        return True
    result = (answer.response or {}).get("result")
    return isinstance(result, ToolResult | types.Part | types.Blob | Attachment)


def _part(file: StoredFile | Link) -> types.Part:
    return types.Part(file_data=types.FileData(file_uri=file.uri, mime_type=file.media_type))


def _response_part(file: StoredFile | Link) -> types.FunctionResponsePart:
    data = types.FunctionResponseFileData(file_uri=file.uri, mime_type=file.media_type)
    return types.FunctionResponsePart(file_data=data)


def _after_colon(sentence: str) -> str:
    """A sentence as it stands after a colon."""
    plain = sentence.replace("The file is", "it is", 1)
    return plain[:1].lower() + plain[1:]
