"""How much a tool's result may hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ResultLimits:
    """What a result may hold: files, bytes of one, bytes of JSON; folders its paths may lead to."""

    files: int
    file_bytes: int
    text_bytes: int
    folders: Sequence[Path] = ()
