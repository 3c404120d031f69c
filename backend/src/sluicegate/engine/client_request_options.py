"""The client that makes a request: its AI SDK, release policy, transport and tools."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.tools.client_tools import ClientTool


@dataclass(frozen=True, slots=True)
class RequestingClient:
    """The AI SDK's major version, and the release policy it asks for (header ``x-release``).

    ``via`` names the transport in the audit trail (A10). ``tools`` are those that the page brings
    along with its request. ``decided_by`` is the person who decides, if it is not the chat's user.
    """

    major: Literal[6, 7]
    release: ReleasePolicy | None = None
    via: str = field(default="", compare=False)
    tools: tuple[ClientTool, ...] = field(default=(), compare=False)
    decided_by: str | None = field(default=None, compare=False)
