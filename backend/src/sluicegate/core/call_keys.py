"""The key of a call, and the key that a tool gives to external systems."""

from __future__ import annotations

from hashlib import sha256
from typing import Final, NamedTuple

from sluicegate.core.chat_and_turn_keys import ChatKey

LATER_REQUEST: Final = "sluicegate-question-"
"""Prefix of the name of a request after the first one of a call; stored rows have it."""


class CallKey(NamedTuple):
    """One approval request for a gated call (A1).

    ``call`` is the function call id, or the interrupt id of a node; from the second request on,
    the number of the request stands before it.
    """

    app: str
    user: str
    chat: str
    invocation: str
    call: str

    @property
    def chat_key(self) -> ChatKey:
        """The conversation this call belongs to."""
        return ChatKey(self.app, self.user, self.chat)

    @property
    def call_id(self) -> str:
        """The id of the call, without the number of the request."""
        is_first = not self.call.startswith(LATER_REQUEST)
        return self.call if is_first else self.call.partition(":")[2]

    @property
    def request_number(self) -> int:
        """The number of the request, from 1."""
        if not self.call.startswith(LATER_REQUEST):
            return 1
        return int(self.call.partition(":")[0].removeprefix(LATER_REQUEST))

    def with_request_number(self, number: int) -> CallKey:
        """The key of another request for the call."""
        call_id = self.call_id
        name = call_id if number == 1 else f"{LATER_REQUEST}{number}:{call_id}"
        return self._replace(call=name)


def idempotency_key(key: CallKey) -> str:
    """The call's idempotency key for other systems: 64 opaque hexadecimal digits (A9).

    It is the same for all requests for the call.
    """
    # Lengths separate the parts, which may contain any character.
    text = "".join(f"{len(part)}:{part}" for part in key.with_request_number(1))
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
