"""How exceptions appear in the log: types and frames, and of some the text, without credentials."""

from __future__ import annotations

import traceback
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from sluicegate.engine.redact_log_text import without_secrets
from sluicegate.errors import ModelError

if TYPE_CHECKING:
    from types import TracebackType

_MAX_FRAMES: Final = 12
_MAX_CAUSES: Final = 5
_STORES: Final = frozenset({"aiosqlite", "asyncpg", "redis", "sqlalchemy", "sqlite3", "valkey"})
"""Libraries whose exceptions quote statements with their values: what a chat contains."""


def describe(
    error: BaseException | None, tb: TracebackType | None = None, *, with_text: bool = False
) -> str:
    """Return one line: type, then ``file:line function`` of the innermost frames, then the causes.

    ``with_text`` adds what the exceptions of the author's code and of libraries say, without
    credentials; it is for the log of the operator. Of an error of a model it is the whole line.
    """
    if error is None:
        return "the model ended with an error code"
    lines: list[str] = []
    current: BaseException | None = error
    frames = tb or error.__traceback__
    while current is not None and len(lines) < _MAX_CAUSES:
        if with_text and isinstance(current, ModelError):
            return "; caused by ".join([*lines, str(current)])
        said = text_of(current) if with_text else ""
        quoted = f': "{said}"' if said else ""
        lines.append(f"{type_name(type(current))}{quoted} at {_frames(frames)}")
        current = _cause(current)
        frames = None if current is None else current.__traceback__
    return "; caused by ".join(lines)


def text_of(error: BaseException) -> str:
    """Return what an exception says, on one line and without credentials.

    Returns "" for exceptions of store libraries and for exception groups. For a validation error,
    it returns the paths and the reasons, without the values.
    """
    if type(error).__module__.partition(".")[0] in _STORES or isinstance(error, BaseExceptionGroup):
        return ""
    if isinstance(error, ValidationError):
        return reasons(error)
    return without_secrets(str(error))


def reasons(error: ValidationError) -> str:
    """Return the paths and reasons of an error of validation, without the values."""
    return without_secrets(
        "; ".join(
            f"{'.'.join(map(str, detail['loc'])) or error.title}: {detail['msg']}"
            for detail in error.errors(include_url=False, include_input=False)
        )
    )


def _cause(error: BaseException) -> BaseException | None:
    if isinstance(error, BaseExceptionGroup):
        return error.exceptions[0]
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


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
