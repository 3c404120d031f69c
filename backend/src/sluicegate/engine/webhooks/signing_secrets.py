"""The secrets of webhooks, and the signature of an event."""

from __future__ import annotations

import base64
import binascii
import os
import stat
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from standardwebhooks import Webhook

from sluicegate.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_PREFIX: Final = "whsec_"
_SECRET_BYTES: Final = range(24, 65)
"""The lengths that the specification of Standard Webhooks allows."""

_READABLE_BY_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class SecretFile:
    """The secrets with which events are signed: a line ``NAME whsec_BASE64`` for each.

    An endpoint may have several, and each signs: that is how one is replaced. The file is read
    again for each event.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def require(self, name: str) -> None:
        """Raise ConfigurationError unless the endpoint has a secret."""
        self._of(name)

    def sign(self, name: str, event: str, at: float, body: str) -> Mapping[str, str]:
        """Return the headers of an event for an endpoint.

        Args:
            name: The endpoint.
            event: The id of the event, the same for each attempt.
            at: The time of the attempt in seconds since the epoch.
            body: The body of the request.

        Raises:
            ConfigurationError: The file cannot be used, or has no secret for the endpoint.
        """
        moment = datetime.fromtimestamp(int(at), UTC)
        signatures = [secret.sign(event, moment, body) for secret in self._of(name)]
        return {
            "webhook-id": event,
            "webhook-timestamp": str(int(at)),
            "webhook-signature": " ".join(signatures),
        }

    def _of(self, name: str) -> Sequence[Webhook]:
        fields = (line.partition("#")[0].split() for line in self._text().splitlines())
        found = [entry[1] for entry in fields if len(entry) == 2 and entry[0] == name]
        if not found:
            raise ConfigurationError(
                f"The file {self._path} of webhook_secrets has no secret for {name}; add a line "
                f"'{name} {_PREFIX}…'."
            )
        return [self._secret(name, text) for text in found]

    def _secret(self, name: str, text: str) -> Webhook:
        try:
            key = base64.b64decode(text.removeprefix(_PREFIX), validate=True)
        except binascii.Error:
            key = b""
        if not text.startswith(_PREFIX) or len(key) not in _SECRET_BYTES:
            raise ConfigurationError(
                f"A secret for {name} in the file {self._path} of webhook_secrets is not "
                f"{_PREFIX} and the base64 of 24 to 64 bytes."
            )
        return Webhook(key)

    def _text(self) -> str:
        try:
            with self._path.open(encoding="utf-8") as file:
                mode = os.fstat(file.fileno()).st_mode
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise ConfigurationError(
                f"The file {self._path} of webhook_secrets cannot be read: {reason}."
            ) from None
        if os.name == "posix" and mode & _READABLE_BY_OTHERS:
            raise ConfigurationError(
                f"The file {self._path} of webhook_secrets can be read by other users; "
                f"run chmod 600 {self._path}."
            )
        return text
