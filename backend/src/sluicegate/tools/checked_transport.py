"""The HTTP transport to a worker or a webhook: only to checked addresses, without redirects."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Final

import httpx2

from sluicegate.errors import ToolError

if TYPE_CHECKING:
    from sluicegate.tools.outbound_hosts import ConnectionRule

_NOT_CONNECTED: Final = (httpx2.ConnectError, httpx2.ConnectTimeout)


class CheckedTransport(httpx2.AsyncBaseTransport):
    """A pool of connections to one ``receiver``, which is named so in errors.

    The name of the host is resolved here for each request, every address is checked, and the
    connection is made to the checked address: a name that resolves to another address a moment
    later changes nothing.
    """

    def __init__(self, receiver: str, rule: ConnectionRule) -> None:
        self._receiver = receiver
        self._rule = rule
        self._pool = httpx2.AsyncHTTPTransport(
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=8)
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request.

        Raises:
            ToolError: An address is refused, or the answer is a redirect or compressed.
        """
        addresses = await self._addresses(request.url)
        for address in addresses[:-1]:
            try:
                return await self._send(request, address)
            except _NOT_CONNECTED:
                continue
        return await self._send(request, addresses[-1])

    async def aclose(self) -> None:
        """Close the connections."""
        await self._pool.aclose()

    async def _addresses(self, url: httpx2.URL) -> list[str]:
        loop = asyncio.get_running_loop()
        port = url.port or (443 if url.scheme == "https" else 80)
        try:
            found = await loop.getaddrinfo(url.raw_host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpx2.ConnectError("the name of the host cannot be resolved") from error
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        for address in addresses:
            refusal = self._rule.refusal(address)
            if refusal is not None:
                raise ToolError(f"The {self._receiver} was not connected to: {refusal}.")
        return addresses

    async def _send(self, request: httpx2.Request, address: str) -> httpx2.Response:
        # The headers hold the name of the host, and so does the TLS handshake.
        response = await self._pool.handle_async_request(
            httpx2.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": request.url.raw_host.decode()},
            )
        )
        problem = _problem(response)
        if problem is not None:
            await response.aclose()
            raise ToolError(f"The {self._receiver} {problem}.")
        return response


def _problem(response: httpx2.Response) -> str | None:
    if 300 <= response.status_code < 400:
        return "answers with a redirect, which is not followed; configure its final URL"
    # A few compressed bytes expand to any number of bytes.
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        return "compresses its answers; turn that off"
    return None
