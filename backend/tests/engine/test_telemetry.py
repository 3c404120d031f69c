"""What OpenTelemetry sees of turns, approvals and models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry.metrics import NoOpHistogram

from sluicegate.core.approvals import Decision, NewApproval
from sluicegate.engine import telemetry
from tests.engine.stage import Counted, calls, says, scripted
from tests.engine.talk import Talk

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from sluicegate.engine.chat_engine import ChatEngine
    from tests.engine.stage import Open
    from tests.stores.builders import Clock

DAY = 86_400.0


def named(spans: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in spans.get_finished_spans() if span.name == name]


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def is_child(one: ReadableSpan, parent: ReadableSpan) -> bool:
    if one.parent is None or parent.context is None:
        return False
    return bool(one.parent.span_id == parent.context.span_id)


def points(spans: InMemorySpanExporter) -> list[str]:
    """The states of approvals that points tell, in order."""
    return [
        span.name.removeprefix("approval.")
        for span in spans.get_finished_spans()
        if span.name.startswith("approval.")
    ]


def outcomes(spans: InMemorySpanExporter) -> list[Any]:
    return [attributes(each)["sluicegate.approval.outcome"] for each in named(spans, "approval")]


def linked(spans: InMemorySpanExporter, one: ReadableSpan, other: ReadableSpan) -> bool:
    """Whether one of two spans links to the other."""
    pairs = [(one, other), (other, one)]
    return any(
        other.context is not None
        and (link.context.trace_id, link.context.span_id)
        == (other.context.trace_id, other.context.span_id)
        for one, other in pairs
        for link in one.links
    )


async def pay(open_stage: Open, counted: Counted, **options: Any) -> Talk:
    """A chat whose model asks to pay."""
    script = [calls(("pay", {"n": 1}), text="I pay. "), says("Done.")]
    talk = Talk(await open_stage(scripted(script, [counted.tool()]), **options))
    await talk.say("pay")
    return talk


async def test_a_turn_is_the_root_of_what_adk_traces_with_the_standard_attributes(
    open_stage: Open, spans: InMemorySpanExporter, counted: Counted
) -> None:
    talk = await pay(open_stage, counted)
    await talk.approve()
    first, second = named(spans, "turn")
    assert attributes(first)["gen_ai.conversation.id"] == talk.chat_id
    assert attributes(first)["sluicegate.turn.end"] == "waiting"
    assert attributes(second)["sluicegate.turn.end"] == "finished"
    assert first.parent is None
    for turn in (first, second):
        of_adk = [each for each in spans.get_finished_spans() if is_child(each, turn)]
        [run] = [each for each in of_adk if each.name.startswith("invoke_")]
        assert run.context is not None
        assert turn.context is not None
        assert run.context.trace_id == turn.context.trace_id
    every = spans.get_finished_spans()
    executed = [each for each in every if each.name == "execute_tool pay"]
    assert executed
    assert all(
        attributes(each)
        | {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "pay",
        }
        == attributes(each)
        and attributes(each)["gen_ai.tool.call.id"]
        for each in executed
    )
    models = [
        each
        for each in every
        if attributes(each).get("gen_ai.operation.name") == "generate_content"
    ]
    assert len(models) == 2, "one model call for each turn, and none is doubled"
    assert all(attributes(each)["gen_ai.conversation.id"] == talk.chat_id for each in models)


async def test_an_approval_is_a_span_from_its_request_to_its_end_linked_to_both_turns(
    open_stage: Open, spans: InMemorySpanExporter, counted: Counted
) -> None:
    talk = await pay(open_stage, counted)
    assert points(spans) == ["requested"]
    assert named(spans, "approval") == []
    await talk.approve()
    assert points(spans) == ["requested", "approved", "executing", "executed"]
    [approval] = named(spans, "approval")
    told = attributes(approval)
    assert told["sluicegate.approval.outcome"] == "executed"
    assert told["sluicegate.approval.decided_by"] == talk.user
    assert told["sluicegate.approval.decision"] == "approved"
    assert told["gen_ai.tool.name"] == "pay"
    assert told["gen_ai.tool.call.id"]
    assert told["gen_ai.conversation.id"] == talk.chat_id
    assert told["sluicegate.approval.age"] >= 0
    assert approval.start_time is not None
    assert approval.end_time is not None
    assert approval.start_time <= approval.end_time
    assert all(linked(spans, approval, turn) for turn in named(spans, "turn"))
    assert approval.context is not None
    of_trace = [
        each
        for each in spans.get_finished_spans()
        if each.context is not None and each.context.trace_id == approval.context.trace_id
    ]
    assert len(of_trace) == 5, "the points are in the trace of the approval"


async def test_a_denied_approval_is_linked_to_the_turn_that_delivers_the_denial(
    open_stage: Open, spans: InMemorySpanExporter, counted: Counted
) -> None:
    talk = await pay(open_stage, counted)
    await talk.deny("because of SECRET")
    assert points(spans) == ["requested", "denied"]
    [approval] = named(spans, "approval")
    assert outcomes(spans) == ["denied"]
    assert all(linked(spans, approval, turn) for turn in named(spans, "turn"))
    assert "SECRET" not in str([each.to_json() for each in spans.get_finished_spans()])


async def test_an_expired_approval_ends_once_even_when_it_is_answered_later(
    open_stage: Open, spans: InMemorySpanExporter, counted: Counted, clock: Clock
) -> None:
    talk = await pay(open_stage, counted, clock=clock)
    clock.ahead += DAY + 1
    engine = talk.engine
    await engine.resources.ledger.expire_due(engine.resources.app, limit=10)
    await talk.approve()
    assert outcomes(spans) == ["expired"]
    [approval] = named(spans, "approval")
    assert attributes(approval)["sluicegate.approval.decision"] == "none"
    assert attributes(approval)["sluicegate.approval.age"] >= DAY


async def test_a_superseded_approval_is_told(
    open_stage: Open, spans: InMemorySpanExporter, counted: Counted
) -> None:
    talk = await pay(open_stage, counted)
    await talk.say("something else")
    assert outcomes(spans) == ["superseded"]


async def test_a_call_whose_outcome_is_unknown_is_told(
    open_stage: Open, spans: InMemorySpanExporter, counted: Counted
) -> None:
    talk = await pay(open_stage, counted)
    ledger = talk.engine.resources.ledger
    [row] = await ledger.rows(talk.key)
    part = talk.pending()[0]
    assert part["approval"]["id"] == row.approval_id
    new = NewApproval(
        key=row.key,
        approval_id=row.approval_id,
        tool=row.tool,
        args_hash=row.args_hash,
        ttl=DAY,
        arguments=row.arguments,
    )
    await ledger.record_decisions([Decision(new, approved=True, reason=None)], by=talk.user)
    assert await ledger.claim(row.key, owner="dead", args_hash=row.args_hash) is None
    await ledger.mark_unknown(talk.key, owners_alive=())
    assert outcomes(spans) == ["unknown"]
    await ledger.store_outcome(row.key, owner="late", state="executed", outcome={"late": True})
    assert points(spans) == ["requested", "approved", "executing", "unknown", "executed"]
    assert outcomes(spans) == ["unknown"], "one span for each approval; the point tells the rest"


async def test_contents_are_traced_when_a_setting_says_so(
    open_stage: Open, spans: InMemorySpanExporter, counted: Counted
) -> None:
    await pay(open_stage, counted, trace_contents=True)
    [asked] = [each for each in spans.get_finished_spans() if each.name == "execute_tool pay"]
    assert '{"n": 1}' in str(asked.to_json(indent=None)).replace("\\", "")


def test_a_turn_measures_its_first_delta_and_its_gaps() -> None:
    recorded: dict[str, list[float]] = {"first": [], "gap": [], "longest": []}

    class Recorded(NoOpHistogram):
        def __init__(self, name: str) -> None:
            super().__init__(name)
            self.times = recorded[name]

        def record(self, amount: float, *_: object, **__: object) -> None:
            self.times.append(amount)

    histograms = telemetry.DeltaHistograms(*(Recorded(name) for name in recorded))
    now = 100.0
    turn = telemetry.TurnTelemetry(lambda: now, histograms)
    for number in range(2 * telemetry.SAMPLED_GAPS + 1):
        now += 3.0 if number == 5 else 0.25
        turn.delta()
    turn.end("finished", None)
    assert recorded == {"first": [0.25], "gap": [0.25, 0.25], "longest": [3.0]}


async def test_no_span_has_contents(engine: ChatEngine, spans: InMemorySpanExporter) -> None:
    talk = Talk(engine)
    await talk.say("story:approval")
    written = str(talk.pending()[0]["input"])
    await talk.approve()
    exported = "".join(str(each.to_json()) for each in spans.get_finished_spans())
    assert written
    assert all(str(value) not in exported for value in ("story:approval", written))
