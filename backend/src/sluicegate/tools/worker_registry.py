"""The registry of remote workers: their names, leases and tools.

Workers come from the server's configuration or register themselves; a shared store informs several
servers of each other's registrations.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sluicegate.errors import (
    ConfigurationError,
    HeldByAnotherOwner,
    Malformed,
    StoreError,
    ToolError,
)
from sluicegate.tools.outbound_hosts import ConnectionRule, WorkerHosts
from sluicegate.tools.remote_tools import (
    RemoteTool,
    RemoteToolListing,
    RemoteToolSettings,
    make_remote_tools,
)
from sluicegate.tools.worker_calls_awaiting_input import HeldCalls
from sluicegate.tools.worker_client import WorkerClient
from sluicegate.tools.worker_names import check_worker_name, is_worker_name
from sluicegate.tools.worker_stdio_client import COMMAND, CommandClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sluicegate.stores.tool_workers import RegisteredWorker, WorkerRegistrations

_RETRY_DELAY: Final = 30.0
"""Seconds before a worker whose listing timed out is asked again."""

MAX_WORKERS: Final = 100

logger = logging.getLogger("sluicegate")


@dataclass(slots=True)
class Worker:
    """A worker and the tools of its last listing.

    ``expires_at`` is the end of its lease by the registry's clock; None for a worker of the
    server's configuration. ``error`` says why it offers no tools.
    """

    client: WorkerClient
    expires_at: float | None = None
    offers: RemoteToolListing = field(default_factory=RemoteToolListing)
    error: str | None = None
    retry_at: float = 0.0
    listing: asyncio.Task[None] | None = None

    @property
    def tools(self) -> dict[str, RemoteTool]:
        """The tools that it offers, by full name."""
        return self.offers.tools


@dataclass(slots=True)
class WorkerSharing:
    """The shared store of registrations, and the credentials that every server reads from a file.

    A worker's credential gives access to its tools without approval, so it is not stored in a
    database. A worker that registers with one server is called by all of them, each with the
    credential in its own file.
    """

    store: WorkerRegistrations
    token: Callable[[str], str | None]
    _is_unavailable: bool = False

    def check(self, name: str, token: str) -> None:
        """Refuse a worker that the other servers cannot call.

        Raises:
            Malformed: The file of credentials does not contain this one.
        """
        if self.token(name) != token:
            raise Malformed(
                "The worker was not registered. Several servers may share this database, so its "
                f"credential must stand behind the name {name} in the file of worker_tokens, on "
                "each of them."
            )

    async def registrations(self) -> list[RegisteredWorker] | None:
        """Return the workers with a current lease; None if the store fails, logged once."""
        try:
            registered = await self.store.all()
        except StoreError as error:
            if not self._is_unavailable:
                logger.warning("the registered workers of other servers are not known: %s", error)
            self._is_unavailable = True
            return None
        self._is_unavailable = False
        return registered


class WorkerRegistry:
    """The workers of one server.

    Args:
        settings: Which tools may be used, which require no approval, and the deadline of a call.
        hosts: The hosts that workers may have.
        lease: Seconds for which a registration is valid.
        reserved_names: The names of the agent's own tools.
        clock: Seconds on a monotonic clock.
        connect: Makes the client of a worker from its name, its URL, its credential and the rule
            of its connections.
    """

    def __init__(
        self,
        settings: RemoteToolSettings,
        *,
        hosts: WorkerHosts | None = None,
        lease: float = 30.0,
        reserved_names: Iterable[str] = (),
        clock: Callable[[], float] = time.monotonic,
        connect: Callable[
            [str, str, Callable[[], str | None], ConnectionRule], WorkerClient
        ] = WorkerClient,
    ) -> None:
        self.lease = lease
        self.held = HeldCalls(settings.held_seconds)
        self._hosts = WorkerHosts() if hosts is None else hosts
        self._settings = settings
        self._reserved_names = frozenset(reserved_names)
        self._clock = clock
        self._connect = connect
        self._workers: dict[str, Worker] = {}
        self._sharing: WorkerSharing | None = None

    def share(self, sharing: WorkerSharing) -> None:
        """Share registrations with the other servers of the same store."""
        self._sharing = sharing

    def add(self, name: str, url: str, token: Callable[[], str | None]) -> None:
        """Add a worker of the server's configuration; its tools are listed by `refresh`.

        Raises:
            ConfigurationError: The name or the URL is not valid, or the name is in use.
        """
        check_worker_name(name)
        if name in self._workers:
            raise ConfigurationError(f"Two workers are named {name!r}; name one of them NAME=URL.")
        if url.startswith(COMMAND):
            self._workers[name] = Worker(CommandClient(name, url, token))
            return
        rule = self._hosts.configured(name, url)
        self._workers[name] = Worker(self._connect(name, url, token, rule))

    async def register(
        self, name: str, url: str, token: str, *, peer: str | None = None
    ) -> list[str]:
        """Register a worker or renew its lease; returns the names of its tools.

        ``peer`` is the address from which it registers, None if a proxy hides it.

        Raises:
            Malformed: Its name, its URL or one of its tools is not valid, or its host is not
                allowed; nothing has changed.
            HeldByAnotherOwner: A worker of that name answers at another URL.
        """
        if self._sharing is not None:
            self._sharing.check(name, token)
            await self._synchronize()
        current = self._current().get(name)
        try:
            check_worker_name(name)
            rule = self._hosts.registered(name, url, peer)
            if current is not None and current.client.url != url:
                await self._check_is_dead(current)
            if current is None and len(self._workers) >= MAX_WORKERS:
                raise ConfigurationError(f"There are {MAX_WORKERS} workers already.")
            client, previous = self._connect(name, url, lambda: token, rule), RemoteToolListing()
            if current is not None and current.client.is_same(client):
                # Its connections may hold calls that run.
                client, previous = current.client, current.offers
            offers = await self._list_tools(client, previous)
            if offers.refusals:
                raise ConfigurationError(offers.refusals[0])
        except (ConfigurationError, ToolError) as error:
            raise Malformed(f"The worker was not registered. {error}") from error
        if self._sharing is not None:
            await self._sharing.store.put(name, url, seconds=self.lease)
        self._workers[name] = Worker(client, self._clock() + self.lease, offers)
        _log_left_out(offers, RemoteToolListing() if current is None else current.offers)
        if current is None:
            logger.info("worker %s registered with %d tools", name, len(offers.tools))
        elif current.client is not client:
            await current.client.close()
        return sorted(offers.tools)

    async def remove(self, name: str) -> bool:
        """Remove a registered worker; False if there is none."""
        if self._sharing is not None:
            await self._synchronize()
        worker = self._current().get(name)
        if worker is None or worker.expires_at is None:
            return False
        if self._sharing is not None:
            await self._sharing.store.remove(name)
        del self._workers[name]
        await worker.client.close()
        logger.info("worker %s was removed", name)
        return True

    async def refresh(self) -> None:
        """List the tools of every worker; one that does not answer offers none."""
        await self._synchronize()
        await asyncio.gather(*(self._refresh(worker) for worker in self._current().values()))

    async def refresh_new(self) -> None:
        """List the tools of workers that have registered with another server meanwhile."""
        if self._sharing is not None:
            await self._synchronize()
            new = [each for each in self._workers.values() if not each.tools and not each.listing]
            await asyncio.gather(*(self._refresh(worker) for worker in new))

    def workers(self) -> list[Worker]:
        """Return all workers with the tools of their last listing."""
        return [*self._current().values()]

    def tools(self) -> list[RemoteTool]:
        """Return the tools of all workers, as of their last listings."""
        return [tool for worker in self._current().values() for tool in worker.tools.values()]

    def find(self, name: str) -> RemoteTool | None:
        """Return the tool with this full name."""
        worker = self._current().get(name.partition("_")[0])
        return None if worker is None else worker.tools.get(name)

    def may_be_removed(self, name: str) -> bool:
        """Whether a name that no worker offers can be that of a tool that one offered earlier."""
        worker, _, tool = name.partition("_")
        return bool(tool) and is_worker_name(worker) and name not in self._reserved_names

    async def close(self) -> None:
        """Close all connections."""
        await self.held.close()
        for worker in self._workers.values():
            if worker.listing is not None:
                worker.listing.cancel()
            await worker.client.close()
        self._workers.clear()

    def _current(self) -> dict[str, Worker]:
        """Drop workers whose lease has expired; of shared registrations the store decides."""
        if self._sharing is not None:
            return self._workers
        now = self._clock()
        for name, worker in list(self._workers.items()):
            if worker.expires_at is not None and worker.expires_at <= now:
                logger.warning("worker %s did not renew its lease and was removed", name)
                del self._workers[name]
        return self._workers

    async def _synchronize(self) -> None:
        """Update the registered workers from the shared store."""
        sharing = self._sharing
        registrations = None if sharing is None else await sharing.registrations()
        if sharing is None or registrations is None:
            return
        rows = {row.name: row for row in registrations}
        for name, worker in list(self._workers.items()):
            row = rows.pop(name, None)
            if worker.expires_at is None:
                continue
            if row is not None and row.url == worker.client.url:
                worker.expires_at = self._clock() + row.seconds
                continue
            del self._workers[name]
            await worker.client.close()
            logger.info("worker %s is not registered at this address any more", name)
            if row is not None:
                rows[name] = row
        for row in rows.values():
            # The server with which it registered has checked its host.
            rule = self._hosts.configured(row.name, row.url)
            client = self._connect(row.name, row.url, _reader(sharing, row.name), rule)
            self._workers[row.name] = Worker(client, self._clock() + row.seconds)

    async def _refresh(self, worker: Worker) -> None:
        if worker.retry_at > self._clock():
            return
        # Turns that start at the same time share one listing.
        if worker.listing is None or worker.listing.done():
            worker.listing = asyncio.create_task(self._list(worker))
        await asyncio.shield(worker.listing)

    async def _list(self, worker: Worker) -> None:
        started_at = self._clock()
        error: str | None = None
        previous = worker.offers
        try:
            worker.offers = await self._list_tools(worker.client, previous)
        except (ConfigurationError, ToolError) as raised:
            worker.offers, error = RemoteToolListing(), str(raised)
            if self._clock() - started_at >= self._settings.listing_seconds:
                worker.retry_at = self._clock() + _RETRY_DELAY
        if error != worker.error and error is not None:
            logger.warning("worker %s offers no tools: %s", worker.client.name, error)
        _log_left_out(worker.offers, previous)
        worker.error = error

    async def _list_tools(
        self, client: WorkerClient, previous: RemoteToolListing
    ) -> RemoteToolListing:
        """List the tools; of unchanged definitions nothing is compiled again."""
        listed = await client.tools(self._settings.listing_seconds)
        if listed == previous.listed:
            return previous
        # Compiling takes a while; in a thread it shares the interpreter with the event loop.
        return await asyncio.to_thread(
            make_remote_tools, client, listed, self._settings, self._reserved_names, self.held
        )

    async def _check_is_dead(self, worker: Worker) -> None:
        """Refuse a second process under one name while the first still answers."""
        name = worker.client.name
        if worker.expires_at is None:
            raise HeldByAnotherOwner(
                f"The server's configuration has a worker named {name} already."
            )
        try:
            await worker.client.tools(self._settings.listing_seconds)
        except ToolError:
            return
        raise HeldByAnotherOwner(
            f"A worker named {name} is registered at another address and answers."
        )


def _log_left_out(offers: RemoteToolListing, previous: RemoteToolListing) -> None:
    for name, why in offers.left_out.items():
        if previous.left_out.get(name) != why:
            logger.warning("the tool %s is left out: %s", name, why)


def _reader(sharing: WorkerSharing, name: str) -> Callable[[], str | None]:
    return lambda: sharing.token(name)
