"""The endpoints of approvals: request validation and calls of the engine."""

from __future__ import annotations

from typing import Any

import pytest

from sluicegate.errors import Superseded, Unknown
from tests.server.exchange import client
from tests.server.fake_engine import FakeEngine, fake_app

NODE = "inv-1:wf_tool_confirmation:wf@1/pay@1:approval"


@pytest.mark.parametrize(
    ("path", "call"),
    [
        ("/api/approvals", ("waiting", "local", 30, None)),
        ("/api/approvals?limit=100&after=abc", ("waiting", "local", 100, "abc")),
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
