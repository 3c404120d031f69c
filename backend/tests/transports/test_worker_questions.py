"""A worker's question over each transport: the card, its answer, and the stored message."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.engine.stage import calls, part_of, says, scripted
from tests.parts import long_table
from tests.tools.asking_worker import HELD, SEAT, STATELESS, asking_worker
from tests.transports.conversation import TRANSPORTS, Refused, Transport, conversation


@long_table
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("era", [HELD, STATELESS])
@pytest.mark.parametrize("gated", [False, True], ids=["free", "gated"])
async def test_a_form_is_asked_answered_and_stored_over_each_transport(
    tmp_path: Path, era: str, transport: Transport, *, gated: bool
) -> None:
    agent = scripted([calls(("air_book", {})), says("done")])
    with asking_worker(era) as worker:
        options: dict[str, Any] = {"workers": (f"air={worker.url}",)}
        free = () if gated else ("air_book",)
        async with conversation(
            agent, tmp_path, transport, ungated_worker_tools=free, **options
        ) as talk:
            await talk.say("book")
            if gated:
                assert (talk.card().get("payload"), worker.calls) == (None, [])
                await talk.answer()
            card = talk.card()
            assert card["payload"] == {"seat": None, "meals": 1}
            assert card["payloadSchema"] == SEAT["params"]["requestedSchema"]
            [asked] = talk.pending()
            with pytest.raises(Refused, match="does not fit the form"):
                await talk.answer(payload={"seat": "Z9"})
            asked["state"] = "approval-requested"
            message = await talk.answer(payload={"seat": "A1"})
            output = part_of(message, "air_book")["output"]
            assert output == {"booked": [{"seat": "A1", "meals": 1}]}


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("era", [HELD, STATELESS])
async def test_a_form_of_an_approved_call_that_is_denied_is_declined(
    tmp_path: Path, era: str, transport: Transport
) -> None:
    agent = scripted([calls(("air_book", {})), says("done")])
    with asking_worker(era) as worker:
        async with conversation(agent, tmp_path, transport, workers=(f"air={worker.url}",)) as talk:
            await talk.say("book")
            await talk.answer()
            message = await talk.answer(approved=False)
            assert part_of(message, "air_book")["state"] == "output-denied"
            if era == HELD:
                answer = await asyncio.to_thread(worker.answers.get, timeout=30)
                assert answer["action"] == "decline"


@long_table
@pytest.mark.parametrize("after", TRANSPORTS)
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_form_of_an_approved_call_is_answered_after_a_restart(
    tmp_path: Path, transport: Transport, after: Transport
) -> None:
    agent = scripted([calls(("air_twice", {})), says("done")])
    with asking_worker(STATELESS) as worker:
        options: dict[str, Any] = {"workers": (f"air={worker.url}",)}
        async with conversation(agent, tmp_path, transport, **options) as talk:
            await talk.say("book")
            await talk.answer()
            await talk.answer(payload={"seat": "A1", "meals": 1})
        async with conversation(agent, tmp_path, after, **options) as talk:
            chat = (await talk.http.get("/api/chats/c1")).json()
            talk.messages = chat["messages"]
            assert talk.card()["payload"] == {"name": "Ann"}
            message = await talk.answer()
            assert part_of(message, "air_twice")["state"] == "output-available"
