"""Traces and metrics of turns, approvals and models, by the API of OpenTelemetry alone.

Without an SDK in the process every call is a no-op. No attribute has contents: no text, argument,
output, reason or title.

The ids of an approval's span are derived from its key. So the points of its life are in one trace
although several processes write them, before and after a restart, and a turn can link to a span
that is written days later. `IDS` has them for the id generator of the SDK.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.metrics import Histogram, Observation
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    Status,
    StatusCode,
    TraceFlags,
)

from sluicegate._version import __version__
from sluicegate.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from opentelemetry.metrics import CallbackOptions
    from opentelemetry.util.types import AttributeValue

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.core.chat_and_turn_keys import TurnKey

logger = logging.getLogger("sluicegate")

SAMPLED_GAPS: Final = 16
"""Of so many pauses between deltas one is recorded: recording one costs as much as a delta may."""

LIMITS: Final = (
    "max_turns",
    "max_turns_per_user",
    "max_turns_per_minute",
    "max_messages_per_minute",
    "max_previews_per_minute",
    "max_uploads_per_hour",
    "max_upload_bytes_per_hour",
    "max_live_chats",
    "max_live_chats_per_user",
    "max_requests_per_minute",
    "max_connections_per_user",
    "max_failed_authentications",
)
"""The settings whose refusals are counted."""

MAX_TRACED: Final = 10_000
"""Approvals whose links and ends a process remembers."""

IDS: Final[ContextVar[SpanContext | None]] = ContextVar("sluicegate_span_ids", default=None)
"""The ids of the span that is started now; None for random ones."""

_TURN: Final[ContextVar[Span | None]] = ContextVar("sluicegate_turn_span", default=None)
"""The span of the turn that runs in this context."""

_DECIDED: Final[ContextVar[tuple[SpanContext, ...]]] = ContextVar(
    "sluicegate_decided_approvals", default=()
)
"""The approvals that this request has decided, for the span of the turn that it starts."""

_tracer: Final = trace.get_tracer("sluicegate", __version__)
_meter: Final = metrics.get_meter("sluicegate", __version__)

_FAST: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_LONG: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_HUMAN: Final = (5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0, 604_800.0)

_TURNS: Final = _meter.create_histogram(
    "sluicegate.turn.duration",
    "s",
    "Duration of turns, by how they end: finished, waiting, stopped, failed.",
    explicit_bucket_boundaries_advisory=_LONG,
)
_FIRST_DELTA: Final = _meter.create_histogram(
    "sluicegate.turn.first_delta",
    "s",
    "Time from the start of a turn to its first delta.",
    explicit_bucket_boundaries_advisory=_FAST,
)
_GAP: Final = _meter.create_histogram(
    "sluicegate.turn.delta_gap",
    "s",
    f"Time between two deltas of a turn; one of {SAMPLED_GAPS} is recorded.",
    explicit_bucket_boundaries_advisory=_FAST,
)
_LONGEST_GAP: Final = _meter.create_histogram(
    "sluicegate.turn.longest_gap",
    "s",
    "The longest time between two deltas of each turn.",
    explicit_bucket_boundaries_advisory=_FAST,
)


@dataclass(frozen=True, slots=True)
class DeltaHistograms:
    """The histograms that record the times of a turn's deltas."""

    first: Histogram = _FIRST_DELTA
    gap: Histogram = _GAP
    longest_gap: Histogram = _LONGEST_GAP


_DELTAS: Final = DeltaHistograms()
_REQUESTS: Final = _meter.create_counter(
    "sluicegate.approval.requests", "{approval}", "Approvals that were requested."
)
_DECISIONS: Final = _meter.create_histogram(
    "sluicegate.approval.decision_time",
    "s",
    "Time from the request of an approval to the decision of a person.",
    explicit_bucket_boundaries_advisory=_HUMAN,
)
_OUTCOMES: Final = _meter.create_counter(
    "sluicegate.approval.outcomes",
    "{approval}",
    "Approvals that ended, by the state they ended in.",
)
_LEASES_LOST: Final = _meter.create_counter(
    "sluicegate.lease.lost", "{lease}", "Leases that turns of this process lost."
)
_REFUSALS: Final = _meter.create_counter(
    "sluicegate.rate_limit.refusals", "{request}", "Requests that a limit refused, by the limit."
)
_MODEL_ERRORS: Final = _meter.create_counter(
    "sluicegate.model.errors", "{error}", "Failed calls of models, by the code of the error."
)
_READERS: Final = _meter.create_up_down_counter(
    "sluicegate.readers", "{reader}", "Readers of running turns."
)


@dataclass(frozen=True, slots=True)
class EngineState:
    """What the turns of an engine have now: their number, and bytes."""

    turns: int = 0
    backlog: int = 0
    held: int = 0


class Observed:
    """The values that an exporter reads when it likes, of all engines of the process."""

    def __init__(self) -> None:
        self._engines: dict[object, Callable[[], EngineState]] = {}
        self._waiting: dict[str, tuple[int, float]] = {}
        self._undelivered: dict[str, tuple[float, int]] = {}

    def add_engine(self, engine: object, state: Callable[[], EngineState]) -> None:
        """Observe the turns of an engine from now on."""
        self._engines[engine] = state
        # A counter that begins with its first event hides this event from a rate.
        _LEASES_LOST.add(0)
        for limit in LIMITS:
            _REFUSALS.add(0, {"limit": limit})
        kinds: list[type[ModelError]] = [ModelError, *ModelError.__subclasses__()]
        for kind in kinds:
            _MODEL_ERRORS.add(0, {"error.type": kind.code})

    def remove_engine(self, engine: object) -> None:
        """Forget an engine that has closed."""
        self._engines.pop(engine, None)

    def waiting_approvals(self, app: str, number: int, oldest: float) -> None:
        """Store how many approvals of an app wait, and the age of the oldest in seconds."""
        self._waiting[app] = (number, oldest)

    def read_waiting(self, _: CallbackOptions) -> Iterator[Observation]:
        """The number of approvals that wait."""
        return (Observation(number, {"app": app}) for app, (number, _) in self._waiting.items())

    def read_oldest(self, _: CallbackOptions) -> Iterator[Observation]:
        """The age of the oldest approval that waits."""
        return (Observation(oldest, {"app": app}) for app, (_, oldest) in self._waiting.items())

    def undelivered_events(self, app: str, oldest: float, dead: int) -> None:
        """Store the age of the oldest undelivered event of an app, and the number of dead ones."""
        self._undelivered[app] = (oldest, dead)

    def read_delay(self, _: CallbackOptions) -> Iterator[Observation]:
        """The age of the oldest event that has not been delivered."""
        return (Observation(oldest, {"app": app}) for app, (oldest, _) in self._undelivered.items())

    def read_dead(self, _: CallbackOptions) -> Iterator[Observation]:
        """The number of dead letters."""
        return (Observation(dead, {"app": app}) for app, (_, dead) in self._undelivered.items())

    def reader_of(
        self, of: Callable[[EngineState], int]
    ) -> Callable[[CallbackOptions], Iterable[Observation]]:
        """Return a callback that adds up a value of all engines."""
        return lambda _: [Observation(sum(of(state()) for state in [*self._engines.values()]))]


OBSERVED: Final = Observed()

_meter.create_observable_gauge(
    "sluicegate.turns.running",
    [OBSERVED.reader_of(lambda state: state.turns)],
    "{turn}",
    "Turns that run in this process.",
)
_meter.create_observable_gauge(
    "sluicegate.readers.backlog",
    [OBSERVED.reader_of(lambda state: state.backlog)],
    "By",
    "Bytes of chunks that are published and that readers have not read.",
)
_meter.create_observable_gauge(
    "sluicegate.held",
    [OBSERVED.reader_of(lambda state: state.held)],
    "By",
    "Bytes of output that wait for approvals of running turns.",
)
_meter.create_observable_gauge(
    "sluicegate.approvals.waiting",
    [OBSERVED.read_waiting],
    "{approval}",
    "Approvals that wait for a decision, in the whole database.",
)
_meter.create_observable_gauge(
    "sluicegate.approvals.oldest_age",
    [OBSERVED.read_oldest],
    "s",
    "Age of the oldest approval that waits, in the whole database.",
)
_meter.create_observable_gauge(
    "sluicegate.webhooks.oldest_age",
    [OBSERVED.read_delay],
    "s",
    "Age of the oldest event that a webhook has not accepted, in the whole database.",
)
_meter.create_observable_gauge(
    "sluicegate.webhooks.dead_letters",
    [OBSERVED.read_dead],
    "{event}",
    "Events that are not attempted any more, in the whole database.",
)


class TurnTelemetry:
    """The span and the times of one turn; ``clock`` returns seconds."""

    __slots__ = ("_clock", "_deltas", "_histograms", "_last", "_longest", "_span", "_started")

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        histograms: DeltaHistograms = _DELTAS,
    ) -> None:
        self._clock = clock
        self._histograms = histograms
        self._started = clock()
        self._span: Span = trace.INVALID_SPAN
        self._deltas = 0
        self._last = self._longest = 0.0

    @contextmanager
    def span(self, key: TurnKey, message: str) -> Iterator[None]:
        """Trace what runs within as the turn."""
        links = [Link(context) for context in _DECIDED.get()]
        attributes = {
            "gen_ai.conversation.id": key.chat.chat,
            "sluicegate.app": key.chat.app,
            "user.id": key.chat.user,
            "sluicegate.turn.id": key.turn,
            "sluicegate.message.id": message,
        }
        self._started = self._clock()
        span = self._span = _tracer.start_span("turn", links=links, attributes=attributes)
        token = _TURN.set(span)
        try:
            with trace.use_span(span, end_on_exit=True, record_exception=False):
                yield
        finally:
            _TURN.reset(token)

    def delta(self) -> None:
        """Note that a delta was published."""
        now = self._clock()
        if self._deltas:
            gap = now - self._last
            if gap > self._longest:
                self._longest = gap
            if self._deltas % SAMPLED_GAPS == 0:
                self._histograms.gap.record(gap)
        else:
            self._histograms.first.record(now - self._started)
        self._deltas += 1
        self._last = now

    def end(self, end: str, error_id: str | None) -> None:
        """Record how the turn has ended."""
        _TURNS.record(self._clock() - self._started, {"end": end})
        if self._deltas > 1:
            self._histograms.longest_gap.record(self._longest)
        self._span.set_attribute("sluicegate.turn.end", end)
        self._span.set_attribute("sluicegate.turn.deltas", self._deltas)
        if error_id is not None:
            self._span.set_attribute("sluicegate.error.id", error_id)
        if end == "failed":
            self._span.set_status(Status(StatusCode.ERROR))


class ApprovalTelemetry:
    """Records each change of an approval: a point as it happens, and a span when it has ended.

    A point is a span without duration in the trace of the approval.
    """

    def __init__(self) -> None:
        self._links: OrderedDict[int, list[Link]] = OrderedDict()
        self._ended: OrderedDict[int, None] = OrderedDict()

    def __call__(self, rows: Iterable[ApprovalRow]) -> None:
        """Record the states that a commit of this process has given to rows of the ledger."""
        for row in rows:
            try:
                self._changed(row)
            except Exception as error:  # noqa: BLE001 - the change is committed, and must be reported
                logger.warning("an approval was not traced: %s", error)

    def _changed(self, row: ApprovalRow) -> None:
        context, at = approval_context(row), _moment(row)
        link = self._link(row, context)
        attributes = _attributes(row, at)
        point = _tracer.start_span(
            f"approval.{row.state}",
            trace.set_span_in_context(NonRecordingSpan(context), Context()),
            attributes={**attributes, "sluicegate.approval.state": row.state},
            links=link,
            start_time=_nanoseconds(at),
        )
        point.end(_nanoseconds(at))
        if row.state == "requested":
            _REQUESTS.add(1, {"tool": row.tool})
        elif row.state in ("approved", "denied") and not row.is_automatic:
            decided = {"decision": row.state, "via": row.via or "unknown"}
            _DECISIONS.record(at - row.requested_at, decided)
        if row.state not in ("requested", "approved", "executing"):
            self._end(row, context, at)

    def _link(self, row: ApprovalRow, context: SpanContext) -> list[Link]:
        """Link the approval and the turn of this change, in both directions."""
        turn = _TURN.get()
        if turn is None:
            # A call in a live chat runs outside of turns; a decision comes before its turn.
            if row.state in ("approved", "denied", "expired"):
                _DECIDED.set((*_DECIDED.get(), context))
            turn = trace.get_current_span()
        else:
            turn.add_link(context)
        if not turn.get_span_context().is_valid:
            return []
        link = Link(turn.get_span_context())
        links = self._links.setdefault(context.trace_id, [])
        if all(each.context.span_id != link.context.span_id for each in links):
            links.append(link)
        _forget_oldest(self._links)
        return [link]

    def _end(self, row: ApprovalRow, context: SpanContext, at: float) -> None:
        if context.trace_id in self._ended:
            return
        self._ended[context.trace_id] = None
        _forget_oldest(self._ended)
        _OUTCOMES.add(1, {"outcome": row.state, "tool": row.tool})
        token = IDS.set(context)
        try:
            span = _tracer.start_span(
                "approval",
                Context(),
                attributes={**_attributes(row, at), "sluicegate.approval.outcome": row.state},
                links=self._links.pop(context.trace_id, []),
                start_time=_nanoseconds(row.requested_at),
            )
        finally:
            IDS.reset(token)
        if row.state == "failed":
            span.set_status(Status(StatusCode.ERROR))
        span.end(_nanoseconds(at))


def approval_context(row: ApprovalRow) -> SpanContext:
    """The ids of the span of an approval, the same in every process."""
    parts = "".join(f"{len(part)}:{part}" for part in row.key)
    digest = sha256(parts.encode("utf-8", "surrogatepass")).digest()
    return SpanContext(
        int.from_bytes(digest[:16]),
        int.from_bytes(digest[16:24]),
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )


def _attributes(row: ApprovalRow, at: float) -> dict[str, AttributeValue]:
    attributes: dict[str, AttributeValue] = {
        "gen_ai.conversation.id": row.key.chat,
        "gen_ai.tool.name": row.tool,
        "gen_ai.tool.call.id": row.key.call_id,
        "sluicegate.app": row.key.app,
        "user.id": row.key.user,
        "sluicegate.approval.id": row.approval_id,
        "sluicegate.approval.question": row.key.request_number,
        "sluicegate.approval.requested_at": row.requested_at,
        "sluicegate.approval.age": max(0.0, at - row.requested_at),
        "sluicegate.approval.decision": _DECISION[row.answer],
        "sluicegate.approval.automatic": row.is_automatic,
    }
    if row.agent:
        attributes["sluicegate.agent.path"] = row.agent
    if row.decided_by is not None:
        attributes["sluicegate.approval.decided_by"] = row.decided_by
    if row.via is not None:
        attributes["sluicegate.approval.via"] = row.via
    return attributes


_DECISION: Final = {None: "none", True: "approved", False: "denied"}


def _moment(row: ApprovalRow) -> float:
    """When the row came to its state, by the clock of the database where it is stored."""
    match row.state:
        case "requested":
            return row.requested_at
        case "approved" | "denied" if row.decided_at is not None:
            return row.decided_at
        case "executing" if row.claimed_at is not None:
            return row.claimed_at
        case "expired" if row.answer is None:
            # Noticed later; the database's clock is not known here.
            return row.finished_at or row.deadline
    return row.finished_at or max(time.time(), row.requested_at)


def _nanoseconds(moment: float) -> int:
    return int(moment * 1_000_000_000)


def _forget_oldest(known: OrderedDict[int, Any]) -> None:
    while len(known) > MAX_TRACED:
        known.popitem(last=False)


def lease_lost() -> None:
    """Count a lease that a turn has lost."""
    _LEASES_LOST.add(1)


def refused_by(limit: str) -> None:
    """Count a request that a limit has refused; ``limit`` is the name of the setting."""
    _REFUSALS.add(1, {"limit": limit})


def model_failed(error: ModelError) -> None:
    """Count a failed call of a model."""
    _MODEL_ERRORS.add(1, {"error.type": error.code})


def reader_opened() -> None:
    """Count a reader of a running turn."""
    _READERS.add(1)


def reader_closed() -> None:
    """Count it no more."""
    _READERS.add(-1)
