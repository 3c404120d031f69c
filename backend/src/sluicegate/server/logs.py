"""Log lines that tell what happened and never what somebody said.

Libraries log the text of exceptions, and with it whatever a tool or a model was given. Of their
records only words that stand in their source are written; of an exception, its type and frames.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import json
import logging
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sluicegate.engine.failures import describe, type_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluicegate.server.settings import Settings

WITHHELD: Final = "<withheld>"

_LIBRARIES: Final = (
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
_QUIET: Final = ("py.warnings", "opentelemetry")
_EXPECTED: Final = (
    "ASGI callable returned without completing handshake.",
    "ASGI callable returned without completing response.",
    "Exception in ASGI application\n",
)
_NOT_TEXT: Final = "Invalid UTF-8 sequence received from client."
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_log: Final = logging.getLogger("sluicegate")


class SafeFormatter(logging.Formatter):
    """Writes a record as one line, of text or of JSON."""

    def __init__(self, *, as_json: bool) -> None:
        """Choose the form."""
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; the record is not changed."""
        text = _text(record)
        if record.exc_info and record.exc_info[1] is not None:
            text = f"{text.rstrip()} [{describe(record.exc_info[1], record.exc_info[2])}]"
        time = datetime.fromtimestamp(record.created, UTC).isoformat("T", "milliseconds")
        extras = _extras(record)
        if self._as_json:
            line = {"time": time, "level": record.levelname.lower(), "logger": record.name}
            return json.dumps(line | {"message": text} | extras, ensure_ascii=False)
        details = "".join(f" {name}={value}" for name, value in extras.items())
        return f"{time} {record.levelname} {record.name}: {_one_line(text + details)}"


def _text(record: logging.LogRecord) -> str:
    if isinstance(record.msg, BaseException):
        return type_name(type(record.msg))
    template = str(record.msg)
    strict = _of_a_library(record.name)
    if strict and template not in _literals(record.pathname):
        return f"{WITHHELD} at {Path(record.pathname).name}:{record.lineno}"
    if not record.args:
        return template
    arguments = record.args.values() if isinstance(record.args, dict) else record.args
    said = [_argument(argument, strict=strict) for argument in arguments]
    try:
        if isinstance(record.args, dict):
            return template % dict(zip(record.args, said, strict=True))
        return template % tuple(said)
    except (TypeError, ValueError, KeyError):
        return template


def _argument(argument: Any, *, strict: bool) -> Any:
    if isinstance(argument, BaseException):
        return type_name(type(argument))
    if not strict or argument is None or isinstance(argument, bool | int | float):
        return argument
    return argument.__qualname__ if isinstance(argument, type) else WITHHELD


def _of_a_library(name: str) -> bool:
    return any(name == library or name.startswith(f"{library}.") for library in _LIBRARIES)


@functools.cache
def _literals(path: str) -> frozenset[str]:
    """Return the texts in a source file; a message that is one of them was not made of data."""
    try:
        tree = ast.parse(Path(path).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return frozenset()
    return frozenset(
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _extras(record: logging.LogRecord) -> dict[str, Any]:
    if _of_a_library(record.name):
        return {}
    return {
        name: value
        for name, value in vars(record).items()
        if name not in _STANDARD and isinstance(value, str | int | float | bool)
    }


def _one_line(text: str) -> str:
    """Keep what others said from looking like a line of its own."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    """Leave out what uvicorn says of streams broken on purpose and of messages that are no text."""
    if not record.name.startswith("uvicorn"):
        return True
    if record.msg == _NOT_TEXT:
        return False
    aborted = bool(record.exc_info) and isinstance(
        (record.exc_info or (None, None))[1], ConnectionAbortedError
    )
    return not (record.msg in _EXPECTED and (aborted or not record.exc_info))


@contextlib.contextmanager
def logging_to_stderr(settings: Settings) -> Iterator[None]:
    """Write the log of this process to standard error, and put everything back afterwards."""
    level = logging.getLevelName(settings.log_level.upper())
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(SafeFormatter(as_json=settings.log_format == "json"))
    handler.addFilter(_is_worth_a_line)
    levels: dict[logging.Logger, int] = {}

    def set_level(logger: logging.Logger, wanted: int) -> None:
        levels[logger] = logger.level
        logger.setLevel(wanted)

    root = logging.getLogger()
    set_level(root, level)
    for name in _LIBRARIES:
        least = logging.ERROR if name in _QUIET else logging.WARNING
        set_level(logging.getLogger(name), max(level, least))
    root.addHandler(handler)
    logging.captureWarnings(capture=True)
    with _no_text_on_stderr():
        try:
            yield
        finally:
            logging.captureWarnings(capture=False)
            root.removeHandler(handler)
            for logger, before in levels.items():
                logger.setLevel(before)


@contextlib.contextmanager
def _no_text_on_stderr() -> Iterator[None]:
    """Send what Python itself prints of lost exceptions through the log."""
    unraisable, in_thread = sys.unraisablehook, threading.excepthook

    def log_unraisable(lost: sys.UnraisableHookArgs) -> None:
        if lost.exc_value is not None:
            _log.error("an exception was lost: %s", describe(lost.exc_value, lost.exc_traceback))

    def log_thread(lost: threading.ExceptHookArgs) -> None:
        if lost.exc_value is not None:
            _log.error("a thread failed: %s", describe(lost.exc_value, lost.exc_traceback))

    sys.unraisablehook, threading.excepthook = log_unraisable, log_thread
    try:
        yield
    finally:
        sys.unraisablehook, threading.excepthook = unraisable, in_thread
