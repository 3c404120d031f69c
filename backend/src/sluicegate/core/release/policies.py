"""The release policies and their buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sluicegate.core.release.deferred import DeferredBuffer
from sluicegate.core.release.progressive import ProgressiveBuffer

if TYPE_CHECKING:
    from sluicegate.core.release.base import ApprovalStyle, ReleaseBuffer

ReleasePolicy = Literal["deferred", "preview", "progressive"]


def open_release_buffer(
    policy: ReleasePolicy, style: ApprovalStyle, *, text_from_results: bool = False
) -> ReleaseBuffer:
    """Open the buffer of an exchange; for ``preview`` a running turn sets its ``preview``."""
    if policy == "progressive":
        return ProgressiveBuffer(style, text_from_results=text_from_results)
    return DeferredBuffer(style, text_from_results=text_from_results)
