"""The tools of the test workers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from google.genai import types
from opentelemetry import trace

from sluicegate.errors import ToolError
from sluicegate.tools import worker_call

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154"
    "789c6360606060000000050001a5f645400000000049454e44ae426082"
)

_ANSWERED: defaultdict[int, asyncio.Event] = defaultdict(asyncio.Event)


def _note(what: str) -> None:
    path = Path(os.environ["SLUICEGATE_EFFECTS"])
    with path.open("a") as effects:
        effects.write(f"{what}\n")
    # A test that waits for the line has made the pipe and reads it.
    with contextlib.suppress(FileNotFoundError), path.with_suffix(".pipe").open("r+b", 0) as pipe:
        pipe.write(b"\n")


def pay(n: int, to: str = "nobody") -> dict[str, Any]:
    """Pay an amount.

    Args:
        n: How much.
        to: Who gets it,
            by name.
    """
    _note(f"pay {n}")
    return {"paid": n, "to": to}


async def slow(n: int) -> str:
    """Pay after a long while."""
    _note(f"slow {n}")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        _note(f"cancelled {n}")
        raise
    return "slept"


async def ordered(n: int) -> str:
    """Answer one and two only after the number that follows, the others at once."""
    if n in {1, 2}:
        await _ANSWERED[n + 1].wait()
    _ANSWERED[n].set()
    return f"number {n}"


def whoami() -> dict[str, Any]:
    """Tell what is known of the call."""
    call = worker_call()
    assert call is not None
    return asdict(call)


def broken() -> str:
    """Fail with a secret."""
    raise ValueError("the password is hunter2")


def refuses() -> str:
    """Fail with a sentence for everybody."""
    raise ToolError("The shop is closed on Sundays.")


def picture() -> list[Any]:
    """Draw a picture."""
    return ["a dot", types.Blob(data=PNG, mime_type="image/png"), b"%PDF-1.4 nothing"]


async def counting(n: int) -> AsyncIterator[str]:
    """Count, and say where one is."""
    for number in range(n):
        yield f"at {number}"
    yield json.dumps({"at": time.time() > 0})


def traced() -> str:
    """Tell the trace that the call belongs to."""
    return format(trace.get_current_span().get_span_context().trace_id, "032x")
