"""The fixtures of the engine, for live chats."""

from __future__ import annotations

from tests.engine.conftest import (
    folder,
    loop_time,
    open_engine,
    open_replicas,
    open_stage,
    spans,
    stores,
    streams_url,
)

__all__ = [
    "folder",
    "loop_time",
    "open_engine",
    "open_replicas",
    "open_stage",
    "spans",
    "stores",
    "streams_url",
]
