"""The readiness probe and the state of the stores."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from sluicegate.engine.readiness import NOT_SHARED, STREAMS_AWAY, readiness
from sluicegate.engine.timeouts_and_intervals import DEFAULT_TIMINGS
from sluicegate.errors import StoreUnavailable, Unavailable
from tests.engine.loop_time import EVENT_TIMEOUT


class Store:
    """A database or a stream store with a configured answer."""

    def __init__(self, answer: Any = None, **facts: bool) -> None:
        self.answer = answer
        self.__dict__.update(facts)

    async def check(self) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is asyncio.Event:
            await asyncio.Event().wait()
        return self.answer


THERE = 1
ALONE, SHARED = {"is_exclusive": True}, {"is_exclusive": False}


@pytest.mark.parametrize(
    ("database", "streams", "notes"),
    [
        (ALONE, Store(is_shared=False), []),
        (SHARED, Store(is_shared=False), [NOT_SHARED]),
        (SHARED, Store(THERE, is_shared=True), []),
        (SHARED, Store(is_shared=True), [STREAMS_AWAY]),
    ],
    ids=["one process", "replicas with streams of their own", "replicas", "streams away"],
)
async def test_unavailable_features_are_reported(
    database: dict[str, bool], streams: Store, notes: list[str]
) -> None:
    found = await readiness(
        cast("Any", Store(**database)), cast("Any", streams), within=EVENT_TIMEOUT
    )
    assert found == notes


@pytest.mark.parametrize("answer", [StoreUnavailable("away"), asyncio.Event], ids=["away", "hangs"])
async def test_an_unresponsive_database_is_reported_in_time(answer: Any) -> None:
    assert DEFAULT_TIMINGS.readiness < 5
    database = cast("Any", Store(answer, is_exclusive=False))
    with pytest.raises(Unavailable, match="The database does not answer") as raised:
        await readiness(database, cast("Any", Store(is_shared=True)), within=0.01)
    assert raised.value.retry_after == 5
