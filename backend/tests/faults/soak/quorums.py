"""Several people who decide one approval at once, at two processes: a quorum of two."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import secrets
import socket
from dataclasses import dataclass, field
from typing import Any, Final

from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.tool_context import ToolContext

from sluicegate.core.approvals import ApprovalRow
from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.errors import (
    AlreadyDecided,
    Changed,
    NotEntitled,
    RequestError,
    Superseded,
    Unknown,
)
from sluicegate.tools import Role, approval_of, gated
from tests.engine.stage import calls, says, scripted
from tests.engine.talk import Talk
from tests.faults.promises import DoubleEffect, LostDecision
from tests.faults.soak.child import Child, ChildError
from tests.faults.soak.paying import row_of
from tests.faults.soak.stores import Databases, opened
from tests.faults.soak.tally import Tally, failure

PATIENCE: Final = 120.0
PATIENCE_FOR_EACH: Final = 10.0
AT_ONCE: Final = 6
TITLE: Final = "quorum of two"

ROLES: Final = {"bob": ["finance"], "cat": ["finance"], "dan": ["finance"], "eve": ["sales"]}
REFUSALS: Final = (AlreadyDecided, Changed, NotEntitled, Superseded, Unknown)
"""The refusals of decisions; any other error is a failure."""

_SCRIPT = {"pay": [calls(("pay", {"amount": 5})), says("Done.")]}


@dataclass(frozen=True)
class Act:
    """One decision: of whom, what, after how many seconds; an edit sets the amount."""

    by: str
    approved: bool
    delay: float
    amount: int | None = None
    states_digest: bool = True


@dataclass
class Payments:
    """The payments of a process: chat and the people who had approved, with the amount."""

    made: dict[str, list[tuple[int, tuple[str, ...]]]] = field(default_factory=dict)

    def agent(self) -> LlmAgent:
        """The agent whose payments need two of finance, and never the requester."""

        async def pay(amount: int, tool_context: ToolContext) -> dict[str, int]:
            """Pay an amount of money."""
            approval = approval_of(tool_context)
            by = () if approval is None else approval.approved_by
            self.made.setdefault(tool_context.session.id, []).append((amount, by))
            return {"paid": amount}

        tool = gated(
            pay,
            approvers=[Role("finance"), "requester"],
            quorum=2,
            requester_may_approve=False,
        )
        return scripted(_SCRIPT, [tool])


def acts_of(seed: str) -> list[Act]:
    """Wrong, double, late and right decisions of several people, in a random order."""
    chance = random.Random(seed)
    people = ["requester", "eve", *(chance.choice(["bob", "cat", "dan"]) for _ in range(7))]
    chance.shuffle(people)
    return [
        Act(
            by,
            approved=chance.random() < 0.93,
            delay=chance.choice([0.0, 0.0, 0.01, 0.05, 0.2]),
            amount=chance.randint(1, 4) if chance.random() < 0.2 else None,
            states_digest=chance.random() < 0.8,
        )
        for by in people
    ]


async def decide(engine: ChatEngine, approval: str, act: Act) -> bool:
    """Whether the decision was accepted; it states what its person has just seen."""
    await asyncio.sleep(act.delay)
    body: dict[str, Any] = {"approved": act.approved}
    try:
        if act.states_digest:
            card = await engine.approvals.get(approval, user=act.by)
            body["digest"] = card["digest"]
        if act.approved and act.amount is not None:
            body["edits"] = {"amount": act.amount}
        await engine.approvals.decide(approval, body, user=act.by, via="http")
    except REFUSALS:
        return False
    return True


def race_for_quorum(databases: Databases, count: int, first_seed: int) -> Tally:
    """Let the people of many chats decide at two processes."""
    tally = Tally(f"{TITLE}, {databases.kind}")
    left, right = socket.socketpair()
    url = databases.url(f"quorum-{secrets.token_hex(4)}")
    sides = [
        Child(_first, (left, right), databases, url, (count, first_seed)),
        Child(_second, (right, left), databases, url),
    ]
    left.close()
    right.close()
    try:
        tally.add(sides[0].result(PATIENCE + PATIENCE_FOR_EACH * count), runs=count)
        sides[1].result(60)
    except ChildError as error:
        tally.add([failure(error, tally.case)], runs=count)
    return tally


async def _first(
    pipe: tuple[socket.socket, socket.socket],
    databases: Databases,
    url: str,
    plan: tuple[int, int],
) -> list[tuple[str, str]]:
    payments, (count, first_seed) = Payments(), plan
    reader, writer = await _connected(*pipe)
    answers: dict[str, asyncio.Future[Any]] = {}
    loop = asyncio.get_running_loop()
    ready = answers["ready"] = loop.create_future()

    async def listen() -> None:
        async for line in reader:
            said = json.loads(line)
            answers[said["chat"]].set_result(said)

    listening = asyncio.create_task(listen())
    places = asyncio.Semaphore(AT_ONCE)
    async with opened(url, payments.agent(), databases.folder, shared=True) as engine:
        engine.ask_roles(lambda user: ROLES.get(user, ()))
        writer.write(b"\n")
        await ready

        async def ask(said: dict[str, Any]) -> Any:
            answer = answers[said["chat"]] = loop.create_future()
            writer.write(json.dumps(said).encode() + b"\n")
            return await answer

        async def one(seed: int) -> list[tuple[str, str]]:
            async with places:
                chat = f"chat-{seed}-{secrets.token_hex(4)}"
                try:
                    await _try(engine, chat, seed, ask, payments)
                except Exception as error:  # noqa: BLE001 - whatever it is, it is counted
                    return [failure(error, chat)]
                return []

        raced = await asyncio.gather(*(one(first_seed + n) for n in range(count)))
        writer.close()
        listening.cancel()
    return [failed for failures in raced for failed in failures]


async def _try(engine: ChatEngine, chat: str, seed: int, ask: Any, payments: Payments) -> None:
    talk = Talk(engine, user="requester", chat_id=chat)
    await talk.say("pay")
    approval = (await row_of(talk)).approval_id
    acts = acts_of(str(seed))
    here, there = acts[::2], acts[1::2]
    theirs = ask({"chat": chat, "approval": approval, "acts": [vars(act) for act in there]})
    mine = asyncio.gather(*(decide(engine, approval, act) for act in here))
    accepted_here, answer = await asyncio.gather(mine, theirs)
    accepted = [
        act
        for act, is_accepted in zip(
            [*here, *there], [*accepted_here, *answer["accepted"]], strict=True
        )
        if is_accepted
    ]
    row = await _settled(talk)
    paid = await ask({"chat": chat, "approval": "", "acts": []})
    made = [*payments.made.get(chat, []), *map(tuple, paid["made"])]
    _check(row, accepted, made)


async def _settled(talk: Talk) -> ApprovalRow:
    """The row once an approved call has run."""
    async with asyncio.timeout(PATIENCE):
        while (row := await row_of(talk)).state in ("approved", "executing"):
            pass
    return row


def _check(row: ApprovalRow, accepted: list[Act], made: list[Any]) -> None:
    """Check what was decided against what was paid."""
    people = {each.by for each in row.decisions}
    if people & {"requester", "eve"}:
        raise DoubleEffect(f"{sorted(people)} have decided")
    missing = {act.by for act in accepted} - people
    if missing:
        raise LostDecision(f"the decisions of {sorted(missing)} were accepted and are not there")
    counted = row.approved_by
    if len(made) > 1 or (made and len(counted) < 2):
        raise DoubleEffect(f"{made} was paid after the yes of {counted}")
    if made:
        [(amount, by)] = made
        effective = row.edits if isinstance(row.edits, dict) else row.arguments
        if effective != {"amount": amount} or sorted(by) != sorted(counted):
            raise DoubleEffect(f"{amount} was paid for {by}, approved was {effective}")
    refused = any(not each.approved for each in row.decisions)
    state = "denied" if refused else "executed" if len(counted) >= 2 else "requested"
    if row.state != state or bool(made) is not (state == "executed"):
        raise LostDecision(f"the row is {row.state} and not {state}; paid was {made}")


async def _second(
    pipe: tuple[socket.socket, socket.socket], databases: Databases, url: str
) -> None:
    payments = Payments()
    reader, writer = await _connected(*pipe)
    tasks = set()
    await reader.readline()
    async with opened(url, payments.agent(), databases.folder, shared=True) as engine:
        engine.ask_roles(lambda user: ROLES.get(user, ()))
        writer.write(json.dumps({"chat": "ready"}).encode() + b"\n")

        async def follow(said: dict[str, Any]) -> None:
            acts = [Act(**act) for act in said["acts"]]
            try:
                accepted = await asyncio.gather(
                    *(decide(engine, said["approval"], act) for act in acts)
                )
            except RequestError as error:
                accepted = [str(error)]  # type: ignore[list-item]
            made = payments.made.get(said["chat"], [])
            answer = {"chat": said["chat"], "accepted": accepted, "made": made}
            writer.write(json.dumps(answer).encode() + b"\n")

        with contextlib.suppress(ConnectionError):
            async for line in reader:
                task = asyncio.create_task(follow(json.loads(line)))
                tasks.add(task)
                task.add_done_callback(tasks.discard)


async def _connected(
    own: socket.socket, other: socket.socket
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    # A fork holds both ends; as long as it holds the other one too it never sees it closed.
    other.close()
    return await asyncio.open_unix_connection(sock=own, limit=2**24)
