"""The results of a run as a text table and as JSON."""

from __future__ import annotations

import os
import platform
import statistics
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from bench.capacity import PLANNED, plan_line, planned, step_line
from bench.files import GROWTH_MIB, PEAK_MIB
from bench.google_live_chats import ADDED as LIVE_ADDED
from bench.google_live_chats import CARD, CROWD, EACH_KIB, YES
from bench.idle_sockets import BUDGET_KIB, GROWTH_KIB
from bench.inbox import LIVE, PAGE, USERS_OF, summary
from bench.large_request_flood import GROWTH_MIB as FLOOD_GROWTH_MIB
from bench.large_request_flood import LEFT, P99, percentile
from bench.live_audio_latency import BUDGET
from bench.multiple_processes import killed_line, scaling_line
from bench.peers import ADK, AG_UI, AI_SDK, FLOOR, PYDANTIC_AI, SOCKET, SSE
from bench.turn_and_start_times import APPROVALS_A_SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.approval_cost import ApprovalCost
    from bench.capacity import Capacity
    from bench.crowd import Crowd
    from bench.files import Files
    from bench.google_live_chats import Voice
    from bench.idle_sockets import Idle
    from bench.inbox import Inbox
    from bench.large_request_flood import Flood
    from bench.live_audio_latency import Spoken
    from bench.multiple_processes import Killed, Scaling
    from bench.pending import Pending
    from bench.rounds import Samples
    from bench.telemetry_cost import TelemetryCost
    from bench.trees import TreeCost
    from bench.turn_and_start_times import Rates, Turn

AT_MOST: Final = {SSE: 3.5, SOCKET: 4.5}
"""Maximum ratio of a row to the floor."""
FASTER: Final = {AI_SDK: 1.6, PYDANTIC_AI: 4.0, ADK: 4.0, AG_UI: 7.0}
"""Minimum ratio of a peer to sluicegate over SSE."""
ADDED: Final = 1.5
"""Maximum ratio of the overhead of the socket to that of SSE, both above the floor."""
LONG, MANY_EVENTS = 0.6, 5_000
"""Maximum time of a turn as a share of ADK's own, from this number of events on."""
GAP: Final = (50, 30e-3)
"""Number of streams, and the maximum 99th percentile of seconds between two deltas."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, minimum and maximum over the rounds."""

    median: float
    lowest: float
    highest: float

    def text(self, scale: float) -> str:
        """Return ``median (lowest - highest)`` in other units."""
        low, high = self.lowest * scale, self.highest * scale
        return f"{self.median * scale:8.1f} ({low:.1f} - {high:.1f})"


def spread(values: Sequence[float]) -> Spread:
    """Return the spread of one value per round."""
    return Spread(statistics.median(values), min(values), max(values))


@dataclass(slots=True)
class Report:
    """All measurements of one run; times in seconds.

    ``turns`` by events of the session, ``approvals`` a second by people at once, ``memory`` in KiB
    for each open stream. ``missing`` are rows that this machine cannot run.
    """

    rounds: int
    deltas: int
    titles: dict[str, str] = field(default_factory=dict)
    samples: dict[str, Samples] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    crowds: list[Crowd] = field(default_factory=list)
    memory: float | None = None
    lag: float | None = None
    """From the model's first delta to its arrival, in a new chat."""
    turns: dict[int, Turn] = field(default_factory=dict)
    approvals: dict[int, Rates] = field(default_factory=dict)
    start: dict[str, float] = field(default_factory=dict)
    pending: Pending | None = None
    costs: list[ApprovalCost] = field(default_factory=list)
    telemetry: TelemetryCost | None = None
    trees: list[TreeCost] = field(default_factory=list)
    spoken: Spoken | None = None
    files: Files | None = None
    idle: Idle | None = None
    flood: Flood | None = None
    voice: Voice | None = None
    inboxes: list[Inbox] = field(default_factory=list)
    capacity: list[Capacity] = field(default_factory=list)
    scaling: Scaling | None = None
    killed: Killed | None = None

    def per_delta(self, name: str) -> Spread:
        """Return the spread of a row."""
        return spread(self.samples[name].per_delta)

    def ratio(self, name: str, base: str) -> Spread | None:
        """Return the ratio of a row to another, computed within each round."""
        if name not in self.samples or base not in self.samples:
            return None
        pairs = zip(self.samples[name].per_delta, self.samples[base].per_delta, strict=True)
        return spread([mine / other for mine, other in pairs])

    def socket_added(self) -> float | None:
        """Return the median ratio of the overhead of the socket to that of SSE."""
        if not {SOCKET, SSE, FLOOR} <= self.samples.keys():
            return None
        ours, sse, floor = (self.samples[name].per_delta for name in (SOCKET, SSE, FLOOR))
        rounds = zip(ours, sse, floor, strict=True)
        return statistics.median((a - c) / max(b - c, 1e-9) for a, b, c in rounds)

    def first_added(self) -> float | None:
        """Return the median delay of the first delta compared with the floor."""
        if SSE not in self.samples or FLOOR not in self.samples:
            return None
        pairs = zip(self.samples[SSE].first_delta, self.samples[FLOOR].first_delta, strict=True)
        return statistics.median(mine - other for mine, other in pairs)

    def table(self) -> str:
        """Return the table as text."""
        return "\n".join(self._lines())

    def json(self) -> dict[str, Any]:
        """Return all samples, the derived values, and the environment."""
        return {
            "format": 2,
            "machine": machine(),
            "rounds": self.rounds,
            "deltas": self.deltas,
            "rows": {name: asdict(found) for name, found in self.samples.items()},
            "missing": self.missing,
            "to_floor": {name: self._median(name, FLOOR) for name in self.samples},
            "to_ours": {name: self._median(name, SSE) for name in self.samples},
            "first_delta_over_floor": self.first_added(),
            "crowds": [asdict(crowd) for crowd in self.crowds],
            "kib_per_stream": self.memory,
            "first_delta_after_model": self.lag,
            "seconds_per_turn": {events: asdict(turn) for events, turn in self.turns.items()},
            "approvals_per_second": {
                people: asdict(rates) for people, rates in self.approvals.items()
            },
            "start": self.start,
            "pending": self._pending_json(),
            "telemetry": None
            if self.telemetry is None
            else {"on": self.telemetry.on_ratio, "off": self.telemetry.off_ratio},
            "ledger": [{**asdict(cost), "median": cost.median} for cost in self.costs],
            "trees": [{**asdict(tree), "ratio": tree.ratio} for tree in self.trees],
            "files": None if self.files is None else asdict(self.files),
            "socket_added": self.socket_added(),
            "idle": None if self.idle is None else asdict(self.idle),
            "flood": None if self.flood is None else asdict(self.flood),
            "spoken": None if self.spoken is None else asdict(self.spoken),
            "voice": None if self.voice is None else asdict(self.voice),
            "inbox": [asdict(inbox) for inbox in self.inboxes],
            "capacity": [asdict(found) for found in self.capacity],
            "scaling": None if self.scaling is None else asdict(self.scaling),
            "killed": None if self.killed is None else asdict(self.killed),
        }

    def _median(self, name: str, base: str) -> float | None:
        found = self.ratio(name, base)
        return None if found is None else found.median

    def _pending_json(self) -> dict[str, Any] | None:
        if self.pending is None:
            return None
        return {**asdict(self.pending), "kib_per_thousand": self.pending.kib_per_thousand}

    def _lines(self) -> Iterator[str]:
        yield (
            f"{self.deltas:,} deltas of 20 bytes, median of {self.rounds} (lowest - highest); "
            f"{', '.join(machine().values())}"
        )
        yield ""
        yield f"{'':41}{'µs per delta':28}{'x floor':10}{'of work':10}first delta ms"
        for name, found in self.samples.items():
            work = spread(found.server) if found.server else None
            to_floor = self._median(name, FLOOR)
            yield (
                f"{self.titles[name]:40}{self.per_delta(name).text(1e6):28}"
                f"{_number(to_floor):10}{_number(None if work is None else work.median * 1e6):10}"
                f"{spread(found.first_delta).text(1e3)}"
            )
        for title in self.missing:
            yield f"{title:40}   not on this machine"
        yield ""
        yield from self._verdicts()
        yield from self._many()
        yield from self._long()

    def _verdicts(self) -> Iterator[str]:
        for name, most in AT_MOST.items():
            found = self._median(name, FLOOR)
            if found is not None:
                yield f"{self.titles[name]}: {found:.1f} x the floor (at most {most})"
        for name, least in FASTER.items():
            found = self._median(name, SSE)
            if found is not None:
                yield f"{self.titles[name]} takes {found:.1f} x as long (at least {least})"

        added = self.socket_added()
        if added is not None:
            yield f"WebSocket adds {added:.2f} x what SSE adds (at most {ADDED})"

    def _many(self) -> Iterator[str]:
        if self.lag is not None:
            yield f"The first delta arrives {self.lag * 1e3:.1f} ms after the model's (at most 3)"
        for crowd in self.crowds:
            work = "" if crowd.work is None else f", {crowd.work * 1e6:.0f} µs of CPU per delta"
            yield (
                f"{crowd.streams:4} streams at 100 deltas/s: gap p50 {crowd.p50 * 1e3:.1f} ms, "
                f"p99 {crowd.p99 * 1e3:.1f} ms, worst {crowd.worst * 1e3:.0f} ms{work}"
            )
        if self.memory is not None:
            yield f"An open stream: {self.memory:.0f} KiB of memory"

    def _long(self) -> Iterator[str]:
        for events, turn in self.turns.items():
            most = f" (at most {LONG})" if events >= MANY_EVENTS else ""
            yield (
                f"A turn in a session of {events:,} events: {turn.warm * 1e3:.0f} ms, "
                f"{turn.cold * 1e3:.0f} ms the first time, ADK alone {turn.bare * 1e3:.0f} ms; "
                f"{turn.warm / turn.bare:.2f} x{most}"
            )
        for people, rates in self.approvals.items():
            yield (
                f"Approvals, {people} at once: {rates.answered:.1f} a second (at least "
                f"{APPROVALS_A_SECOND}), {rates.whole:.1f} with their questions"
            )
        for what, seconds in self.start.items():
            yield f"Cold start, {what}: {seconds * 1e3:.0f} ms"
        for cost in self.costs:
            yield (
                f"Ledger and lease per approval, {cost.store}: {spread(cost.seconds).text(1e3)} ms "
                f"(at most {cost.budget * 1e3:.0f})"
            )
        if self.telemetry is not None:
            yield (
                f"Telemetry, CPU of a delta: x{self.telemetry.on_ratio:.3f} when it is exported "
                f"(at most {self.telemetry.budget}), x{self.telemetry.off_ratio:.3f} otherwise"
            )
        for tree in self.trees:
            yield (
                f"The turns of an approval in {tree.tree}: {spread(tree.asking).text(1e3)} ms to "
                f"the card, {spread(tree.approved).text(1e3)} from the yes to the end, the turn "
                f"without a gate {spread(tree.free).text(1e3)}; {tree.ratio:.2f} x (at most 1.5)"
            )
        if self.spoken is not None:
            yield (
                f"Live, first byte of speech to first byte of sound, {len(self.spoken.seconds)} "
                f"times: {spread(self.spoken.seconds).text(1e3)} ms (at most {BUDGET * 1e3:.0f})"
            )
        if self.idle is not None:
            yield (
                f"{self.idle.sockets:,} idle sockets: {self.idle.kib_per_socket:.1f} KiB each "
                f"(at most {BUDGET_KIB:.0f}); {len(self.idle.closed)} rounds of opening and "
                f"closing leave {self.idle.growth:.2f} (at most {GROWTH_KIB:.0f})"
            )
        yield from self._of_voice()
        yield from self._of_files()
        yield from self._of_flood()
        yield from self._of_inboxes()
        yield from self._of_people()
        found = self.pending
        if found is not None:
            yield (
                f"{found.count:,} idle pending approvals: {found.resident_kib:,} KiB of memory "
                f"({found.kib_per_thousand:,.0f} KiB per 1,000), "
                f"{found.tasks} tasks, {found.sockets} sockets"
            )

    def _of_files(self) -> Iterator[str]:
        found = self.files
        if found is None:
            return
        first, last = found.resident[0], found.resident[-1]
        yield (
            f"{found.turns:,} turns with two pictures each: {first:.0f} MiB after a tenth, "
            f"{last:.0f} at the end; the second half adds {found.growth:.1f} "
            f"(at most {GROWTH_MIB})"
        )
        for way, peak in found.peaks.items():
            yield f"An attachment of 10 MiB, {way}: {peak:.0f} MiB at its peak (at most {PEAK_MIB})"

    def _of_inboxes(self) -> Iterator[str]:
        for found in self.inboxes:
            yield (
                f"The first page of {found.waiting:,} waiting approvals, {found.store}: "
                f"{summary(found.of_holder, PAGE)}; of {USERS_OF} of these: "
                f"{summary(found.of_user, PAGE)}"
            )
            yield f"a request at the holder of its role: {summary(found.requested, LIVE)}"
            yield f"a decision at the user of the chat: {summary(found.decided, LIVE)}"
            yield f"a commit at the receiver of a webhook: {summary(found.webhooks, LIVE)}"

    def _of_voice(self) -> Iterator[str]:
        found = self.voice
        if found is None:
            return
        yield (
            f"Through Google's client, the model's call to its card: "
            f"{spread(found.card).text(1e3)} ms (at most {CARD * 1e3:.0f})"
        )
        yield (
            f"an approval to the model's response: {spread(found.yes).text(1e3)} ms "
            f"(at most {YES * 1e3:.0f})"
        )
        ours, relay = spread(found.first.ours), spread(found.first.relay)
        yield (
            f"last audio in to first audio out: {ours.text(1e3)} ms, a bare relay "
            f"{relay.text(1e3)}: {(ours.median - relay.median) * 1e3:+.1f} (at most "
            f"{LIVE_ADDED * 1e3:.0f})"
        )
        for talk in found.talks:
            (p50, p99), (bare, worst) = (
                [percentile(seconds, share) * 1e3 for share in (0.5, 0.99)]
                for seconds in (talk.ours, talk.relay)
            )
            most = f" (at most {CROWD[1] * 1e3:.0f})" if talk.chats <= CROWD[0] else ""
            yield (
                f"{talk.chats:4} conversations, a frame to the model and back: p50 {p50:.1f} ms, "
                f"p99 {p99:.1f}; the relay {bare:.1f} and {worst:.1f}: {p99 - worst:+.1f}{most}"
            )
        yield f"An open live chat: {found.chat_kib:.0f} KiB (at most {EACH_KIB})"

    def _of_people(self) -> Iterator[str]:
        for found in self.capacity:
            for step in found.steps:
                yield f"{found.title}: {step_line(step)}"
            if found.most is not None and found.per_core is not None:
                yield f"{found.title}: {found.per_core:.0f} people for each core"
                for people in PLANNED:
                    yield plan_line(planned(found.most, people))
        if self.scaling is not None:
            yield scaling_line(self.scaling)
        if self.killed is not None:
            yield killed_line(self.killed)

    def _of_flood(self) -> Iterator[str]:
        found = self.flood
        if found is None:
            return
        most = f"(at most {P99 * 1e3:.0f})"
        for what, seconds in (("a list of chats", found.read), ("a short answer", found.chat)):
            p50, p99 = (percentile(seconds, share) * 1e3 for share in (0.5, 0.99))
            yield (
                f"While another user sends the largest requests, {what}: p50 {p50:.0f} ms, "
                f"p99 {p99:.0f} {most}"
            )
        yield (
            f"{sum(found.large.values())} of these: the process grows by {found.growth:.0f} MiB "
            f"(at most {FLOOD_GROWTH_MIB}), {found.left * 100:.0f} % are left (at most "
            f"{LEFT * 100:.0f})"
        )


def machine() -> dict[str, str]:
    """Return a description of the machine and the versions."""
    return {
        "processor": f"{os.cpu_count()} x {_processor()}",
        "system": f"{platform.system()} {platform.release()}",
        "python": f"Python {platform.python_version()}",
        "google_adk": f"google-adk {version('google-adk')}",
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
            names = [line.partition(":")[2] for line in cpuinfo if line.startswith("model name")]
    except OSError:
        names = []
    return names[0].strip() if names else platform.machine()


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:7.1f}"
