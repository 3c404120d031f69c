"""The files that the conformance agent writes to."""

from __future__ import annotations
