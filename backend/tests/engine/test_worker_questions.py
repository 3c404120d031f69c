"""Questions of workers in a turn: both styles, and crashes between the steps of a question."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.testing.message_comparison import comparable
from tests.engine.stage import calls, part_of, says, scripted
from tests.engine.talk import Talk
from tests.engine.test_asked_again import WIRE, approve_until
from tests.parts import long_table
from tests.tools.asking_worker import HELD, SEAT, STATELESS, AskingWorker, asking_worker

if TYPE_CHECKING:
    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.engine.chat_engine import ChatEngine
    from tests.engine.stage import Open

    OpenEngine = Callable[..., AbstractAsyncContextManager[ChatEngine]]

ERAS = pytest.mark.parametrize("worker", [HELD, STATELESS], indirect=True)
SCRIPT = [calls(("air_book", {})), says("done")]
BOOKED = {"booked": [{"seat": "A1", "meals": 1}]}


@pytest.fixture
def worker(request: pytest.FixtureRequest) -> Iterator[AskingWorker]:
    with asking_worker(request.param) as started:
        yield started


@ERAS
@WIRE
async def test_a_form_is_shown_and_answered_in_both_styles(
    open_stage: Open, worker: AskingWorker, release: ReleasePolicy, style: str
) -> None:
    engine = await open_stage(
        scripted(SCRIPT), workers=(f"air={worker.url}",), approval_style=style
    )
    talk = Talk(engine, release)
    await talk.say("book")
    await talk.approve()
    [part] = talk.pending()
    card: dict[str, Any] = part["approval"]["descriptor"]
    if style == "confirmation":
        card = part["input"]["toolConfirmation"]
    assert card["payload"] == {"seat": None, "meals": 1}
    assert card["payloadSchema"] == SEAT["params"]["requestedSchema"]
    assert comparable(await talk.history()) == comparable(talk.messages[-1])
    turn = await talk.approve(payload={part["approval"]["id"]: {"seat": "A1"}})
    assert part_of(turn.message, "air_book")["output"] == BOOKED
    assert comparable(await talk.history()) == comparable(turn.message)


CUTS = ("claimed", "asked again", "response stored", "request stored")


@long_table
@pytest.mark.parametrize("is_idempotent", [False, True], ids=["once", "idempotent"])
@pytest.mark.parametrize("cut", CUTS)
@ERAS
async def test_a_crash_around_a_question_repeats_no_call_that_may_have_had_an_effect(
    open_engine: OpenEngine, worker: AskingWorker, cut: str, *, is_idempotent: bool
) -> None:
    options: dict[str, Any] = {"workers": (f"air={worker.url}",)}
    if is_idempotent:
        options["idempotent_worker_tools"] = ("air_book",)
    async with open_engine(scripted(SCRIPT), **options) as engine:
        talk = Talk(engine)
        await talk.say("book")
        sent = await approve_until(engine, talk, cut)
    async with open_engine(scripted(SCRIPT), **options) as engine:
        talk.engine, talk.messages = engine, [*talk.messages[:1], sent]
        talk.messages[-1] = await talk.history()
        if not talk.pending():
            turn = await talk.post_last()
        if talk.pending():
            [part] = talk.pending()
            turn = await talk.approve(payload={part["approval"]["id"]: {"seat": "A1"}})
        part = part_of(turn.message, "air_book")
        has_state = worker.era == STATELESS and cut in ("response stored", "request stored")
        if has_state or is_idempotent:
            assert part["output"] == BOOKED
        else:
            assert "not known" in part["errorText"] or "unknown" in part["errorText"]
            assert len(worker.calls) == 1


@pytest.mark.parametrize("worker", [HELD], indirect=True)
async def test_a_call_that_was_closed_for_its_question_ends_at_its_worker(
    open_stage: Open, worker: AskingWorker
) -> None:
    # The limit counts the first approval, so the question is one too many.
    engine = await open_stage(
        scripted(SCRIPT), workers=(f"air={worker.url}",), max_requests_per_exchange=1
    )
    talk = Talk(engine)
    await talk.say("book")
    turn = await talk.approve()
    assert "too many approvals" in part_of(turn.message, "air_book")["errorText"]
    answer = await asyncio.to_thread(worker.answers.get, timeout=30)
    assert answer["action"] == "cancel"
