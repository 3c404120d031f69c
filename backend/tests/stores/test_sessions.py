"""Sessions: the cache of long chats, the order of events, and errors of the database."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.errors import StaleSessionError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.genai import types
from sqlalchemy import event as sql
from sqlalchemy import text

from sluicegate.errors import StoreError
from sluicegate.stores.sessions import ChatSessions
from tests.stores.builders import CHAT

if TYPE_CHECKING:
    from google.adk.sessions.session import Session

    from sluicegate.stores.sql.database import Database

NAMES = {"app_name": CHAT.app, "user_id": CHAT.user, "session_id": CHAT.chat}


def said(words: str, **more: Any) -> Event:
    content = types.Content(role="user", parts=[types.Part(text=words)])
    return Event(author="user", invocation_id="i", content=content, **more)


def texts(session: Session | None) -> list[str]:
    assert session is not None
    return [
        part.text
        for e in session.events
        if e.content
        for part in e.content.parts or []
        if part.text
    ]


class Statements:
    """The statements on the database of the sessions."""

    def __init__(self, database: Database) -> None:
        self.texts: list[str] = []
        sql.listen(database.sessions.sync_engine, "before_cursor_execute", self._add)

    def _add(self, _c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        self.texts.append(statement.split()[0])


class Reads:
    """The number of rows of events that each load has read."""

    def __init__(self, database: Database) -> None:
        self.events = 0
        sql.listen(database.sessions.sync_engine, "before_cursor_execute", self._count)

    def _count(self, _c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        self.events += "event_data" in statement and statement.lstrip().startswith("SELECT")


@pytest.fixture
async def sessions(database: Database) -> ChatSessions:
    service = ChatSessions(database, max_bytes=1_000_000)
    await service.create_session(**NAMES)
    return service


async def load(service: DatabaseSessionService) -> Session:
    session = await service.get_session(**NAMES)  # type: ignore[arg-type]
    assert session is not None
    return session


async def test_a_chat_is_loaded_once_and_then_only_its_new_events(
    sessions: ChatSessions, database: Database
) -> None:
    session = await load(sessions)
    for word in "abc":
        await sessions.append_event(session, said(word))
    first = await load(sessions)
    reads = Reads(database)
    again = await load(sessions)
    assert reads.events == 0
    assert texts(first) == texts(again) == ["a", "b", "c"]
    await sessions.append_event(again, said("d"))
    assert texts(await load(sessions)) == ["a", "b", "c", "d"]
    plain = await load(DatabaseSessionService(db_engine=database.sessions))
    kept = await load(sessions)
    assert kept.model_dump() == plain.model_dump()
    assert kept._storage_update_marker == plain._storage_update_marker


def full(words: str, **more: Any) -> Event:
    """An event with a field of most kinds."""
    args = {"b": [1, 2.5, None], "a": {"ü": "\u2028"}}
    parts = [
        types.Part(text=words, thought=True, thought_signature=b"\xff\x00"),
        types.Part(function_call=types.FunctionCall(id="c", name="pay", args=args)),
        types.Part(inline_data=types.Blob(data=b"\x00\xfe", mime_type="image/png")),
    ]
    return Event(
        author="agent",
        invocation_id="i",
        branch="a.b",
        content=types.Content(role="model", parts=parts),
        long_running_tool_ids={"c"},
        custom_metadata={"sluicegate": {"turn": "t"}},
        actions=EventActions(end_of_agent=True, artifact_delta={"f": 1}),
        **more,
    )


async def test_an_event_is_stored_and_cached_as_adk_stores_and_reads_it(
    sessions: ChatSessions, database: Database
) -> None:
    adk = DatabaseSessionService(db_engine=database.sessions)
    await adk.create_session(app_name=CHAT.app, user_id=CHAT.user, session_id="of adk")
    theirs = await adk.get_session(**{**NAMES, "session_id": "of adk"})  # type: ignore[arg-type]
    assert theirs is not None
    ours = await load(sessions)
    for number in range(2):
        moment = 1_900_000_000.123456 + number
        said_twice = [full("x", id=f"e{number}", timestamp=moment) for _ in range(2)]
        await sessions.append_event(ours, said_twice[0])
        await adk.append_event(theirs, said_twice[1])
    assert ours.last_update_time == theirs.last_update_time
    assert ours._storage_update_marker == theirs._storage_update_marker
    assert ours.events == theirs.events
    rows: dict[str, list[Any]] = {CHAT.chat: [], "of adk": []}
    async with database.sessions.begin() as connection:
        for chat, found in rows.items():
            for table, key in (("events", "session_id"), ("sessions", "id")):
                query = text(f"SELECT * FROM {table} WHERE {key} = :chat ORDER BY 1, 2, 3, 4")
                for row in (await connection.execute(query, {"chat": chat})).mappings():
                    # When a session was made is its own.
                    left_out = (key, "create_time")
                    found.append({name: row[name] for name in row if name not in left_out})
    assert rows[CHAT.chat] == rows["of adk"]
    kept = await load(sessions)
    assert kept.events == (await load(adk)).events
    assert kept.events[0].model_dump() == theirs.events[0].model_dump()


async def test_a_turn_of_one_process_reads_no_event_again(
    sessions: ChatSessions, database: Database
) -> None:
    await sessions.append_event(await load(sessions), said("a"))
    await load(sessions)
    reads, statements = Reads(database), Statements(database)
    session = await load(sessions)
    for word in "bc":
        await sessions.append_event(session, said(word))
    assert texts(await load(sessions)) == ["a", "b", "c"]
    assert reads.events == 0
    assert statements.texts == ["SELECT", "UPDATE", "INSERT", "UPDATE", "INSERT", "SELECT"]


async def test_a_cached_event_is_not_the_callers(sessions: ChatSessions) -> None:
    await sessions.append_event(await load(sessions), said("a"))
    session, event = await load(sessions), said("b")
    await sessions.append_event(session, event)
    assert event.content is not None
    event.content.parts = []
    assert texts(await load(sessions)) == ["a", "b"]


async def test_events_that_are_appended_at_once_are_read_in_that_order(
    sessions: ChatSessions,
) -> None:
    session = await load(sessions)
    made = [said(words) for words in ("one", "two", "three")]
    await asyncio.gather(*(sessions.append_event(session, event) for event in reversed(made)))
    assert texts(await load(sessions)) == ["three", "two", "one"]


async def test_a_first_event_between_two_microseconds_is_read_first(
    sessions: ChatSessions,
) -> None:
    session = await load(sessions)
    # A product with a million rounds to ...626, the time itself to ...627.
    moment = 1_900_000_000.0996265
    # Of equal times the database reads that of the smaller id first.
    await sessions.append_event(session, said("one", id="b", timestamp=moment))
    await sessions.append_event(session, said("two", id="a", timestamp=moment))
    assert texts(await load(sessions)) == ["one", "two"]


@pytest.mark.parametrize(
    ("moment", "stored"),
    [("before_cursor_execute", ["a", "c"]), ("checkin", ["a", "b", "c"])],
    ids=["before it is stored", "after it was stored"],
)
async def test_a_session_goes_on_after_an_append_that_was_cancelled(
    sessions: ChatSessions, database: Database, moment: str, stored: list[str]
) -> None:
    session = await load(sessions)
    await sessions.append_event(session, said("a"))
    await load(sessions)
    appending = asyncio.create_task(sessions.append_event(session, said("b")))
    engine = database.sessions.sync_engine

    def cancel(*given: Any) -> None:
        if moment == "checkin" or given[2].startswith("INSERT"):
            appending.cancel()

    sql.listen(engine, moment, cancel)
    with pytest.raises(asyncio.CancelledError):
        await appending
    sql.remove(engine, moment, cancel)
    assert texts(session) == stored[:-1]
    await sessions.append_event(session, said("c"))
    assert texts(session) == texts(await load(sessions)) == stored


async def test_an_event_that_does_not_follow_the_cached_ones_is_not_cached(
    sessions: ChatSessions, database: Database
) -> None:
    await sessions.append_event(await load(sessions), said("a"))
    await load(sessions)
    other = DatabaseSessionService(db_engine=database.sessions)
    await other.append_event(await load(other), said("b"))
    await sessions.append_event(await load(other), said("c"))
    assert texts(await load(sessions)) == ["a", "b", "c"]


async def test_states_of_all_scopes_are_read_with_cached_events(
    sessions: ChatSessions, database: Database
) -> None:
    session = await load(sessions)
    changes: dict[str, Any] = {
        "mine": [1],
        "app:ours": {"a": None},
        "user:theirs": "x",
        "temp:gone": 1,
    }
    changing = said("a", actions=EventActions(state_delta=changes))
    await sessions.append_event(session, changing)
    await sessions.append_event(session, said("b"))
    expected = {"mine": [1], "app:ours": {"a": None}, "user:theirs": "x"}
    kept = await load(sessions)
    assert (texts(kept), kept.state) == (["a", "b"], expected)
    plain = await load(DatabaseSessionService(db_engine=database.sessions))
    assert kept.model_dump() == plain.model_dump()


async def test_events_of_another_process_are_loaded(
    sessions: ChatSessions, database: Database
) -> None:
    other = ChatSessions(database, max_bytes=1_000_000)
    await sessions.append_event(await load(sessions), said("a"))
    for number in range(4):
        for service in (sessions, other):
            await service.append_event(await load(service), said(str(number)))
    expected = ["a", *(str(n) for n in range(4) for _ in range(2))]
    assert texts(await load(sessions)) == texts(await load(other)) == expected


async def test_a_loaded_session_is_the_callers_own(sessions: ChatSessions) -> None:
    session = await load(sessions)
    await sessions.append_event(session, said("a"))
    one, two = await load(sessions), await load(sessions)
    one.events.clear()
    one.state["mine"] = True
    assert (texts(two), dict(two.state)) == (["a"], {})
    assert texts(await load(sessions)) == ["a"]


async def test_a_stale_writer_is_refused(sessions: ChatSessions) -> None:
    await sessions.append_event(await load(sessions), said("a"))
    one, two = await load(sessions), await load(sessions)
    await sessions.append_event(one, said("b"))
    with pytest.raises(StaleSessionError):
        await sessions.append_event(two, said("c"))
    assert texts(await load(sessions)) == ["a", "b"]


async def test_a_message_follows_what_another_writer_has_stored_since(
    sessions: ChatSessions,
) -> None:
    await sessions.append_event(await load(sessions), said("a"))
    stale = await load(sessions)
    await sessions.append_event(await load(sessions), said("b"))
    message = said("c")
    message.invocation_id = "next"
    await sessions.append_event(stale, message)
    assert texts(stale) == texts(await load(sessions)) == ["a", "b", "c"]
    await sessions.append_event(stale, said("d"))
    assert texts(await load(sessions)) == ["a", "b", "c", "d"]


async def test_a_writer_that_has_lost_the_chat_is_refused(database: Database) -> None:
    keeps = [True]
    service = ChatSessions(database, max_bytes=1_000_000, may_store=lambda: keeps[0])
    await service.create_session(**NAMES)
    await service.append_event(await load(service), said("a"))
    session = await load(service)
    keeps[0] = False
    with pytest.raises(StaleSessionError):
        await service.append_event(session, said("b"))
    assert texts(await load(service)) == ["a"]


@pytest.mark.parametrize("ahead", [0.0, -3600.0, -2.0, 5.0])
async def test_events_stay_in_order_when_clocks_differ(
    sessions: ChatSessions, ahead: float
) -> None:
    session = await load(sessions)
    now = 1_700_000_000.0
    await sessions.append_event(session, said("call", timestamp=now))
    await sessions.append_event(session, said("result", timestamp=now + ahead))
    await sessions.append_event(session, said("answer", timestamp=now))
    reloaded = await load(sessions)
    assert texts(reloaded) == ["call", "result", "answer"]
    times = [event.timestamp for event in reloaded.events]
    assert times == sorted(set(times))


async def test_an_event_inserted_before_others_is_loaded(
    sessions: ChatSessions, database: Database
) -> None:
    session = await load(sessions)
    now = 1_700_000_000.0
    await sessions.append_event(session, said("a", timestamp=now))
    await load(sessions)
    stranger = DatabaseSessionService(db_engine=database.sessions)
    await stranger.append_event(await load(stranger), said("earlier", timestamp=now - 60))
    await stranger.append_event(await load(stranger), said("later", timestamp=now + 60))
    assert texts(await load(sessions)) == ["earlier", "a", "later"]


async def test_a_recreated_chat_has_no_events_of_the_old_one(
    sessions: ChatSessions, database: Database
) -> None:
    other = ChatSessions(database, max_bytes=1_000_000)
    await sessions.append_event(await load(sessions), said("old"))
    await load(sessions)
    await other.delete_session(**NAMES)
    assert await sessions.get_session(**NAMES) is None  # type: ignore[arg-type]
    assert sessions.size == 0
    await other.create_session(**NAMES)
    assert texts(await load(sessions)) == []
    await other.append_event(await load(other), said("new"))
    assert texts(await load(sessions)) == ["new"]


async def test_windows_of_a_session_bypass_the_cache(sessions: ChatSessions) -> None:
    session = await load(sessions)
    for word in "abc":
        await sessions.append_event(session, said(word))
    await load(sessions)
    window = GetSessionConfig(num_recent_events=2)
    assert texts(await sessions.get_session(**NAMES, config=window)) == ["b", "c"]


async def test_the_cache_is_limited_by_the_setting(database: Database) -> None:
    service = ChatSessions(database, max_bytes=30_000)
    for number in range(5):
        names = {**NAMES, "session_id": f"chat-{number}"}
        session = await service.create_session(**names)
        await service.append_event(session, said("x" * 5_000))
        assert texts(await service.get_session(**names))  # type: ignore[arg-type]
        assert service.size <= 30_000
    assert service.size > 20_000
    reads = Reads(database)
    await service.get_session(**{**NAMES, "session_id": "chat-4"})  # type: ignore[arg-type]
    assert reads.events == 0
    await service.get_session(**{**NAMES, "session_id": "chat-0"})  # type: ignore[arg-type]
    assert reads.events == 1
    large = await service.create_session(**{**NAMES, "session_id": "large"})
    await service.append_event(large, said("x" * 40_000))
    await service.get_session(**{**NAMES, "session_id": "large"})  # type: ignore[arg-type]
    assert service.size <= 30_000


async def test_the_cache_can_be_disabled(database: Database) -> None:
    service = ChatSessions(database, max_bytes=0)
    await service.create_session(**NAMES)
    await service.append_event(await load(service), said("a"))
    assert texts(await load(service)) == ["a"]
    assert service.size == 0


async def test_an_error_of_the_database_is_a_store_error(
    sessions: ChatSessions, database: Database
) -> None:
    session = await load(sessions)
    await database.close()
    async with database.sessions.begin() as connection:
        await connection.exec_driver_sql("DROP TABLE events")
    for attempt in (
        sessions.get_session(**NAMES),  # type: ignore[arg-type]
        sessions.append_event(session, said("hunter2")),
        sessions.delete_session(**NAMES),
    ):
        with pytest.raises(StoreError) as failure:
            await attempt
        assert "hunter2" not in str(failure.value)
