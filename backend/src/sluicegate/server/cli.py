"""The command line: runs its commands, and reports what fails in one sentence."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sluicegate.engine.agents.target_location import folder_of, require_file
from sluicegate.engine.describe_exceptions import describe
from sluicegate.errors import ConfigurationError
from sluicegate.server.command_parser import (
    FLAGS,
    INVALID_ARGUMENTS,
    WORKER_PORT,
    as_flags,
    command_parser,
    completion_script,
    given_options,
)
from sluicegate.server.logging_config import logging_to_stderr
from sluicegate.server.settings import Settings, load_settings
from sluicegate.server.supervised import is_supervised
from sluicegate.server.terminal import show_progress

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence


FAILED: Final = 1
"""The exit code of a command that failed."""
INTERRUPTED: Final = 130
"""The exit code after Ctrl+C."""


def main(argv: list[str] | None = None) -> int:
    """Run a command and return its exit code; a failure is one sentence on standard error."""
    try:
        line = sys.argv[1:] if argv is None else argv
        arguments = command_parser().parse_args(line)
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else INVALID_ARGUMENTS
    try:
        return _run(arguments, line)
    except ConfigurationError as error:
        sys.stderr.write(f"{' '.join(str(error).split())}\n")
        return INVALID_ARGUMENTS
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - its text may be a secret
        sys.stderr.write(f"This failed unexpectedly: {describe(error)}.\n")
        return FAILED


@contextlib.contextmanager
def _restore_garbage_collection() -> Iterator[None]:
    """Enable the garbage collector again if it was enabled before.

    It is disabled while ADK is imported: it takes a sixth of the start and finds next to nothing.
    """
    was_enabled = gc.isenabled()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _run(arguments: argparse.Namespace, line: Sequence[str]) -> int:
    if arguments.command in (None, "completion", "new", "token"):
        return _run_without_settings(arguments)
    if arguments.command in ("dev", "serve", "check", "prune", "user"):
        _load_dotenv(arguments.target)
    elif arguments.command in ("replay", "worker"):
        require_file(arguments.recording if arguments.command == "replay" else arguments.file)
    given = given_options(arguments)
    if arguments.command == "worker":
        # The server that calls it uses the default port.
        given.setdefault("port", WORKER_PORT)
    settings = load_settings(os.environ, given, {field: FLAGS[field] for field in given})
    if arguments.command == "dev":
        module = importlib.import_module("sluicegate.server.dev_command")
        return int(module.dev(arguments.target, list(as_flags(given))))
    if arguments.command == "audit":
        module = importlib.import_module("sluicegate.server.audit_command")
        return int(module.audit(settings.sessions, arguments, sys.stdout))
    if arguments.command == "webhooks":
        module = importlib.import_module("sluicegate.server.webhooks_command")
        return int(module.webhooks(settings, arguments, sys.stdout))
    with logging_to_stderr(settings), _restore_garbage_collection():
        if arguments.command == "worker":
            return _run_worker(arguments, settings)
        if settings.processes > 1 and arguments.command != "check" and not is_supervised():
            supervisor = importlib.import_module("sluicegate.server.supervisor")
            return int(supervisor.supervise(line, settings))
        return _run_with_adk(arguments, settings)


def _run_with_adk(arguments: argparse.Namespace, settings: Settings) -> int:
    # ADK takes seconds to import; every command without it has returned by now.
    gc.disable()
    show_progress(f"sluicegate {arguments.command}: loading the agent …")
    commands = importlib.import_module("sluicegate.server.serve_commands")
    if arguments.command == "replay":
        return int(commands.replay(arguments.recording, settings, paced=arguments.paced))
    if arguments.command in ("prune", "user"):
        data = importlib.import_module("sluicegate.server.prune_and_user_commands")
        return int(data.run(arguments, settings, sys.stdout))
    if arguments.command == "check":
        check_command = importlib.import_module("sluicegate.server.check_command")
        return int(check_command.check(arguments.target, settings))
    target = getattr(arguments, "target", None)
    return int(commands.demo(settings) if target is None else commands.serve(target, settings))


def _run_worker(arguments: argparse.Namespace, settings: Settings) -> int:
    show_progress("sluicegate worker: loading the tools …")
    importlib.import_module("sluicegate.tools.mcp_package").require_mcp()
    worker = importlib.import_module("sluicegate.server.worker_command")
    options = worker.worker_options(arguments, settings)
    return int(worker.serve_worker(arguments.file, options, settings))


def _run_without_settings(arguments: argparse.Namespace) -> int:
    if arguments.command == "completion":
        sys.stdout.write(completion_script(arguments.shell))
    elif arguments.command == "new":
        return _new(arguments)
    elif arguments.command == "token":
        importlib.import_module("sluicegate.server.token_command").make_token(
            arguments.name, arguments.file
        )
    else:
        command_parser().print_help()
    return 0


def _new(arguments: argparse.Namespace) -> int:
    folder = Path(arguments.folder)
    project = importlib.import_module("sluicegate.server.new_project")
    for path in project.new_project(folder, is_minimal=arguments.minimal):
        sys.stdout.write(f"{folder / path}\n")
    sys.stdout.write(f"Next: cd {shlex.quote(str(folder))} && sluicegate dev\n")
    return 0


def _load_dotenv(target: str) -> None:
    """Set what the ``.env`` beside the agent sets, settings too, if it is not set yet."""
    folder = folder_of(target)
    importlib.import_module("dotenv").load_dotenv(folder / ".env", override=False)
