"""Images, documents and other files: returned by tools, shaped for each model."""

from sluicegate.media.file_sources import Attachment
from sluicegate.media.tool_result import ToolResult

__all__ = ["Attachment", "ToolResult"]
