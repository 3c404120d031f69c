"""Who reads a response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from sluicegate.core.release import Release


@dataclass(frozen=True, slots=True)
class Client:
    """The AI SDK's major, and the release it wishes for (header ``x-release``)."""

    major: Literal[6, 7]
    release: Release | None = None
