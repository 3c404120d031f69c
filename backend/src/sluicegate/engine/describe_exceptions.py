"""How exceptions appear in the log: their types and frames, never their text (T10)."""

from __future__ import annotations

import traceback
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import TracebackType

_MAX_FRAMES: Final = 12
_MAX_CAUSES: Final = 5


def describe(error: BaseException | None, tb: TracebackType | None = None) -> str:
    """Return one line: type, then ``file:line function`` of the innermost frames, then the causes.

    The text of an exception may hold what a tool or a model was given, so it is left out.
    """
    if error is None:
        return "the model ended with an error code"
    lines: list[str] = []
    current: BaseException | None = error
    frames = tb or error.__traceback__
    while current is not None and len(lines) < _MAX_CAUSES:
        lines.append(f"{type_name(type(current))} at {_frames(frames)}")
        current = current.__cause__ or (
            None if current.__suppress_context__ else current.__context__
        )
        frames = None if current is None else current.__traceback__
    return "; caused by ".join(lines)


def type_name(kind: type[BaseException]) -> str:
    """Return the type's name, with its module where it is not built in."""
    name = kind.__qualname__
    return name if kind.__module__ == "builtins" else f"{kind.__module__}.{name}"


def _frames(tb: TracebackType | None) -> str:
    # Without source lines: they are read from disk and hold arguments' names at best.
    frames = [
        f"{PurePath(frame.f_code.co_filename).name}:{line} {frame.f_code.co_name}"
        for frame, line in traceback.walk_tb(tb)
    ]
    return " > ".join(frames[-_MAX_FRAMES:]) or "no frame"


def internal_error_sentence(error_id: str) -> str:
    """The public sentence for an unexpected error of the server."""
    return f"Something went wrong on the server; quote the error id {error_id} when you report it."
