"""Stories that run on every store, by the parameter of one fixture."""

from __future__ import annotations

from typing import Final

import pytest

EMBEDDED: Final = "embedded"

on_every_store: Final = pytest.mark.parametrize(
    "stores", [EMBEDDED, "PostgreSQL and Valkey"], indirect=True
)
"""Marks a test, or a module of tests, whose engines are opened by the fixtures here."""
