"""``python -m bench.people HOST PORT KIND SCALE``: people who talk to a server.

A person asks, reads an answer of 3 to 7 seconds, thinks for 5 to 15 and asks again, in a new chat
after ten messages. One message in five leads to an approval, which the person gives after a second
or two. One answer in ten is cut: the connection breaks, and a second later the person resumes.
Every other person uses a socket, the rest SSE. A person whose server dies resumes at once, and
sends the request again if the answer ended with an error. A scale below 1 shortens answers and
pauses.

The process reads commands, a line of JSON each, and answers each with a line: ``{"people": 50}``
lets further people in, ``{"measure": 20}`` returns what `shortened` makes of so many seconds,
``{"leave": 1}`` lets all read to the end, and returns the same since the last measurement began.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import secrets
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bench.client import Address, content
from bench.people_streams import EventStream, Socket, request_of
from bench.script import BEFORE_CALL, DELTA, PAY, SAY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OURS: Final = "sluicegate"
"""The kind of a server with sockets and resumes; any other has neither."""

DELTAS: Final = (90, 210)
"""Fewest and most deltas of an answer."""
THINKING: Final = (5.0, 15.0)
"""Seconds between an answer and the next message."""
DECIDING: Final = (1.0, 2.0)
"""Seconds between a card and its approval."""
APPROVALS: Final = 0.2
"""Share of the messages that lead to an approval."""
CUTS: Final = 0.1
"""Share of the answers that are cut and resumed."""
AWAY: Final = 1.0
"""Seconds from a cut to the resume."""
MESSAGES: Final = 10
"""Messages in a chat."""
_REPEATED: Final = 0.1
"""Seconds after the first delta of a resumed answer in which deltas arrive that are not new."""
_PATIENCE: Final = 60.0
"""Seconds after which a request that fails is a failure."""
_RETRY: Final = 0.25
_TICK: Final = 0.01


@dataclass(slots=True)
class Sample:
    """What people have seen; times in seconds.

    ``first``: from a request to the first delta of its answer. ``gaps``: between two deltas of an
    answer. ``resumes``: from a resume to its first delta. ``lag``: by how much this process was
    late. ``deltas`` without those that a resume repeats. ``lost``: the ports of connections that
    the server broke. ``restored``: from there to the end of the answer. ``failures``: requests
    that were given up.
    """

    seconds: float = 0.0
    first: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    resumes: list[float] = field(default_factory=list)
    lag: list[float] = field(default_factory=list)
    deltas: int = 0
    turns: int = 0
    approvals: int = 0
    lost: list[int] = field(default_factory=list)
    restored: list[float] = field(default_factory=list)
    repeated: int = 0
    failures: list[str] = field(default_factory=list)
    cpu: float = 0.0


class _Reading:
    """One answer while it is read."""

    def __init__(self, sample: Callable[[], Sample], seen: int) -> None:
        self._sample = sample
        self._seen = seen
        """Deltas that were read before a cut."""
        self.count = 0
        self.chunks: dict[str, dict[str, Any]] = {}
        """The last chunk of each type."""
        self.cut_at = 0
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._began = self._first = self._last = time.perf_counter()

    def delta(self) -> None:
        """Record the time of a delta."""
        now = time.perf_counter()
        self.count += 1
        sample = self._sample()
        is_new = self.count > self._seen
        sample.deltas += is_new
        if self.count == 1:
            self._first = now
            (sample.resumes if self._seen else sample.first).append(now - self._began)
        elif is_new and (not self._seen or now - self._first > _REPEATED):
            sample.gaps.append(now - self._last)
        self._last = now
        if self.count == self.cut_at:
            self.end("cut")

    def chunk(self, chunk: dict[str, Any]) -> None:
        """Keep a chunk."""
        self.chunks[chunk["type"]] = chunk

    def end(self, how: str) -> None:
        """The stream has ended."""
        if not self.ended.done():
            self.ended.set_result(how)

    @property
    def card(self) -> str:
        """The id of the last approval that was requested; empty without one."""
        return str(self.chunks.get("tool-approval-request", {}).get("approvalId", ""))

    @property
    def is_complete(self) -> bool:
        """Whether the answer has its regular end."""
        return "finish" in self.chunks


class Habits(NamedTuple):
    """What all people have in common: the server, its kind, and the scale of their times."""

    address: Address
    kind: str
    scale: float


class Person:
    """A person with one chat at a time."""

    def __init__(self, number: int, habits: Habits, sample: Callable[[], Sample]) -> None:
        self._random = random.Random(number)
        self._address = habits.address
        self._kind = habits.kind
        self._scale = habits.scale
        self._uses_socket = self._kind == OURS and number % 2 == 1
        self._sample = sample
        self._headers = {"x-user": f"person-{number}", "x-ai-sdk": "7", "x-release": "progressive"}
        self._socket: Socket | None = None
        self._chat = ""
        self._messages: list[dict[str, Any]] = []
        self._sent = 0
        self._port = 0
        """The local port of the connection on which an answer is read."""
        self._is_talking = False
        self._is_leaving = False

    async def live(self) -> None:
        """Talk until asked to leave; the first message comes within the longest pause."""
        await self._pause(0, THINKING[1])
        while not self._is_leaving:
            self._is_talking = True
            await self.exchange()
            self._is_talking = False
            if not self._is_leaving:
                await self._pause(*THINKING)

    def leave(self, life: asyncio.Task[None]) -> None:
        """End ``life``, the task of `live`, with the answer that is being read."""
        self._is_leaving = True
        if not self._is_talking:
            life.cancel()

    async def _pause(self, shortest: float, longest: float) -> None:
        await asyncio.sleep(self._random.uniform(shortest, longest) * self._scale)

    def _count(self) -> int:
        """A number of deltas: some remain after a card."""
        return max(BEFORE_CALL + 5, round(self._random.randint(*DELTAS) * self._scale))

    async def exchange(self) -> None:
        """Send a message, give the approval that it may need, and read to the end."""
        if self._sent % MESSAGES == 0:
            # Another run may talk to the same database.
            self._chat, self._messages = secrets.token_hex(8), []
        self._sent += 1
        word = PAY if self._random.random() < APPROVALS else SAY
        text = f"{word} {self._count()}"
        said = {"id": f"m{self._sent}", "role": "user", "parts": [{"type": "text", "text": text}]}
        self._messages.append(said)
        reading = await self._turn({})
        given = ""
        # A resumed answer contains the card that was decided before.
        while reading is not None and reading.card not in ("", given):
            given, message = reading.card, self._approved(reading)
            await self._pause(*DECIDING)
            self._messages.append(message)
            reading = await self._turn({"messageId": message["id"]})
            self._sample().approvals += reading is not None
            self._messages.pop()
        if reading is not None:
            text = DELTA * reading.count
            parts = [{"type": "text", "text": text, "state": "done"}]
            self._messages.append({"id": f"a{self._sent}", "role": "assistant", "parts": parts})

    def _approved(self, reading: _Reading) -> dict[str, Any]:
        """The message of the assistant with a yes to its card."""
        call = reading.chunks["tool-input-available"]
        text = {"type": "text", "text": DELTA * reading.count, "state": "done"}
        part = {
            "type": "tool-transfer",
            "toolCallId": call["toolCallId"],
            "input": call["input"],
            "state": "approval-responded",
            "approval": {"id": reading.card, "approved": True},
        }
        name = reading.chunks["start"].get("messageId", f"a{self._sent}")
        parts = [{"type": "step-start"}, text, part]
        return {"id": name, "role": "assistant", "parts": parts}

    async def _turn(self, more: dict[str, Any]) -> _Reading | None:
        """Send the request and read its answer to the end, over cuts; None if it failed."""
        body = {"id": self._chat, "messages": self._messages, "trigger": "submit-message", **more}
        self._sample().turns += 1
        cut_at = 0
        if self._kind == OURS and self._random.random() < CUTS:
            cut_at = self._random.randint(2, BEFORE_CALL)
        reading, how = await self._ask(body, 0, cut_at)
        deadline, lost_at = time.monotonic() + _PATIENCE, 0.0
        seen, hows = 0, [how]
        while not (how == "done" and reading.is_complete):
            seen = max(seen, reading.count)
            hows += [how] if how != hows[-1] else []
            if how == "cut":
                await self._pause(AWAY, AWAY)
                reading, how = await self._ask(None, seen, 0)
                if how == "none":
                    await self._load(reading)
                    return reading
                continue
            if time.monotonic() > deadline or (self._kind != OURS and how != "lost"):
                error = reading.chunks.get("error", "")
                self._sample().failures.append(f"{self._chat}: {hows} {error}")
                return None
            if how == "lost" and not lost_at:
                lost_at = time.perf_counter()
                reading, how = await self._ask(None, seen, 0)
                continue
            # The resumed answer ended with an error, or nothing is there to resume.
            await asyncio.sleep(_RETRY)
            self._sample().repeated += 1
            reading, how = await self._ask(body, 0, 0)
        if lost_at:
            self._sample().restored.append(time.perf_counter() - lost_at)
        return reading

    async def _ask(
        self, body: dict[str, Any] | None, seen: int, cut_at: int
    ) -> tuple[_Reading, str]:
        """Send a request, or resume without one; returns what was read and how it ended."""
        reading = _Reading(self._sample, seen)
        reading.cut_at = cut_at
        try:
            closing = await (self._over_socket if self._uses_socket else self._over_sse)(
                body, reading
            )
        except OSError:
            return reading, "lost"
        try:
            async with asyncio.timeout(_PATIENCE):
                how = await reading.ended
        except TimeoutError:
            how = "late"
        if how != "done" or not self._uses_socket:
            closing()
        if how == "lost":
            self._sample().lost.append(self._port)
        return reading, how

    async def _load(self, reading: _Reading) -> None:
        """Look for a card in the history, since the answer has ended meanwhile."""
        reader, writer = await asyncio.open_connection(*self._address)
        path, headers = f"/api/chats/{self._chat}", {"connection": "close", **self._headers}
        writer.write(request_of("GET", self._address, path, headers))
        message = json.loads(content(await reader.read()))["messages"][-1]
        writer.close()
        for part in message["parts"]:
            if part.get("state") == "approval-requested":
                reading.chunk({"type": "start", "messageId": message["id"]})
                reading.chunk({**part, "type": "tool-input-available"})
                card = {"type": "tool-approval-request", "approvalId": part["approval"]["id"]}
                reading.chunk(card)

    async def _over_sse(self, body: dict[str, Any] | None, reading: _Reading) -> Callable[[], None]:
        headers = {"connection": "close", **self._headers}
        if body is None:
            path = f"/api/chat/{self._chat}/stream"
            request = request_of("GET", self._address, path, headers)
        else:
            posted = json.dumps(body).encode()
            request = request_of("POST", self._address, "/api/chat", headers, posted)
        _, stream = await asyncio.get_running_loop().create_connection(
            lambda: EventStream(request, reading), *self._address
        )
        self._port = stream.port
        return stream.close

    async def _over_socket(
        self, body: dict[str, Any] | None, reading: _Reading
    ) -> Callable[[], None]:
        socket = self._socket
        if socket is None or not socket.is_open:
            _, socket = await asyncio.get_running_loop().create_connection(
                lambda: Socket(self._address, "/api/chat/ws", self._headers), *self._address
            )
            if not await socket.opened:
                raise ConnectionRefusedError("The socket was not accepted.")
            self._socket = socket
        kind = "resume" if body is None else "send"
        frame = {"type": kind, "requestId": f"r{self._sent}", "headers": self._headers}
        socket.ask({"id": self._chat, **(body or {}), **frame}, reading)
        self._port = socket.port
        return socket.close


class _Crowd:
    """All people, and the sample that they fill."""

    def __init__(self, habits: Habits) -> None:
        self._habits = habits
        self._lives: dict[Person, asyncio.Task[None]] = {}
        self._sample = Sample()

    def let_in(self, people: int) -> None:
        """Let further people in until there are so many."""
        for number in range(len(self._lives), people):
            person = Person(number, self._habits, lambda: self._sample)
            self._lives[person] = asyncio.create_task(person.live())

    async def measure(self, seconds: float) -> Sample:
        """Return what is seen in the next seconds.

        Raises:
            Exception: a person cannot go on.
        """
        self._sample = sample = Sample()
        began, cpu = time.perf_counter(), time.process_time()
        while (now := time.perf_counter()) < began + seconds:
            await asyncio.sleep(_TICK)
            sample.lag.append(time.perf_counter() - now - _TICK)
            for life in self._lives.values():
                if life.done():
                    life.result()
        sample.seconds = time.perf_counter() - began
        sample.cpu = time.process_time() - cpu
        return sample

    async def leave(self) -> Sample:
        """Let all read to the end; returns what was seen since the last measurement began.

        Raises:
            Exception: a person cannot go on.
        """
        for person, life in self._lives.items():
            person.leave(life)
        for life in self._lives.values():
            with contextlib.suppress(asyncio.CancelledError):
                await life
        return self._sample


def percentile(values: list[float], share: float) -> float | None:
    """Return the value at a share of the sorted values; None without any."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else None


def shortened(sample: Sample) -> dict[str, Any]:
    """Return the sample with 50th, 99th and last percentile in place of each list of times."""
    return {**asdict(sample), **dict(_percentiles(sample))}


def _percentiles(sample: Sample) -> Iterator[tuple[str, list[float | None]]]:
    for name in ("first", "gaps", "resumes", "lag", "restored"):
        values = getattr(sample, name)
        yield name, [percentile(values, share) for share in (0.5, 0.99, 1)]


async def _serve(host: str, port: str, kind: str, scale: str) -> None:
    crowd = _Crowd(Habits(Address(host, int(port)), kind, float(scale)))
    while line := await asyncio.to_thread(sys.stdin.readline):
        command = json.loads(line)
        answer: Any = {}
        if "people" in command:
            crowd.let_in(command["people"])
        elif "measure" in command:
            answer = shortened(await crowd.measure(command["measure"]))
        else:
            answer = shortened(await crowd.leave())
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    asyncio.run(_serve(*sys.argv[1:]))
