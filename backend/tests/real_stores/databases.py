"""New databases on a real server."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
from redis.asyncio import Redis

from tests.real_stores.postgres import Postgres
from tests.real_stores.valkey import Valkey


@asynccontextmanager
async def fresh_database(server: Postgres) -> AsyncIterator[str]:
    """Create an empty database, which is dropped afterwards with all its connections."""
    name = f"test_{secrets.token_hex(6)}"
    await execute(server, f"CREATE DATABASE {name} STRATEGY file_copy")
    yield server.url(name)
    await execute(server, f"DROP DATABASE {name} WITH (FORCE)")


@asynccontextmanager
async def connection_to(url: str) -> AsyncIterator[asyncpg.Connection]:
    """Open a connection of the driver itself, without our settings."""
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    try:
        yield connection
    finally:
        await connection.close()


async def execute(server: Postgres, *statements: str, database: str = "postgres") -> None:
    """Execute statements one by one."""
    async with connection_to(server.url(database)) as connection:
        for statement in statements:
            await connection.execute(statement)


async def flush(server: Valkey) -> None:
    """Delete every key."""
    client = Redis(host="127.0.0.1", port=server.port)
    await client.flushall()
    await client.aclose()
