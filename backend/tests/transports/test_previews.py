"""Previews of calls over every transport, on both databases."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import HTTPConnection

from sluicegate import User
from sluicegate.testing.message_comparison import comparable
from sluicegate.tools import Role
from sluicegate.wire.ui_messages import Part, is_tool_part
from tests.engine.stage import scripted
from tests.real_stores.databases import fresh_database
from tests.server.exchange import PATIENCE
from tests.server.test_previews import AGAIN, ONCE, Desk
from tests.transports.conversation import Conversation, Refused, Transport, conversation


@dataclass
class Place:
    """Where a story is played."""

    transport: Transport
    folder: Path
    sessions: str | None

    @contextlib.asynccontextmanager
    async def chat(self, script: Any, *tools: Any, **settings: Any) -> AsyncIterator[Conversation]:
        """A chat of ada with an agent; other people call with their names."""
        stores = {} if self.sessions is None else {"sessions": self.sessions}
        chosen = {"authenticate": people, **stores, **settings}
        agent = scripted(script, tools)
        async with conversation(agent, self.folder, self.transport, **chosen) as talk:
            yield talk


async def people(connection: HTTPConnection) -> User:
    """The person whom a header names; everybody but ada is of finance."""
    name = connection.headers.get("x-user", "ada")
    return User(name, () if name == "ada" else ("finance",))


@pytest.fixture(
    params=[
        ("sse", "sqlite"),
        ("socket", "sqlite"),
        ("live", "sqlite"),
        ("sse", "postgresql"),
        ("live", "postgresql"),
    ],
    ids=" ".join,
)
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    transport, database = request.param
    if database == "sqlite":
        yield Place(transport, tmp_path, None)
        return
    async with fresh_database(request.getfixturevalue("postgres")) as url:
        yield Place(transport, tmp_path, url)


@pytest.fixture
def desk() -> Desk:
    return Desk()


async def decide_on(talk: Conversation, user: str, **body: Any) -> httpx.Response:
    """Decide what waits in the name of a user, beside the chat."""
    path = f"/api/approvals/{(await shown(talk))['approvalId']}"
    headers = {"x-user": user}
    return await talk.http.post(path, json={"approved": True, **body}, headers=headers)


async def shown(talk: Conversation) -> dict[str, Any]:
    """The card of what waits as the inbox has it."""
    [card] = await talk.inbox()
    return card


async def stored(talk: Conversation) -> Any:
    """The last message as the server has it."""
    chat = (await talk.http.get(f"/api/chats/{talk.chat_id}")).json()
    return chat["messages"][-1]


async def until_ready(talk: Conversation) -> list[Part]:
    """The tool parts of the stored message once the chat neither runs nor waits."""
    async with asyncio.timeout(PATIENCE):
        while (await talk.http.get(f"/api/chats/{talk.chat_id}")).json()["status"] != "ready":
            pass
    return [part for part in (await stored(talk))["parts"] if is_tool_part(part)]


def errors(talk: Conversation) -> list[str]:
    return [part["errorText"] for part in talk.messages[-1]["parts"] if part.get("errorText")]


async def test_the_card_shows_the_preview_and_the_approved_call_runs_once(
    place: Place, desk: Desk
) -> None:
    async with place.chat(ONCE, desk.tool()) as talk:
        await talk.say("archive")
        card = talk.card()
        assert card["preview"]["rows"] == [["a.pdf", 31], ["b.pdf", 90]]
        assert (await shown(talk))["digest"] == card["digest"]
        assert (await stored(talk))["parts"] == talk.messages[-1]["parts"]
        await talk.answer(digest=card["digest"])
        assert [days for days, _ in desk.runs] == [30]
        assert comparable(await stored(talk)) == comparable(talk.messages[-1])


async def test_a_call_that_would_do_something_else_does_not_run_and_is_shown_anew(
    place: Place, desk: Desk
) -> None:
    async with place.chat(AGAIN, desk.tool(), release="progressive") as talk:
        await talk.say("archive")
        approved = (await shown(talk))["approvalId"]
        desk.documents.append({"name": "c.pdf", "age": 40})
        await talk.answer()
        assert desk.runs == []
        assert errors(talk) == [
            "Not run: what it would do is not what was approved any more: 1 row is new. "
            "Call it again; the user is asked anew."
        ]
        renewed = talk.card()["preview"]
        assert (len(renewed["rows"]), len(renewed["previous"]["rows"])) == (3, 2)
        assert renewed["previous"]["approvalId"] == approved
        assert (await shown(talk))["preview"] == renewed
        await talk.answer()
        assert [days for days, _ in desk.runs] == [30]
        assert comparable(await stored(talk)) == comparable(talk.messages[-1])


async def test_the_model_asks_anew_twice_by_itself(place: Place, desk: Desk) -> None:
    async with place.chat(AGAIN, desk.tool(), release="progressive") as talk:
        await talk.say("archive")
        for number in range(3):
            assert len(talk.pending()) == 1
            desk.documents.append({"name": f"{number}.pdf", "age": 40})
            await talk.answer()
        assert (talk.pending(), desk.runs) == ([], [])
        assert "has changed each time" in errors(talk)[-1]


async def test_an_edit_is_approved_only_after_its_preview_was_shown(
    place: Place, desk: Desk
) -> None:
    async with place.chat(ONCE, desk.tool()) as talk:
        await talk.say("archive")
        with pytest.raises(Refused) as refused:
            await talk.answer(edits={"days": 60})
        assert refused.value.code == "changed"
        card = await shown(talk)
        assert (card["edits"], card["preview"]["rows"]) == ({"days": 60}, [["b.pdf", 90]])
        assert (card["preview"]["editedBy"], desk.runs) == ("ada", [])
        talk.messages[-1] = await stored(talk)
        assert talk.card()["preview"] == card["preview"]
        with pytest.raises(Refused) as refused:
            await talk.answer()
        assert refused.value.code == "changed"
        talk.messages[-1] = await stored(talk)
        await talk.answer(digest=card["digest"], edits={"days": 60})
        assert [days for days, _ in desk.runs] == [60]


async def test_a_quorum_approves_the_preview_that_it_saw(place: Place, desk: Desk) -> None:
    tool = desk.tool(approvers=["ada", Role("finance")], quorum=2)
    async with place.chat(ONCE, tool) as talk:
        await talk.say("archive")
        seen = (await shown(talk))["digest"]
        await talk.answer(digest=seen)
        assert talk.received[-1]["type"] == "error"
        assert "still needs 1 more yes" in talk.received[-1]["errorText"]
        changed = await decide_on(talk, "bob", digest=seen, edits={"days": 60})
        assert changed.headers["x-error-code"] == "changed"
        card = await shown(talk)
        assert (card["missing"], card["preview"]["rows"]) == (2, [["b.pdf", 90]])
        for user in ("bob", "cat"):
            decided = await decide_on(talk, user, digest=card["digest"])
            assert decided.status_code == 202, decided.text
        [part] = await until_ready(talk)
        assert part["state"] == "output-available"
        assert [days for days, _ in desk.runs] == [60]


async def test_the_last_yes_of_a_quorum_runs_nothing_after_a_change(
    place: Place, desk: Desk
) -> None:
    tool = desk.tool(approvers=Role("finance"), quorum=2)
    async with place.chat(ONCE, tool) as talk:
        await talk.say("archive")
        assert (await decide_on(talk, "bob")).status_code == 202
        desk.documents.clear()
        assert (await decide_on(talk, "cat")).status_code == 202
        [part] = await until_ready(talk)
        assert (part["state"], desk.runs) == ("output-error", [])
        assert "not what was approved any more" in part["errorText"]


async def test_without_a_preview_nothing_can_be_approved(place: Place, desk: Desk) -> None:
    desk.shows = RuntimeError("secret")
    async with place.chat(ONCE, desk.tool()) as talk:
        await talk.say("archive")
        assert talk.card()["preview"]["kind"] == "failed"
        with pytest.raises(Refused) as refused:
            await talk.answer()
        assert refused.value.code == "no_preview"
        assert "secret" not in str(talk.received) + refused.value.sentence
        talk.messages[-1] = await stored(talk)
        await talk.answer(approved=False)
        [part] = await until_ready(talk)
        assert (part["state"], desk.runs) == ("output-denied", [])


async def test_a_preview_that_fails_before_the_claim_refuses_the_call(
    place: Place, desk: Desk
) -> None:
    async with place.chat(ONCE, desk.tool()) as talk:
        await talk.say("archive")
        desk.shows = RuntimeError("gone")
        await talk.answer()
        assert desk.runs == []
        assert "could not be determined" in errors(talk)[0]


async def test_a_confirmation_has_the_preview_and_is_renewed_too(place: Place, desk: Desk) -> None:
    style = {"approval_style": "confirmation", "release": "progressive"}
    async with place.chat(AGAIN, desk.tool(), **style) as talk:
        await talk.say("archive")
        desk.documents.append({"name": "c.pdf", "age": 40})
        await talk.answer()
        assert desk.runs == []
        [part] = talk.pending()
        confirmation = part["input"]["toolConfirmation"]
        assert len(confirmation["preview"]["rows"]) == 3
        assert len(confirmation["preview"]["previous"]["rows"]) == 2
        await talk.answer(digest=confirmation["digest"])
        assert [days for days, _ in desk.runs] == [30]
