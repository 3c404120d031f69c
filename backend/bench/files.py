"""Memory cost of files: over many turns with images, and for one large attachment."""

from __future__ import annotations

import base64
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.client import BenchError, post, post_file
from bench.peers import chat_body, chunks
from bench.script import DRAW, PICTURE, SHORT

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.server_process import ServerProcess

SMALL_CACHES: Final = (
    "env:SLUICEGATE_FILE_CACHE_BYTES=4194304",
    "env:SLUICEGATE_SESSION_CACHE_BYTES=4194304",
)
"""Options of a server whose caches fill up after a few turns, so that only growth remains."""
LARGE: Final = 10 * 1024 * 1024
"""Bytes of the large attachment."""
PEAK_MIB: Final = 60
"""Maximum MiB above idle memory while a server renders the large attachment."""
GROWTH_MIB: Final = 16
"""Maximum MiB that a server may grow in the second half of its turns."""

_TURNS_PER_CHAT: Final = 10
_ATTACHED: Final = 64 * 1024


UPLOAD: Final = "uploaded as it is"
INLINE: Final = "posted inside a message"
FIRST: Final = "in the first turn"
NEXT: Final = "in the next turn"


@dataclass(frozen=True, slots=True)
class Files:
    """Memory of a server in MiB: resident after each tenth of ``turns``, and peaks.

    ``peaks`` are those of a large attachment over what was held before, by the way it took; none
    if the system does not report it.
    """

    turns: int
    resident: list[float]
    peaks: dict[str, float]

    @property
    def growth(self) -> float:
        """MiB added in the second half of the turns."""
        return self.resident[-1] - self.resident[len(self.resident) // 2 - 1]


def measure_files(server: ServerProcess, *, turns: int) -> Files:
    """Run turns with a new image from the user and a new image from a tool.

    Raises:
        BenchError: A turn does not show its picture.
    """
    resident = []
    for number in range(turns):
        _draw(server, f"chat-{number // _TURNS_PER_CHAT}", number)
        if (number + 1) % (turns // 10) == 0:
            resident.append(server.resident_kib() / 1024)
    return Files(turns, resident, _peaks(server))


def _peaks(server: ServerProcess) -> dict[str, float]:
    """Peak memory of a large attachment for each operation."""
    address, chat, stored = server.address(), secrets.token_hex(8), ""
    post(address, "/api/chat", chat_body(chat, SHORT))
    data = PICTURE + os.urandom(LARGE - len(PICTURE))
    encoded = base64.b64encode(PICTURE + os.urandom(LARGE - len(PICTURE))).decode()

    def upload() -> None:
        nonlocal stored
        response: dict[str, Any] = post_file(address, f"/api/chats/{chat}/files", data, "image/png")
        stored = response["url"]

    def say(message: str, url: str | None) -> None:
        body = chat_body(chat, SHORT, message=message)
        if url is not None:
            file = {"type": "file", "url": url, "mediaType": "image/png"}
            body["messages"][0]["parts"].insert(0, file)
        post(address, "/api/chat", body)

    ways = {
        UPLOAD: upload,
        FIRST: lambda: say("first", stored),
        NEXT: lambda: say("next", None),
        INLINE: lambda: say("inline", f"data:image/png;base64,{encoded}"),
    }
    found = {way: _peak(server, act) for way, act in ways.items()}
    return {way: peak for way, peak in found.items() if peak is not None}


def _draw(server: ServerProcess, chat: str, number: int) -> None:
    data = base64.b64encode(PICTURE + os.urandom(_ATTACHED)).decode()
    body = chat_body(chat, DRAW, message=f"message-{number}")
    file = {"type": "file", "url": f"data:image/png;base64,{data}", "mediaType": "image/png"}
    body["messages"][0]["parts"].insert(0, file)
    answer = post(server.address(), "/api/chat", body)
    if not any(chunk["type"] == "file" for chunk in chunks(answer.body)):
        raise BenchError(f"A turn did not show its picture: {answer.body[-500:]!r}.")


def _peak(server: ServerProcess, act: Callable[[], None]) -> float | None:
    """Peak MiB of the server during an operation, above its memory before."""
    forget = Path(f"/proc/{server.pid}/clear_refs")
    try:
        forget.write_text("5")
    except OSError:
        act()
        return None
    before = server.resident_kib()
    act()
    return (server.peak_kib() - before) / 1024
