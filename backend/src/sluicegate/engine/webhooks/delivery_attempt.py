"""One attempt to deliver an event over HTTP."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import httpx2

from sluicegate._version import __version__
from sluicegate.errors import ToolError
from sluicegate.tools.checked_transport import CheckedTransport

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from sluicegate.engine.webhooks.webhook_settings import Endpoint

MAX_RESPONSE_BYTES: Final = 64 * 1024
"""What is read of a response, so that its connection can be used again; it is not kept."""

_GONE: Final = 410
_HEADERS: Final = {
    "content-type": "application/json",
    "user-agent": f"sluicegate/{__version__}",
    # The transport refuses compressed responses.
    "accept-encoding": "identity",
}


@dataclass(frozen=True, slots=True)
class Attempt:
    """The result of an attempt; ``error`` is None for one that the endpoint has accepted.

    ``is_final``: the endpoint wants no further attempt. ``retry_after`` is in seconds.
    """

    error: str | None = None
    is_final: bool = False
    retry_after: float = 0.0


class WebhookSender:
    """The connections to one endpoint; ``timeout`` is in seconds for a whole attempt."""

    def __init__(self, endpoint: Endpoint, timeout: float) -> None:
        self._endpoint = endpoint
        self._timeout = timeout
        self._client = httpx2.AsyncClient(
            transport=CheckedTransport(f"webhook {endpoint.name}", endpoint.rule),
            timeout=timeout,
            follow_redirects=False,
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._client.aclose()

    async def send(self, headers: Mapping[str, str], body: str) -> Attempt:
        """Send an event; never raises for what the network or the endpoint does."""
        name = self._endpoint.name
        try:
            async with asyncio.timeout(self._timeout):
                return await self._post(headers, body)
        except TimeoutError:
            return Attempt(f"The webhook {name} did not answer within {self._timeout:g} seconds.")
        except ToolError as error:
            return Attempt(str(error))
        except httpx2.HTTPError as error:
            # Its text may repeat the URL, which may hold a token.
            return Attempt(f"The webhook {name} was not reached: {type(error).__name__}.")

    async def _post(self, headers: Mapping[str, str], body: str) -> Attempt:
        async with self._client.stream(
            "POST", self._endpoint.url, content=body.encode(), headers={**_HEADERS, **headers}
        ) as response:
            read = 0
            async for piece in response.aiter_raw():
                read += len(piece)
                if read > MAX_RESPONSE_BYTES:
                    break
            if response.is_success:
                return Attempt()
            wait = response.headers.get("retry-after", "")
            return Attempt(
                f"The webhook {self._endpoint.name} answered {response.status_code}.",
                is_final=response.status_code == _GONE,
                retry_after=float(wait) if wait.isdecimal() and wait.isascii() else 0.0,
            )
