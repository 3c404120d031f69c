"""The options of the command line: which setting each one gives."""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import os
import sys
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, NoReturn

from sluicegate.engine.failures import describe
from sluicegate.errors import ConfigurationError
from sluicegate.server.logs import logging_to_stderr
from sluicegate.server.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


@dataclass(frozen=True)
class Option:
    """One flag. ``several`` collects values; ``value`` is what a flag without an argument gives."""

    flag: str
    field: str
    metavar: str
    help: str
    several: bool = False
    value: bool | None = None


OPTIONS: Final = (
    Option("--host", "host", "ADDRESS", "bind this address (127.0.0.1)"),
    Option("--port", "port", "NUMBER", "bind this port, 0 for a free one (8000)"),
    Option("--prefix", "prefix", "PATH", "the path before every endpoint (/api)"),
    Option("--public-url", "public_url", "URL", "the address at which browsers reach the server"),
    Option("--sessions", "sessions", "URL", "the database with sessions and approvals"),
    Option("--streams", "streams", "URL", "memory, or a Valkey or Redis server (memory)"),
    Option("--artifacts", "artifacts", "URL", "where files lie (file:PATH)"),
    Option("--model", "model", "NAME", "a model id in place of every model of the agent"),
    Option("--model-script", "model_script", "FILE", "a script in place of every model"),
    Option(
        "--page-tool", "page_tools", "NAME", "a tool that pages may bring; repeatable", several=True
    ),
    Option("--worker", "workers", "[NAME=]URL", "a remote tool worker; repeatable", several=True),
    Option(
        "--worker-tokens", "worker_tokens", "FILE", "the credentials for these workers: NAME TOKEN"
    ),
    Option(
        "--worker-registrations",
        "worker_registrations",
        "FILE",
        "who may register as a worker: sha256:HEX NAME",
    ),
    Option("--release", "release", "WHEN", "deferred, preview or progressive (deferred)"),
    Option(
        "--release-fixed",
        "release_fixed",
        "",
        "refuse clients that wish for another release",
        value=True,
    ),
    Option("--approval-style", "approval_style", "STYLE", "call or confirmation (call)"),
    Option("--record", "record", "DIR", "record every chat in this folder"),
    Option(
        "--redact", "redact", "NAME", "a field taken out of recordings; repeatable", several=True
    ),
    Option("--auth", "auth", "HOW", "none, bearer:FILE or header:NAME (none)"),
    Option(
        "--origin", "origins", "URL", "an origin whose pages may call; repeatable", several=True
    ),
    Option(
        "--allowed-host",
        "allowed_hosts",
        "NAME",
        "a host name that is served; repeatable",
        several=True,
    ),
    Option(
        "--trusted-proxy",
        "trusted_proxies",
        "CIDR",
        "a network whose peers name the user; repeatable",
        several=True,
    ),
    Option("--no-page", "page", "", "do not serve the chat page", value=False),
    Option("--log-level", "log_level", "LEVEL", "debug, info, warning or error (info)"),
    Option("--log-format", "log_format", "FORM", "text or json (text)"),
)

AUDIT_FORMATS: Final = ("text", "jsonl", "csv")
"""How `sluicegate audit` writes a line; the first is the default."""

FLAGS: Final = {option.field: option.flag for option in OPTIONS}


REPLAYING: Final = (
    "host",
    "port",
    "prefix",
    "public_url",
    "auth",
    "origins",
    "allowed_hosts",
    "trusted_proxies",
    "page",
    "log_level",
    "log_format",
)
"""The settings of a server that has no agent."""


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence."""

    def error(self, message: str) -> NoReturn:
        """Leave with exit code 2."""
        self.exit(2, f"{message[:1].upper()}{message[1:].rstrip('.')}; see {self.prog} --help.\n")


def add_options(parser: argparse.ArgumentParser, fields: Collection[str] | None = None) -> None:
    """Let a parser take every option, or those of some fields.

    One that is not used is not in its result.
    """
    for option in OPTIONS:
        if fields is not None and option.field not in fields:
            continue
        common: dict[str, Any] = {
            "dest": option.field,
            "help": option.help,
            "default": argparse.SUPPRESS,
        }
        if option.value is not None:
            parser.add_argument(option.flag, action="store_const", const=option.value, **common)
        else:
            action = "append" if option.several else "store"
            parser.add_argument(option.flag, action=action, metavar=option.metavar, **common)


def given_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the settings that were given, by field."""
    given = vars(arguments)
    return {
        option.field: tuple(given[option.field]) if option.several else given[option.field]
        for option in OPTIONS
        if option.field in given
    }


BAD_USE: Final = 2
"""What was asked for cannot be done as it was said."""

FAILED: Final = 1
"""It could not be done."""

WORKER_PORT: Final = 8001
_INTERRUPTED: Final = 130
_TARGET: Final = "package.module:root_agent, path/agent.py:root_agent, or an ADK agent folder"


def main(argv: list[str] | None = None) -> int:
    """Run a command and return its exit code; every failure is one sentence on standard error."""
    try:
        arguments = _parser().parse_args(argv)
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else BAD_USE
    try:
        return _run(arguments)
    except ConfigurationError as error:
        sys.stderr.write(f"{' '.join(str(error).split())}\n")
        return BAD_USE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last one to see it; its text may be a secret
        sys.stderr.write(f"This failed unexpectedly: {describe(error)}.\n")
        return FAILED


def _parser() -> Parser:
    parser = Parser(
        prog="sluicegate",
        description="Serve Google ADK agents to AI SDK clients; gated tools wait for a yes.",
    )
    parser.add_argument(
        "--version", action="version", version=f"sluicegate {version('sluicegate')}"
    )
    commands = parser.add_subparsers(metavar="COMMAND", dest="command", required=True)
    serve = commands.add_parser("serve", help="serve an agent")
    check = commands.add_parser("check", help="say what would be gated, and whether it is served")
    demo = commands.add_parser("demo", help="serve the demo agent")
    for command in (serve, check):
        command.add_argument("target", metavar="TARGET", help=_TARGET)
    for command in (serve, check, demo):
        add_options(command)
    replay = commands.add_parser("replay", help="serve a recorded chat as it was")
    replay.add_argument("recording", metavar="FILE", help="a file that --record has written")
    replay.add_argument(
        "--paced", action="store_true", help="leave the recorded pauses between chunks"
    )
    add_options(replay, REPLAYING)
    _add_worker(commands.add_parser("worker", help="serve the functions of a file as tools"))
    audit = commands.add_parser("audit", help="print who approved what, and what came of it")
    add_options(audit, ("sessions",))
    audit.add_argument("--chat", metavar="ID", help="this chat alone")
    audit.add_argument("--user", metavar="ID", help="this user's chats alone")
    audit.add_argument("--since", metavar="TIME", help="from this ISO 8601 time on (UTC)")
    audit.add_argument("--until", metavar="TIME", help="before this ISO 8601 time (UTC)")
    audit.add_argument(
        "--format",
        choices=AUDIT_FORMATS,
        default=AUDIT_FORMATS[0],
        help="how a line is written (text)",
    )
    return parser


def _add_worker(worker: argparse.ArgumentParser) -> None:
    worker.add_argument("file", metavar="FILE", help="a Python file; its public functions are it")
    worker.add_argument("--name", metavar="NAME", help="what the worker is called (the file's)")
    worker.add_argument("--token", metavar="FILE", help="the credential that callers must bring")
    worker.add_argument("--register", metavar="URL", help="the server at which it registers")
    worker.add_argument("--url", metavar="URL", help="where that server reaches it (as bound)")
    add_options(worker, ("host", "port", "log_level", "log_format"))


@contextlib.contextmanager
def _collecting_again() -> Iterator[None]:
    """Leave the collector of garbage as it was, whoever has switched it off meanwhile.

    Imports make many objects and hardly any garbage; looking for some takes a sixth of the start.
    """
    was_enabled = gc.isenabled()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _run(arguments: argparse.Namespace) -> int:
    given = given_options(arguments)
    if arguments.command == "worker":
        # The server that calls it has the usual port.
        given.setdefault("port", WORKER_PORT)
    settings = load_settings(os.environ, given, {field: FLAGS[field] for field in given})
    if arguments.command == "audit":
        module = importlib.import_module("sluicegate.server.audit")
        return int(module.audit(settings.sessions, arguments, sys.stdout))
    with logging_to_stderr(settings), _collecting_again():
        if arguments.command == "worker":
            importlib.import_module("sluicegate.tools.worker_protocol").require_mcp()
            worker = importlib.import_module("sluicegate.server.worker")
            return int(
                worker.work(arguments.file, worker.worker_options(arguments, settings), settings)
            )
        # ADK takes seconds to import; what needs none of it has been answered by now.
        gc.disable()
        commands = importlib.import_module("sluicegate.server.commands")
        if arguments.command == "replay":
            return int(commands.replay(arguments.recording, settings, paced=arguments.paced))
        if arguments.command == "check":
            return int(commands.check(arguments.target, settings))
        target = getattr(arguments, "target", None)
        return int(commands.demo(settings) if target is None else commands.serve(target, settings))
