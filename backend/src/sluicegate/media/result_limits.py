"""Limits of the files in tool results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ResultLimits:
    """Limits of a result: files, bytes of a file, bytes of JSON, and folders that may be read."""

    files: int
    file_bytes: int
    text_bytes: int
    folders: Sequence[Path] = ()
