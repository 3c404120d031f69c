"""Delivers the events of the outbox: at least once, and those of an approval in their order."""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.engine.describe_exceptions import describe
from sluicegate.engine.webhooks.delivery_attempt import Attempt, WebhookSender
from sluicegate.engine.webhooks.payloads import event_body, event_id, is_of_nobody
from sluicegate.errors import ConfigurationError, HeldByAnotherOwner, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from sluicegate.engine.turn.chat_leases import ChatLeases
    from sluicegate.engine.webhooks.webhook_settings import Endpoint, WebhookOptions
    from sluicegate.stores.approvals.outbox import Outbox, QueuedEvent

MAX_AT_ONCE: Final = 16
"""Attempts at one endpoint at the same time, each of another approval."""

LONGEST_PAUSE: Final = 3_600.0
"""Seconds between two attempts of an event, at most."""

_FLUSH_SECONDS: Final = 2.0
"""Seconds in which attempts may end when the process ends."""

_CLEANING_INTERVAL: Final = 3_600.0

logger = logging.getLogger("sluicegate")


def pause_before(attempt: int, jitter: float) -> float:
    """Return the seconds before an attempt, 1 for the first retry; ``jitter`` is in [0, 1).

    The pause doubles each time; half of it is random, so that attempts spread.
    """
    return min(2.0 ** min(attempt - 1, 30), LONGEST_PAUSE) * (1 + jitter) / 2


@dataclass(frozen=True, slots=True)
class DeliveryTimes:
    """The schedule of deliveries.

    ``poll`` are the seconds after which events of other replicas are noticed, at most. ``clock``
    is the time in seconds since the epoch, as receivers compare it with theirs, and ``jitter``
    returns a number in [0, 1).
    """

    poll: float
    clock: Callable[[], float] = time.time
    jitter: Callable[[], float] = random.random


class WebhookDelivery:
    """Delivers the events of an app; of all replicas, the one that holds a lease does so.

    Args:
        outbox: The events.
        leases: The leases of this process.
        app: The name of the app.
        options: The endpoints, and what they get.
        times: The schedule.
    """

    def __init__(
        self,
        outbox: Outbox,
        leases: ChatLeases,
        app: str,
        options: WebhookOptions,
        times: DeliveryTimes,
    ) -> None:
        self._outbox = outbox
        self._leases = leases
        # No user has an empty id.
        self._lease = ChatKey(app, "", "webhooks")
        self._options = options
        self._times = times
        self._changed = {endpoint.name: asyncio.Event() for endpoint in options.endpoints}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Deliver from now on."""
        self._task = asyncio.create_task(self._run())

    def wake(self) -> None:
        """Look for events now: this process has written some."""
        for changed in self._changed.values():
            changed.set()

    async def aclose(self) -> None:
        """Stop delivering; what was not accepted is delivered later."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        owner = f"webhooks:{secrets.token_hex(8)}"
        while True:
            try:
                fence = await self._leases.acquire(self._lease, owner)
            except (HeldByAnotherOwner, StoreError):
                await asyncio.sleep(self._times.poll)
                continue
            try:
                await self._deliver_all(self._leases.keep_renewed(self._lease, owner, fence))
            finally:
                await self._leases.release(self._lease, owner, fence)

    async def _deliver_all(self, renewing: Coroutine[Any, Any, None]) -> None:
        """Deliver to all endpoints until the lease is lost."""
        work = [renewing, self._clean(), *map(self._serve, self._options.endpoints)]
        tasks = [asyncio.create_task(each) for each in work]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        for task in done:
            if not task.cancelled() and task.exception() is not None:
                logger.error("webhooks begin again: %s", describe(task.exception()))
                await asyncio.sleep(self._times.poll)

    async def _clean(self) -> None:
        while True:
            try:
                removed = await self._outbox.remove_old_dead_letters()
            except StoreError as error:
                logger.warning("old dead letters were not removed: %s", error)
            else:
                if removed:
                    logger.warning("old dead letters were removed count=%s", removed)
            await asyncio.sleep(_CLEANING_INTERVAL)

    async def _serve(self, endpoint: Endpoint) -> None:
        """Deliver to one endpoint; one that is slow delays no other."""
        changed = self._changed[endpoint.name]
        running: dict[int, asyncio.Task[None]] = {}

        def ended(task: asyncio.Task[None], number: int) -> None:
            del running[number]
            changed.set()
            if not task.cancelled() and task.exception() is not None:
                logger.error("a webhook failed: %s", describe(task.exception()))

        async with WebhookSender(endpoint, self._options.timeout) as sender:
            try:
                while True:
                    changed.clear()
                    # One that ends while the outbox is read may still be read as due.
                    before = frozenset(running)
                    for event in await self._due(endpoint, len(running)):
                        if event.id in before or len(running) == MAX_AT_ONCE:
                            continue
                        task = asyncio.create_task(self._deliver(sender, event))
                        running[event.id] = task
                        task.add_done_callback(
                            lambda task, number=event.id: ended(task, number)  # type: ignore[misc]
                        )
                    await _wait(changed, self._times.poll)
            finally:
                if running:
                    _, pending = await asyncio.wait(running.values(), timeout=_FLUSH_SECONDS)
                    for task in pending:
                        task.cancel()
                    if pending:
                        await asyncio.wait(pending)

    async def _due(self, endpoint: Endpoint, running: int) -> list[QueuedEvent]:
        if running == MAX_AT_ONCE:
            return []
        try:
            # Those that run are still in the outbox.
            return await self._outbox.due(endpoint.name, limit=2 * MAX_AT_ONCE)
        except StoreError as error:
            logger.warning("events of webhooks were not read: %s", error)
            return []

    async def _deliver(self, sender: WebhookSender, event: QueuedEvent) -> None:
        attempt = Attempt() if is_of_nobody(event) else await self._attempt(sender, event)
        try:
            await self._record(event, attempt)
        except StoreError as error:
            logger.warning("a webhook is sent again event=%s: %s", event_id(event), error)
            await asyncio.sleep(self._times.poll)

    async def _attempt(self, sender: WebhookSender, event: QueuedEvent) -> Attempt:
        body = event_body(event, self._options)
        try:
            headers = self._options.secrets.sign(
                event.endpoint, event_id(event), self._times.clock(), body
            )
        except ConfigurationError as error:
            return Attempt(str(error))
        return await sender.send(headers, body)

    async def _record(self, event: QueuedEvent, attempt: Attempt) -> None:
        name, number = event_id(event), event.attempts + 1
        if attempt.error is None:
            await self._outbox.delivered(event)
            logger.debug("webhook delivered event=%s endpoint=%s", name, event.endpoint)
            return
        pause = max(pause_before(number, self._times.jitter()), attempt.retry_after)
        pause = min(pause, LONGEST_PAUSE)
        if attempt.is_final or event.age + pause > self._options.ttl:
            await self._outbox.give_up(event, error=attempt.error)
            logger.error("webhook is a dead letter event=%s: %s", name, attempt.error)
            return
        await self._outbox.postpone(event, pause=pause, error=attempt.error)
        logger.warning(
            "webhook was not accepted event=%s attempt=%s again_in=%.0fs: %s",
            *(name, number, pause, attempt.error),
        )


async def _wait(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, up to a time."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
