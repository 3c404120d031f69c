"""The documents of the demo, and a tool whose card shows what it would archive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sluicegate.tools import GatedCall, gated

if TYPE_CHECKING:
    from google.adk.tools.base_tool import BaseTool


@dataclass(frozen=True, slots=True)
class Document:
    """A document with the days since it was last read."""

    name: str
    unread_days: int
    pages: int


_DOCUMENTS: Final = (
    Document("Rental agreement 2019.pdf", 1_480, 12),
    Document("Minutes of the board 2021.pdf", 1_120, 4),
    Document("Offer of the printers.pdf", 610, 2),
    Document("Travel expenses March.pdf", 430, 3),
    Document("Plan of the ground floor.pdf", 95, 1),
    Document("Energy report.pdf", 12, 12),
)


class DocumentArchive:
    """The documents of the demo; a restart brings back the archived ones."""

    def __init__(self) -> None:
        self._documents = list(_DOCUMENTS)

    def preview(self, call: GatedCall) -> list[dict[str, Any]]:
        """Return what a call of the tool would archive."""
        return [
            {"document": each.name, "days unread": each.unread_days, "pages": each.pages}
            for each in self._older_than(call.arguments["unread_days"])
        ]

    def tool(self) -> BaseTool:
        """Make the gated tool ``archive_documents``."""

        def archive_documents(unread_days: int) -> dict[str, int]:
            """Archive the documents that nobody has read for more than so many days."""
            archived = self._older_than(unread_days)
            self._documents = [each for each in self._documents if each not in archived]
            return {"archived": len(archived), "left": len(self._documents)}

        return gated(archive_documents, preview=self.preview)

    def _older_than(self, days: int) -> list[Document]:
        return [each for each in self._documents if each.unread_days > days]
