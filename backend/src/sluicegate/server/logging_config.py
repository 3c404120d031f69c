"""Logging of the process: what happened, never message text, arguments or outputs.

Libraries put data into messages, also into their format strings, and no record says so. Of their
records the place in the code is logged, which identifies the message, and the types of exceptions.
The other records are logged as they are, but an exception is its type and its frames.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sluicegate.engine.describe_exceptions import describe, type_name
from sluicegate.server.terminal import is_coloured

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluicegate.server.settings import Settings

FIELDS: Final = "fields"
"""The attribute of a record with fields that are written as JSON only: a text has them already."""

WITHHELD: Final = "<withheld>"

_LIBRARIES: Final = (
    "LiteLLM",
    "LiteLLM Proxy",
    "LiteLLM Router",
    "a2a",
    "aiosqlite",
    "anthropic",
    "asyncio",
    "authlib",
    "google",
    "google_adk",
    "google_genai",
    "grpc",
    "httpcore",
    "httpx",
    "litellm",
    "mcp",
    "openai",
    "opentelemetry",
    "py.warnings",
    "requests",
    "sqlalchemy",
    "sse_starlette",
    "starlette",
    "urllib3",
    "uvicorn",
    "websockets",
)
_LITELLM: Final = {"LITELLM_LOG": "CRITICAL", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
"""Variables that LiteLLM reads when it is imported, unless they are set.

Without them it logs by a handler of its own too, and waits for a download of prices.
"""

_COLOURS: Final = {
    "DEBUG": "\x1b[2m",
    "INFO": "\x1b[32m",
    "WARNING": "\x1b[33m",
    "ERROR": "\x1b[31m",
    "CRITICAL": "\x1b[31m",
}
_PLAIN: Final = "\x1b[0m"
_QUIET: Final = ("py.warnings", "opentelemetry")
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_log: Final = logging.getLogger("sluicegate")


class SafeFormatter(logging.Formatter):
    """Formats a record as one line, of text or of JSON; ``coloured`` is for terminals."""

    def __init__(self, *, as_json: bool, coloured: bool = False) -> None:
        super().__init__()
        self._as_json = as_json
        self._colours = _COLOURS if coloured else {}

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; the record is not changed."""
        text = _place(record) if _of_a_library(record.name) else _text(record)
        if record.exc_info and record.exc_info[1] is not None:
            text = f"{text.rstrip()} [{describe(record.exc_info[1], record.exc_info[2])}]"
        time = datetime.fromtimestamp(record.created, UTC).isoformat("T", "milliseconds")
        extras = _extras(record)
        if self._as_json:
            line = {"time": time, "level": record.levelname.lower(), "logger": record.name}
            fields = {} if _of_a_library(record.name) else getattr(record, FIELDS, {})
            return json.dumps(line | {"message": text} | fields | extras, ensure_ascii=False)
        details = "".join(f" {name}={value}" for name, value in extras.items())
        level = record.levelname
        if level in self._colours:
            level = f"{self._colours[level]}{level}{_PLAIN}"
        return f"{time} {level} {record.name}: {_one_line(text + details)}"


def _place(record: logging.LogRecord) -> str:
    """Return where a library logged the record, and the types of the exceptions in it."""
    place = f"{WITHHELD} at {Path(record.pathname).name}:{record.lineno}"
    values = [record.msg, *_values(record)]
    kinds = [type_name(type(value)) for value in values if isinstance(value, BaseException)]
    return f"{place}: {', '.join(kinds)}" if kinds else place


def _text(record: logging.LogRecord) -> str:
    """Return the message of a record, with the types of exceptions in place of their texts."""
    if isinstance(record.msg, BaseException):
        return type_name(type(record.msg))
    template = str(record.msg)
    values = [
        type_name(type(value)) if isinstance(value, BaseException) else value
        for value in _values(record)
    ]
    if not values:
        return template
    try:
        if isinstance(record.args, dict):
            return template % dict(zip(record.args, values, strict=True))
        return template % tuple(values)
    except (TypeError, ValueError, KeyError):
        return template


def _values(record: logging.LogRecord) -> list[Any]:
    return list(record.args.values() if isinstance(record.args, dict) else record.args or ())


def _of_a_library(name: str) -> bool:
    return any(name == library or name.startswith(f"{library}.") for library in _LIBRARIES)


def _extras(record: logging.LogRecord) -> dict[str, Any]:
    if _of_a_library(record.name):
        return {}
    return {
        name: value
        for name, value in vars(record).items()
        if name not in _STANDARD and isinstance(value, str | int | float | bool)
    }


def _one_line(text: str) -> str:
    """Escape characters that would begin a line of their own."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def _is_relevant(record: logging.LogRecord) -> bool:
    """Whether a record is logged: of uvicorn's, those with an exception that is its own.

    Without one they describe what a client sent. Aborted streams and invalid UTF-8 are expected;
    every other exception of the application has been logged by it.
    """
    if not record.name.startswith("uvicorn"):
        return True
    error = record.exc_info[1] if record.exc_info else None
    return error is not None and not isinstance(error, ConnectionAbortedError | UnicodeDecodeError)


@contextlib.contextmanager
def logging_to_stderr(settings: Settings) -> Iterator[None]:
    """Log to standard error; restore the configuration of logging afterwards."""
    lowest = logging.getLevelName(settings.log_level.upper())
    handler = logging.StreamHandler(sys.stderr)
    coloured = is_coloured(sys.stderr)
    handler.setFormatter(SafeFormatter(as_json=settings.log_format == "json", coloured=coloured))
    handler.addFilter(_is_relevant)
    levels: dict[logging.Logger, int] = {}

    def set_level(logger: logging.Logger, level: int) -> None:
        levels[logger] = logger.level
        logger.setLevel(level)

    root = logging.getLogger()
    set_level(root, lowest)
    for name in _LIBRARIES:
        least = logging.ERROR if name in _QUIET else logging.WARNING
        set_level(logging.getLogger(name), max(lowest, least))
    root.addHandler(handler)
    logging.captureWarnings(capture=True)
    added = _LITELLM.keys() - os.environ.keys()
    os.environ.update({name: _LITELLM[name] for name in added})
    with _log_lost_exceptions():
        try:
            yield
        finally:
            for name in added:
                os.environ.pop(name, None)
            logging.captureWarnings(capture=False)
            root.removeHandler(handler)
            for logger, before in levels.items():
                logger.setLevel(before)


@contextlib.contextmanager
def _log_lost_exceptions() -> Iterator[None]:
    """Log the exceptions that Python itself would print with their texts."""
    unraisable, in_thread = sys.unraisablehook, threading.excepthook

    def log_unraisable(lost: sys.UnraisableHookArgs) -> None:
        if lost.exc_value is not None:
            _log.error(
                "exception ignored by Python: %s", describe(lost.exc_value, lost.exc_traceback)
            )

    def log_thread(lost: threading.ExceptHookArgs) -> None:
        if lost.exc_value is not None:
            _log.error("thread failed: %s", describe(lost.exc_value, lost.exc_traceback))

    sys.unraisablehook, threading.excepthook = log_unraisable, log_thread
    try:
        yield
    finally:
        sys.unraisablehook, threading.excepthook = unraisable, in_thread
