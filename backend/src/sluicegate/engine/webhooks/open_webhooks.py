"""Opens the webhooks of an engine from its options."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from sluicegate.stores.approvals.outbox import Outbox

if TYPE_CHECKING:
    from sluicegate.engine.options import EngineOptions
    from sluicegate.engine.turn.chat_leases import ChatLeases
    from sluicegate.engine.webhooks.outbox_delivery import WebhookDelivery
    from sluicegate.engine.webhooks.webhook_settings import WebhookOptions
    from sluicegate.stores.sql.database import Database


def webhook_options(options: EngineOptions) -> WebhookOptions | None:
    """Return the webhooks of the options, None if there are none.

    Raises:
        ConfigurationError: a URL is not allowed, or a secret is missing.
    """
    if not options.webhooks:
        return None
    # A server without webhooks does not import the HTTP client.
    module = importlib.import_module("sluicegate.engine.webhooks.webhook_settings")
    found: WebhookOptions = module.read_webhooks(options)
    return found


async def open_webhooks(
    options: WebhookOptions | None,
    database: Database,
    leases: ChatLeases,
    app: str,
    poll: float,
) -> WebhookDelivery | None:
    """Let events be written for these endpoints and no others, and deliver them.

    ``poll`` are the seconds between two looks for events of other replicas.

    Raises:
        StoreError: the database failed.
    """
    outbox = Outbox(database, app)
    endpoints = () if options is None else options.endpoints
    await outbox.set_endpoints([endpoint.name for endpoint in endpoints])
    if options is None:
        return None
    module = importlib.import_module("sluicegate.engine.webhooks.outbox_delivery")
    times = module.DeliveryTimes(poll)
    delivery: WebhookDelivery = module.WebhookDelivery(outbox, leases, app, options, times)
    delivery.start()
    return delivery
