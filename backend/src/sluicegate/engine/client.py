"""Who reads a response."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from sluicegate.core.release import Release
    from sluicegate.tools.client_tools import ClientTool


@dataclass(frozen=True, slots=True)
class Client:
    """The AI SDK's major, and the release it wishes for (header ``x-release``).

    ``via`` is what the transport calls itself in the audit trail (A10). ``tools`` are what the page
    brings along, which its request says.
    """

    major: Literal[6, 7]
    release: Release | None = None
    via: str = field(default="", compare=False)
    tools: tuple[ClientTool, ...] = field(default=(), compare=False)
