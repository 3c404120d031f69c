"""Which gate an exchange goes through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sluicegate.core.deferred_gate import DeferredGate
from sluicegate.core.progressive_gate import ProgressiveGate

if TYPE_CHECKING:
    from sluicegate.core.gate import Gate, Style

Release = Literal["deferred", "preview", "progressive"]


def open_gate(release: Release, style: Style) -> Gate:
    """A gate for an exchange; ``preview`` rests as ``deferred`` does and is switched on live."""
    if release == "progressive":
        return ProgressiveGate(style)
    return DeferredGate(style)
