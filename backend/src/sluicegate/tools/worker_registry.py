"""How several servers know the same registered workers: who is where, from a shared store."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from sluicegate.adk_private import UncachedToolset
from sluicegate.errors import ConfigurationError, HeldElsewhere, Malformed, StoreError, ToolError
from sluicegate.tools.remote_tools import (
    RemoteTool,
    RemoteToolSettings,
    RemovedTool,
    make_remote_tools,
)
from sluicegate.tools.worker_client import WorkerClient
from sluicegate.tools.worker_protocol import check_worker_name, is_worker_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from google.adk.agents.readonly_context import ReadonlyContext
    from google.adk.tools.base_tool import BaseTool
    from mcp import types as mcp

    from sluicegate.stores.workers import RegisteredWorker, WorkerRegistrations

logger = logging.getLogger("sluicegate")


@dataclass(slots=True)
class WorkerSharing:
    """A store, and the file with the credentials that every server must have.

    A worker's credential opens its tools without asking anybody, so it is not put into a database;
    a worker that registers with one server is called by all of them, each with the credential that
    its own file names.
    """

    store: WorkerRegistrations
    token: Callable[[str], str | None]
    _is_away: bool = False

    def check(self, name: str, token: str) -> None:
        """Refuse a worker that the other servers could not call.

        Raises:
            Malformed: The file with the credentials lacks this one.
        """
        if self.token(name) != token:
            raise Malformed(
                "The worker was not registered. Several servers may share this database, so its "
                f"credential must stand behind the name {name} in the file of worker_tokens, on "
                "each of them."
            )

    async def listed(self) -> list[RegisteredWorker] | None:
        """The workers whose lease runs; None where the store is away, which is logged once."""
        try:
            found = await self.store.all()
        except StoreError as error:
            if not self._is_away:
                logger.warning("the registered workers of other servers are not known: %s", error)
            self._is_away = True
            return None
        self._is_away = False
        return found


PATIENCE: Final = 5.0
"""Seconds in which a worker must have listed its tools."""

_PAUSE: Final = 30.0
"""Seconds for which a worker that let a listing time out is left alone."""

MAX_WORKERS: Final = 100
_QUESTION: Final = "adk_request_confirmation"


@dataclass(slots=True)
class Worker:
    """A worker, and what it offered when it was asked last.

    ``until`` is when its lease runs out, by the registry's clock; None for one that the server's
    own configuration names.
    """

    link: WorkerClient
    until: float | None = None
    tools: dict[str, RemoteTool] = field(default_factory=dict)
    problem: str | None = None
    not_before: float = 0.0
    asking: asyncio.Task[None] | None = None


class WorkerRegistry:
    """The workers of one server; names are unique among them and among the agent's own tools."""

    def __init__(
        self,
        terms: RemoteToolSettings,
        *,
        lease: float = 30.0,
        taken: Iterable[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """No worker is known; ``taken`` are the names of the agent's own tools."""
        self.lease = lease
        self._terms = terms
        self._taken = frozenset(taken)
        self._clock = clock
        self._workers: dict[str, Worker] = {}
        self._sharing: WorkerSharing | None = None

    def share(self, sharing: WorkerSharing) -> None:
        """Know what has registered with the other servers too."""
        self._sharing = sharing

    def add(self, name: str, url: str, token: Callable[[], str | None]) -> None:
        """Add a worker of the server's own configuration; it is not asked yet.

        Raises:
            ConfigurationError: The name or the address cannot be used, or the name is taken.
        """
        _check(name, url)
        if name in self._workers:
            raise ConfigurationError(f"Two workers are named {name!r}; name one of them NAME=URL.")
        self._workers[name] = Worker(WorkerClient(name, url, token))

    async def register(self, name: str, url: str, token: str) -> list[str]:
        """Take a worker that announced itself, or renew its lease; returns its tools' names.

        Raises:
            Malformed: Its name, its address or one of its tools cannot be used; nothing changed.
            HeldElsewhere: A worker of that name is there at another address, and answers.
        """
        if self._sharing is not None:
            self._sharing.check(name, token)
            await self._learn()
        known = self._current().get(name)
        try:
            _check(name, url)
            if known is not None and known.link.url != url:
                await self._refuse_second(known)
            if known is None and len(self._workers) >= MAX_WORKERS:
                raise ConfigurationError(f"There are {MAX_WORKERS} workers already.")
            link = WorkerClient(name, url, lambda: token)
            tools = self._made(link, await link.tools(PATIENCE))
        except (ConfigurationError, ToolError) as error:
            raise Malformed(f"The worker was not registered. {error}") from error
        if self._sharing is not None:
            await self._sharing.store.put(name, url, seconds=self.lease)
        self._workers[name] = Worker(link, self._clock() + self.lease, tools)
        if known is None:
            logger.info("worker %s registered with %d tools", name, len(tools))
        else:
            await known.link.close()
        return sorted(tools)

    async def remove(self, name: str) -> bool:
        """Take a registered worker away; whether there was one."""
        if self._sharing is not None:
            await self._learn()
        known = self._current().get(name)
        if known is None or known.until is None:
            return False
        if self._sharing is not None:
            await self._sharing.store.remove(name)
        del self._workers[name]
        await known.link.close()
        logger.info("worker %s left", name)
        return True

    async def refresh(self) -> None:
        """Ask every worker what it offers now; who does not answer offers nothing."""
        await self._learn()
        await asyncio.gather(*(self._asked(worker) for worker in self._current().values()))

    async def keep_up(self) -> None:
        """Ask those what they offer who have registered with another server meanwhile."""
        if self._sharing is not None:
            await self._learn()
            new = [each for each in self._workers.values() if not each.tools and not each.asking]
            await asyncio.gather(*(self._asked(worker) for worker in new))

    def workers(self) -> list[Worker]:
        """All workers, with what they offered when they were asked last."""
        return [*self._current().values()]

    def tools(self) -> list[RemoteTool]:
        """What all workers offered when they were asked last."""
        return [tool for worker in self._current().values() for tool in worker.tools.values()]

    def find(self, name: str) -> RemoteTool | None:
        """The tool that a model calls so."""
        worker = self._current().get(name.partition("_")[0])
        return None if worker is None else worker.tools.get(name)

    def may_be_gone(self, name: str) -> bool:
        """Whether a name that no worker offers can be that of a tool one offered earlier."""
        worker, _, tool = name.partition("_")
        return bool(tool) and is_worker_name(worker) and name not in self._taken

    async def close(self) -> None:
        """End all connections."""
        for worker in self._workers.values():
            if worker.asking is not None:
                worker.asking.cancel()
            await worker.link.close()
        self._workers.clear()

    def _current(self) -> dict[str, Worker]:
        """The workers whose lease has not run out; of shared ones the store says that."""
        if self._sharing is not None:
            return self._workers
        now = self._clock()
        for name, worker in list(self._workers.items()):
            if worker.until is not None and worker.until <= now:
                logger.warning("worker %s did not renew its lease and was removed", name)
                del self._workers[name]
        return self._workers

    async def _learn(self) -> None:
        """Take over who has registered anywhere, and who has left."""
        sharing = self._sharing
        listed = None if sharing is None else await sharing.listed()
        if sharing is None or listed is None:
            return
        there = {row.name: row for row in listed}
        for name, worker in list(self._workers.items()):
            row = there.pop(name, None)
            if worker.until is None:
                continue
            if row is not None and row.url == worker.link.url:
                worker.until = self._clock() + row.seconds
                continue
            del self._workers[name]
            await worker.link.close()
            logger.info("worker %s is not registered at this address any more", name)
            if row is not None:
                there[name] = row
        for row in there.values():
            link = WorkerClient(row.name, row.url, lambda name=row.name: sharing.token(name))  # type: ignore[misc]
            self._workers[row.name] = Worker(link, self._clock() + row.seconds)

    async def _asked(self, worker: Worker) -> None:
        if worker.not_before > self._clock():
            return
        # Turns that begin at the same time share one question.
        if worker.asking is None or worker.asking.done():
            worker.asking = asyncio.create_task(self._ask(worker))
        await asyncio.shield(worker.asking)

    async def _ask(self, worker: Worker) -> None:
        began = self._clock()
        try:
            worker.tools = self._made(worker.link, await worker.link.tools(PATIENCE))
            problem = None
        except (ConfigurationError, ToolError) as error:
            worker.tools, problem = {}, str(error)
            if self._clock() - began >= PATIENCE:
                worker.not_before = self._clock() + _PAUSE
        if problem != worker.problem and problem is not None:
            logger.warning("worker %s offers no tools: %s", worker.link.name, problem)
        worker.problem = problem

    def _made(self, link: WorkerClient, listed: list[mcp.Tool]) -> dict[str, RemoteTool]:
        made = make_remote_tools(link, listed, self._terms, self._taken)
        return {tool.name: tool for tool in made}

    async def _refuse_second(self, known: Worker) -> None:
        """A name belongs to one process; one that is dead leaves it to its successor."""
        name = known.link.name
        if known.until is None:
            raise HeldElsewhere(f"The server's configuration has a worker named {name} already.")
        try:
            await known.link.tools(PATIENCE)
        except ToolError:
            return
        raise HeldElsewhere(f"A worker named {name} is registered at another address and answers.")


class WorkerToolset(UncachedToolset):
    """The tools of all workers, asked for again before each call of the model (S1-R24)."""

    def __init__(self, registry: WorkerRegistry) -> None:
        """Show what a registry knows."""
        super().__init__()
        self._registry = registry

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """What is offered now, and what stands for tools that were asked for and have gone."""
        await self._registry.refresh()
        offered: list[BaseTool] = [*self._registry.tools()]
        if readonly_context is not None:
            names = {tool.name for tool in offered}
            asked = set(_asked_for(readonly_context)) - names
            offered += [RemovedTool(name) for name in asked if self._registry.may_be_gone(name)]
        return offered

    async def close(self) -> None:
        """End all connections."""
        await self._registry.close()


def _asked_for(context: ReadonlyContext) -> Iterator[str]:
    """Names of tools that a person was asked about in the conversation."""
    for event in context.session.events:
        for call in event.get_function_calls():
            if call.name == _QUESTION:
                original: Any = (call.args or {}).get("originalFunctionCall")
                name = original.get("name") if isinstance(original, dict) else None
                if isinstance(name, str):
                    yield name


def _check(name: str, url: str) -> None:
    check_worker_name(name)
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.username is not None or parts.password is not None:
        raise ConfigurationError(f"The address of the worker {name} is no http or https URL.")
