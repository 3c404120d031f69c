"""Which gate an exchange goes through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sluicegate.core.release.deferred import DeferredBuffer
from sluicegate.core.release.progressive import ProgressiveBuffer

if TYPE_CHECKING:
    from sluicegate.core.release.base import ApprovalStyle, ReleaseBuffer

ReleasePolicy = Literal["deferred", "preview", "progressive"]


def open_release_buffer(release: ReleasePolicy, style: ApprovalStyle) -> ReleaseBuffer:
    """A gate for an exchange; ``preview`` rests as ``deferred`` does and is switched on live."""
    if release == "progressive":
        return ProgressiveBuffer(style)
    return DeferredBuffer(style)
