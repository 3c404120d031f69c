"""What may be said of an exception in a log: its type and its frames, never its text."""

from __future__ import annotations

import traceback
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import TracebackType

_MOST_FRAMES: Final = 12
_MOST_CAUSES: Final = 5


def trace(error: BaseException, tb: TracebackType | None = None) -> str:
    """Return one line: type, then ``file:line function`` of the innermost frames, then the causes.

    The text of an exception may hold whatever a tool or a model was given, so it is left out.
    """
    lines: list[str] = []
    current: BaseException | None = error
    frames = tb or error.__traceback__
    while current is not None and len(lines) < _MOST_CAUSES:
        lines.append(f"{name_of(type(current))} at {_frames(frames)}")
        current = current.__cause__ or (
            None if current.__suppress_context__ else current.__context__
        )
        frames = None if current is None else current.__traceback__
    return "; caused by ".join(lines)


def name_of(kind: type[BaseException]) -> str:
    """Return the type's name, with its module where it is not built in."""
    name = kind.__qualname__
    return name if kind.__module__ == "builtins" else f"{kind.__module__}.{name}"


def _frames(tb: TracebackType | None) -> str:
    # Without source lines: they are read from disk and hold arguments' names at best.
    frames = [
        f"{PurePath(frame.f_code.co_filename).name}:{line} {frame.f_code.co_name}"
        for frame, line in traceback.walk_tb(tb)
    ]
    return " > ".join(frames[-_MOST_FRAMES:]) or "no frame"
