"""A worker's question over each transport: the card, its answer, and the stored message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.engine.stage import calls, part_of, says, scripted
from tests.tools.asking_worker import HELD, SEAT, STATELESS, asking_worker
from tests.transports.conversation import TRANSPORTS, Refused, Transport, conversation


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("era", [HELD, STATELESS])
async def test_a_form_is_asked_answered_and_stored_over_each_transport(
    tmp_path: Path, era: str, transport: Transport
) -> None:
    agent = scripted([calls(("air_book", {})), says("done")])
    with asking_worker(era) as worker:
        options: dict[str, Any] = {"workers": (f"air={worker.url}",)}
        free = ("air_book",)
        async with conversation(
            agent, tmp_path, transport, ungated_worker_tools=free, **options
        ) as talk:
            await talk.say("book")
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


@pytest.mark.parametrize("era", [HELD, STATELESS])
async def test_a_live_call_that_was_approved_cannot_ask(tmp_path: Path, era: str) -> None:
    agent = scripted([calls(("air_book", {})), says("done")])
    with asking_worker(era) as worker:
        async with conversation(agent, tmp_path, "live", workers=(f"air={worker.url}",)) as talk:
            await talk.say("book")
            message = await talk.answer()
            part = part_of(message, "air_book")
            assert "asked for another approval" in part["errorText"]
            if era == HELD:
                assert worker.answers.get(timeout=30)["action"] == "cancel"
