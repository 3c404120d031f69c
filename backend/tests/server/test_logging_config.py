"""Log lines contain events, but no content of messages."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import re
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.runners import InMemoryRunner
from google.genai import types

from sluicegate.engine.describe_exceptions import describe
from sluicegate.replay import ScriptedModel
from sluicegate.server.logging_config import SafeFormatter, logging_to_stderr
from sluicegate.server.settings import Settings

SECRET = "sk-very-secret"


class Lines:
    """The text and JSON lines of every record."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.json: list[dict[str, Any]] = []
        text, as_json = SafeFormatter(as_json=False), SafeFormatter(as_json=True)

        class Both(logging.Handler):
            def emit(_, record: logging.LogRecord) -> None:
                self.take(record)

        self.handler = Both()
        self._forms = text, as_json

    def take(self, record: logging.LogRecord) -> None:
        text, as_json = self._forms
        self.text.append(text.format(record))
        self.json.append(json.loads(as_json.format(record)))

    @property
    def last(self) -> str:
        return self.text[-1]


@pytest.fixture
def lines() -> Iterator[Lines]:
    lines = Lines()
    root = logging.getLogger()
    root.addHandler(lines.handler)
    yield lines
    root.removeHandler(lines.handler)
    assert all(SECRET not in line for line in lines.text)
    assert all(SECRET not in json.dumps(line) for line in lines.json)


def fail() -> None:
    raise ValueError(f"the key is {SECRET}")


def fail_twice() -> None:
    try:
        fail()
    except ValueError as error:
        raise RuntimeError(SECRET) from error


def test_an_exception_is_logged_as_its_type_and_frames(lines: Lines) -> None:
    try:
        fail_twice()
    except RuntimeError:
        logging.getLogger("sluicegate").exception("a turn failed")
    assert "a turn failed [RuntimeError at test_logging_config.py:" in lines.last
    assert "caused by ValueError at test_logging_config.py:" in lines.last
    assert " fail" in lines.last


def test_an_exception_argument_is_logged_as_its_type(lines: Lines) -> None:
    try:
        fail()
    except ValueError as error:
        for name in ("sluicegate", "an.app"):
            logging.getLogger(name).error("it failed: %s", error)
            assert lines.last.endswith("it failed: ValueError")


def test_an_exception_message_is_logged_as_its_type(lines: Lines) -> None:
    for name in ("sluicegate", "google_adk.x", "an.app"):
        logging.getLogger(name).error(ValueError(SECRET))
        assert lines.last.endswith("ValueError")


# Children of library loggers: LiteLLM gives the loggers themselves a filter that formats records.
@pytest.mark.parametrize(
    "name", ["google_adk.flows", "google_genai.models", "httpx.test", "asyncio.test"]
)
def test_a_library_record_is_logged_as_its_code_location_without_its_message(
    lines: Lines, name: str
) -> None:
    logger = logging.getLogger(name)
    logger.setLevel(logging.DEBUG)
    error = ValueError(SECRET)
    place = re.compile(rf"{name}: <withheld> at test_logging_config\.py:\d+$")
    logger.error("a fixed sentence")
    assert place.search(lines.last)
    logger.error(f"an f-string with {error}")  # noqa: G004
    assert place.search(lines.last)
    logger.error(f"an f-string with {error} and %s", 3)  # noqa: G004
    assert place.search(lines.last)
    logger.error("no f-string: " + str(error))  # noqa: G003
    assert place.search(lines.last)
    logger.error("%s took %d ms at %.1f", SECRET, 3, 0.5)
    assert place.search(lines.last)
    logger.error("%(who)s failed %(often)d times", {"who": SECRET, "often": 2})
    assert place.search(lines.last)
    logger.error("fixed", extra={"request": SECRET})
    assert place.search(lines.last)
    logger.error("raised %s", error)
    assert re.search(r"<withheld> at test_logging_config\.py:\d+: ValueError$", lines.last)


def test_records_of_the_package_keep_their_arguments(lines: Lines) -> None:
    logging.getLogger("sluicegate").warning(
        "turn %s ended", "t1", extra={"chat": "c1", "duration": 1.5, "error": None}
    )
    assert lines.last.endswith("WARNING sluicegate: turn t1 ended chat=c1 duration=1.5")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", lines.json[-1].pop("time"))
    assert lines.json[-1] == {
        "level": "warning",
        "logger": "sluicegate",
        "message": "turn t1 ended",
        "chat": "c1",
        "duration": 1.5,
    }


def test_line_breaks_in_a_record_are_escaped(lines: Lines) -> None:
    logging.getLogger("sluicegate").warning("chat %s", "a\n2026 ERROR b\x1b[31m\u202e")
    assert lines.last.endswith(r"chat a\n2026 ERROR b\x1b[31m\u202e")


@pytest.mark.parametrize(
    ("template", "arguments"), [("%d and %d", (1,)), ("%d of them", (SECRET,)), ("%(a)s", ({},))]
)
def test_a_record_that_cannot_be_formatted_is_logged_as_its_template(
    lines: Lines, template: str, arguments: tuple[Any, ...]
) -> None:
    lines.take(logging.LogRecord("an.app", logging.ERROR, __file__, 1, template, arguments, None))
    assert lines.last.endswith(template)


async def test_the_adk_log_of_a_failing_tool_contains_no_secret(
    lines: Lines, caplog: pytest.LogCaptureFixture
) -> None:
    async def leak(key: str) -> str:
        raise RuntimeError(f"cannot use {key}")

    script = {
        "scenarios": [
            {
                "match": ".",
                "responses": [{"parts": [{"call": {"name": "leak", "args": {"key": SECRET}}}]}],
            }
        ]
    }
    await run_agent(LlmAgent(name="a", model=ScriptedModel.from_data(script), tools=[leak]))
    assert SECRET in caplog.text
    assert "RuntimeError" in "".join(lines.text)


async def test_the_adk_log_of_a_failing_model_contains_no_secret(
    lines: Lines, caplog: pytest.LogCaptureFixture
) -> None:
    script = {
        "scenarios": [
            {"match": ".", "responses": [{"parts": [], "error": {"code": 500, "message": SECRET}}]}
        ]
    }
    await run_agent(LlmAgent(name="a", model=ScriptedModel.from_data(script)))
    assert SECRET in caplog.text
    assert "ServerError" in "".join(lines.text)


async def run_agent(agent: LlmAgent) -> None:
    """Run a turn with every logger at DEBUG; its outcome is ignored."""
    runner = InMemoryRunner(agent, app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    logger = logging.getLogger("google_adk")
    before = logger.level
    logger.setLevel(logging.DEBUG)
    text = types.Content(role="user", parts=[types.Part(text=SECRET)])
    try:
        async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=text):
            pass
    except Exception as error:  # noqa: BLE001
        logging.getLogger("sluicegate").error("the turn failed: %s", describe(error))
    finally:
        logger.setLevel(before)
        await runner.close()


async def never_awaited() -> None:
    async def task() -> None:
        fail()

    lost = asyncio.create_task(task())
    await asyncio.wait([lost])
    del lost
    gc.collect()


def in_a_thread() -> None:
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()


class Unraisable:
    def __del__(self) -> None:
        fail()


def unraisable() -> None:
    Unraisable()
    gc.collect()


def warned() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn(SECRET, stacklevel=2)


@pytest.mark.parametrize("format_", ["text", "json"])
@pytest.mark.parametrize(
    ("lose", "said"),
    [
        (lambda: asyncio.run(never_awaited()), "ValueError"),
        (in_a_thread, "thread failed"),
        (unraisable, "exception ignored by Python"),
        (warned, ""),
    ],
    ids=["task", "thread", "unraisable", "warning"],
)
def test_uncaught_exceptions_are_logged_without_their_messages(
    lose: Callable[[], None], said: str, format_: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with logging_to_stderr(Settings(log_format=format_)):  # type: ignore[arg-type]  # parametrised
        lose()
    written = capsys.readouterr()
    assert said in written.err
    assert SECRET not in written.err + written.out


def test_litellm_logs_without_its_messages_and_downloads_nothing() -> None:
    program = f"""if True:
        import logging, os, socket
        from sluicegate.server.logging_config import logging_to_stderr
        from sluicegate.server.settings import Settings

        def refuse(*_given):
            raise AssertionError("a connection was opened")

        with logging_to_stderr(Settings()):
            socket.getaddrinfo = socket.socket.connect = refuse
            import litellm
            for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
                logging.getLogger(name).info("{SECRET}")
                logging.getLogger(name).error("{SECRET}")
        assert "LITELLM_LOG" not in os.environ
    """
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LITELLM_")}
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = ran.stderr.splitlines()
    assert [line.partition(" ERROR ")[2] for line in lines] == [
        f"{name}: <withheld> at <string>:14"
        for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
    ]
    assert ran.stdout == ""


def test_closing_the_log_restores_the_previous_configuration() -> None:
    hooks = sys.unraisablehook, threading.excepthook
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    adk = logging.getLogger("google_adk").level
    with logging_to_stderr(Settings(log_level="debug")):
        assert root.level == logging.DEBUG
        assert logging.getLogger("google_adk").level == logging.WARNING
    assert (sys.unraisablehook, threading.excepthook) == hooks
    assert (root.handlers, root.level) == (handlers, level)
    assert logging.getLogger("google_adk").level == adk


def test_a_deliberately_aborted_stream_is_not_logged_as_a_server_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with logging_to_stderr(Settings()):
        server = logging.getLogger("uvicorn.error")
        aborted = ConnectionAbortedError("cut")
        server.error("Exception in ASGI application\n", exc_info=aborted)
        server.error("ASGI callable returned without completing response.")
        server.warning("Invalid HTTP request received.")
        try:
            b"\xff".decode()
        except UnicodeDecodeError:
            server.exception("Invalid UTF-8 sequence received from client.")
        assert capsys.readouterr().err == ""
        server.error("Exception in ASGI application\n", exc_info=ValueError(SECRET))
    written = capsys.readouterr().err
    assert "ValueError" in written
    assert SECRET not in written
