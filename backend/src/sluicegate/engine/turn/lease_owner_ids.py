"""The owners of leases and claims: turns and live chats of this process."""

from __future__ import annotations

import secrets
from typing import Final

PROCESS: Final = secrets.token_hex(8)
"""Names this process among all that may share the stores."""

_LIVE: Final = "live-"


def turn_owner(turn: str) -> str:
    """The owner of the lease and the claims of a turn."""
    return f"{PROCESS}:{turn}"


def new_live_owner() -> str:
    """A fresh owner of the lease and the claims of a chat that is open live."""
    return f"{PROCESS}:{_LIVE}{secrets.token_hex(8)}"


def is_live_owner(owner: str) -> bool:
    """Whether an owner is an open live chat, of any process."""
    return owner.partition(":")[2].startswith(_LIVE)
