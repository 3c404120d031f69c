"""The C allocator of a server process."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from sluicegate.server.malloc_trim import returning_free_memory

IS_GLIBC = platform.libc_ver()[0] == "glibc"

FREED = """
import contextlib, sys, time
from sluicegate.server.malloc_trim import returning_free_memory

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

kind, size, count, interval = sys.argv[1], *map(int, sys.argv[2:4]), float(sys.argv[4])
with contextlib.ExitStack() as stack:
    if kind == "returned":
        assert stack.enter_context(returning_free_memory(interval))
    # Afterwards glibc keeps blocks of this size.
    del (block := bytearray(b"x" * 2**25))[:]
    block = None
    before = resident()
    blocks = [bytearray(b"x" * size) for _ in range(count)]
    # Memory below a block that is in use.
    keep = [bytes(2**16) for _ in range(64)]
    blocks.clear()
    deadline = time.monotonic() + (30 if kind == "returned" else 0)
    while resident() - before > 2**23 and time.monotonic() < deadline:
        time.sleep(0.01)
    print(resident() - before)
"""


@pytest.mark.skipif(not IS_GLIBC, reason="glibc alone keeps free memory")
@pytest.mark.parametrize(
    ("size", "count", "interval"),
    [(2**23, 4, 3600), (2**16, 512, 0.01)],
    ids=["large blocks at once", "small ones regularly"],
)
def test_freed_memory_returns_to_the_system(size: int, count: int, interval: float) -> None:
    arguments = [str(size), str(count), str(interval)]
    left = {
        kind: int(subprocess.check_output([sys.executable, "-c", FREED, kind, *arguments]))
        for kind in ("returned", "kept")
    }
    assert left["returned"] < 2**23 < left["kept"]


def test_another_allocator_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with returning_free_memory() as is_returned:
        assert not is_returned
