"""The options of the command line: which setting each one gives."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Collection


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
