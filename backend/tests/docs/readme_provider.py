"""Gemini's endpoint for the server of the README: it asks for one payment.

``python -m tests.docs.readme_provider [invalid-key]`` writes its URL and serves until its input
ends; with ``invalid-key`` it answers as Google answers a key that it does not know.
"""

from __future__ import annotations

import sys
from typing import Any

from sluicegate.testing.providers import FakeGemini, Message, Refused, Reply, listening


class _UnknownKey(FakeGemini):
    def read(self, path: str, body: dict[str, Any]) -> list[Message]:
        """Raises `Refused`."""
        raise Refused("API key not valid. Please pass a valid API key.")


def _reply(conversation: list[Message]) -> Reply:
    if conversation[-1].results:
        return Reply("Ada is paid.")
    return Reply(calls=(("pay", {"recipient": "Ada", "amount": 5}),))


def main(arguments: list[str]) -> None:
    """Serve until standard input ends."""
    provider = _UnknownKey() if "invalid-key" in arguments else FakeGemini()
    with listening(provider, _reply) as endpoint:
        sys.stdout.write(f"{endpoint.url}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1:])
