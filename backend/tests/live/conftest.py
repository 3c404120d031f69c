"""The fixtures of the engine, for live chats."""

from __future__ import annotations

from tests.engine.conftest import (
    effects,
    folder,
    open_engine,
    open_replicas,
    open_stage,
    spans,
    stores,
    streams_url,
)

__all__ = [
    "effects",
    "folder",
    "open_engine",
    "open_replicas",
    "open_stage",
    "spans",
    "stores",
    "streams_url",
]
