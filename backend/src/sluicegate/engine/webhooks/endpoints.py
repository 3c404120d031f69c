"""The endpoints of webhooks: their names, URLs and secrets, from the settings."""

from __future__ import annotations

import base64
import binascii
import os
import stat
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from standardwebhooks import Webhook

from sluicegate.errors import ConfigurationError
from sluicegate.tools.outbound_hosts import WEBHOOK_HOSTS, WorkerHosts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sluicegate.engine.options import EngineOptions
    from sluicegate.tools.outbound_hosts import ConnectionRule

UNNAMED: Final = "webhook"
"""The name of an endpoint that the setting does not name."""

_PREFIX: Final = "whsec_"
_SECRET_BYTES: Final = range(24, 65)
"""The lengths that the specification of Standard Webhooks allows."""

_READABLE_BY_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A receiver of events; ``rule`` says at which addresses it may be reached."""

    name: str
    url: str
    rule: ConnectionRule


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


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """The endpoints, their secrets, and what is sent to them.

    ``timeout`` is in seconds for one attempt, ``ttl`` for all attempts of an event.
    """

    endpoints: tuple[Endpoint, ...]
    secrets: SecretFile
    inbox_url: str | None
    has_details: bool
    timeout: float
    ttl: float


def read_webhooks(options: EngineOptions) -> WebhookOptions | None:
    """Return the webhooks of the settings, None if there are none.

    Raises:
        ConfigurationError: A URL is not allowed, or a secret is missing.
    """
    if not options.webhooks:
        return None
    hosts = WorkerHosts(options.webhook_hosts, WEBHOOK_HOSTS)
    endpoints: dict[str, Endpoint] = {}
    for entry in options.webhooks:
        prefix, equals, address = entry.partition("=")
        is_named = bool(equals) and ":" not in prefix
        name, url = (prefix, address) if is_named else (UNNAMED, entry)
        if name in endpoints:
            raise ConfigurationError(f"Two webhooks have the name {name}; write NAME=URL for each.")
        endpoints[name] = Endpoint(name, url, hosts.webhook(name, url))
    if options.webhook_secrets is None:
        raise ConfigurationError(
            "Webhooks are signed; name a file with a secret for each by --webhook-secrets."
        )
    secrets = SecretFile(Path(options.webhook_secrets))
    for name in endpoints:
        secrets.require(name)
    public = options.public_url
    return WebhookOptions(
        tuple(endpoints.values()),
        secrets,
        options.inbox_url or (None if public is None else f"{public}/inbox"),
        options.webhook_details,
        options.webhook_timeout,
        options.webhook_ttl,
    )
