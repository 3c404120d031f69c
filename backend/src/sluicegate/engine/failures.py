"""What the log says of an exception: its type and where, never its words (T10)."""

from __future__ import annotations

import secrets
import traceback
from pathlib import PurePath


def new_error_id() -> str:
    """The id that stands in a public sentence and in the log."""
    return secrets.token_hex(4)


def describe(error: BaseException | None) -> str:
    """The type and the innermost frames of an exception, without its message."""
    if error is None:
        return "the model ended with an error code"
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    places = " < ".join(
        f"{PurePath(frame.filename).name}:{frame.lineno} {frame.name}" for frame in reversed(frames)
    )
    return f"{type(error).__name__} at {places}" if places else type(error).__name__
