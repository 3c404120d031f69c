from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types

from sluicegate.demo import tools
from sluicegate.demo.document_archive import DocumentArchive
from sluicegate.demo.tools import FINANCE, approvers
from sluicegate.errors import ToolError
from sluicegate.tools import ClientTool, GatedCall

GATED = {
    "search_database",
    "update_database",
    "process_payment",
    "order_supplies",
    "slow_report",
    "transfer_money",
    "archive_documents",
}
ASKING = {"request_leave"}
"""They ask by themselves."""

FREE = {"get_weather", "draw_chart", "read_document", "get_location"}


@pytest.fixture
def effects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "effects.jsonl"
    monkeypatch.setenv("SLUICEGATE_EFFECTS", str(path))
    return path


def lines(effects: Path) -> list[dict[str, Any]]:
    if not effects.exists():
        return []
    return [json.loads(line) for line in effects.read_text(encoding="utf-8").splitlines()]


async def asks(tool: BaseTool) -> bool:
    context: Any = None
    return await tool.check_require_confirmation({}, context)


async def test_exactly_the_tools_with_effects_require_approval() -> None:
    asking = {tool.name: await asks(tool) for tool in tools.demo_tools()}
    assert asking == dict.fromkeys(GATED, True) | dict.fromkeys(FREE | ASKING, False)


def test_every_tool_has_a_title_and_a_description() -> None:
    for tool in tools.demo_tools():
        title = (tool.custom_metadata or {})["title"]
        assert title == title.strip().capitalize()
        assert not title.endswith(".")
        assert tool.description.endswith(".")
        assert "\n" not in tool.description


def test_only_the_location_tool_runs_in_the_browser() -> None:
    names = [tool.name for tool in tools.demo_tools() if isinstance(tool, ClientTool)]
    assert names == ["get_location"]


@pytest.mark.parametrize("city", ["Tokyo", "tokyo ", "TOKYO"])
def test_the_weather_of_a_known_city(city: str) -> None:
    assert tools.get_weather(city) == {"city": city, "sky": "light rain", "celsius": 21}


def test_an_unknown_city_fails_with_a_public_sentence() -> None:
    with pytest.raises(ToolError) as caught:
        tools.get_weather("Atlantis")
    assert caught.value.message == "There is no weather station in Atlantis."


def test_a_search_has_no_effect(effects: Path) -> None:
    assert tools.search_database("users")["rows"] == 8
    assert lines(effects) == []


def test_an_update_is_recorded_on_one_line(effects: Path) -> None:
    assert tools.update_database("archive", 3) == {"change": "archive", "updated": 3}
    tools.update_database("archive", 4)
    assert lines(effects) == [
        {"tool": "update_database", "args": {"change": "archive", "rows": rows}} for rows in (3, 4)
    ]


def test_a_payment_is_recorded_on_one_line_and_has_a_receipt(effects: Path) -> None:
    paid = tools.process_payment("Ada", 50)
    assert paid == {"recipient": "Ada", "paid": 50, "currency": "EUR", "receipt": "aa6872d1"}
    assert tools.process_payment("Ada", 51)["receipt"] != paid["receipt"]
    first, second = lines(effects)
    assert first == {
        "tool": "process_payment",
        "args": {"recipient": "Ada", "amount": 50, "currency": "EUR"},
    }
    assert second["args"]["amount"] == 51


@pytest.mark.parametrize(
    ("confirmation", "result"),
    [
        (None, {"status": "waiting"}),
        (ToolConfirmation(confirmed=False), {"status": "denied"}),
        (ToolConfirmation(confirmed=True), {"requested": 5, "granted": 5, "note": ""}),
        (
            ToolConfirmation(confirmed=True, payload={"granted_days": 3, "note": "Enjoy."}),
            {"requested": 5, "granted": 3, "note": "Enjoy."},
        ),
    ],
)
def test_leave_is_granted_as_the_approver_says(
    effects: Path, confirmation: ToolConfirmation | None, result: dict[str, Any]
) -> None:
    context = Mock(tool_confirmation=confirmation)
    assert tools.request_leave(5, context) == result
    assert context.request_confirmation.called is (confirmation is None)
    granted = [line["args"]["granted_days"] for line in lines(effects)]
    assert granted == ([result["granted"]] if "granted" in result else [])


def test_effects_are_not_recorded_by_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("SLUICEGATE_EFFECTS", raising=False)
    monkeypatch.chdir(tmp_path)
    tools.process_payment("Ada", 50)
    assert list(tmp_path.iterdir()) == []


def test_a_chart_is_an_image_beside_its_data() -> None:
    drawn = tools.draw_chart("Sales", [1, 2], "red")
    part = drawn.pop("chart")
    assert drawn == {"title": "Sales", "bars": 2}
    assert isinstance(part, types.Part)
    assert part.inline_data is not None
    assert part.inline_data.mime_type == "image/png"
    assert (part.inline_data.data or b"").startswith(b"\x89PNG")


async def test_a_report_takes_the_given_time() -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    report = tools.slow_report(3.0, sleep).func
    assert await report("energy") == {"topic": "energy", "pages": 12}
    assert waited == [3.0]


def test_the_declarations_hold_only_the_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOOGLE_GENAI_USE_VERTEXAI", raising=False)
    declared = {}
    for tool in tools.demo_tools():
        declaration = tool._get_declaration()
        assert declaration is not None
        schema = declaration.parameters_json_schema or {}
        declared[tool.name] = list(schema["properties"])
    assert declared == {
        "get_weather": ["city"],
        "search_database": ["query"],
        "update_database": ["change", "rows"],
        "process_payment": ["recipient", "amount", "currency"],
        "transfer_money": ["recipient", "amount"],
        "archive_documents": ["unread_days"],
        "order_supplies": ["items", "address", "delivery", "shipping", "notify"],
        "request_leave": ["days"],
        "slow_report": ["topic"],
        "draw_chart": ["title", "values", "colour"],
        "read_document": ["source", "return_original"],
        "get_location": ["precise"],
    }


def test_a_transfer_above_a_thousand_needs_a_second_person() -> None:
    def of(amount: float) -> GatedCall:
        arguments = {"recipient": "Landlord", "amount": amount}
        return GatedCall("demo", "local", "chat", "transfer_money", arguments, None)

    assert approvers(of(1_000)) is None
    rule = approvers(of(1_000.01))
    assert rule is not None
    assert (rule.people, rule.quorum) == (("local", FINANCE), 2)


def test_the_preview_shows_what_would_be_archived_and_no_more() -> None:
    archive = DocumentArchive()
    call = GatedCall("demo", "local", "chat", "archive_documents", {"unread_days": 365}, None)
    shown = archive.preview(call)
    assert [row["days unread"] for row in shown] == [1_480, 1_120, 610, 430]
    tool: Any = archive.tool()
    assert tool.func(unread_days=1_000) == {"archived": 2, "left": 4}
    assert len(archive.preview(call)) == 2
