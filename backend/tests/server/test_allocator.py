"""The C allocator of a server process."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from sluicegate.server.allocator import return_large_blocks

IS_GLIBC = platform.libc_ver()[0] == "glibc"

FREED = """
import sys
from sluicegate.server.allocator import return_large_blocks

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

if sys.argv[1] == "limited":
    assert return_large_blocks()
del (block := bytearray(b"x" * 2**25))[:]
block = None
before = resident()
blocks = [bytearray(b"x" * 2**23) for _ in range(4)]
keep = [bytes(2**16) for _ in range(64)]
blocks.clear()
print(resident() - before)
"""


@pytest.mark.skipif(not IS_GLIBC, reason="glibc alone keeps large blocks")
def test_large_blocks_return_to_the_system_once_they_are_freed() -> None:
    left = {
        kind: int(subprocess.check_output([sys.executable, "-c", FREED, kind]))
        for kind in ("limited", "unlimited")
    }
    assert left["limited"] < 2**23 < left["unlimited"]


def test_another_allocator_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert not return_large_blocks()
