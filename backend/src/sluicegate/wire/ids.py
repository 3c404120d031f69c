"""The ids that clients send: of chats and messages, and of calls and approvals."""

from __future__ import annotations

import re
from typing import Final, TypeGuard

from sluicegate.wire.one_line_pattern import is_one_line

_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")

_MAX_CALL_ID: Final = 256


def is_valid_id(value: object) -> TypeGuard[str]:
    """Whether a chat or a message may have this id, in every store and in every URL path."""
    return isinstance(value, str) and bool(_ID.fullmatch(value)) and value not in (".", "..")


def is_call_id(value: object) -> TypeGuard[str]:
    """Whether a call or an approval may have this id; ids of Workflows contain ``@`` and ``/``."""
    return isinstance(value, str) and 0 < len(value) <= _MAX_CALL_ID and is_one_line(value)
