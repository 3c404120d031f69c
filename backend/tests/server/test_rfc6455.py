"""Every rule of RFC 6455, sections 5 and 7, that applies to a client, one row for each.

After the bytes of a row the same client sends "alive"; a second socket must always be served.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, NamedTuple

import pytest
import pytest_asyncio

from tests.server.exchange import RawConnection, serving
from tests.server.fake_engine import FakeEngine, application
from tests.server.raw_frames import (
    BINARY,
    CLOSE,
    CONTINUATION,
    HEAD,
    PING,
    PONG,
    TEXT,
    close,
    cut,
    frame,
    question,
    read_replies,
    with_length,
)

ALIVE: Final = "answer alive"
ASKED: Final = question("q")
ANSWERED: Final = ("answer q", ALIVE)
LARGE: Final = 32 * 1024 * 1024 + 1


class Row(NamedTuple):
    section: str
    name: str
    sent: list[bytes]
    replies: tuple[str, ...]


def broken(code: int) -> tuple[str, ...]:
    return (f"close {code}", "gone")


def sized(size: int) -> bytes:
    """A message of exactly ``size`` bytes."""
    return question("q", "x" * (size - len(ASKED)))


READ = [
    Row("5.1", "a mask of zeros", [frame(TEXT, ASKED, mask=b"\0\0\0\0")], ANSWERED),
    Row("5.1", "a mask of ones", [frame(TEXT, ASKED, mask=b"\xff\xff\xff\xff")], ANSWERED),
    Row("5.2", "125 bytes", [frame(TEXT, sized(125))], ANSWERED),
    Row("5.2", "126 bytes", [frame(TEXT, sized(126))], ANSWERED),
    Row("5.2", "127 bytes", [frame(TEXT, sized(127))], ANSWERED),
    Row("5.2", "65535 bytes", [frame(TEXT, sized(65535))], ANSWERED),
    Row("5.2", "65536 bytes", [frame(TEXT, sized(65536))], ANSWERED),
    Row("5.2", "two messages at once", [frame(TEXT, ASKED) * 2], ("answer q", *ANSWERED)),
    Row("5.2", "a byte at a time", [bytes([b]) for b in frame(TEXT, ASKED)], ANSWERED),
    Row("5.4", "two pieces", cut(TEXT, ASKED[:5], ASKED[5:]), ANSWERED),
    Row("5.4", "three pieces", cut(TEXT, ASKED[:5], ASKED[5:9], ASKED[9:]), ANSWERED),
    Row("5.4", "an empty first piece", cut(TEXT, b"", ASKED), ANSWERED),
    Row("5.4", "an empty middle piece", cut(TEXT, ASKED[:5], b"", ASKED[5:]), ANSWERED),
    Row("5.4", "an empty last piece", cut(TEXT, ASKED, b""), ANSWERED),
    Row(
        "5.4",
        "a ping between pieces",
        [frame(TEXT, ASKED[:5], fin=False), frame(PING, b"p"), frame(CONTINUATION, ASKED[5:])],
        ("pong p", *ANSWERED),
    ),
    Row(
        "5.4",
        "a pong between pieces",
        [frame(TEXT, ASKED[:5], fin=False), frame(PONG, b"p"), frame(CONTINUATION, ASKED[5:])],
        ANSWERED,
    ),
    Row("5.5.2", "an empty ping", [frame(PING)], ("pong", ALIVE)),
    Row("5.5.2", "a ping of 125 bytes", [frame(PING, b"p" * 125)], ("pong " + "p" * 125, ALIVE)),
    Row(
        "5.5.2",
        "three pings",
        [frame(PING, b"a"), frame(PING, b"b"), frame(PING, b"c")],
        ("pong a", "pong b", "pong c", ALIVE),
    ),
    Row("5.5.3", "a pong nobody asked for", [frame(PONG)], (ALIVE,)),
    Row("5.5.3", "a pong of 125 bytes", [frame(PONG, b"p" * 125)], (ALIVE,)),
    Row("5.6", "characters of four bytes", [frame(TEXT, question("q", "\U0001f600"))], ANSWERED),
    Row("5.6", "a character that is none", [frame(TEXT, question("q", "\uffff"))], ANSWERED),
    Row(
        "5.6",
        "a character cut in two",
        cut(TEXT, question("q", "\U0001f600")[:-4], question("q", "\U0001f600")[-4:]),
        ANSWERED,
    ),
]

BROKEN = [
    *[
        Row("5.2", f"reserved bits {rsv:03b}", [frame(TEXT, ASKED, rsv=rsv)], broken(1002))
        for rsv in (1, 2, 4, 7)
    ],
    Row("5.2", "a reserved bit on a ping", [frame(PING, rsv=4)], broken(1002)),
    *[
        Row("5.2", f"opcode {opcode:X}", [frame(opcode, b"x")], broken(1002))
        for opcode in (0x3, 0x4, 0x5, 0x6, 0x7, 0xB, 0xC, 0xD, 0xE, 0xF)
    ],
    Row("5.1", "a text that is not masked", [frame(TEXT, ASKED, mask=None)], broken(1002)),
    Row("5.1", "a ping that is not masked", [frame(PING, mask=None)], broken(1002)),
    Row("5.1", "a close that is not masked", [frame(CLOSE, mask=None)], broken(1002)),
    Row("5.4", "a piece of nothing", [frame(CONTINUATION, ASKED)], broken(1002)),
    Row("5.4", "an open piece of nothing", [frame(CONTINUATION, b"", fin=False)], broken(1002)),
    Row(
        "5.4",
        "a piece after the last one",
        [b"".join([frame(TEXT, ASKED), frame(CONTINUATION, b"x")])],
        broken(1002),
    ),
    Row("5.4", "a text in a text", [frame(TEXT, b"{", fin=False), frame(TEXT, b"}")], broken(1002)),
    Row(
        "5.4", "bytes in a text", [frame(TEXT, b"{", fin=False), frame(BINARY, b"}")], broken(1002)
    ),
    Row("5.5", "a ping in pieces", [frame(PING, b"p", fin=False)], broken(1002)),
    Row("5.5", "a pong in pieces", [frame(PONG, b"p", fin=False)], broken(1002)),
    Row("5.5", "a close in pieces", [frame(CLOSE, b"\x03\xe8", fin=False)], broken(1002)),
    Row("5.5", "a ping of 126 bytes", [frame(PING, b"p" * 126)], broken(1002)),
    Row("5.5", "a pong of 126 bytes", [frame(PONG, b"p" * 126)], broken(1002)),
    Row("5.5", "a close of 126 bytes", [close(1000, b"r" * 124)], broken(1002)),
    Row(
        "5.2",
        "a length with the first bit set",
        [with_length(0x81, b"\x7f\xff" + b"\0" * 7, b"")],
        broken(1009),
    ),
    Row(
        "5.2",
        "a length of a byte too many, before its bytes",
        [with_length(0x81, b"\x7f" + LARGE.to_bytes(8, "big"), b"")],
        broken(1009),
    ),
    *[
        Row("5.6", f"text that is no UTF-8: {name}", [frame(TEXT, wrong)], broken(1007))
        for name, wrong in {
            "a lone continuation": b"\x80",
            "an overlong slash": b"\xc0\xaf",
            "an overlong null": b"\xe0\x80\x80",
            "half of a surrogate pair": b"\xed\xa0\x80",
            "past the last character": b"\xf4\x90\x80\x80",
            "a cut character": b"\xf0\x9f\x98",
            "no such byte": b"\xfe",
        }.items()
    ],
    Row("5.6", "no UTF-8 over two pieces", cut(TEXT, b"{\xf0\x9f", b"x}"), broken(1007)),
    Row("5.6", "bytes, for which this socket has no use", [frame(BINARY, b"x")], broken(1003)),
]

CLOSED = [
    Row("7.1.5", "a close without a code", [frame(CLOSE)], ("close", "gone")),
    *[
        Row("7.4", f"code {code}", [close(code)], broken(code))
        for code in (1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999)
    ],
    Row("7.1.6", "a reason", [close(1000, b"done")], broken(1000)),
    Row("7.1.6", "a reason of 123 bytes", [close(1000, b"r" * 123)], broken(1000)),
    Row("7.1.6", "a reason that is no UTF-8", [close(1000, b"\xff")], broken(1007)),
    Row("7.1.5", "half a code", [frame(CLOSE, b"\x03")], broken(1002)),
    *[
        Row("7.4", f"code {code}, which no frame may carry", [close(code)], broken(1002))
        for code in (0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535)
    ],
    Row("7.1.1", "a message after the close", [close(1000), frame(TEXT, ASKED)], broken(1000)),
    Row("7.1.1", "a ping after the close", [close(1000), frame(PING)], broken(1000)),
    Row("7.1.1", "a second close", [close(1000), close(1001)], broken(1000)),
]

# Where the WebSocket library deviates from the RFC; docs/reference/protocol.md lists the same.
DEPARTURES = [
    Row(
        "5.2",
        "two bytes of length where one is enough",
        [with_length(0x81, b"\x7e" + len(ASKED).to_bytes(2, "big"), ASKED)],
        ANSWERED,
    ),
    Row(
        "5.2",
        "eight bytes of length where one is enough",
        [with_length(0x81, b"\x7f" + len(ASKED).to_bytes(8, "big"), ASKED)],
        ANSWERED,
    ),
    Row(
        "5.4",
        "a close in the middle of a message",
        [frame(TEXT, b"{", fin=False), close(1000)],
        broken(1002),
    ),
]

ROWS = [*READ, *BROKEN, *CLOSED, *DEPARTURES]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def address() -> AsyncIterator[tuple[str, int]]:
    """A shared server with the default settings."""
    async with serving(application(FakeEngine())) as address:
        yield address


async def replies_to(address: tuple[str, int], sent: list[bytes]) -> tuple[str, ...]:
    async with RawConnection.open(address) as raw:
        await raw.write(HEAD)
        assert (await raw.answer()).status == 101
        for piece in [*sent, frame(TEXT, question("alive"))]:
            await raw.write(piece)
        return tuple(await read_replies(raw, until=ALIVE))


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.section} {row.name}")
async def test_every_frame_is_answered_as_specified_and_affects_no_other_socket(
    address: tuple[str, int], row: Row
) -> None:
    assert await replies_to(address, row.sent) == row.replies
    assert await replies_to(address, []) == (ALIVE,)


def test_the_table_has_at_least_sixty_distinct_rows() -> None:
    assert len({(row.section, row.name) for row in ROWS}) == len(ROWS) >= 60
