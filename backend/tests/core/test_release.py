"""What each release policy shows, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluicegate.core.release.deferred import DeferredBuffer
from sluicegate.core.release.progressive import ProgressiveBuffer
from sluicegate.core.signals import Answered, Outcome, Settled, TextSignal
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
    from collections.abc import Callable, Sequence

    from pydantic import JsonValue

    from sluicegate.core.release.base import ApprovalStyle, ReleaseBuffer
    from sluicegate.core.signals import Signal
    from sluicegate.wire.chunks import BaseChunk

TEXT_T = ["text-start t", "text-delta t", "text-end t"]
TEXT_U = ["text-start u", "text-delta u", "text-end u"]
REASONING_R = ["reasoning-start r", "reasoning-delta r", "reasoning-end r"]


def announced(name: str) -> list[str]:
    return [f"tool-input-start {name}", f"tool-input-available {name}"]


def provider_executed(name: str) -> list[str]:
    return [f"tool-input-start {name}", f"tool-input-available {name}*"]


def a_step(*inner: list[str] | str) -> list[str]:
    flat: list[str] = []
    for words in inner:
        flat.extend([words] if isinstance(words, str) else words)
    return ["start-step", *flat, "finish-step"]


EMPTY_STEP = ["start-step", "finish-step"]


def waits(buffer: ReleaseBuffer, signals: list[Signal]) -> list[str]:
    chunks = buffer.feed_all(signals)
    assert buffer.is_waiting
    return shapes([*chunks, *buffer.pause()])


def ends(buffer: ReleaseBuffer, signals: list[Signal]) -> list[str]:
    chunks = buffer.feed_all(signals)
    assert not buffer.is_waiting
    return shapes([*chunks, *buffer.finish()])


def test_deferred_holds_text_and_results_until_the_last_approval() -> None:
    buffer = DeferredBuffer("call")
    first = waits(buffer, [*step(text("t"), call("a")), ask("a")])
    assert first == a_step(announced("a"), "tool-approval-request a")
    second = waits(buffer, [result("a"), *step(call("b")), ask("b")])
    assert second == a_step(announced("b"), "tool-approval-request b")
    buffer.feed_all([yes("a"), yes("b")])
    last = ends(buffer, [result("b"), file("f"), *step(reasoning("r"), text("u"))])
    outputs = ["tool-output-available a", "tool-output-available b"]
    assert last == a_step(REASONING_R, TEXT_T, TEXT_U, outputs, "file f")


def test_deferred_flushes_a_held_block_as_one_delta() -> None:
    buffer = DeferredBuffer("call")
    pieces: list[Signal] = [TextSignal(TextStartChunk(id="t")), TextSignal(TextEndChunk(id="t"))]
    pieces[1:1] = [TextSignal(TextDeltaChunk(id="t", delta=delta)) for delta in ("a ", "b ", "c")]
    chunks = [*buffer.feed_all(step(pieces, text("u"))), *buffer.finish()]
    assert shapes(chunks) == a_step(TEXT_T, TEXT_U)
    assert [c.delta for c in chunks if isinstance(c, TextDeltaChunk)] == ["a b c", "u"]


def test_deferred_puts_free_calls_into_a_step_before_the_approval_requests() -> None:
    buffer = DeferredBuffer("call")
    signals = [*step(reasoning("r"), call("free", "free"), call("a")), result("free"), ask("a")]
    assert waits(buffer, signals) == [
        *a_step(REASONING_R, provider_executed("free")),
        *a_step(announced("a"), "tool-approval-request a"),
    ]


def test_deferred_announces_a_call_only_once_all_calls_of_its_step_are_known() -> None:
    buffer = DeferredBuffer("call")
    assert shapes(buffer.feed_all(step(call("maybe", "conditional"), call("a")))) == []
    assert shapes(buffer.feed(ask("a"))) == []
    assert shapes([*buffer.feed(ask("maybe")), *buffer.pause()]) == a_step(
        announced("maybe"), announced("a"), "tool-approval-request maybe", "tool-approval-request a"
    )


def test_deferred_ends_an_answer_without_text_with_an_empty_step_after_a_tool() -> None:
    buffer = DeferredBuffer("call")
    words = ends(buffer, [*step(call("free", "free")), result("free")])
    assert words == [*a_step(provider_executed("free"), "tool-output-available free"), *EMPTY_STEP]


@pytest.mark.parametrize(
    ("outcome", "word"),
    [
        (refused, "tool-output-denied a"),
        (failed, "tool-output-error a"),
        (result, "tool-output-available a"),
    ],
)
def test_every_outcome_is_in_the_last_step(outcome: object, word: str) -> None:
    assert callable(outcome)
    buffer = DeferredBuffer("call")
    waits(buffer, [*step(call("a")), ask("a")])
    buffer.feed_all([no("a")])
    assert ends(buffer, [outcome("a"), *step(text("t"))]) == a_step(TEXT_T, word)


def test_style_confirmation_shows_the_original_call_only_with_its_outcome() -> None:
    buffer = DeferredBuffer("confirmation")
    first = waits(buffer, [*step(call("a")), ask("a")])
    assert first == a_step(announced("ask-a"), "tool-approval-request ask-a")
    buffer.feed_all([yes("a")])
    assert ends(buffer, [result("a"), *step(text("t"))]) == [
        "tool-input-available ask-a*",
        *a_step(TEXT_T),
        *a_step(announced("a"), "tool-output-available a", "tool-output-available ask-a"),
        *EMPTY_STEP,
    ]


@pytest.mark.parametrize("decision", [yes, no])
def test_style_confirmation_announces_a_decided_part_again_before_the_next_step(
    decision: Callable[[str], Signal],
) -> None:
    buffer = DeferredBuffer("confirmation")
    waits(buffer, [*step(call("a")), ask("a")])
    buffer.feed_all([decision("a")])
    assert [chunk.tool_call_id for chunk in buffer.repeated_inputs] == ["ask-a"]
    second = waits(buffer, [result("a"), *step(reasoning("r"), call("b")), ask("b")])
    assert second == [
        "tool-input-available ask-a*",
        *a_step(REASONING_R, announced("ask-b"), "tool-approval-request ask-b"),
    ]
    assert buffer.repeated_inputs == []


def test_style_confirmation_never_announces_a_part_of_an_earlier_step_again() -> None:
    """A client would double it."""
    buffer = DeferredBuffer("confirmation")
    waits(buffer, [*step(call("a")), ask("a"), *step(call("b")), ask("b")])
    buffer.feed_all([yes("a"), yes("b")])
    assert [chunk.tool_call_id for chunk in buffer.repeated_inputs] == ["ask-b"]


def test_style_confirmation_ends_a_denied_original_with_an_error() -> None:
    buffer = DeferredBuffer("confirmation")
    waits(buffer, [*step(call("a")), ask("a")])
    buffer.feed_all([no("a")])
    assert ends(buffer, [refused("a"), *step(text("t"))]) == [
        "tool-input-available ask-a*",
        *a_step(TEXT_T),
        *a_step(announced("a"), "tool-output-error a", "tool-output-denied ask-a"),
        *EMPTY_STEP,
    ]


def test_preview_shows_text_and_retracts_it_when_a_call_begins() -> None:
    buffer = DeferredBuffer("call")
    buffer.preview = True
    words = waits(buffer, [*step(reasoning("r"), text("t"), call("a")), ask("a")])
    assert words == a_step(
        REASONING_R, TEXT_T, "reset-step", REASONING_R, announced("a"), "tool-approval-request a"
    )
    buffer.feed_all([yes("a")])
    shown = ends(buffer, [result("a"), *step(text("u"))])
    assert shown == a_step(TEXT_T, TEXT_U, "tool-output-available a")


def test_preview_and_deferred_end_in_the_same_message() -> None:
    signals = [*step(text("t"), reasoning("r"), text("u"))]
    shown, held = DeferredBuffer("call"), DeferredBuffer("call")
    shown.preview = True
    after_reset = ends(shown, signals)
    assert after_reset[after_reset.index("reset-step") + 1 :] == ends(held, signals)[1:]


def test_progressive_shows_each_signal_at_once() -> None:
    buffer = ProgressiveBuffer("call")
    first = waits(
        buffer, [*step(text("t"), call("free", "free"), call("a")), result("free"), ask("a")]
    )
    assert first == a_step(
        TEXT_T,
        provider_executed("free"),
        announced("a"),
        "tool-output-available free",
        "tool-approval-request a",
    )
    buffer.feed_all([yes("a")])
    last = ends(buffer, [result("a"), *step(text("u"))])
    assert last == ["tool-output-available a", *a_step(TEXT_U)]


def test_progressive_never_leaves_a_finished_tool_in_the_last_step() -> None:
    buffer = ProgressiveBuffer("call")
    words = ends(buffer, [*step(call("free", "free")), result("free")])
    assert words == [*a_step(provider_executed("free"), "tool-output-available free"), *EMPTY_STEP]


def test_progressive_announces_a_conditional_call_once_it_has_settled_or_needs_approval() -> None:
    buffer = ProgressiveBuffer("call")
    assert shapes(buffer.feed_all(step(call("maybe", "conditional")))) == []
    assert shapes(buffer.feed(result("maybe"))) == [
        "start-step",
        *provider_executed("maybe"),
        "tool-output-available maybe",
    ]
    assert shapes(buffer.feed_all([*step(call("other", "conditional")), ask("other")])) == [
        "finish-step",
        "start-step",
        *announced("other"),
        "tool-approval-request other",
    ]


@pytest.mark.parametrize("buffer", [DeferredBuffer("call"), ProgressiveBuffer("call")])
def test_a_call_that_never_ended_is_closed_when_the_exchange_ends(buffer: ReleaseBuffer) -> None:
    buffer.feed_all(step(call("free", "free")))
    assert "tool-output-error free" in shapes(buffer.finish())


@pytest.mark.parametrize("open_buffer", [DeferredBuffer, ProgressiveBuffer])
def test_a_client_side_call_that_asks_stands_in_the_last_step_of_the_turn(
    open_buffer: Callable[[ApprovalStyle], ReleaseBuffer],
) -> None:
    buffer = open_buffer("call")
    asked = [*step(call("page", "gated-client")), ask("page"), *step(call("a")), ask("a")]
    assert waits(buffer, asked) == [
        *a_step(announced("a"), "tool-approval-request a"),
        *a_step(announced("page"), "tool-approval-request page"),
    ]
    buffer.feed_all([yes("page")])
    assert shapes(buffer.announce_again("page")) == ["tool-input-available page"]


def test_an_answer_of_the_page_is_followed_by_a_step_wherever_its_part_is() -> None:
    buffer = ProgressiveBuffer("call")
    signals = [*step(call("page", "client")), *step(text("t"))]
    assert waits(buffer, signals) == [*a_step(announced("page")), *a_step(TEXT_T)]
    buffer.feed(Answered("page", None, approved=True, outcome=Outcome("output", output="seen")))
    assert shapes(buffer.finish()) == EMPTY_STEP


@pytest.mark.parametrize("open_buffer", [DeferredBuffer, ProgressiveBuffer])
def test_client_side_calls_of_several_agents_that_ask_share_a_step(
    open_buffer: Callable[[ApprovalStyle], ReleaseBuffer],
) -> None:
    buffer = open_buffer("call")
    signals = [
        signal
        for name in ("here", "there")
        for signal in (*step(call(name, "gated-client")), ask(name))
    ]
    assert waits(buffer, signals) == a_step(
        announced("here"),
        announced("there"),
        "tool-approval-request here",
        "tool-approval-request there",
    )


@pytest.mark.parametrize("open_buffer", [DeferredBuffer, ProgressiveBuffer])
def test_a_client_side_call_that_is_closed_in_the_turn_has_its_request(
    open_buffer: Callable[[ApprovalStyle], ReleaseBuffer],
) -> None:
    buffer = open_buffer("call")
    signals = [*step(call("page", "gated-client")), ask("page"), refused("page")]
    assert ends(buffer, signals) == [
        *a_step(announced("page"), "tool-approval-request page", "tool-output-denied page"),
        *EMPTY_STEP,
    ]


@pytest.mark.parametrize("buffer", [DeferredBuffer("call"), ProgressiveBuffer("call")])
def test_a_client_side_call_waits_for_the_browser(buffer: ReleaseBuffer) -> None:
    words = waits(buffer, step(call("here", "client")))
    assert words == a_step(announced("here"))


def told(name: str, message: JsonValue) -> Signal:
    """A call that ran and says what it did."""
    return Settled(name, Outcome("output", output={"message": message}))


def texts_of(chunks: Sequence[BaseChunk]) -> list[str]:
    return [chunk.delta for chunk in chunks if isinstance(chunk, TextDeltaChunk)]


BLOCK = "result-text-1"


@pytest.mark.parametrize("preview", [False, True])
def test_messages_of_results_are_one_delta_each_in_call_order(*, preview: bool) -> None:
    buffer = DeferredBuffer("call", text_from_results=True)
    buffer.preview = preview
    waits(buffer, [*step(call("a"), call("b")), ask("a"), ask("b")])
    buffer.feed_all([yes("a"), yes("b")])
    waits(buffer, [told("b", "B is done."), told("a", "A is done."), *step(call("c")), ask("c")])
    buffer.feed_all([yes("c")])
    chunks = [*buffer.feed_all([told("c", "C is done."), *step()]), *buffer.finish()]
    deltas = [f"text-delta {BLOCK}"] * 3
    assert shapes(chunks) == [
        *a_step(
            f"text-start {BLOCK}",
            deltas,
            f"text-end {BLOCK}",
            [f"tool-output-available {name}" for name in "abc"],
        ),
    ]
    assert texts_of(chunks) == ["A is done.", "\n\nB is done.", "\n\nC is done."]


def test_messages_of_results_stand_between_the_texts_of_the_model() -> None:
    buffer = DeferredBuffer("call", text_from_results=True)
    waits(buffer, [*step(text("t"), call("a")), ask("a")])
    buffer.feed_all([yes("a")])
    chunks = [*buffer.feed_all([told("a", "A."), *step(text("u"))]), *buffer.finish()]
    assert texts_of(chunks) == ["t", "A.", "u"]


def test_progressive_shows_the_message_of_a_result_in_the_next_step() -> None:
    buffer = ProgressiveBuffer("call", text_from_results=True)
    waits(buffer, [*step(call("a")), ask("a")])
    buffer.feed_all([yes("a")])
    block = [f"text-start {BLOCK}", f"text-delta {BLOCK}", f"text-end {BLOCK}"]
    assert ends(buffer, [told("a", "A."), *step(text("u"))]) == [
        "tool-output-available a",
        *a_step(block, TEXT_U),
    ]


@pytest.mark.parametrize("message", ["", " ", 5, None, ["A."]])
def test_only_a_text_is_the_message_of_a_result(message: JsonValue) -> None:
    buffer = DeferredBuffer("call", text_from_results=True)
    buffer.feed_all([*step(call("free", "free")), told("free", message), *step()])
    assert texts_of(buffer.finish()) == []


def test_without_the_setting_no_result_becomes_text() -> None:
    buffer = DeferredBuffer("call")
    buffer.feed_all([*step(call("free", "free")), told("free", "A."), *step()])
    assert texts_of(buffer.finish()) == []
