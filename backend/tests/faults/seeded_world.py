"""A server and its concurrent users on a seeded loop; the server may die.

The database is real SQLite; only its threads are gone. What tools really did is kept outside.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
import uuid
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Executor
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import aiosqlite
import aiosqlite.core
import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from sqlalchemy import make_url

from sluicegate.core.approvals import ApprovalState
from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.options import EngineOptions
from sluicegate.errors import RequestError, Unknown
from sluicegate.replay import ScriptedModel
from sluicegate.replay.scenario import parse_scenarios
from sluicegate.stores.sql.create_or_upgrade_tables import create_or_upgrade_tables
from sluicegate.stores.sql.database import Database
from sluicegate.stores.sql.sqlite import FileLock, SqliteFile
from sluicegate.stores.sql.time_limits import DatabaseTimings
from sluicegate.testing.message_comparison import comparable
from sluicegate.wire.ui_messages import UIMessage, is_tool_part
from tests.engine.stage import calls, says
from tests.engine.talk import Talk, decide
from tests.faults.promises import DoubleEffect, LostDecision
from tests.faults.seeded_loop import Killed, SeededLoop

CHAT: Final = "chat"
USER: Final = "ann"
CONNECT: Final = sqlite3.connect

EFFECTS: list[str] = []
"""The calls whose payment was made, by id."""

ENDS: Final[dict[tuple[ApprovalState, bool | None], str]] = {
    ("executed", True): "output-available",
    ("unknown", True): "output-error",
    ("denied", False): "output-denied",
    ("superseded", None): "output-denied",
    ("superseded", True): "output-error",
}
"""The final state of an approval card, by the state and answer of its row."""

SCRIPT = parse_scenarios(
    {
        "scenarios": [
            {"match": "go on", "responses": [says("I go on.")]},
            {
                "match": "pay",
                "responses": [
                    calls(("look", {}), ("pay", {"amount": 1}), ("pay", {"amount": 2})),
                    calls(("pay", {"amount": 3}), text="Once more."),
                    says("All is paid."),
                ],
            },
        ]
    }
)


async def pay(amount: int, tool_context: ToolContext) -> dict[str, int]:
    """Pay, with a delay before and after the effect."""
    await asyncio.sleep(0)
    EFFECTS.append(str(tool_context.function_call_id))
    await asyncio.sleep(0.01)
    return {"paid": amount}


async def look() -> dict[str, str]:
    """Look something up; it needs no approval."""
    await asyncio.sleep(0)
    return {"seen": "all"}


AGENT = LlmAgent(
    name="payer",
    model=ScriptedModel(scenarios=SCRIPT),
    tools=[FunctionTool(pay, require_confirmation=True), look],
)


class _OnTheLoop(Executor):
    """An executor without threads: the seeded loop runs the functions itself."""

    def shutdown(self, *_: Any, **__: Any) -> None:
        """Do nothing: there are no threads."""


async def _execute(_: Any, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, partial(fn, *args, **kwargs))


@contextlib.contextmanager
def seeded(choose: random.Random) -> Iterator[Open]:
    """Replace threads, ids and every other source of randomness by the seed.

    What is open is remembered: a process that dies loses its connections and its locks.
    """
    still = Open()
    with pytest.MonkeyPatch.context() as patch:
        connection = aiosqlite.core.Connection
        patch.setattr(connection, "_execute", _execute)
        patch.setattr(connection, "_connect", still.attach)
        patch.setattr(connection, "__await__", lambda self: self._connect().__await__())
        patch.setattr(connection, "stop", lambda _self: None)
        patch.setattr(Database, "open", still.database)
        for module in (sqlite3, sqlite3.dbapi2):
            patch.setattr(module, "connect", still.connect)
        patch.setattr("uuid.uuid4", lambda: uuid.UUID(int=choose.getrandbits(128), version=4))
        patch.setattr("secrets.token_hex", lambda size=32: choose.randbytes(size).hex())
        yield still


class Open:
    """The open files of the current process."""

    def __init__(self) -> None:
        self._connections: list[sqlite3.Connection] = []
        self._attached: list[aiosqlite.Connection] = []
        self._locks: list[FileLock] = []

    @property
    def attach(self) -> Callable[[aiosqlite.Connection], Coroutine[Any, Any, Any]]:
        async def attached(connection: aiosqlite.Connection) -> aiosqlite.Connection:
            connection._connection = connection._connector()
            self._attached.append(connection)
            return connection

        return attached

    def connect(self, *args: Any, **kwargs: Any) -> sqlite3.Connection:
        self._connections.append(CONNECT(*args, **kwargs))
        return self._connections[-1]

    async def database(
        self, url: str, *, clock_offset: Callable[[], float], timings: DatabaseTimings
    ) -> Database:
        """Open a database without threads; the loop retries a locked one."""
        transactions = await SqliteFile.open(
            make_url(url),
            exclusive=True,
            busy_timeout=0.0,
            lock=self.lock,
            executor=_OnTheLoop,
        )
        database = Database(transactions, clock_offset=clock_offset)
        await database.write(create_or_upgrade_tables)
        return database

    def lock(self, path: Path) -> FileLock:
        self._locks.append(FileLock(path))
        return self._locks[-1]

    def close(self) -> None:
        """Close the files as the operating system does for a dead process, without a commit."""
        for attached in self._attached:
            attached._connection = None
        for connection in self._connections:
            connection.close()
        for lock in self._locks:
            lock.release()
        self._attached.clear()
        self._connections.clear()
        self._locks.clear()


Story = Callable[[ChatEngine], Coroutine[Any, Any, None]]


@dataclass
class World:
    """One chat and its database, for a sequence of servers."""

    database: Path
    seed: int
    shown: list[UIMessage] = field(default_factory=list)
    """The messages of the page."""
    promised: dict[str, bool] = field(default_factory=dict)
    """The decisions that were confirmed to a client, by approval."""
    trace: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def serve(self, story: Story, *, dies: bool) -> None:
        """Run a server until its story ends; one that ``dies`` may be killed before."""
        loop = SeededLoop(self.random.getrandbits(32))
        if dies:
            loop.dies_at = self.random.randrange(200, 4000)
        with seeded(self.random) as still:
            # After the handler no traceback refers to the tasks that are discarded.
            with contextlib.suppress(Killed):
                loop.run(self._serve(story))
            still.close()
            loop.bury()
            self.trace.extend(loop.trace)

    async def _serve(self, story: Story) -> None:
        url = f"sqlite+aiosqlite:///{self.database}"
        engine = await ChatEngine.open(AGENT, EngineOptions(sessions=url))
        await story(engine)
        await engine.close()

    async def crowd(self, engine: ChatEngine) -> None:
        """Ask for payments; then tabs decide, stop and continue concurrently, at random."""
        await Talk(engine, chat_id=CHAT, messages=self.shown).say("pay")
        for _ in range(3):
            people = [self._tab(engine) for _ in range(self.random.randrange(1, 4))]
            people.append(self._interruption(engine))
            await asyncio.gather(*people)
            self.shown = await _stored(engine)

    async def _tab(self, engine: ChatEngine) -> None:
        """Decide some of the pending approvals, and perhaps disconnect before the end."""
        talk = Talk(engine, chat_id=CHAT, messages=deepcopy(self.shown))
        said = {}
        await asyncio.sleep(self.random.choice((0, 0, 0.01, 0.1)))
        for part in talk.pending():
            if self.random.random() < 0.8:
                approved = self.random.random() < 0.8
                decide(part, approved=approved)
                said[part["approval"]["id"]] = approved
        last = talk.messages[-1]
        with contextlib.suppress(RequestError):
            reader = await talk.start({"message": last, "messageId": last["id"]})
            for approval, approved in said.items():
                assert self.promised.setdefault(approval, approved) == approved
            if self.random.random() < 0.8:
                await talk.read(reader)
            await reader.aclose()

    async def _interruption(self, engine: ChatEngine) -> None:
        await asyncio.sleep(self.random.choice((0, 0.01, 0.1, 0.2)))
        talk = Talk(engine, chat_id=CHAT)
        with contextlib.suppress(RequestError):
            match self.random.randrange(6):
                case 0:
                    await engine.stop(CHAT, user=USER)
                case 1:
                    await talk.say("go on")
                case 2:
                    reader = await engine.resume(CHAT, user=USER, client=talk.client)
                    if reader is not None:
                        await talk.read(reader)

    async def settle(self, engine: ChatEngine) -> None:
        """Decide everything pending, check every promise, and continue the chat."""
        talk = Talk(engine, chat_id=CHAT)
        for _ in range(6):
            talk.messages = await _stored(engine)
            if not talk.messages:
                break
            chat = await engine.get_chat(CHAT, user=USER)
            if chat["status"] != "interrupted" and not _is_open(talk.messages[-1]):
                break
            for part in talk.pending():
                decide(part, approved=True)
                self.promised.setdefault(part["approval"]["id"], True)
            await talk.post_last()
        else:
            pytest.fail("the exchange never ends")
        await self._check(engine, talk.messages)
        assert not (await talk.say("go on")).failed
        again = await _stored(engine)
        assert [comparable(message) for message in again[:-2]] == [
            comparable(message) for message in talk.messages[:-2]
        ]

    async def _check(self, engine: ChatEngine, messages: list[UIMessage]) -> None:
        chat = ChatKey(AGENT.name, USER, CHAT)
        rows = {row.approval_id: row for row in await engine.resources.ledger.rows(chat)}
        assert len(rows) == len({row.key for row in rows.values()})
        cards = [part for message in messages for part in message["parts"] if "approval" in part]
        assert {card["approval"]["id"] for card in cards} == set(rows)
        for approval, answer in self.promised.items():
            if rows[approval].answer != answer:
                raise LostDecision(f"{approval} was answered {answer}: {rows[approval]}")
        paid = Counter(EFFECTS)
        for card in cards:
            row = rows[card["approval"]["id"]]
            count = paid.pop(card["toolCallId"], 0)
            allowed = {"executed": {1}, "unknown": {0, 1}}.get(row.state, {0})
            if count > max(allowed):
                raise DoubleEffect(f"{row.state}: paid {count} times")
            if count not in allowed or card["state"] != ENDS[row.state, row.answer]:
                raise LostDecision(f"paid {count} times, the card is {card['state']}: {row}")
        if paid:
            raise DoubleEffect("paid for nothing that was asked")


async def _stored(engine: ChatEngine) -> list[UIMessage]:
    """Return the messages of the chat, none if it does not exist."""
    with contextlib.suppress(Unknown):
        messages: list[UIMessage] = (await engine.get_chat(CHAT, user=USER))["messages"]
        return messages
    return []


def _is_open(message: UIMessage) -> bool:
    """Whether a call of a message has not ended."""
    ended = ("output-available", "output-error", "output-denied")
    return any(is_tool_part(part) and part["state"] not in ended for part in message["parts"])
