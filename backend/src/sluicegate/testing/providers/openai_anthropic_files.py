"""The Files APIs of Anthropic and OpenAI: one form per file, and files that expire."""

from __future__ import annotations

import itertools
import json
import mmap
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import Message as Headers
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal

from sluicegate.testing.providers.received_files import ReceivedFile
from sluicegate.testing.providers.refusal_exceptions import NotFound, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedIOBase

BETA: Final = "files-api-2025-04-14"
_PIECE: Final = 64 * 1024
_PURPOSES: Final = ("user_data", "assistants", "vision")
_EXPIRY: Final = {"anthropic": (3600, 7_776_000), "openai": (3600, 2_592_000)}

Answer = tuple[int, dict[str, str], str]


@dataclass
class FormFiles:
    """The files of one account.

    ``lifetime`` limits that of the next file, in seconds.
    """

    provider: Literal["anthropic", "openai"]
    lifetime: float = 1e9
    fails: bool = False
    digests: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    _files: dict[str, dict[str, Any]] = field(default_factory=dict)
    _numbers: Any = field(default_factory=itertools.count)

    def is_upload(self, path: str) -> bool:
        """Whether a POST to this path uploads a file."""
        return path.partition("?")[0].endswith("/files")

    def upload(self, path: str, headers: dict[str, str], body: BufferedIOBase) -> Answer:
        """Store a file of a form."""
        with tempfile.TemporaryFile() as stored:
            length = int(headers["content-length"])
            while length:
                piece = body.read(min(length, _PIECE))
                stored.write(piece)
                length -= len(piece)
            stored.flush()
            with mmap.mmap(stored.fileno(), 0, access=mmap.ACCESS_READ) as form:
                try:
                    return self._store(headers, form)
                except Refused as reason:
                    return reason.status, _JSON, json.dumps(self._error(str(reason)))

    def _store(self, headers: dict[str, str], form: mmap.mmap) -> Answer:
        if self.fails:
            return 503, _JSON, json.dumps(self._error("Overloaded"))
        self._check_headers(headers)
        fields: dict[str, str] = {}
        name = media_type = digest = ""
        for part, start, end in _parts(headers, form):
            called = part.get_param("name", header="content-disposition")
            with memoryview(form) as view, view[start:end] as content:
                if called == "file":
                    name, media_type = part.get_filename() or "", part.get_content_type()
                    digest = sha256(content).hexdigest()
                else:
                    fields[str(called)] = bytes(content).decode()
        if not name or not digest:
            raise Refused("file: Field required")
        made = f"file{'_' if self.provider == 'anthropic' else '-'}f{next(self._numbers)}"
        expires = self._expiry(fields)
        self._files[made] = {"type": media_type, "expires": expires}
        self.digests.append(digest)
        self.names.append(name)
        return 200, _JSON, json.dumps(self._described(made, name, media_type, expires))

    def _check_headers(self, headers: dict[str, str]) -> None:
        if self.provider == "openai":
            if not headers.get("authorization", "").startswith("Bearer "):
                raise Refused("You didn't provide an API key.")
        elif not headers.get("x-api-key") and not headers.get("authorization"):
            raise Refused("x-api-key header is required")
        elif BETA not in headers.get("anthropic-beta", ""):
            raise Refused("This API is in beta: set the header anthropic-beta.")

    def _expiry(self, fields: dict[str, str]) -> float | None:
        if self.provider == "openai":
            if fields.get("purpose") not in _PURPOSES:
                raise Refused(f"Invalid value for 'purpose': {fields.get('purpose')}")
            if fields.get("expires_after[anchor]", "created_at") != "created_at":
                raise Refused("Invalid value for 'expires_after.anchor'.")
            wished = fields.get("expires_after[seconds]")
        else:
            wished = fields.get("expires_in_seconds")
        if wished is None:
            return None
        least, most = _EXPIRY[self.provider]
        if not least <= int(wished) <= most:
            raise Refused(f"A file may expire after {least} to {most} seconds.")
        return time.time() + min(int(wished), self.lifetime)

    def _described(
        self, made: str, name: str, media_type: str, expires: float | None
    ) -> dict[str, Any]:
        now = time.time()
        if self.provider == "openai":
            described = {"id": made, "object": "file", "bytes": 1, "created_at": int(now)}
            until = None if expires is None else int(expires)
            more = {"filename": name, "purpose": "user_data", "status": "processed"}
            return {**described, **more, "expires_at": until}
        until_date = None if expires is None else datetime.fromtimestamp(expires, UTC).isoformat()
        return {
            "id": made,
            "type": "file",
            "filename": name,
            "mime_type": media_type,
            "size_bytes": 1,
            "created_at": datetime.fromtimestamp(now, UTC).isoformat(),
            "expires_at": until_date,
        }

    def lose(self) -> None:
        """Delete all files, as their owner may do elsewhere."""
        self._files.clear()

    def find(self, reference: str) -> ReceivedFile:
        """Return a file that a request refers to; raises NotFound."""
        file = self._files.get(reference)
        if file is None or (file["expires"] is not None and file["expires"] <= time.time()):
            raise NotFound(self._missing(reference))
        return ReceivedFile(f"{file['type']} by its id", b"")

    def get(self, path: str) -> Answer:
        """The metadata of a file, which no client asks for."""
        raise NotImplementedError(path)

    def delete(self, path: str) -> Answer:
        """Delete a file."""
        name = path.partition("?")[0].rpartition("/")[2]
        if self._files.pop(name, None) is None:
            return 404, _JSON, json.dumps(self._error(self._missing(name)))
        self.deleted.append(name)
        kind = {"object": "file", "deleted": True}
        answer = {"id": name, **(kind if self.provider == "openai" else {"type": "file_deleted"})}
        return 200, _JSON, json.dumps(answer)

    def _missing(self, name: str) -> str:
        if self.provider == "openai":
            return f"No such File object: {name}"
        return f"File not found: {name}"

    def _error(self, message: str) -> dict[str, Any]:
        if self.provider == "openai":
            return {"error": {"message": message, "type": "invalid_request_error", "code": None}}
        return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


_JSON: Final = {"content-type": "application/json"}


def _parts(headers: dict[str, str], form: mmap.mmap) -> Iterator[tuple[Headers, int, int]]:
    """Yield the headers of each part of a form, and the bounds of its content."""
    whole = Headers()
    whole["content-type"] = headers["content-type"]
    boundary = b"--" + str(whole.get_boundary()).encode()
    at = form.find(boundary)
    while (end := form.find(boundary, at + len(boundary))) >= 0:
        start = form.find(b"\r\n\r\n", at) + 4
        part = Headers()
        for line in bytes(form[at + len(boundary) + 2 : start - 4]).decode().split("\r\n"):
            name, _, value = line.partition(": ")
            part[name] = value
        yield part, start, end - 2
        at = end
