"""Names and ids of calls that are ADK's or the ledger's, and that no model may use."""

from __future__ import annotations

from typing import Final

from sluicegate.core.call_keys import LATER_REQUEST
from sluicegate.core.event_reading import NODE_CONFIRMATION

RESERVED_PREFIX: Final = "adk_"
"""Names with this prefix are calls that ADK makes itself."""
REFUSED_PREFIX: Final = "refused_"
"""Put before a reserved name that a model calls although no such tool is declared to it."""
_RESERVED_IDS: Final = (NODE_CONFIRMATION, "wf_auth:", LATER_REQUEST)


def is_reserved_id(call_id: str) -> bool:
    """Whether no provider may give a call such an id.

    ADK finds requests of nodes of a Workflow by it, and the ledger later requests for a call.
    """
    return call_id.startswith(_RESERVED_IDS)
