"""Pictures, documents and other files: what tools return, and what each model takes."""

from sluicegate.media.file_sources import Attachment
from sluicegate.media.tool_result import ToolResult

__all__ = ["Attachment", "ToolResult"]
