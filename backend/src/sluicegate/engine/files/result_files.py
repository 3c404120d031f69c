"""How much a tool's result may hold."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from google.genai import types

from sluicegate.core.json_values import json_safe, storable_json
from sluicegate.errors import MediaError, StoreError, Unknown
from sluicegate.media.extraction import ExtractedResult, extract_files
from sluicegate.media.file_sources import Attachment, FileSource, Link
from sluicegate.media.file_types import check_media_type
from sluicegate.media.tool_result import ToolResult
from sluicegate.wire.files import StoredFile, parse_file_uri

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.events.event import Event
    from pydantic import JsonValue

    from sluicegate.core.keys import ChatKey
    from sluicegate.engine.files.chat_files import ChatFiles


@dataclass(frozen=True, slots=True)
class ResultLimits:
    """What a result may hold: files, bytes of one, bytes of JSON; folders its paths may lead to."""

    files: int
    file_bytes: int
    text_bytes: int
    folders: Sequence[Path] = ()


def storable(result: object) -> dict[str, Any] | None:
    """The result as an object that every store keeps, or None when it is fine as it is.

    Bytes, NaN, cycles and foreign objects would be shown one way live and stored another, or
    break the run when its event is stored.
    """
    if _is_plain(result):
        return None
    cleaned = _clean(result)
    # ADK: what is not an object is wrapped under this name, models too.
    return cleaned if isinstance(result, Mapping) else {"result": cleaned}


def as_object(result: object) -> dict[str, Any]:
    """The result as ADK would wrap it; None of a tool without a result is an empty one."""
    return dict(result) if isinstance(result, dict) else {"result": result}


def _is_plain(result: object) -> bool:
    try:
        text = json.dumps(result, allow_nan=False, ensure_ascii=False)
        text.encode()
    except (TypeError, ValueError, RecursionError):
        return False
    return r"\u0000" not in text


def _clean(value: object) -> Any:
    return storable_json(json_safe(value))


def is_native(result: object) -> bool:
    """Whether ADK itself takes every file out of a result, and nothing else is in the way.

    Such a result is left to ADK and to the callbacks of the user; the event is then neutralised.
    """
    rest = _without_parts(result, 0)
    return rest is not result and storable(rest) is None


def _without_parts(value: object, depth: int) -> object:
    """What ADK leaves of a result; the value itself where it finds no file."""
    if isinstance(value, types.Part):
        blob, file = value.inline_data, value.file_data
        has_file = blob is not None and bool(blob.data and blob.mime_type)
        has_file = has_file or (file is not None and bool(file.file_uri and file.mime_type))
        return None if has_file else value
    # ADK: media is moved out of a result only near its top.
    if depth > 1 or not isinstance(value, dict | list):
        return value
    keys = list(value) if isinstance(value, dict) else range(len(value))
    rest = {key: _without_parts(value[key], depth + 1) for key in keys}
    return value if all(rest[key] is value[key] for key in keys) else rest


logger = logging.getLogger("sluicegate")
_LINKS: Final = ("https://", "gs://")


@dataclass(frozen=True, slots=True)
class FileIntake:
    """Takes files into one chat: nothing of other chats, of other folders, or fetched from afar."""

    store: ChatFiles
    chat: ChatKey
    limits: ResultLimits

    async def keep(self, file: FileSource) -> StoredFile | Link:
        """Store a file, or look whether it is there.

        Raises:
            MediaError: it may not be kept; a public sentence that says nothing of this machine.
            StoreError: the store does not take it.
        """
        match file:
            case Link(uri=uri):
                known = parse_file_uri(uri, file.media_type)
                if known is not None:
                    return await self.keep(known)
                if not uri.startswith(_LINKS) or not uri.isprintable():
                    raise MediaError("Its address is none that a model reads.")
                return file
            case StoredFile(name=name):
                try:
                    await self.store.find(self.chat, name)
                except Unknown:
                    raise MediaError("This chat has no such file.") from None
                return file
            case Attachment():
                data = file.data if file.data is not None else await self._read(file)
                if len(data) > self.limits.file_bytes:
                    raise MediaError(f"It is larger than {self.limits.file_bytes:,} bytes.")
                return await self.store.store(
                    self.chat,
                    data,
                    check_media_type(data, file.media_type),
                    title=file.title,
                    description=file.description,
                )

    async def _read(self, file: Attachment) -> bytes:
        path = Path(file.path or "")
        try:
            return await asyncio.to_thread(self._read_allowed, path)
        except (OSError, ValueError, RuntimeError) as error:
            if isinstance(error, MediaError):
                raise
            raise MediaError("It cannot be read.") from None

    def _read_allowed(self, path: Path) -> bytes:
        """Read a file by its path; links are followed before the folder is compared (S4-R43)."""
        real = path.resolve(strict=True)
        if not any(real.is_relative_to(folder.resolve()) for folder in self.limits.folders):
            logger.warning(
                "a tool returned a path outside the folders that the setting file_folders names"
            )
            raise MediaError("It lies in a folder that this server does not share.")
        with real.open("rb") as opened:
            return opened.read(self.limits.file_bytes + 1)


FILES_KEY: Final = "sluicegate_files"
"""Where a result hands its files to ADK, which takes them out again."""

_DEPTH: Final = 20
"""Containers of an output in which files are looked for."""

_PREVIEW: Final = 2_000
"""Characters that are left of a text that became a file."""


@dataclass(frozen=True, slots=True)
class StoredResult:
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
    """What `StoredResult.outcome` kept, as ADK takes it."""
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

    async def settle(self, result: object) -> StoredResult:
        """Take a result apart, store its files and make the rest JSON; never raises."""
        taken = extract_files(result)
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
        return StoredResult(response, files, changed or bool(files or taken.problems))

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

    async def _keep(self, file: FileSource, taken: ExtractedResult) -> StoredFile | Link | None:
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

    async def _long_text(self, response: dict[str, Any]) -> StoredResult | None:
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
            return StoredResult({**short, "note": f"{whole}it was cut."})
        return StoredResult({**short, "note": f"{whole}the whole is attached as {title}."}, [file])


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
