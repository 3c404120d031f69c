"""The reference of the command line."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator

import pytest

from sluicegate.server.command_parser import command_parser
from tests.docs.markdown import DOCS, PAGES, ROOT, fences

SHELL = ("", "bash", "console", "sh")
ROW = re.compile(r"^\| `sluicegate (\w+)", re.MULTILINE)


def test_the_reference_lists_exactly_the_commands() -> None:
    rows = ROW.findall((DOCS / "reference" / "commands.md").read_text("utf-8"))
    (commands,) = (
        action
        for action in command_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    assert sorted(rows) == sorted(commands.choices)


def printed(program: str) -> list[tuple[str, list[str]]]:
    """The pages and the arguments of each call of a program in the blocks for a shell."""
    found = []
    for page in PAGES:
        for fence in fences(page.read_text("utf-8")):
            if fence.language in SHELL:
                lines = fence.code.replace("\\\n", " ").splitlines()
                for line in (line for line in lines if program in line):
                    found += [(page.name, call) for call in calls_in(line, program)]
    return found


def calls_in(line: str, program: str) -> Iterator[list[str]]:
    """The arguments of each call of a program in a line."""
    lexer = shlex.shlex(
        line.removeprefix("$ ").replace("2>&1", ""), posix=True, punctuation_chars="|&;<>()"
    )
    lexer.whitespace_split = True
    lexer.commenters = "#"
    call: list[str] | None = None
    at_start = True
    for word in [*lexer, ";"]:
        if set(word) <= set("|&;<>()"):
            if call is not None:
                yield call
            call, at_start = None, word[0] not in "<>"
        elif call is not None:
            call.append(word)
        elif at_start and not re.match(r"\w+=", word):
            call, at_start = ([] if word.split("/")[-1] == program else None), False


def test_the_commands_of_a_line_are_found() -> None:
    line = "$ A=1 sluicegate token ann > file && make page | cat  # sluicegate no"
    assert list(calls_in(line, "sluicegate")) == [["token", "ann"]]
    assert list(calls_in(line, "make")) == [["page"]]
    assert len(printed("sluicegate")) > 40
    assert len(printed("make")) > 8


@pytest.mark.parametrize(("page", "arguments"), printed("sluicegate"))
def test_every_printed_command_is_one_that_the_parser_accepts(
    page: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code: object = 0
    try:
        command_parser().parse_args(arguments)
    except SystemExit as ended:
        code = ended.code
    assert code == 0, f"{page}: {capsys.readouterr().err}"


@pytest.mark.parametrize(("page", "arguments"), printed("make"))
def test_every_printed_task_exists(page: str, arguments: list[str]) -> None:
    tasks = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    named = [word for word in arguments if "=" not in word and not word.startswith("-")]
    assert set(named) <= set(tasks), page
