"""What the translator has to know of a tool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol

from sluicegate.wire.limits import GRANT_TTL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """Properties of a tool on the wire (T7).

    ``expires`` is the lifetime of its approvals (A5) and ``grant_ttl`` the longest lifetime of its
    grants (A8), in seconds. ``agent`` is the path of the agent that calls it: the names of the
    agents from the root, joined by ``/``. ``definition_hash`` is the digest of the definition of a
    tool that another process declares. ``by_voice`` is the phrase that approves a call in a live
    chat. ``respond`` is the schema of an answer in place of the tool.
    """

    kind: ToolKind = "free"
    title: str | None = None
    metadata: Mapping[str, JsonValue] | None = None
    schema: Mapping[str, JsonValue] | None = None
    editable: bool = True
    rememberable: bool = True
    expires: float | None = None
    dynamic: bool = False
    grant_ttl: float = GRANT_TTL
    agent: str = ""
    definition_hash: str | None = None
    by_voice: str | None = None
    respond: Mapping[str, JsonValue] | None = None


UNKNOWN_TOOL: Final = ToolFacts()
"""Facts of a tool that is not declared: it is ``free``."""


class ToolLookup(Protocol):
    """Facts of the tools of an agent tree."""

    def facts(self, author: str, name: str) -> ToolFacts:
        """Facts of tool ``name`` as agent ``author`` sees it; unknown tools are ``free``."""

    def is_hidden(self, author: str) -> bool:
        """Whether an agent is called as a tool, so that only its caller reads its output."""


ToolKind = Literal["free", "gated", "conditional", "client", "gated-client"]
"""``free`` never needs approval; ``gated`` always does; ``conditional`` is known only when the call
has run or requested approval (a predicate, ``request_confirmation``); the client kinds run in the
browser."""
