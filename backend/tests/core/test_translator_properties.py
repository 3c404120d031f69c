"""Whatever events come, what is said can be shown, and the log says the same."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from hypothesis import given
from hypothesis import strategies as st

from sluicegate.core.grammar import Grammar
from sluicegate.core.json_values import json_safe
from sluicegate.core.release.progressive import ProgressiveBuffer
from sluicegate.core.signals import (
    ApprovalRequested,
    ImmediateSignal,
    InputAvailable,
    InputDelta,
    InputStarted,
    Settled,
    Signal,
    StepFinished,
    StepStarted,
    TextSignal,
)
from sluicegate.core.stored_emission_order import EmissionOrder, in_emission_order
from sluicegate.core.translator import Translator
from sluicegate.wire.chunks import ErrorChunk, StartChunk
from tests.core.signal_words import Tools, translate, words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.events.event import Event


def event(**given: Any) -> Any:
    """Something with the attributes of an event."""
    empty = {
        "id": "e",
        "author": "a",
        "branch": None,
        "invocation_id": "i",
        "partial": None,
        "content": None,
        "actions": None,
        "error_code": None,
        "custom_metadata": None,
        "node_info": None,
        "output": None,
    }
    return SimpleNamespace(**{**empty, **given})


def content(*parts: Any) -> Any:
    return SimpleNamespace(role="model", parts=list(parts))


def text(words: str, *, thought: bool = False) -> Any:
    return SimpleNamespace(text=words, thought=thought or None)


def call(call_id: str, name: str, args: Any) -> Any:
    return SimpleNamespace(function_call=SimpleNamespace(id=call_id, name=name, args=args))


def response(call_id: str, name: str, given: Any) -> Any:
    return SimpleNamespace(
        function_response=SimpleNamespace(id=call_id, name=name, response=given, parts=None)
    )


NAMES = st.sampled_from(["pay", "price", "transfer_to_agent", "adk_request_input", "", None])
IDS = st.sampled_from(["1", "2", "wf_tool_confirmation:w@1/n@1", "", None])
ANYTHING = st.none() | st.integers() | st.text(max_size=3) | st.lists(st.none(), max_size=2)
ARGS = st.dictionaries(st.text(max_size=3), ANYTHING, max_size=2)


def _confirmation(call_id: Any, original: Any, name: Any) -> Any:
    args = {"originalFunctionCall": {"id": original, "name": name}, "toolConfirmation": None}
    return call(call_id, "adk_request_confirmation", args)


WILD_PARTS = st.one_of(
    st.builds(text, st.text(max_size=4), thought=st.booleans()),
    st.builds(call, IDS, NAMES, ARGS | ANYTHING),
    st.builds(_confirmation, st.sampled_from(["q1", "q2"]), IDS, NAMES),
    st.builds(
        response,
        IDS | st.sampled_from(["q1", "q2"]),
        NAMES | st.just("adk_request_confirmation"),
        ANYTHING | ARGS,
    ),
    st.builds(
        lambda i, n, path, value, more: SimpleNamespace(
            function_call=SimpleNamespace(
                id=i,
                name=n,
                args=None,
                will_continue=more,
                partial_args=[SimpleNamespace(json_path=path, string_value=value)],
            )
        ),
        IDS,
        NAMES,
        st.sampled_from(["$.a", "$.a.b", "$", "", None]),
        st.text(max_size=3) | st.none(),
        st.booleans() | st.none(),
    ),
    st.builds(lambda v: SimpleNamespace(executable_code=v), ANYTHING),
    st.builds(lambda v: SimpleNamespace(code_execution_result=v), ANYTHING),
    st.builds(
        lambda data, kind: SimpleNamespace(inline_data=SimpleNamespace(data=data, mime_type=kind)),
        st.binary(max_size=2) | st.text(max_size=2),
        st.sampled_from(["image/png", "a/b/c;d", "", None]),
    ),
    ANYTHING,
)
WILD_EVENTS = st.builds(
    event,
    id=st.sampled_from(["1", "2", "3", None]),
    author=st.sampled_from(["a", "b", "user", None]),
    branch=st.sampled_from([None, "x", "pay@1"]) | ANYTHING,
    partial=st.booleans() | st.none(),
    content=st.none() | st.builds(content, WILD_PARTS, WILD_PARTS) | ANYTHING,
    actions=st.none()
    | st.builds(
        lambda ids: SimpleNamespace(requested_tool_confirmations=dict.fromkeys(ids)),
        st.lists(st.sampled_from(["1", "2"])),
    ),
    long_running_tool_ids=st.sets(st.sampled_from(["1", "q1", "q2"])) | ANYTHING,
    error_code=st.sampled_from([None, "SAFETY", "INVOCATION_ABORTED", "RuntimeError"]),
    custom_metadata=st.sampled_from(
        [None, {"sluicegate": {"outcomes": {"1": {"kind": "denied"}}, "blocks": [["text", 1], 5]}}]
    ),
    node_info=st.sampled_from(
        [None, SimpleNamespace(path="w@1/n@1"), SimpleNamespace(path="r/pay@1")]
    ),
    output=ANYTHING,
)


@given(st.lists(WILD_EVENTS, max_size=12))
def test_any_events_give_well_formed_signals(events: list[Any]) -> None:
    translator = Translator(Tools(), files_url="/f/")
    signals = [signal for each in events for signal in translator.feed(each)]
    translator.unfinished()
    signals += translator.end()
    well_formed(signals)
    assert translator.end() == []
    chunks = [StartChunk(), *ProgressiveBuffer("call").feed_all(signals)]
    grammar = Grammar()
    for chunk in chunks:
        grammar.feed(chunk)
    grammar.feed(ErrorChunk(error_text="end"))


def well_formed(signals: Sequence[Signal]) -> None:
    """Steps do not nest, calls are made inside them, outcomes come once and after their calls."""
    in_step, made, over = False, set[str](), set[str]()
    for signal in signals:
        if isinstance(signal, StepStarted):
            assert not in_step
            in_step = True
        elif isinstance(signal, StepFinished):
            assert in_step
            in_step = False
        elif isinstance(signal, InputAvailable):
            assert in_step
            assert signal.call.id not in made
            assert json_safe(signal.call.args) == signal.call.args
            made.add(signal.call.id)
        elif isinstance(signal, TextSignal | InputStarted | InputDelta):
            assert in_step
        elif isinstance(signal, ApprovalRequested):
            assert signal.request.call_id in made
        elif isinstance(signal, Settled):
            assert signal.call_id in made - over
            if not signal.preliminary:
                over.add(signal.call_id)
        elif isinstance(signal, ImmediateSignal):
            assert in_step or signal.chunk.type == "data-agent"  # type: ignore[attr-defined]
    assert not in_step


@st.composite
def model_calls(draw: st.DrawFn, number: int) -> tuple[list[Any], Any]:
    """The fragments of one model call and its aggregate, which may reorder them."""
    event_id, branch = f"e{number}", draw(st.sampled_from(["x", "y", "z"]))
    emitted = draw(
        st.lists(st.tuples(st.booleans(), st.text("ab ", min_size=1, max_size=3)), max_size=5)
    )
    made = draw(st.lists(st.sampled_from(["pay", "price"]), max_size=2))
    calls = [call(f"{event_id}-{at}", name, {"n": at}) for at, name in enumerate(made)]
    fragments = [
        event(id=event_id, branch=branch, partial=True, content=content(text(w, thought=t)))
        for t, w in emitted
    ]
    if draw(st.booleans()):
        thoughts = "".join(w for t, w in emitted if t)
        answer = "".join(w for t, w in emitted if not t)
        parts = [text(thoughts, thought=True), *calls, text(answer)]
    else:
        parts = [*(text(w, thought=t) for t, w in emitted), *calls]
    whole = event(id=event_id, branch=branch, content=content(*parts))
    outcomes = [response(f"{event_id}-{at}", name, {"done": at}) for at, name in enumerate(made)]
    if not outcomes:
        return fragments, [whole]
    return fragments, [whole, event(id=f"r{number}", branch=branch, content=content(*outcomes))]


@st.composite
def runs(draw: st.DrawFn) -> list[Any]:
    """Model calls on three branches at once; on one branch they follow each other."""
    calls = [draw(model_calls(number)) for number in range(draw(st.integers(1, 5)))]
    lanes: dict[str, list[Any]] = {}
    for fragments, rest in calls:
        lanes.setdefault(rest[0].branch, []).extend([*fragments, *rest])
    events = []
    while lanes:
        branch = draw(st.sampled_from(sorted(lanes)))
        events.append(lanes[branch].pop(0))
        if not lanes[branch]:
            del lanes[branch]
    return events


@given(runs())
def test_a_run_has_the_same_signals_live_and_from_its_log(events: list[Any]) -> None:
    order = EmissionOrder()
    log = []
    for each in cast("list[Event]", events):
        note = order.note(each)
        if not each.partial:
            log.append(event(**{**vars(each), "custom_metadata": {"sluicegate": note}}))
    live = translate(events)
    well_formed(live)
    assert words(translate(in_emission_order(log))) == words(live)
