"""Calls that a worker runs, which may ask for input on the way and wait for a person.

A worker of MCP 2025-11-25 asks while it runs, over the connection of its call. The call therefore
runs in a task that outlives the turn: it is held until the person decides, and ends with the
process. One of 2026-07-28 ends with what it needs, and nothing is held.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from mcp import types as mcp

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable

    from mcp.shared.dispatcher import ProgressFnT

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.core.call_keys import CallKey

Answer: TypeAlias = mcp.ElicitResult | mcp.ErrorData
Ask: TypeAlias = "Callable[[mcp.ElicitRequestFormParams], Awaitable[Answer]]"
CallResult: TypeAlias = mcp.CallToolResult | mcp.InputRequiredResult
_Action: TypeAlias = Literal["decline", "cancel"]

MAX_HELD: Final = 200
"""Calls that wait for a person at once; beyond it the oldest is cancelled at its worker."""

_ENDED: Final[dict[str, _Action]] = {
    "denied": "decline",
    "expired": "cancel",
    "superseded": "cancel",
    "refused": "cancel",
    "failed": "cancel",
}
"""What a worker is answered when the state of the call's row leaves its question without a yes."""


class RunningCall:
    """A call at a worker, in a task of its own.

    ``progress`` receives the reports of the worker; None while the call is held.
    """

    def __init__(self, run: Callable[[Ask, ProgressFnT], Coroutine[Any, Any, CallResult]]) -> None:
        """``run`` makes the call, and asks and reports by the functions that it gets."""
        self.progress: ProgressFnT | None = None
        self._asked: asyncio.Queue[tuple[mcp.ElicitRequestFormParams, asyncio.Future[Answer]]] = (
            asyncio.Queue()
        )
        self._open: asyncio.Future[Answer] | None = None
        self._task = asyncio.create_task(run(self._ask, self._report))

    async def advance(self) -> CallResult | mcp.ElicitRequestFormParams:
        """Wait for the result, or for a question, which `answer` answers.

        A cancelled caller cancels the call at the worker (S1-R32).

        Raises:
            ToolError: As `WorkerClient.call`.
        """
        asked = asyncio.ensure_future(self._asked.get())
        try:
            await asyncio.wait({asked, self._task}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self.cancel()
            raise
        finally:
            asked.cancel()
        if self._task.done():
            return self._task.result()
        params, self._open = asked.result()
        return params

    def answer(self, answer: Answer) -> None:
        """Answer the question that `advance` returned."""
        if self._open is not None and not self._open.done():
            self._open.set_result(answer)

    async def cancel(self) -> None:
        """Cancel the call at the worker."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def end(self, action: _Action) -> None:
        """Answer without a yes and let the worker end the call; its result is not used."""
        while not self._task.done():
            self.answer(mcp.ElicitResult(action=action))
            try:
                await self.advance()
            except Exception:  # noqa: BLE001 - the call is over, however it ends
                return

    async def _ask(self, params: mcp.ElicitRequestFormParams) -> Answer:
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._asked.put_nowait((params, answer))
        return await answer

    async def _report(self, progress: float, total: float | None, message: str | None) -> None:
        if self.progress is not None:
            await self.progress(progress, total, message)


class HeldCalls:
    """The calls of this process whose workers wait for a person.

    Args:
        seconds: How long a call is held at most, as its approval is open.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._calls: dict[CallKey, tuple[RunningCall, asyncio.TimerHandle]] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def hold(self, key: CallKey, call: RunningCall) -> None:
        """Keep a call whose question a person is asked."""
        call.progress = None
        if len(self._calls) >= MAX_HELD:
            self._end(next(iter(self._calls)), "cancel")
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self._seconds, self._end, key, "cancel")
        self._calls[key] = (call, timer)

    def resume(self, key: CallKey) -> RunningCall | None:
        """Return a held call, which is then the caller's; None if there is none."""
        call, timer = self._calls.pop(key, (None, None))
        if timer is not None:
            timer.cancel()
        return call

    def settle(self, rows: Iterable[ApprovalRow]) -> None:
        """End the calls whose questions got no yes, by the rows that have changed."""
        if not self._calls:
            return
        for row in rows:
            action = _ENDED.get(row.state)
            if action is not None:
                self._end(row.key.with_request_number(1), action)

    async def close(self) -> None:
        """Cancel all calls at their workers."""
        for key in list(self._calls):
            call = self.resume(key)
            if call is not None:
                await call.cancel()
        for task in self._ending:
            task.cancel()
        await asyncio.gather(*self._ending, return_exceptions=True)

    def _end(self, key: CallKey, action: _Action) -> None:
        call = self.resume(key)
        if call is None:
            return
        task = asyncio.create_task(call.end(action))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
