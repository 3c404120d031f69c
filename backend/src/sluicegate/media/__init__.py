"""Images, documents and other files: returned by tools, shaped for each model."""

from sluicegate.media.returned_files import Attachment
from sluicegate.media.tool_result import ToolResult

__all__ = ["Attachment", "ToolResult"]
