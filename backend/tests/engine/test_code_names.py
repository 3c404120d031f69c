from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from sluicegate.engine.agents.code_inspection import find_name

NAME = "request_confirmation"


def directly(context: Any) -> None:
    context.request_confirmation(hint="?")


def by_string(context: Any) -> None:
    getattr(context, "request_confirmation")(hint="?")  # noqa: B009 - what a tool may do


def in_a_nested_function(context: Any) -> None:
    def ask() -> None:
        context.request_confirmation(hint="?")

    ask()


def in_a_lambda(context: Any) -> None:
    asks: list[Callable[[], Any]] = [lambda: context.request_confirmation(hint="?")]
    asks[0]()


def in_a_comprehension(context: Any) -> list[Any]:
    return [context.request_confirmation(hint=hint) for hint in "ab"]


def through_a_helper(context: Any) -> None:
    directly(context)


def through_two_helpers(context: Any) -> None:
    through_a_helper(context)


def through_a_table(context: Any) -> None:
    TABLE["ask"](context)


def through_a_default(context: Any, ask: Callable[[Any], None] = directly) -> None:
    ask(context)


def in_recursion(context: Any, depth: int = 3) -> None:
    if depth:
        in_recursion(context, depth - 1)
    else:
        directly(context)


def closing_over(ask: Callable[[Any], Any]) -> Callable[[Any], None]:
    def tool(context: Any) -> None:
        ask(context)

    return tool


def wrapping(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


class Bank:
    def __init__(self) -> None:
        self.desk = Requester(self)

    def pay(self, context: Any) -> None:
        self._ask(context)

    def pay_at_the_desk(self, context: Any) -> None:
        self.desk.ask(context)

    def balance(self, context: Any) -> int:
        return 5

    def _ask(self, context: Any) -> None:
        context.request_confirmation(hint="?")


class Requester:
    def __init__(self, bank: Bank) -> None:
        self.bank = bank

    def ask(self, context: Any) -> None:
        context.request_confirmation(hint="?")


class Callable_:
    def __call__(self, context: Any) -> None:
        directly(context)


def only_mentioned(context: Any) -> None:
    """Never calls request_confirmation."""
    # context.request_confirmation() is not called here.
    print("request_confirmation is a method")  # noqa: T201 - a longer string is no name


def unrelated(context: Any) -> str:
    return str(context)


TABLE = {"ask": directly}
BANK = Bank()


def uses_a_global_object(context: Any) -> None:
    BANK.pay(context)


def uses_another_method_of_it(context: Any) -> int:
    return BANK.balance(context)


@pytest.mark.parametrize(
    "root",
    [
        directly,
        by_string,
        in_a_nested_function,
        in_a_lambda,
        in_a_comprehension,
        through_a_helper,
        through_two_helpers,
        through_a_table,
        through_a_default,
        in_recursion,
        closing_over(directly),
        closing_over(closing_over(directly)),
        wrapping(directly),
        functools.lru_cache(directly),
        functools.partial(directly, None),
        functools.partial(unrelated, directly),
        BANK.pay,
        BANK.pay_at_the_desk,
        Callable_(),
        uses_a_global_object,
        Bank,
    ],
)
def test_a_name_is_found_wherever_the_code_uses_it(root: object) -> None:
    assert find_name(root, NAME) is not None


@pytest.mark.parametrize(
    "root",
    [
        only_mentioned,
        unrelated,
        closing_over(unrelated),
        wrapping(unrelated),
        BANK.balance,
        uses_another_method_of_it,
        print,
        None,
    ],
)
def test_a_name_that_the_code_does_not_use_is_not_found(root: object) -> None:
    assert find_name(root, NAME) is None


def test_the_location_of_a_name_is_the_qualified_name_of_its_function() -> None:
    assert find_name(BANK.pay, NAME) == "Bank._ask"


def test_reference_cycles_end_the_search() -> None:
    assert BANK.desk.bank is BANK
    assert find_name(BANK.balance, NAME) is None
