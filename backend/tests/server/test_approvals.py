"""The endpoints of approvals: request validation and calls of the engine."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from sluicegate.errors import Superseded, Unknown
from sluicegate.stores.approvals.audit_reading import AuditEntry, HistoryFilter
from sluicegate.stores.approvals.inbox import ALL, ApprovalFilter
from tests.server.exchange import client
from tests.server.fake_engine import FakeEngine, fake_app

NODE = "inv-1:wf_tool_confirmation:wf@1/pay@1:approval"


@pytest.mark.parametrize(
    ("path", "call"),
    [
        ("/api/approvals", ("waiting", "local", 30, None, ALL)),
        ("/api/approvals?state=waiting&tool=", ("waiting", "local", 30, None, ALL)),
        ("/api/approvals?limit=100&after=abc", ("waiting", "local", 100, "abc", ALL)),
        ("/api/approvals?state=unknown", ("unknown", "local", 30, None, ALL)),
        (
            "/api/approvals?tool=pay&agent=shop%2Ftill&olderThan=60",
            ("waiting", "local", 30, None, ApprovalFilter("pay", "shop/till", 60.0)),
        ),
        ("/api/history", ("history", "local", HistoryFilter(), 30, None)),
        (
            "/api/history?q=ada&tool=pay&action=denied&since=1970-01-01T00:01:00Z"
            "&until=1970-01-01T00:02:00%2B00:00&limit=5&after=9",
            ("history", "local", HistoryFilter("ada", "pay", "denied", 60.0, 120.0), 5, "9"),
        ),
        ("/api/history?q=a%00%0A", ("history", "local", HistoryFilter("a\ufffd\n"), 30, None)),
        ("/api/history/verification", ("verify",)),
        ("/api/approvals/adk-1", ("get", "adk-1", "local")),
        ("/api/approvals/inv-1%3Awf%2Fpay%401", ("get", "inv-1:wf/pay@1", "local")),
        (f"/api/approvals/{NODE}", ("get", NODE, "local")),
        ("/api/chats/c1/grants", ("grants", "c1", "local")),
    ],
)
async def test_the_query_reaches_the_engine(
    engine: FakeEngine, path: str, call: tuple[Any, ...]
) -> None:
    async with client(fake_app(engine)) as http:
        response = await http.get(path)
    assert response.status_code == 200
    assert response.headers["cache-control"] == "no-store"
    assert engine.calls == [call]


async def test_a_decision_is_accepted_with_all_its_fields(engine: FakeEngine) -> None:
    said = {"approved": True, "reason": "go on", "edits": {"n": 2}, "remember": "chat"}
    async with client(fake_app(engine)) as http:
        response = await http.post(f"/api/approvals/{NODE}", json=said)
    assert (response.status_code, response.json()) == (202, {"approvalId": NODE})
    assert engine.calls == [("decide", NODE, said, "local", "http")]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/approvals?limit=0", 400),
        ("GET", "/api/approvals?limit=101", 400),
        ("GET", "/api/approvals?limit=many", 400),
        ("GET", "/api/approvals?state=requested", 400),
        ("GET", "/api/approvals?state=", 400),
        ("GET", f"/api/approvals?tool={'x' * 257}", 400),
        ("GET", "/api/approvals?agent=a%00", 400),
        *(
            ("GET", f"/api/approvals?olderThan={age}", 400)
            for age in ("", "-1", "1.5", "1e3", "%D9%A1", "9999999999", "NaN")
        ),
        *(
            ("GET", f"/api/history?{name}={moment}", 400)
            for name in ("since", "until")
            for moment in (
                "",
                "now",
                "2026-01-31",
                "2026-01-31T12:00:00",
            )
        ),
        ("GET", f"/api/history?q={'x' * 257}", 400),
        ("GET", "/api/history/export.csv?since=x", 400),
        ("GET", f"/api/history/export.json?tool={'x' * 257}", 400),
        ("GET", "/api/history?after=a%00", 400),
        ("GET", "/api/history/export.xml", 404),
        ("POST", f"/api/approvals/{'x' * 257}/resolution", 404),
        ("POST", "/api/approvals/a%00b/resolution", 404),
        ("GET", f"/api/approvals?after={'x' * 2_001}", 400),
        ("GET", "/api/approvals/", 404),
        ("GET", f"/api/approvals/{'x' * 257}", 404),
        ("GET", "/api/approvals/a%00b", 404),
        ("GET", "/api/chats/a%20b/grants", 404),
        ("DELETE", f"/api/chats/c1/grants/{'x' * 257}", 404),
        ("DELETE", "/api/chats/c1/grants/a%0Ab", 404),
        ("PUT", "/api/approvals/a1", 405),
        ("POST", "/api/approvals", 405),
    ],
)
async def test_an_id_that_cannot_exist_is_refused(
    engine: FakeEngine, method: str, path: str, status: int
) -> None:
    async with client(fake_app(engine)) as http:
        response = await http.request(method, path)
    assert response.status_code == status
    assert response.text.endswith(".")
    assert engine.calls == []


@pytest.mark.parametrize("body", ["[]", "null", "yes", '{"approved": true, "approved": false}'])
async def test_an_invalid_decision_is_refused(engine: FakeEngine, body: str) -> None:
    headers = {"content-type": "application/json"}
    async with client(fake_app(engine)) as http:
        response = await http.post("/api/approvals/a1", content=body, headers=headers)
    assert (response.status_code, response.headers["x-error-code"]) == (400, "malformed")
    assert engine.calls == []


@pytest.mark.parametrize("error", [Unknown(), Superseded()])
async def test_a_refusal_of_the_engine_is_returned(
    engine: FakeEngine, error: Unknown | Superseded
) -> None:
    engine.refusal = error
    async with client(fake_app(engine)) as http:
        response = await http.post("/api/approvals/a1", json={"approved": True})
    assert (response.status_code, response.headers["x-error-code"]) == (error.status, error.code)


async def test_a_resolution_reaches_the_engine(engine: FakeEngine) -> None:
    said = {"outcome": "executed", "reason": "I looked."}
    async with client(fake_app(engine)) as http:
        response = await http.post(f"/api/approvals/{NODE}/resolution", json=said)
    assert (response.status_code, response.json()) == (200, {"approvalId": NODE})
    assert engine.calls == [("resolve", NODE, said, "local", "http")]


@pytest.mark.parametrize("body", ["[]", "null", '"executed"', "{"])
async def test_an_invalid_resolution_is_refused(engine: FakeEngine, body: str) -> None:
    headers = {"content-type": "application/json"}
    async with client(fake_app(engine)) as http:
        path = "/api/approvals/a1/resolution"
        response = await http.post(path, content=body, headers=headers)
    assert (response.status_code, response.headers["x-error-code"]) == (400, "malformed")
    assert engine.calls == []


def line(number: int, **changed: Any) -> AuditEntry:
    texts = dict.fromkeys(("app", "user", "chat", "invocation", "call", "approval_id"), "x")
    entry: dict[str, Any] = {**texts, "tool": "pay", "action": "denied", "by": "ada", "via": "sse"}
    return AuditEntry(id=number, at=0.0, **{**entry, "reason": None, "args_hash": None, **changed})


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("http://x")']


async def test_an_export_holds_no_formula(engine: FakeEngine) -> None:
    engine.lines = [line(n, reason=each, by=each) for n, each in enumerate(FORMULAS)]
    async with client(fake_app(engine)) as http:
        response = await http.get("/api/history/export.csv")
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert response.headers["content-disposition"] == 'attachment; filename="approvals.csv"'
    rows = list(csv.DictReader(io.StringIO(response.text, newline="")))
    assert [row["reason"] for row in rows] == [f"'{each}" for each in FORMULAS]
    assert [row["by"] for row in rows] == [row["reason"] for row in rows]


async def test_an_export_as_json_has_the_verification_of_the_trail(engine: FakeEngine) -> None:
    engine.lines = [line(n, reason='é\n,"</script>') for n in range(3)]
    async with client(fake_app(engine)) as http:
        response = await http.get("/api/history/export.json")
    exported = response.json()
    assert exported["verification"]["state"] == "intact"
    assert [entry["id"] for entry in exported["entries"]] == [0, 1, 2]
    assert exported["entries"][0]["reason"] == 'é\n,"</script>'


async def test_an_empty_export_is_a_file_too(engine: FakeEngine) -> None:
    async with client(fake_app(engine)) as http:
        table = await http.get("/api/history/export.csv")
        exported = await http.get("/api/history/export.json")
    assert table.text.startswith("id,at,app,user,chat,")
    assert exported.json()["entries"] == []


async def test_an_export_of_many_lines_is_whole(engine: FakeEngine) -> None:
    engine.lines = [line(n) for n in range(1_201)]
    async with client(fake_app(engine)) as http:
        response = await http.get("/api/history/export.csv")
    rows = list(csv.DictReader(io.StringIO(response.text)))
    assert [int(row["id"]) for row in rows] == list(range(1_201))
