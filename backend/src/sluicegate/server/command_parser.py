"""The parser of the command line; most options are made from the fields of the settings."""

from __future__ import annotations

import argparse
import difflib
import importlib
import platform
import re
import sys
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, NoReturn, get_origin

from sluicegate.server.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence


_PLACEHOLDERS: Final = {
    "host": "ADDRESS",
    "port": "NUMBER",
    "processes": "NUMBER",
    "prefix": "PATH",
    "public_url": "URL",
    "sessions": "URL",
    "streams": "URL",
    "artifacts": "URL",
    "model": "NAME",
    "live_model": "NAME",
    "live_voice": "NAME",
    "live_language": "CODE",
    "model_script": "FILE",
    "page_tools": "NAME",
    "gate_mcp": "",
    "ungated_mcp_tools": "NAME",
    "workers": "[NAME=]URL|cmd:COMMAND",
    "worker_tokens": "FILE",
    "worker_registrations": "FILE",
    "worker_hosts": "HOST",
    "webhooks": "[NAME=]URL",
    "webhook_secrets": "FILE",
    "webhook_hosts": "HOST",
    "webhook_details": "",
    "inbox_url": "URL",
    "release": "WHEN",
    "release_fixed": "",
    "approval_style": "STYLE",
    "text_from_results": "",
    "record": "DIR",
    "redact": "NAME",
    "auth": "HOW",
    "origins": "URL",
    "allowed_hosts": "NAME",
    "trusted_proxies": "CIDR",
    "role_header": "NAME",
    "page": "",
    "title": "TEXT",
    "logo": "FILE",
    "welcome": "TEXT",
    "suggestions": "TEXT",
    "page_stylesheet": "FILE",
    "log_level": "LEVEL",
    "log_format": "FORM",
    "access_log": "",
    "metrics_port": "NUMBER",
    "metrics_host": "ADDRESS",
    "trace_contents": "",
}
"""The settings that are options, and the placeholders of their values in the help."""

_SINGULARS: Final = {"trusted_proxies": "trusted-proxy"}


@dataclass(frozen=True)
class Option:
    """One option of the command line, made from a field of `Settings`.

    ``is_repeatable`` collects values; ``constant`` is the value of a flag without an argument.
    """

    field: str
    placeholder: str

    @property
    def flag(self) -> str:
        """The flag: the field's name, in the singular for a list, negated if it defaults to yes."""
        name = self.field.replace("_", "-")
        if self.is_repeatable:
            name = _SINGULARS.get(self.field, name.removesuffix("s"))
        return f"--no-{name}" if self.constant is False else f"--{name}"

    @property
    def is_repeatable(self) -> bool:
        """Whether the field is a list."""
        return get_origin(Settings.model_fields[self.field].annotation) is tuple

    @property
    def constant(self) -> bool | None:
        """The value of a flag without an argument: the opposite of the default."""
        field = Settings.model_fields[self.field]
        return None if field.annotation is not bool else not field.default

    @property
    def help(self) -> str:
        """The field's description and its default."""
        field = Settings.model_fields[self.field]
        text = " ".join((field.description or "").replace("``", "").split()).rstrip(".")
        if self.is_repeatable:
            text += "; repeatable"
        default = field.default if isinstance(field.default, str | int) else None
        if isinstance(default, bool) or default is None:
            return text.replace("%", "%%")
        return f"{text} ({default})".replace("%", "%%")


OPTIONS: Final = tuple(Option(field, text) for field, text in _PLACEHOLDERS.items())
FLAGS: Final = {option.field: option.flag for option in OPTIONS}
"""The flag of each field that is an option."""

REPLAY_FIELDS: Final = (
    "host",
    "port",
    "prefix",
    "public_url",
    "auth",
    "origins",
    "allowed_hosts",
    "trusted_proxies",
    "role_header",
    "page",
    "title",
    "logo",
    "welcome",
    "suggestions",
    "page_stylesheet",
    "log_level",
    "log_format",
    "access_log",
    "metrics_port",
    "metrics_host",
)
"""The settings of a server without an agent."""


AUDIT_FORMATS: Final = ("text", "jsonl", "csv")
"""The output formats of `sluicegate audit`; the first is the default."""

WEBHOOK_FORMATS: Final = ("text", "jsonl")
WEBHOOK_ACTIONS: Final = ("list", "retry", "test")

INVALID_ARGUMENTS: Final = 2
"""The exit code for invalid arguments or settings."""


_STORED: Final = ("sessions", "artifacts", "streams", "record", "model_script", "log_level")
"""The options of commands that read and delete what is stored."""

WORKER_PORT: Final = 8001
_SHELLS: Final = ("bash", "zsh", "fish")
_FILES: Final = frozenset({"FILE", "DIR", "TARGET"})
"""Placeholders of values that a shell completes with names of files."""

_PARTS: Final = ("google-adk", "google-genai", "pydantic", "SQLAlchemy", "starlette", "uvicorn")
_EXIT_CODES: Final = (
    "Exit codes: 0 success, 1 a failure or an agent that would be refused, 2 invalid arguments or "
    "settings, 130 after Ctrl+C."
)
_WRONG_WORD: Final = re.compile(r"unrecognized arguments: .*?(--?[\w-]+)|invalid choice: '([^']*)'")
_TARGET: Final = "package.module:root_agent, path/agent.py:root_agent, or an ADK agent folder"


class Parser(argparse.ArgumentParser):
    """An argument parser that reports an error in one sentence, with the nearest known word."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse; an argument that no option takes is an error of the command that got it."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return parsed, unknown

    def error(self, message: str) -> NoReturn:
        """Exit with code 2."""
        sentence = f"{message[:1].upper()}{message[1:].rstrip('.')}"
        meant = self._nearest(message)
        hint = f"; did you mean {meant}? See" if meant else "; see"
        self.exit(INVALID_ARGUMENTS, f"{sentence}{hint} {self.prog} --help.\n")

    def _nearest(self, message: str) -> str | None:
        """Return the option or the command that a wrong word of the message resembles."""
        found = _WRONG_WORD.search(message)
        if found is None:
            return None
        commands = [
            name
            for action in self._actions
            if isinstance(action, argparse._SubParsersAction)
            for name in action.choices
        ]
        word = (found[1] or found[2]).partition("=")[0]
        near = difflib.get_close_matches(word, [*self._option_string_actions, *commands], n=1)
        return near[0] if near else None


def add_options(parser: argparse.ArgumentParser, fields: Collection[str] | None = None) -> None:
    """Add every option to a parser, or those of some fields.

    An option that is not given is not in the result of the parser.
    """
    for option in OPTIONS:
        if fields is not None and option.field not in fields:
            continue
        common: dict[str, Any] = {
            "dest": option.field,
            "help": option.help,
            "default": argparse.SUPPRESS,
        }
        if option.constant is not None:
            parser.add_argument(option.flag, action="store_const", const=option.constant, **common)
        else:
            action = "append" if option.is_repeatable else "store"
            parser.add_argument(option.flag, action=action, metavar=option.placeholder, **common)


def given_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the settings that were given on the command line, by field."""
    given = vars(arguments)
    return {
        option.field: tuple(given[option.field]) if option.is_repeatable else given[option.field]
        for option in OPTIONS
        if option.field in given
    }


def command_parser() -> Parser:
    """Return the parser of the command line."""
    parser = Parser(
        prog="sluicegate",
        description="Serve Google ADK agents to AI SDK clients; gated tools wait for a yes.",
        epilog=_EXIT_CODES,
    )
    parser.add_argument("--version", action=_Versions, help="print the versions of all parts")
    commands = parser.add_subparsers(metavar="COMMAND", dest="command")
    new = commands.add_parser("new", help="write a project: agent, script, tests, page, Dockerfile")
    new.add_argument("folder", metavar="DIR", help="a folder that is new or empty")
    new.add_argument("--minimal", action="store_true", help="without the page and the Dockerfile")
    dev = commands.add_parser("dev", help="serve an agent, and reload it when its files change")
    dev.add_argument(
        "target", metavar="TARGET", nargs="?", default="agent.py", help=f"{_TARGET} (agent.py)"
    )
    add_options(dev)
    serve = commands.add_parser("serve", help="serve an agent")
    check = commands.add_parser("check", help="report what would be gated and refused")
    demo = commands.add_parser("demo", help="serve the demo agent")
    for command in (serve, check):
        command.add_argument("target", metavar="TARGET", help=_TARGET)
    for command in (serve, check, demo):
        add_options(command)
    replay = commands.add_parser("replay", help="serve a recorded chat")
    replay.add_argument("recording", metavar="FILE", help="a file that --record has written")
    replay.add_argument(
        "--paced", action="store_true", help="keep the recorded pauses between chunks"
    )
    add_options(replay, REPLAY_FIELDS)
    _add_worker(commands.add_parser("worker", help="serve the functions of a file as tools"))
    token = commands.add_parser(
        "token", help="make a token, and the line for the file of the server"
    )
    token.add_argument("name", metavar="NAME", help="the user or the worker that it belongs to")
    token.add_argument("--file", metavar="FILE", help="a new file for the token")
    completion = commands.add_parser("completion", help="print the completion of a shell")
    completion.add_argument("shell", choices=_SHELLS, help="the shell that reads it")
    audit = commands.add_parser("audit", help="print who approved what, and its outcome")
    add_options(audit, ("sessions",))
    audit.add_argument("--chat", metavar="ID", help="this chat only")
    audit.add_argument("--user", metavar="ID", help="this user's chats only")
    audit.add_argument("--since", metavar="TIME", help="from this ISO 8601 time on (UTC)")
    audit.add_argument("--until", metavar="TIME", help="before this ISO 8601 time (UTC)")
    audit.add_argument(
        "--format",
        choices=AUDIT_FORMATS,
        default=AUDIT_FORMATS[0],
        help="the format of a line (text)",
    )
    chain = audit.add_mutually_exclusive_group()
    chain.add_argument(
        "--checkpoint", action="store_true", help="print the end of the chain, a text to sign"
    )
    chain.add_argument(
        "--verify", action="store_true", help="check that no line was changed or removed"
    )
    audit.add_argument("--against", metavar="FILE", help="verify that it contains this checkpoint")
    _add_webhooks(commands.add_parser("webhooks", help="list, retry and test webhooks"))
    _add_prune(commands.add_parser("prune", help="delete chats that are not used any more"))
    _add_user(commands.add_parser("user", help="export or delete what is stored of a user"))
    return parser


def _add_webhooks(webhooks: argparse.ArgumentParser) -> None:
    webhooks.add_argument(
        "action",
        choices=WEBHOOK_ACTIONS,
        help="list what waits and the dead letters; deliver events again; send a test event",
    )
    webhooks.add_argument(
        "names", metavar="ID|NAME", nargs="*", help="the events to retry, the endpoints to test"
    )
    webhooks.add_argument("--all", action="store_true", help="retry every event")
    webhooks.add_argument(
        "--format",
        choices=WEBHOOK_FORMATS,
        default=WEBHOOK_FORMATS[0],
        help="the format of a line (text)",
    )
    add_options(webhooks, ("sessions", "webhooks", "webhook_secrets", "webhook_hosts"))


def _add_prune(prune: argparse.ArgumentParser) -> None:
    prune.add_argument("target", metavar="TARGET", help=_TARGET)
    prune.add_argument(
        "--older-than", metavar="DAYS", type=_days, required=True, help="not used for so many days"
    )
    prune.add_argument(
        "--audit-checkpoint",
        metavar="FILE",
        help="also erase lines of the audit trail that are as old; write its end, a text to sign",
    )
    add_options(prune, _STORED)


def _add_user(user: argparse.ArgumentParser) -> None:
    actions = user.add_subparsers(metavar="ACTION", dest="action", required=True)
    export = actions.add_parser("export", help="write chats, decisions and files into a folder")
    delete = actions.add_parser("delete", help="delete chats, files, decisions, state and sessions")
    for action in (export, delete):
        action.add_argument("target", metavar="TARGET", help=_TARGET)
        action.add_argument("name", metavar="NAME", help="the user, as the authenticator names it")
    export.add_argument("folder", metavar="DIR", help="a folder that does not exist")
    for action in (export, delete):
        add_options(action, _STORED)


def _days(text: str) -> float:
    days = float(text)
    if not 0 < days < float("inf"):
        raise ValueError
    return days


def _add_worker(worker: argparse.ArgumentParser) -> None:
    worker.add_argument("file", metavar="FILE", help="a file whose public functions become tools")
    worker.add_argument("--name", metavar="NAME", help="the name of the worker (that of the file)")
    worker.add_argument("--token", metavar="FILE", help="a file with the credential of callers")
    worker.add_argument("--register", metavar="URL", help="the server with which it registers")
    worker.add_argument("--url", metavar="URL", help="the URL at which the server reaches it")
    add_options(worker, ("host", "log_level", "log_format"))
    worker.add_argument(
        FLAGS["port"],
        metavar="NUMBER",
        default=argparse.SUPPRESS,
        help=f"The port to bind; 0 binds a free one ({WORKER_PORT})",
    )


class _Versions(argparse.Action):
    """Prints the versions of sluicegate and of the packages that decide how it behaves."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest=argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print them and exit."""
        versions = {"sluicegate": version("sluicegate"), "Python": platform.python_version()}
        versions |= {name: version(name) for name in _PARTS}
        sys.stdout.writelines(f"{name} {number}\n" for name, number in versions.items())
        parser.exit()


def completion_script(shell: str) -> str:
    """Return the script with which a shell completes the commands and their options."""
    shtab = importlib.import_module("shtab")
    parser = command_parser()
    parsers: list[argparse.ArgumentParser] = [parser]
    for each in parsers:
        for action in each._actions:
            if isinstance(action, argparse._SubParsersAction):
                parsers.extend(action.choices.values())
            elif action.metavar in _FILES:
                vars(action)["complete"] = shtab.FILE
    return str(shtab.complete(parser, shell))


def as_flags(given: Mapping[str, Any]) -> Iterator[str]:
    """Return given settings as options of a command line again."""
    for option in OPTIONS:
        if option.field not in given or option.field == "access_log":
            continue
        value = given[option.field]
        if option.constant is not None:
            yield option.flag
            continue
        for each in value if option.is_repeatable else (value,):
            yield f"{option.flag}={each}"
