"""What a card shows is what runs, or the call is refused, over every transport."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sluicegate.core.exactly_shown_arguments import MAX_CHARACTERS, MAX_DEPTH, MAX_VALUES
from sluicegate.core.json_values import hash_arguments
from tests.engine.stage import Prompts, calls, says
from tests.parts import long_table
from tests.transports.card_stories import (
    TRANSPORTS,
    Bank,
    agent,
    ran,
    tab_on,
)

pytestmark = [long_table, pytest.mark.parametrize("transport", TRANSPORTS)]


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


UNSHOWABLE: dict[str, Callable[[], Any]] = {
    "deep": lambda: nested(MAX_DEPTH),
    "very deep": lambda: nested(120),
    "long": lambda: "x" * (MAX_CHARACTERS + 1),
    "many": lambda: [0] * (MAX_VALUES + 1),
    "integer": lambda: 2**53 + 1,
    "prototype": lambda: {"__proto__": {"admin": True}},
    "constructor": lambda: {"constructor": {"prototype": 1}},
}


PYTHON: dict[str, Callable[[], Any]] = {
    "not a number": lambda: math.nan,
    "a date": lambda: datetime(2026, 1, 1, tzinfo=UTC),
    "a surrogate": lambda: "\ud800",
    "a key": lambda: {1: 2},
}


@pytest.mark.parametrize("kind", [*UNSHOWABLE, *PYTHON])
async def test_what_cannot_be_shown_is_refused_before_the_question(
    tmp_path: Path, transport: str, kind: str
) -> None:
    bank, prompts = Bank(), Prompts()
    made = (UNSHOWABLE | PYTHON)[kind]
    what = made() if kind in UNSHOWABLE else "rent"

    async def change(tool: Any, args: dict[str, Any], tool_context: Any) -> None:
        if kind in PYTHON:
            args["what"] = made()

    shop = agent(
        [calls(("pay", {"what": what})), says("done")],
        [bank.pay()],
        before_tool_callback=change,
        before_model_callback=prompts,
    )
    async with tab_on(shop, transport, tmp_path) as tab:
        await tab.say()
        assert (tab.cards(), await tab.rows(), bank.paid) == ([], [], [])
        [part] = tab.parts("pay")
        assert part["state"] == "output-error"
        assert part["errorText"].startswith("Not run: the arguments cannot be shown")
        assert tab.read[-1]["finishReason"] == "stop"
        # The chat goes on.
        await tab.say("again")
    if transport != "live":
        assert "cannot be shown" in str(prompts.contents)


ORDINARY = [
    {"constructor": {"name": "x"}, "prototype": 1, "toString": None},
    nested(MAX_DEPTH - 2),
    2**53 - 1,
    -0.5,
    "x" * 5000,
    {"": [{}, []], "\u202eabc": "\u202e"},
]


@pytest.mark.parametrize("what", ORDINARY, ids=range(len(ORDINARY)))
async def test_what_is_shown_is_what_runs(tmp_path: Path, transport: str, what: Any) -> None:
    bank = Bank()
    shop = agent([calls(("pay", {"what": what})), says("done")], [bank.pay()])
    async with tab_on(shop, transport, tmp_path) as tab:
        await tab.say()
        [card] = tab.cards()
        assert card["input"] == {"what": what}
        await tab.decide()
        assert bank.paid == [what]
        await ran(tab)


async def test_defaults_that_take_effect_are_shown_as_such(tmp_path: Path, transport: str) -> None:
    bank = Bank()
    shop = agent(
        [calls(("pay", {"what": "rent", "limit": 5})), says("done")],
        [bank.pay()],
    )
    async with tab_on(shop, transport, tmp_path) as tab:
        await tab.say()
        [card] = tab.cards()
        assert card["approval"]["descriptor"]["defaults"] == {"currency": "EUR"}
        assert card["input"] == {"what": "rent", "limit": 5}
        [row] = await tab.rows()
        assert row.args_hash == hash_arguments(row.arguments, {"currency": "EUR"})
        await tab.decide()
        assert bank.paid == ["rent"]
