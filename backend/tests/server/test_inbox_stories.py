"""The inbox and the history over HTTP with the real engine and two users."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from sluicegate.tools import gated
from tests.engine.stage import calls, says, scripted
from tests.server.page import Page, served

ANN, BOB = {"x-user": "ann"}, {"x-user": "bob"}
TWO = [calls(("pay", {"to": "Ada", "n": 5})), says("done")]
HOSTILE = "<script>alert(1)</script>\u202e=1+1"


def pay(to: str, n: int, currency: str = "EUR") -> dict[str, int]:
    """Pay."""
    return {"paid": n}


def tool() -> Any:
    made = gated(pay, expires=600.0)
    made.custom_metadata = {**(made.custom_metadata or {}), "title": "Send money"}
    return made


def of(http: httpx.AsyncClient, user: dict[str, str]) -> Page:
    """A chat of a user."""
    http.headers.update(user)
    return Page(http)


async def waiting(http: httpx.AsyncClient, user: dict[str, str], **query: Any) -> list[Any]:
    response = await http.get("/api/approvals", params=query, headers=user)
    assert response.status_code == 200, response.text
    listed: list[Any] = response.json()["approvals"]
    return listed


async def test_an_entry_has_all_that_the_card_shows(tmp_path: Path) -> None:
    async with served(scripted(TWO, [tool()]), tmp_path, auth="header:x-user") as http:
        page = of(http, ANN)
        read = await page.say("pay")
        [request] = [chunk for chunk in read if chunk["type"] == "tool-approval-request"]
        [entry] = await waiting(http, ANN)
        card = request["approvalDescriptor"]
        assert entry["approvalId"] == request["approvalId"]
        assert (entry["chatId"], entry["requester"]) == (page.chat_id, "ann")
        assert (entry["tool"], entry["title"], entry["agent"]) == (
            "pay",
            "Send money",
            card["agent"],
        )
        assert entry["arguments"] == {"to": "Ada", "n": 5}
        assert entry["defaults"] == card["defaults"] == {"currency": "EUR"}
        assert (entry["schema"], entry["expiresAt"]) == (card["schema"], card["expiresAt"])
        assert (entry["editable"], entry["decisions"]) == (True, [])
        assert "hint" not in entry
        assert (
            await http.get(f"/api/approvals/{entry['approvalId']}", headers=ANN)
        ).json() == entry


async def test_each_user_sees_the_own_approvals_alone(tmp_path: Path) -> None:
    async with served(scripted(TWO, [tool()]), tmp_path, auth="header:x-user") as http:
        await of(http, ANN).say("pay")
        await of(http, BOB).say("pay")
        [of_ann], [of_bob] = await waiting(http, ANN), await waiting(http, BOB)
        assert of_ann["approvalId"] != of_bob["approvalId"]
        said = {"outcome": "executed", "reason": "mine"}
        for method, path, body in (
            ("GET", "", None),
            ("POST", "", {"approved": True}),
            ("POST", "/resolution", said),
        ):
            answers = []
            for approval_id in (of_ann["approvalId"], "none"):
                url = f"/api/approvals/{approval_id}{path}"
                response = await http.request(method, url, json=body, headers=BOB)
                answers.append((response.status_code, response.text))
            # An approval of somebody else does not exist.
            assert answers[0] == answers[1]
            assert answers[0][0] == 404
        history = (await http.get("/api/history", headers=BOB)).json()["entries"]
        assert {entry["requester"] for entry in history} == {"bob"}
        exported = (await http.get("/api/history/export.csv", headers=BOB)).text
        assert "bob" in exported
        assert "ann" not in exported


async def test_a_list_is_filtered_and_read_page_by_page(tmp_path: Path) -> None:
    async with served(scripted(TWO, [tool()]), tmp_path, auth="header:x-user") as http:
        for _ in range(3):
            await of(http, ANN).say("pay")
        assert len(await waiting(http, ANN, tool="pay")) == 3
        assert await waiting(http, ANN, tool="refund") == []
        assert await waiting(http, ANN, olderThan=3_600) == []
        agent = (await waiting(http, ANN))[0]["agent"]
        assert len(await waiting(http, ANN, agent=agent, olderThan=0)) == 3
        found: list[str] = []
        after: str | None = None
        while True:
            query = {"limit": "2", "tool": "pay"} | ({"after": after} if after else {})
            page = (await http.get("/api/approvals", params=query, headers=ANN)).json()
            found += [entry["approvalId"] for entry in page["approvals"]]
            after = page["next"]
            if after is None:
                break
        assert len(set(found)) == 3


async def test_the_history_is_searched_and_verified(tmp_path: Path) -> None:
    async with served(scripted(TWO, [tool()]), tmp_path, auth="header:x-user") as http:
        page = of(http, ANN)
        await page.say("pay")
        [entry] = await waiting(http, ANN)
        denial = {"approved": False, "reason": HOSTILE}
        url = f"/api/approvals/{entry['approvalId']}"
        decided = (await http.post(url, json=denial, headers=ANN)).json()
        assert [each["by"] for each in decided["decisions"]] == ["ann"]
        assert decided["decisions"][0]["reason"] == HOSTILE

        async def found(**query: str) -> list[str]:
            response = await http.get("/api/history", params=query, headers=ANN)
            return [each["action"] for each in response.json()["entries"]]

        assert await found() == ["denied", "requested"]
        assert await found(q="SCRIPT") == ["denied"]
        assert await found(q="%") == []
        assert await found(q="_") == []
        assert await found(action="requested") == ["requested"]
        assert await found(since="2999-01-01T00:00:00Z") == []
        first = (await http.get("/api/history?limit=1", headers=ANN)).json()
        assert [each["reason"] for each in first["entries"]] == [HOSTILE]
        rest = await http.get(f"/api/history?limit=1&after={first['next']}", headers=ANN)
        assert [each["action"] for each in rest.json()["entries"]] == ["requested"]
        assert rest.json()["next"] is None
        verified = (await http.get("/api/history/verification", headers=ANN)).json()
        assert verified["state"] == "intact"
        exported = json.loads((await http.get("/api/history/export.json", headers=ANN)).text)
        assert exported["verification"] == verified
        assert len(exported["entries"]) == 2


@pytest.mark.parametrize("after", ["0", "-1", "x", "1.5", "9" * 30, "1;DROP TABLE"])
async def test_an_invalid_cursor_of_the_history_is_refused(tmp_path: Path, after: str) -> None:
    async with served(scripted(TWO, [tool()]), tmp_path, auth="header:x-user") as http:
        response = await http.get("/api/history", params={"after": after}, headers=ANN)
        assert (response.status_code, response.headers["x-error-code"]) == (404, "unknown")
