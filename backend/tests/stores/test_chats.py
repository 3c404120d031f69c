"""The list of chats on every database."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING

import pytest

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.errors import Unknown
from tests.stores.builders import CHAT

if TYPE_CHECKING:
    from sluicegate.stores.chats import ChatIndex, ChatPage
    from tests.stores.builders import Clock


def key(chat: str) -> ChatKey:
    return ChatKey("app", "ann", chat)


def ids(page: ChatPage) -> list[str]:
    return [entry.key.chat for entry in page.chats]


async def all_pages(chats: ChatIndex, limit: int, query: str | None = None) -> list[list[str]]:
    pages: list[list[str]] = []
    after = None
    while True:
        page = await chats.page("app", "ann", limit=limit, after=after, query=query)
        pages.append(ids(page))
        after = page.next
        if after is None:
            return pages


async def fill(chats: ChatIndex, clock: Clock, titles: dict[str, str | None]) -> None:
    for chat, title in titles.items():
        clock.ahead += 1
        await chats.touch(key(chat), title=title)


async def test_a_touched_chat_is_listed_with_its_title(chats: ChatIndex) -> None:
    assert await chats.get(CHAT) is None
    await chats.touch(CHAT, title="Hello")
    entry = await chats.get(CHAT)
    assert entry is not None
    assert (entry.key, entry.title) == (CHAT, "Hello")
    assert entry.updated_at > 1_700_000_000


async def test_a_touch_updates_the_time_and_keeps_the_title(chats: ChatIndex, clock: Clock) -> None:
    await chats.touch(CHAT, title=None)
    first = await chats.get(CHAT)
    clock.ahead = 10
    await chats.touch(CHAT, title="First words")
    clock.ahead = 20
    await chats.touch(CHAT, title="Later words")
    last = await chats.get(CHAT)
    assert first is not None
    assert first.title is None
    assert last is not None
    assert last.title == "First words"
    assert last.updated_at - first.updated_at >= 20 - 1e-3


async def test_the_newest_chat_comes_first(chats: ChatIndex, clock: Clock) -> None:
    await fill(chats, clock, {"a": None, "b": None, "c": None, "a ": None})
    await fill(chats, clock, {"b": None})
    assert await all_pages(chats, 10) == [["b", "a ", "c", "a"]]


async def test_only_the_chats_of_this_app_and_user_are_listed(chats: ChatIndex) -> None:
    await chats.touch(CHAT, title="mine")
    await chats.touch(ChatKey("app", "bob", "his"), title="his")
    await chats.touch(ChatKey("other", "ann", "elsewhere"), title="elsewhere")
    assert ids(await chats.page("app", "ann", limit=10, after=None, query=None)) == ["chat-1"]
    assert await chats.get(ChatKey("app", "bob", "chat-1")) is None


@pytest.mark.parametrize(
    ("limit", "pages"),
    [
        (2, [["e", "d"], ["c", "b"], ["a"]]),
        (5, [["e", "d", "c", "b", "a"]]),
        (4, [["e", "d", "c", "b"], ["a"]]),
    ],
)
async def test_pages_follow_each_other_to_the_end(
    chats: ChatIndex, clock: Clock, limit: int, pages: list[list[str]]
) -> None:
    await fill(chats, clock, dict.fromkeys("abcde"))
    assert await all_pages(chats, limit) == pages


async def test_pages_hold_every_chat_of_one_moment(chats: ChatIndex) -> None:
    for number in range(30):
        await chats.touch(key(f"{number:02}"), title=None)
    listed = [chat for page in await all_pages(chats, 7) for chat in page]
    assert sorted(listed) == [f"{number:02}" for number in range(30)]


async def test_a_cursor_stays_valid_when_chats_are_added_moved_and_deleted(
    chats: ChatIndex, clock: Clock
) -> None:
    await fill(chats, clock, dict.fromkeys("abcde"))
    first = await chats.page("app", "ann", limit=2, after=None, query=None)
    assert ids(first) == ["e", "d"]
    await fill(chats, clock, {"new": None, "e": None, "b": None})
    await chats.delete(key("d"))
    rest = await chats.page("app", "ann", limit=9, after=first.next, query=None)
    assert ids(rest) == ["c", "a"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("invoice", ["c", "a"]),
        ("VOICE", ["c", "a"]),
        ("straße", ["b"]),
        ("STRASSE", ["b"]),
        ("ÜBER", ["d"]),
        ("u\u0308ber", ["d"]),
        ("100%", ["e"]),
        ("%", ["e"]),
        ("_", ["f"]),
        ("\\", ["f"]),
        ("/", []),
        ("", ["g", "f", "e", "d", "c", "b", "a"]),
    ],
)
async def test_a_search_matches_its_text_literally(
    chats: ChatIndex, clock: Clock, query: str, found: list[str]
) -> None:
    titles: dict[str, str | None] = {
        "a": "Invoice 1",
        "b": "Straße",
        "c": "an INVOICE",
        "d": "über",
        "e": "100% sure",
        "f": "a_b\\c",
        "g": None,
    }
    await fill(chats, clock, titles)
    assert [chat for page in await all_pages(chats, 1, query) for chat in page] == found


async def test_a_renamed_chat_keeps_its_position(chats: ChatIndex, clock: Clock) -> None:
    await fill(chats, clock, {"a": "old words", "b": None})
    assert await chats.rename(key("a"), "New Name")
    await chats.touch(key("b"), title=None)
    entry = await chats.get(key("a"))
    assert entry is not None
    assert entry.title == "New Name"
    assert await all_pages(chats, 10) == [["b", "a"]]
    assert await all_pages(chats, 10, "new name") == [["a"]]
    assert await all_pages(chats, 10, "old") == [[]]


async def test_a_missing_chat_is_neither_renamed_nor_deleted(chats: ChatIndex) -> None:
    await chats.touch(ChatKey("app", "bob", "chat-1"), title="his")
    assert not await chats.rename(CHAT, "mine")
    assert not await chats.delete(CHAT)
    his = await chats.get(ChatKey("app", "bob", "chat-1"))
    assert his is not None
    assert his.title == "his"


async def test_a_deleted_chat_is_not_listed(chats: ChatIndex) -> None:
    await chats.touch(CHAT, title="Hello")
    assert await chats.delete(CHAT)
    assert await chats.get(CHAT) is None
    assert await all_pages(chats, 10) == [[]]


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "!",
        "ü",
        "abc",
        *(
            urlsafe_b64encode(text.encode()).decode()
            for text in (
                "null",
                "[]",
                '["1.0","a"]',
                "[1.0]",
                '[NaN,"a"]',
                '[1e999,"a"]',
                '[1.0,"\\ud800"]',
                '[1.0,"\\u0000"]',
                '[1.0,"a",2]',
                "[" * 100_000,
            )
        ),
    ],
)
async def test_an_invalid_cursor_of_chats_is_refused(chats: ChatIndex, cursor: str) -> None:
    with pytest.raises(Unknown):
        await chats.page("app", "ann", limit=10, after=cursor, query=None)
