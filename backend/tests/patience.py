"""Time limits of the servers under test, which only a defect reaches.

A busy machine stands still for longer than the limits that a server has by default.
"""

from __future__ import annotations

from typing import Final

LEASE: Final = 60.0
"""Seconds that a lease lasts in a test, which no renewal is late for."""
