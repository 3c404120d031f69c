"""Tools that require approval, and the terms of their approvals."""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext

from sluicegate.engine.agents.approval_requirements import ToolNames, requirement_of
from sluicegate.engine.agents.read_tool_facts import facts_of
from sluicegate.errors import ConfigurationError
from sluicegate.tools import ApprovalTerms, client_tool, gated, terms_of


def pay(n: int) -> dict[str, int]:
    """Pay."""
    return {"paid": n}


def is_expensive(n: int) -> bool:
    return n > 10


async def is_expensive_elsewhere(n: int) -> bool:
    return n > 10


def ask(n: int, tool_context: ToolContext) -> None:
    """Ask."""
    tool_context.request_confirmation()


class Own(BaseTool):
    """A tool of one's own class."""

    def __init__(self) -> None:
        super().__init__(name="own", description="Own.")


class Picky(Own):
    """One that decides for itself."""

    async def check_require_confirmation(
        self, args: dict[str, Any], tool_context: ToolContext
    ) -> bool:
        return False


@pytest.mark.parametrize(
    ("tool", "kind", "expected"),
    [
        (gated(pay), "gated", [True, True]),
        (gated(FunctionTool(pay)), "gated", [True, True]),
        (gated(FunctionTool(pay, require_confirmation=True)), "gated", [True, True]),
        (gated(pay, require_confirmation=is_expensive), "conditional", [False, True]),
        (gated(FunctionTool(pay, require_confirmation=is_expensive)), "conditional", [False, True]),
        (gated(FunctionTool(pay), require_confirmation=is_expensive), "conditional", [False, True]),
        (gated(ask, require_confirmation=False), "conditional", [False, False]),
        (gated(pay, require_confirmation=False), "free", [False, False]),
        (gated(Own()), "gated", [True, True]),
        (gated(Own(), require_confirmation=is_expensive), "conditional", [False, True]),
        (gated(Own(), require_confirmation=is_expensive_elsewhere), "conditional", [False, True]),  # type: ignore[arg-type]
        (gated(Picky()), "conditional", [False, False]),
    ],
)
async def test_a_gated_tool_requires_approval_as_declared(
    tool: BaseTool, kind: str, expected: list[bool]
) -> None:
    assert requirement_of(tool, ToolNames()).kind == kind
    context: Any = None
    required = [await tool.check_require_confirmation({"n": n}, context) for n in (5, 50)]
    assert required == expected


def test_the_given_tool_stays_unchanged() -> None:
    plain = FunctionTool(pay)
    plain.custom_metadata = {"title": "Pay"}
    tool = gated(plain, editable=False)
    assert plain.custom_metadata == {"title": "Pay"}
    assert requirement_of(plain, ToolNames()).kind == "free"
    assert facts_of(tool, "gated").title == "Pay"


def test_the_terms_reach_the_facts_of_the_tool() -> None:
    async def find(key: str) -> None:
        return None

    terms = terms_of(gated(pay, editable=False, rememberable=False, find=find, expires=60.0))
    assert terms == ApprovalTerms(editable=False, rememberable=False, find=find, expires=60.0)
    tool = gated(pay, editable=False, expires=60.0, by_voice="confirm payment")
    facts = facts_of(tool, "gated")
    assert (facts.editable, facts.rememberable, facts.expires) == (False, True, 60.0)
    assert facts.by_voice == "confirm payment"


def test_a_tool_of_a_toolset_declares_its_terms_in_its_metadata() -> None:
    tool = FunctionTool(pay)
    assert terms_of(tool) == ApprovalTerms()
    tool.custom_metadata = {"editable": False, "rememberable": "no"}
    assert terms_of(tool) == ApprovalTerms(editable=False)


@pytest.mark.parametrize("kind", ["client", "gated-client"])
def test_client_side_calls_are_neither_edited_nor_remembered(kind: Any) -> None:
    facts = facts_of(client_tool("look", "Look.", {"type": "object"}), kind)
    assert (facts.editable, facts.rememberable) == (False, False)


@pytest.mark.parametrize(
    ("terms", "sentence"),
    [
        ({"expires": 0}, "seconds above 0"),
        ({"expires": -1.0}, "seconds above 0"),
        ({"expires": float("nan")}, "seconds above 0"),
        ({"find": "look"}, "a function of its key"),
        ({"by_voice": "yes"}, "8 letters or more"),
        ({"by_voice": "pay 5000 euros to Ada"}, "no digits"),
        ({"approvers": "bob", "quorum": 0}, "whole number"),
        ({"approvers": "bob", "quorum": True}, "whole number"),
        ({"approvers": "bob", "quorum": 2}, "cannot be reached by 1"),
        ({"approvers": []}, "1 to 100"),
        ({"approvers": 5}, "a function of the call"),
        ({"quorum": 2}, "needs approvers"),
        ({"requester_may_approve": False}, "needs approvers"),
        ({"approvers": "bob", "rememberable": True}, "cannot be rememberable"),
        ({"approvers": "bob", "by_voice": "confirm payment"}, "by voice"),
        ({"remind_after": 0}, "remind_after"),
        ({"then": "forget"}, "deny"),
        ({"respond": object()}, "respond"),
        ({"respond": {"type": 5}}, "respond"),
    ],
)
def test_invalid_terms_are_refused(terms: Any, sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        gated(pay, **terms)


def test_a_client_side_tool_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="client_tool"):
        gated(client_tool("look", "Look.", {"type": "object"}))
