"""The settings of webhooks: endpoints with their names and URLs, secrets and limits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sluicegate.engine.webhooks.signing_secrets import SecretFile
from sluicegate.errors import ConfigurationError
from sluicegate.tools.outbound_hosts import WEBHOOK_HOSTS, WorkerHosts

if TYPE_CHECKING:
    from sluicegate.engine.options import EngineOptions
    from sluicegate.tools.outbound_hosts import ConnectionRule

UNNAMED: Final = "webhook"
"""The name of an endpoint that the setting does not name."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A receiver of events; ``rule`` says at which addresses it may be reached."""

    name: str
    url: str
    rule: ConnectionRule


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
