"""The rules of an approval that is spoken."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sluicegate.errors import Superseded
from sluicegate.live.options import LiveTimings
from sluicegate.live.spoken_approvals import SpokenApprovals

NOW = LiveTimings(phrase_pause=0.0)


class Chat:
    """A chat with calls that wait, and what was approved of them."""

    def __init__(self, timings: LiveTimings = NOW) -> None:
        self.approved: list[str] = []
        self.waiting = {"call-1", "call-2"}
        self._tasks: set[asyncio.Task[None]] = set()
        context = SimpleNamespace(timings=timings, spawn=self._spawn, approve=self._approve)
        pending = SimpleNamespace(approval_of=self._approval_of)
        self.spoken = SpokenApprovals(cast("Any", context), cast("Any", pending))

    def says(self, text: str, exchange: object = "new", *, is_over: bool = True) -> None:
        self.spoken.heard(cast("Any", exchange), "user", text, is_over)

    def model_says(self, text: str, *, is_over: bool = True) -> None:
        self.spoken.heard(cast("Any", "old"), "assistant", text, is_over)

    def begin(self, call_id: str, phrase: str = "Confirm payment", *earlier: object) -> None:
        self.spoken.begin(call_id, phrase, cast("Any", earlier))

    async def settle(self) -> list[str]:
        """What is approved in the end."""
        # A timer of no seconds fires in the next iteration of the loop, its task in the one after.
        for _ in range(4):
            await asyncio.sleep(0)
        return self.approved

    def _approval_of(self, call_id: str) -> str | None:
        return f"approval of {call_id}" if call_id in self.waiting else None

    def _spawn(self, work: Any) -> None:
        self._tasks.add(asyncio.ensure_future(work))

    async def _approve(self, approval_id: str) -> None:
        if approval_id == "approval of call-2":
            raise Superseded
        self.approved.append(approval_id)


@pytest.mark.parametrize("is_over", [True, False])
@pytest.mark.parametrize("words", ["confirm payment", "Confirm payment.", "  CONFIRM,\nPayment! "])
async def test_the_words_of_the_phrase_approve(words: str, *, is_over: bool) -> None:
    chat = Chat()
    chat.begin("call-1")
    chat.says(words, is_over=is_over)
    assert await chat.settle() == ["approval of call-1"]


@pytest.mark.parametrize(
    "words",
    [
        "yes",
        "confirm",
        "do not confirm payment",
        "confirm payment later",
        "confirm payments",
        "confirmpayment",
        "",
    ],
)
async def test_other_words_do_not(words: str) -> None:
    chat = Chat()
    chat.begin("call-1")
    chat.says(words)
    assert await chat.settle() == []


async def test_an_utterance_that_goes_on_after_the_phrase_does_not() -> None:
    chat = Chat(LiveTimings(phrase_pause=60.0))
    chat.begin("call-1")
    chat.says("confirm payment", is_over=False)
    chat.says("confirm payment tomorrow", is_over=False)
    assert await chat.settle() == []
    chat.says("confirm payment tomorrow")
    assert await chat.settle() == []


async def test_words_that_may_precede_the_request_do_not() -> None:
    chat = Chat()
    chat.begin("call-1", "Confirm payment", "old", "older")
    chat.says("confirm payment", "older")
    chat.says("confirm payment", "old")
    assert await chat.settle() == []
    chat.says("confirm payment", "new")
    assert await chat.settle() == ["approval of call-1"]


async def test_of_two_calls_with_one_phrase_none_is_approved() -> None:
    chat = Chat()
    chat.begin("call-1")
    chat.begin("call-2")
    chat.says("confirm payment")
    assert await chat.settle() == []
    chat.spoken.end("call-2")
    chat.says("confirm payment")
    assert await chat.settle() == ["approval of call-1"]


async def test_each_of_two_calls_has_its_phrase() -> None:
    chat = Chat()
    chat.begin("call-2", "delete the folder")
    chat.begin("call-1")
    chat.says("confirm payment")
    assert await chat.settle() == ["approval of call-1"]


@pytest.mark.parametrize("is_over", [True, False])
@pytest.mark.parametrize("is_before", [True, False])
async def test_a_phrase_that_the_model_says_approves_nothing(
    *, is_before: bool, is_over: bool
) -> None:
    chat = Chat()
    if not is_before:
        chat.begin("call-1")
    chat.model_says("Please say: confirm", is_over=False)
    chat.model_says("Please say: confirm payment, then I pay.", is_over=is_over)
    if is_before:
        chat.begin("call-1")
    chat.says("confirm payment")
    assert await chat.settle() == []


async def test_a_call_that_is_decided_or_gone_is_not_approved_again() -> None:
    chat = Chat()
    chat.begin("call-1")
    chat.waiting.clear()
    chat.says("confirm payment")
    chat.spoken.end("call-1")
    chat.says("confirm payment")
    assert await chat.settle() == []


async def test_nothing_is_approved_after_the_end_of_the_run() -> None:
    chat = Chat()
    chat.begin("call-1")
    chat.says("confirm payment")
    chat.spoken.close()
    assert await chat.settle() == []


async def test_an_approval_that_is_refused_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    chat = Chat()
    chat.begin("call-2")
    chat.says("confirm payment")
    assert await chat.settle() == []
    assert "a spoken approval has no effect: sluicegate.errors.Superseded" in caplog.text
