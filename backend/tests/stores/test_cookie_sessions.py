"""Sessions of browsers: found by their id only, for a while, by every server."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select, text

from sluicegate.stores.cookie_session_sealing import digest_of, seal, unseal
from sluicegate.stores.cookie_sessions import (
    MAX_SESSIONS,
    DatabaseCookieSessions,
    MemoryCookieSessions,
)
from sluicegate.stores.sql.database import Database
from sluicegate.stores.sql.schema import COOKIE_SESSIONS
from tests.stores.builders import open_database

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sluicegate.stores.cookie_sessions import CookieSessions
    from tests.stores.builders import Clock

TOKEN = "a.token-of+ann=="


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def sessions_url(request: pytest.FixtureRequest) -> str | None:
    """The URL of the database of the sessions, None for sessions in memory."""
    if request.param == "memory":
        return None
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
async def sessions(sessions_url: str | None, clock: Clock) -> AsyncIterator[CookieSessions]:
    if sessions_url is None:
        yield MemoryCookieSessions(lambda: 1_000.0 + clock())
        return
    database = await open_database(sessions_url, clock_offset=clock)
    yield DatabaseCookieSessions(database)
    await database.close()


async def test_a_session_gives_its_token_until_it_ends(sessions: CookieSessions) -> None:
    first = await sessions.begin("ann", TOKEN, seconds=60)
    second = await sessions.begin("ann", TOKEN, seconds=60)
    assert first != second
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", first)
    assert await sessions.token(first) == await sessions.token(second) == TOKEN
    await sessions.end(first)
    await sessions.end(first)
    assert (await sessions.token(first), await sessions.token(second)) == (None, TOKEN)
    assert await sessions.token("x" * 43) is None


async def test_the_end_of_a_session_is_read_once_by_its_digest(sessions: CookieSessions) -> None:
    one, other = [await sessions.begin("ann", TOKEN, seconds=60) for _ in range(2)]
    both = {digest_of(one), digest_of(other)}
    ends = sessions.ends()
    assert await ends.next() == set()
    assert await sessions.open_among([*both, "unknown"]) == both
    await sessions.end(one)
    await sessions.end(one)
    await sessions.end(other)
    assert await ends.next() == both
    assert await sessions.open_among(both) == set()
    ends.close()


async def test_a_session_that_has_expired_is_not_open(
    sessions: CookieSessions, clock: Clock
) -> None:
    digest = digest_of(await sessions.begin("ann", TOKEN, seconds=60))
    clock.ahead = 61.0
    assert await sessions.open_among([digest]) == set()


async def test_a_session_ends_by_the_clock_of_the_store(
    sessions: CookieSessions, clock: Clock
) -> None:
    session_id = await sessions.begin("ann", TOKEN, seconds=60)
    clock.ahead = 61.0
    assert await sessions.token(session_id) is None


async def test_the_oldest_sessions_of_a_user_end(sessions: CookieSessions, clock: Clock) -> None:
    bobs = await sessions.begin("bob", TOKEN, seconds=3600)
    ends = sessions.ends()
    await ends.next()
    ids = []
    for number in range(MAX_SESSIONS + 2):
        clock.ahead = float(number)
        ids.append(await sessions.begin("ann", TOKEN, seconds=3600))
    found = [await sessions.token(each) for each in ids]
    assert found == [None, None, *[TOKEN] * MAX_SESSIONS]
    assert await ends.next() == {digest_of(each) for each in ids[:2]}
    ends.close()
    assert await sessions.token(bobs) == TOKEN


async def test_expired_sessions_leave_the_database(database: Database, clock: Clock) -> None:
    sessions = DatabaseCookieSessions(database)
    await sessions.begin("ann", TOKEN, seconds=60)
    clock.ahead = 61.0
    await sessions.begin("bob", TOKEN, seconds=60)
    users = select(COOKIE_SESSIONS.c.user)
    assert await database.read(lambda connection: list(connection.scalars(users))) == ["bob"]


async def test_a_stolen_database_gives_neither_ids_nor_tokens(database: Database) -> None:
    sessions = DatabaseCookieSessions(database)
    session_id = await sessions.begin("ann", TOKEN, seconds=60)
    await sessions.begin("bob", TOKEN, seconds=60)
    rows = await database.read(lambda c: [tuple(r) for r in c.execute(select(COOKIE_SESSIONS))])
    stored = repr(rows)
    assert session_id not in stored
    assert TOKEN not in stored
    assert TOKEN.encode().hex() not in stored
    # What is stored is not accepted as an id.
    for row in rows:
        for value in map(str, row):
            assert await sessions.token(value) is None
            assert await sessions.token(value[:43]) is None
    assert len({row[2] for row in rows}) == 2


async def test_the_token_of_one_session_is_not_that_of_another(database: Database) -> None:
    sessions = DatabaseCookieSessions(database)
    session_id = await sessions.begin("ann", TOKEN, seconds=60)
    other = seal("another-id", "token-of-eve")
    change = text("UPDATE sluicegate_cookie_sessions SET token = :other").bindparams(other=other)
    await database.write(lambda connection: connection.execute(change))
    assert await sessions.token(session_id) is None


@pytest.mark.parametrize("sealed", ["", "zz", "00", "00" * 40])
def test_what_was_not_sealed_is_not_unsealed(sealed: str) -> None:
    assert unseal("id", sealed) is None
    assert unseal("id", seal("id", TOKEN)) == TOKEN


async def test_servers_share_the_sessions_of_a_database(postgresql_url: str) -> None:
    one, other = await open_database(postgresql_url), await open_database(postgresql_url)
    session_id = await DatabaseCookieSessions(one).begin("ann", TOKEN, seconds=60)
    assert await DatabaseCookieSessions(other).token(session_id) == TOKEN
    await DatabaseCookieSessions(other).end(session_id)
    assert await DatabaseCookieSessions(one).token(session_id) is None
    await one.close()
    await other.close()
