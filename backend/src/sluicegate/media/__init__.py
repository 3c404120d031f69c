"""Images, documents and other files: returned by tools, shaped for each model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluicegate.media.attachments_and_links import Attachment
from sluicegate.media.tool_result_with_files import ToolResult

if TYPE_CHECKING:
    from sluicegate.media.adk_plugin import MediaPlugin

__all__ = ["Attachment", "MediaPlugin", "ToolResult"]


def __getattr__(name: str) -> Any:
    """Import the plugin on first use: it needs ADK, whose import takes seconds."""
    if name != "MediaPlugin":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sluicegate.media.adk_plugin import MediaPlugin  # noqa: PLC0415

    return MediaPlugin
