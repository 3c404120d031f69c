"""The reference of the command line."""

from __future__ import annotations

import argparse
import re

from sluicegate.server.command_parser import command_parser
from tests.docs.markdown import DOCS

ROW = re.compile(r"^\| `sluicegate (\w+)", re.MULTILINE)


def test_the_reference_lists_exactly_the_commands() -> None:
    rows = ROW.findall((DOCS / "reference" / "commands.md").read_text("utf-8"))
    (commands,) = (
        action
        for action in command_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    assert sorted(rows) == sorted(commands.choices)
