"""Uploads that no message refers to, on every database (S4-R55)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.stores.upload_records import Upload, Uploads
from tests.stores.builders import CHAT

if TYPE_CHECKING:
    from sluicegate.stores.sql.database import Database
    from tests.stores.builders import Clock

OTHER = ChatKey(CHAT.app, "bob", "chat-2")
FIRST, SECOND, THIRD = Upload(CHAT, "a.png"), Upload(CHAT, "b.png"), Upload(OTHER, "a.png")


@pytest.fixture
def uploads(database: Database) -> Uploads:
    return Uploads(database)


async def due(uploads: Uploads, *, seconds: float = 100.0, limit: int = 10) -> list[Upload]:
    return await uploads.due(CHAT.app, seconds=seconds, limit=limit)


async def test_an_upload_is_due_after_its_time_and_the_oldest_first(
    uploads: Uploads, clock: Clock
) -> None:
    for upload in (FIRST, THIRD, SECOND):
        await uploads.record(upload)
        clock.ahead += 100
    assert await due(uploads, seconds=1000) == []
    clock.ahead += 850
    assert await due(uploads, seconds=1000) == [FIRST, THIRD]
    clock.ahead += 1000
    assert await due(uploads, seconds=1000) == [FIRST, THIRD, SECOND]
    assert await due(uploads, seconds=1000, limit=2) == [FIRST, THIRD]
    assert await uploads.due("another", seconds=0, limit=10) == []


async def test_a_repeated_upload_renews_the_time(uploads: Uploads, clock: Clock) -> None:
    await uploads.record(FIRST)
    clock.ahead += 101
    await uploads.record(FIRST)
    assert await due(uploads) == []
    assert not await uploads.claim(FIRST, seconds=100)
    clock.ahead += 101
    assert await due(uploads) == [FIRST]


async def test_a_file_of_a_message_is_not_due_and_counts_for_its_chat(
    uploads: Uploads, clock: Clock
) -> None:
    await uploads.record(FIRST, size=10)
    await uploads.record(SECOND, size=5, is_kept=True)
    await uploads.record(THIRD, size=100)
    clock.ahead += 101
    assert await due(uploads) == [FIRST, THIRD]
    await uploads.keep(FIRST)
    assert await due(uploads) == [THIRD]
    assert await uploads.total(CHAT) == 15
    # A repeated upload is of the same content.
    await uploads.record(FIRST)
    assert await uploads.total(CHAT) == 15
    await uploads.delete_all(CHAT)
    assert await uploads.total(CHAT) == 0


async def test_one_of_two_claims_an_upload(uploads: Uploads, clock: Clock) -> None:
    await uploads.record(FIRST)
    await uploads.record(THIRD)
    clock.ahead += 101
    assert await uploads.claim(FIRST, seconds=100)
    assert not await uploads.claim(FIRST, seconds=100)
    assert await due(uploads) == [THIRD]


async def test_the_uploads_of_a_chat_are_deleted_together(uploads: Uploads, clock: Clock) -> None:
    for upload in (FIRST, SECOND, THIRD):
        await uploads.record(upload)
    await uploads.delete_all(CHAT)
    clock.ahead += 101
    assert await due(uploads) == [THIRD]
