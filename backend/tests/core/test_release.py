"""What each release shows, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluicegate.core.release.deferred import DeferredBuffer
from sluicegate.core.release.progressive import ProgressiveBuffer
from sluicegate.core.signals import TextSignal
from sluicegate.wire.chunks import TextDeltaChunk, TextEndChunk, TextStartChunk
from tests.core.signal_factory import (
    ask,
    call,
    failed,
    file,
    no,
    reasoning,
    refused,
    result,
    shapes,
    step,
    text,
    yes,
)

if TYPE_CHECKING:
    from sluicegate.core.release.base import ReleaseBuffer
    from sluicegate.core.signals import Signal

TEXT_T = ["text-start t", "text-delta t", "text-end t"]
TEXT_U = ["text-start u", "text-delta u", "text-end u"]
REASONING_R = ["reasoning-start r", "reasoning-delta r", "reasoning-end r"]


def announced(name: str) -> list[str]:
    return [f"tool-input-start {name}", f"tool-input-available {name}"]


def ran_unasked(name: str) -> list[str]:
    return [f"tool-input-start {name}", f"tool-input-available {name}*"]


def a_step(*inner: list[str] | str) -> list[str]:
    flat: list[str] = []
    for words in inner:
        flat.extend([words] if isinstance(words, str) else words)
    return ["start-step", *flat, "finish-step"]


EMPTY_STEP = ["start-step", "finish-step"]


def waits(gate: ReleaseBuffer, signals: list[Signal]) -> list[str]:
    chunks = gate.feed_all(signals)
    assert gate.is_waiting
    return shapes([*chunks, *gate.pause()])


def ends(gate: ReleaseBuffer, signals: list[Signal]) -> list[str]:
    chunks = gate.feed_all(signals)
    assert not gate.is_waiting
    return shapes([*chunks, *gate.finish()])


def test_deferred_holds_text_and_results_until_the_last_approval() -> None:
    gate = DeferredBuffer("call")
    first = waits(gate, [*step(text("t"), call("a")), ask("a")])
    assert first == a_step(announced("a"), "tool-approval-request a")
    second = waits(gate, [result("a"), *step(call("b")), ask("b")])
    assert second == a_step(announced("b"), "tool-approval-request b")
    gate.feed_all([yes("a"), yes("b")])
    last = ends(gate, [result("b"), file("f"), *step(reasoning("r"), text("u"))])
    outputs = ["tool-output-available a", "tool-output-available b"]
    assert last == a_step(REASONING_R, TEXT_T, TEXT_U, outputs, "file f")


def test_deferred_shows_a_held_block_in_one_piece() -> None:
    gate = DeferredBuffer("call")
    pieces: list[Signal] = [TextSignal(TextStartChunk(id="t")), TextSignal(TextEndChunk(id="t"))]
    pieces[1:1] = [TextSignal(TextDeltaChunk(id="t", delta=delta)) for delta in ("a ", "b ", "c")]
    chunks = [*gate.feed_all(step(pieces, text("u"))), *gate.finish()]
    assert shapes(chunks) == a_step(TEXT_T, TEXT_U)
    assert [c.delta for c in chunks if isinstance(c, TextDeltaChunk)] == ["a b c", "u"]


def test_deferred_puts_what_ran_unasked_into_a_step_of_its_own_before_the_gate() -> None:
    gate = DeferredBuffer("call")
    signals = [*step(reasoning("r"), call("free", "free"), call("a")), result("free"), ask("a")]
    assert waits(gate, signals) == [
        *a_step(REASONING_R, ran_unasked("free")),
        *a_step(announced("a"), "tool-approval-request a"),
    ]


def test_deferred_announces_a_call_only_once_all_calls_of_its_step_are_known() -> None:
    gate = DeferredBuffer("call")
    assert shapes(gate.feed_all(step(call("maybe", "conditional"), call("a")))) == []
    assert shapes(gate.feed(ask("a"))) == []
    assert shapes([*gate.feed(ask("maybe")), *gate.pause()]) == a_step(
        announced("maybe"), announced("a"), "tool-approval-request maybe", "tool-approval-request a"
    )


def test_deferred_ends_an_answer_without_words_with_an_empty_step_when_it_shows_a_tool() -> None:
    gate = DeferredBuffer("call")
    words = ends(gate, [*step(call("free", "free")), result("free")])
    assert words == [*a_step(ran_unasked("free"), "tool-output-available free"), *EMPTY_STEP]


@pytest.mark.parametrize(
    ("outcome", "word"),
    [
        (refused, "tool-output-denied a"),
        (failed, "tool-output-error a"),
        (result, "tool-output-available a"),
    ],
)
def test_every_outcome_is_told_in_the_last_step(outcome: object, word: str) -> None:
    assert callable(outcome)
    gate = DeferredBuffer("call")
    waits(gate, [*step(call("a")), ask("a")])
    gate.feed_all([no("a")])
    assert ends(gate, [outcome("a"), *step(text("t"))]) == a_step(TEXT_T, word)


def test_style_confirmation_shows_the_original_call_only_with_its_outcome() -> None:
    gate = DeferredBuffer("confirmation")
    first = waits(gate, [*step(call("a")), ask("a")])
    assert first == a_step(announced("ask-a"), "tool-approval-request ask-a")
    gate.feed_all([yes("a")])
    assert ends(gate, [result("a"), *step(text("t"))]) == [
        *a_step(TEXT_T),
        *a_step(announced("a"), "tool-output-available a", "tool-output-available ask-a"),
        *EMPTY_STEP,
    ]


def test_style_confirmation_ends_a_denied_original_with_an_error() -> None:
    gate = DeferredBuffer("confirmation")
    waits(gate, [*step(call("a")), ask("a")])
    gate.feed_all([no("a")])
    assert ends(gate, [refused("a"), *step(text("t"))]) == [
        *a_step(TEXT_T),
        *a_step(announced("a"), "tool-output-error a", "tool-output-denied ask-a"),
        *EMPTY_STEP,
    ]


def test_preview_shows_text_and_takes_it_back_at_the_first_sign_of_a_tool() -> None:
    gate = DeferredBuffer("call")
    gate.preview = True
    words = waits(gate, [*step(reasoning("r"), text("t"), call("a")), ask("a")])
    assert words == a_step(
        REASONING_R, TEXT_T, "reset-step", REASONING_R, announced("a"), "tool-approval-request a"
    )
    gate.feed_all([yes("a")])
    shown = ends(gate, [result("a"), *step(text("u"))])
    assert shown == a_step(TEXT_T, TEXT_U, "tool-output-available a")


def test_preview_and_deferred_rest_in_the_same_message() -> None:
    signals = [*step(text("t"), reasoning("r"), text("u"))]
    shown, held = DeferredBuffer("call"), DeferredBuffer("call")
    shown.preview = True
    after_reset = ends(shown, signals)
    assert after_reset[after_reset.index("reset-step") + 1 :] == ends(held, signals)[1:]


def test_progressive_shows_everything_as_it_comes() -> None:
    gate = ProgressiveBuffer("call")
    first = waits(
        gate, [*step(text("t"), call("free", "free"), call("a")), result("free"), ask("a")]
    )
    assert first == a_step(
        TEXT_T,
        ran_unasked("free"),
        announced("a"),
        "tool-output-available free",
        "tool-approval-request a",
    )
    gate.feed_all([yes("a")])
    last = ends(gate, [result("a"), *step(text("u"))])
    assert last == ["tool-output-available a", *a_step(TEXT_U)]


def test_progressive_never_leaves_a_finished_tool_in_the_last_step() -> None:
    gate = ProgressiveBuffer("call")
    words = ends(gate, [*step(call("free", "free")), result("free")])
    assert words == [*a_step(ran_unasked("free"), "tool-output-available free"), *EMPTY_STEP]


def test_progressive_announces_a_call_that_may_ask_once_it_has_settled_or_asked() -> None:
    gate = ProgressiveBuffer("call")
    assert shapes(gate.feed_all(step(call("maybe", "conditional")))) == []
    assert shapes(gate.feed(result("maybe"))) == [
        "start-step",
        *ran_unasked("maybe"),
        "tool-output-available maybe",
    ]
    assert shapes(gate.feed_all([*step(call("other", "conditional")), ask("other")])) == [
        "finish-step",
        "start-step",
        *announced("other"),
        "tool-approval-request other",
    ]


@pytest.mark.parametrize("gate", [DeferredBuffer("call"), ProgressiveBuffer("call")])
def test_a_call_that_never_ended_is_closed_when_the_exchange_ends(gate: ReleaseBuffer) -> None:
    gate.feed_all(step(call("free", "free")))
    assert "tool-output-error free" in shapes(gate.finish())


@pytest.mark.parametrize("gate", [DeferredBuffer("call"), ProgressiveBuffer("call")])
def test_a_client_side_call_waits_for_the_browser(gate: ReleaseBuffer) -> None:
    words = waits(gate, step(call("here", "client")))
    assert words == a_step(announced("here"))
