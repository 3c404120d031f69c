"""Workers that ask a person on the way: each form is a card, and its answer reaches the worker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine.loop_time import LoopTime
from tests.engine.stage import calls, says, scripted
from tests.server.page import Page, served
from tests.server.test_workers import TOKEN, bearer, known
from tests.tools.asking_worker import (
    HELD,
    SEAT,
    STATELESS,
    AskingWorker,
    asking_worker,
)

PATIENCE = 30.0
ERAS = pytest.mark.parametrize("worker", [HELD, STATELESS], indirect=True)
LOST = (
    "The connection to the worker air ended while its question waited; "
    "whether the call took effect is not known."
)


@pytest.fixture
def worker(request: pytest.FixtureRequest) -> Iterator[AskingWorker]:
    with asking_worker(request.param) as started:
        yield started


def script(tool: str) -> list[Any]:
    return [calls((f"air_{tool}", {})), says("done")]


def settings(worker: AskingWorker, **more: Any) -> dict[str, Any]:
    return {"workers": (f"air={worker.url}",), **more}


async def answer_to(worker: AskingWorker) -> dict[str, Any]:
    """What the worker got next."""
    return await asyncio.to_thread(worker.answers.get, timeout=PATIENCE)


def outputs(read: list[dict[str, Any]]) -> list[Any]:
    return [chunk["output"] for chunk in read if chunk["type"] == "tool-output-available"]


def errors(read: list[dict[str, Any]]) -> list[str]:
    return [chunk["errorText"] for chunk in read if chunk["type"] == "tool-output-error"]


async def filled_in(page: Page, values: dict[str, Any]) -> list[dict[str, Any]]:
    """Approve the pending part with the fields of its form."""
    [approval_id] = page.asks()
    return await page.answer(payload={approval_id: values})


def states(message: Any) -> list[str]:
    return [approval["state"] for approval in message["metadata"]["approvals"].values()]


@ERAS
async def test_a_form_of_a_worker_is_a_card_whose_answer_is_checked_and_reaches_it(
    tmp_path: Path, worker: AskingWorker
) -> None:
    async with served(scripted(script("book")), tmp_path, **settings(worker)) as http:
        page = Page(http)
        await page.say("book")
        assert worker.calls == []
        await page.answer()
        [part] = page.pending()
        approval = part["approval"]
        assert approval["requestReason"] == "The worker air asks: Which seat?"
        descriptor = approval["descriptor"]
        assert descriptor["payload"] == {"seat": None, "meals": 1}
        assert descriptor["payloadSchema"] == SEAT["params"]["requestedSchema"]
        [listed] = (await http.get("/api/approvals")).json()["approvals"]
        assert listed["payload"] == descriptor["payload"]
        assert listed["payloadSchema"] == descriptor["payloadSchema"]
        refused: list[tuple[dict[str, Any] | None, str]] = [
            (None, "'seat' is a required property"),
            ({"seat": "Z9"}, "seat: 'Z9' does not match"),
            ({"seat": "A1", "meals": 4}, "meals: 4 is greater than the maximum of 3"),
            ({"seat": "A1", "row": 4}, "must be an object with seat, meals."),
        ]
        for payload, sentence in refused:
            staged = {} if payload is None else {"payload": payload}
            url = f"/api/approvals/{listed['approvalId']}"
            answer = await http.post(url, json={"approved": True, **staged})
            assert answer.status_code == 400
            assert sentence in answer.text
        read = await filled_in(page, {"seat": "A1", "meals": None})
        booked = {"booked": [{"seat": "A1"}]}
        assert outputs(read) == [booked]
        assert await answer_to(worker) == {"action": "accept", "content": {"seat": "A1"}}
        assert worker.offered["elicitation"] == {"form": {}}
        assert {"sampling", "roots"}.isdisjoint(worker.offered)
        stored = await page.history()
        assert states(stored) == ["asked_again", "executed"]
        trace = stored["metadata"]["approvals"][listed["approvalId"]]
        assert trace["editedPayload"] == {"seat": "A1", "meals": None}
        assert "sluicegate/form" not in str(stored)
        assert "requestState" not in str(stored)


@ERAS
async def test_each_question_of_a_worker_is_a_card(tmp_path: Path, worker: AskingWorker) -> None:
    free = settings(worker, ungated_worker_tools=("air_twice",))
    async with served(scripted(script("twice")), tmp_path, **free) as http:
        page = Page(http)
        await page.say("book")
        await filled_in(page, {"seat": "B2", "meals": 0})
        [part] = page.pending()
        assert part["approval"]["descriptor"]["payload"] == {"name": "Ann"}
        read = await page.answer()
        assert outputs(read) == [{"booked": [{"seat": "B2", "meals": 0}, {"name": "Ann"}]}]
    assert len(worker.calls) == (1 if worker.era == HELD else 3)


async def restarted_before_the_answer(
    tmp_path: Path, worker: AskingWorker, **more: Any
) -> list[dict[str, Any]]:
    """Answer the first question of ``twice``, restart the server, and answer the second."""
    async with served(scripted(script("twice")), tmp_path, **settings(worker, **more)) as http:
        page = Page(http)
        await page.say("book")
        await page.answer()
        await filled_in(page, {"seat": "C3"})
    async with served(scripted([says("done")]), tmp_path, **settings(worker, **more)) as http:
        page.http = http
        return await filled_in(page, {"name": "Bo"})


@pytest.mark.parametrize("worker", [STATELESS], indirect=True)
async def test_a_question_with_a_state_survives_a_restart(
    tmp_path: Path, worker: AskingWorker
) -> None:
    read = await restarted_before_the_answer(tmp_path, worker)
    assert outputs(read) == [{"booked": [{"seat": "C3", "meals": 1}, {"name": "Bo"}]}]
    assert len(worker.calls) == 3


@pytest.mark.parametrize("worker", [HELD], indirect=True)
async def test_a_call_that_waited_in_a_process_that_ended_is_not_made_again(
    tmp_path: Path, worker: AskingWorker
) -> None:
    read = await restarted_before_the_answer(tmp_path, worker)
    assert errors(read) == [LOST]
    assert len(worker.calls) == 1


@pytest.mark.parametrize("worker", [HELD], indirect=True)
async def test_an_idempotent_call_is_made_again_with_the_answers_that_it_had(
    tmp_path: Path, worker: AskingWorker
) -> None:
    again = {"idempotent_worker_tools": ("air_twice",)}
    read = await restarted_before_the_answer(tmp_path, worker, **again)
    assert outputs(read) == [{"booked": [{"seat": "C3", "meals": 1}, {"name": "Bo"}]}]
    first, second = (call["_meta"]["sluicegate/call"]["key"] for call in worker.calls)
    assert first == second


async def deny(page: Page) -> None:
    await page.answer(approved=False)


async def say_more(page: Page) -> None:
    await page.say("never mind")


@pytest.mark.parametrize(("end", "action"), [(deny, "decline"), (say_more, "cancel")])
@pytest.mark.parametrize("worker", [HELD], indirect=True)
async def test_a_no_declines_a_question_and_a_new_message_cancels_it(
    tmp_path: Path, worker: AskingWorker, end: Any, action: str
) -> None:
    said = [calls(("air_book", {})), says("as you like")]
    async with served(scripted(said), tmp_path, **settings(worker)) as http:
        page = Page(http)
        await page.say("book")
        await page.answer()
        await end(page)
        assert (await answer_to(worker))["action"] == action


@pytest.mark.parametrize("worker", [STATELESS], indirect=True)
async def test_a_denied_question_makes_no_other_call(tmp_path: Path, worker: AskingWorker) -> None:
    async with served(scripted(script("book")), tmp_path, **settings(worker)) as http:
        page = Page(http)
        await page.say("book")
        await page.answer()
        read = await page.answer(approved=False)
        assert "tool-output-denied" in [chunk["type"] for chunk in read]
    assert len(worker.calls) == 1


@pytest.mark.parametrize(
    ("tool", "sentence"),
    [
        ("sample", "This server gives no answers of a model (sampling) to workers."),
        ("roots", "This server has no folders (roots) for workers."),
        ("url", "This server shows forms to its users and opens no URLs for workers."),
    ],
)
@ERAS
async def test_what_else_a_worker_asks_for_is_refused_in_one_sentence(
    tmp_path: Path, worker: AskingWorker, tool: str, sentence: str
) -> None:
    async with served(scripted(script(tool)), tmp_path, **settings(worker)) as http:
        page = Page(http)
        await page.say("go")
        read = await page.answer()
    if worker.era == HELD:
        assert outputs(read) == [{"booked": [sentence]}]
    else:
        assert errors(read) == [f"Not finished by the worker air: {sentence}"]


@ERAS
async def test_a_form_with_a_field_that_is_no_simple_one_is_refused(
    tmp_path: Path, worker: AskingWorker
) -> None:
    async with served(scripted(script("nested")), tmp_path, **settings(worker)) as http:
        page = Page(http)
        await page.say("go")
        read = await page.answer()
    assert "the field all is no simple one" in str(outputs(read) or errors(read))
    assert page.asks() == []


@pytest.mark.parametrize("worker", [HELD], indirect=True)
async def test_the_time_of_a_person_is_not_that_of_the_worker(
    tmp_path: Path, worker: AskingWorker
) -> None:
    patient = settings(worker, worker_timeout=20.0)
    async with served(scripted(script("book")), tmp_path, **patient) as http:
        page = Page(http)
        await page.say("book")
        await page.answer()
        with LoopTime.of_running_loop() as time:
            time.advance(60)
            read = await filled_in(page, {"seat": "D4"})
    assert outputs(read) == [{"booked": [{"seat": "D4", "meals": 1}]}]


@pytest.mark.parametrize("worker", [STATELESS], indirect=True)
@pytest.mark.parametrize("extra", [{"edits": {"n": 1}}, {"remember": "chat"}])
async def test_an_approval_of_a_form_changes_no_arguments_and_is_not_remembered(
    tmp_path: Path, worker: AskingWorker, extra: dict[str, Any]
) -> None:
    async with served(
        scripted(script("book")),
        tmp_path,
        rememberable_tools=("air_book",),
        **settings(worker, ungated_worker_tools=("air_book",)),
    ) as http:
        page = Page(http)
        await page.say("book")
        [card] = (await http.get("/api/approvals")).json()["approvals"]
        assert (card["editable"], card["rememberable"]) == (False, False)
        answer = await http.post(
            f"/api/approvals/{card['approvalId']}",
            json={"approved": True, "payload": {"seat": "A1"}, **extra},
        )
        assert (answer.status_code, worker.calls[1:]) == (400, [])
        assert "is a form; answer it with a payload alone" in answer.text


@pytest.mark.parametrize("worker", [HELD], indirect=True)
async def test_a_worker_that_renews_its_registration_keeps_its_calls(
    tmp_path: Path, worker: AskingWorker
) -> None:
    shop = {"name": "shop", "url": worker.url}
    agent = scripted([calls(("shop_book", {})), says("done")])
    async with served(agent, tmp_path, worker_registrations=known(tmp_path)) as http:
        await http.post("/api/workers", json=shop, headers=bearer(TOKEN))
        page = Page(http)
        await page.say("book")
        await page.answer()
        renewed = await http.post("/api/workers", json=shop, headers=bearer(TOKEN))
        assert renewed.status_code == 200
        read = await filled_in(page, {"seat": "A1"})
        assert outputs(read) == [{"booked": [{"seat": "A1", "meals": 1}]}]
