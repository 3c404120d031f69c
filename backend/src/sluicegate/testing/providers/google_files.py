"""Google's Files API: uploads in chunks, and files that expire."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from io import BufferedIOBase

ADDRESS: Final = "https://generativelanguage.googleapis.com/v1beta/"
_PIECE: Final = 64 * 1024

Answer = tuple[int, dict[str, str], str]


@dataclass
class GoogleFiles:
    """The files of one account, by name.

    ``lifetime`` is that of the next file, in hours; ``polls`` how often it is still processed.
    """

    lifetime: float = 48
    polls: int = 0
    fails: bool = False
    digests: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    largest_chunk: int = 0
    _files: dict[str, dict[str, Any]] = field(default_factory=dict)
    _open: dict[str, Any] = field(default_factory=dict)
    _numbers: Any = field(default_factory=itertools.count)

    def is_upload(self, path: str) -> bool:
        """Whether a POST to this path uploads a file."""
        return "/upload/" in path

    def upload(self, path: str, headers: dict[str, str], body: BufferedIOBase) -> Answer:
        """Begin an upload, or take a chunk of it."""
        length = int(headers["content-length"])
        if headers["x-goog-upload-command"] == "start":
            file = json.loads(body.read(length))["file"]
            if self.fails:
                return 503, {}, json.dumps({"error": {"code": 503, "message": "Later."}})
            name = f"files/f{next(self._numbers)}"
            self._open[name] = sha256()
            now = datetime.now(UTC)
            self._files[name] = {
                "name": name,
                "uri": f"{ADDRESS}{name}",
                "mimeType": file.get("mimeType") or file["mime_type"],
                "expirationTime": (now + timedelta(hours=self.lifetime)).isoformat(),
                "state": "PROCESSING" if self.polls else "ACTIVE",
            }
            url = f"http://{headers['host']}/upload/{name}"
            return 200, {"x-goog-upload-url": url, "x-goog-upload-status": "active"}, "{}"
        name = path.partition("/upload/")[2]
        self.largest_chunk = max(self.largest_chunk, length)
        while length:
            piece = body.read(min(length, _PIECE))
            self._open[name].update(piece)
            length -= len(piece)
        if "finalize" not in headers["x-goog-upload-command"]:
            return 200, {"x-goog-upload-status": "active"}, "{}"
        self.digests.append(self._open.pop(name).hexdigest())
        answer = json.dumps({"file": self._files[name]})
        return 200, {"x-goog-upload-status": "final", "content-type": "application/json"}, answer

    def get(self, path: str) -> Answer:
        """The state of a file."""
        file = self._files["files/" + path.partition("/files/")[2]]
        self.polls -= 1
        if self.polls <= 0:
            file["state"] = "ACTIVE"
        return 200, {"content-type": "application/json"}, json.dumps(file)

    def delete(self, path: str) -> Answer:
        """Delete a file."""
        name = "files/" + path.partition("/files/")[2]
        del self._files[name]
        self.deleted.append(name)
        return 200, {"content-type": "application/json"}, "{}"
