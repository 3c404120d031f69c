"""MCP's messages as this server exchanges them with a worker.

The package ``mcp`` offers forms and URLs together and ends a listing at the first odd entry, so
both are changed where the messages pass.
"""

from __future__ import annotations

import asyncio
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from mcp import types as mcp
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from pydantic import ValidationError

from sluicegate.tools.worker_names import shown_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp.shared.dispatcher import CallOptions, DispatchContext, OnRequest

_CALL: Final = "tools/call"
_LIST: Final = "tools/list"

REFUSED: Final = {
    "sampling/createMessage": "This server gives no answers of a model (sampling) to workers.",
    "roots/list": "This server has no folders (roots) for workers.",
}
"""The sentences for requests of a worker that are not answered, by method."""

NO_URLS: Final = "This server shows forms to its users and opens no URLs for workers."


class WorkerDispatcher(JSONRPCDispatcher[TransportContext]):
    """Leaves out entries of a listing that define no tool, and offers nothing but forms.

    ``ended`` is set when its connection has ended.
    """

    def __init__(self, read: Any, write: Any, malformed: dict[str, str]) -> None:
        super().__init__(read, write)
        self._malformed = malformed
        self.ended = asyncio.Event()

    async def run(self, on_request: OnRequest, *args: Any, **more: Any) -> None:
        """Exchange messages until the connection ends."""

        async def respond(
            context: DispatchContext[TransportContext],
            method: str,
            params: Mapping[str, Any] | None,
        ) -> dict[str, Any]:
            if method in REFUSED:
                raise MCPError(code=mcp.INVALID_REQUEST, message=REFUSED[method])
            return await on_request(context, method, params)

        try:
            await super().run(respond, *args, **more)
        finally:
            self.ended.set()

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Send a request and return its result."""
        _withhold_urls(params or {})
        if method == _CALL:
            # Each call has a session of its own, and the id of one that is made again must differ.
            opts = {**(opts or {}), "request_id": f"call-{token_hex(8)}"}
        raw = await super().send_raw_request(method, params, opts, **more)
        entries = raw.get("tools")
        if method != _LIST or not isinstance(entries, list):
            return raw
        return {**raw, "tools": [entry for entry in entries if self._is_definition(entry)]}

    def _is_definition(self, entry: object) -> bool:
        try:
            mcp.Tool.model_validate(entry, by_name=False)
        except ValidationError as error:
            name = entry.get("name") if isinstance(entry, dict) else None
            where = ".".join(str(step) for step in error.errors()[0]["loc"]) or "it"
            self._malformed[shown_name(name, 100) if isinstance(name, str) else "?"] = (
                f"it is no definition of a tool: {shown_name(where, 100)} is missing or not valid"
            )
            return False
        return True


def _withhold_urls(params: Mapping[str, Any]) -> None:
    """Remove the mode ``url`` from the capabilities that a request declares."""
    declared = (params, params.get("_meta") or {})
    keys = ("capabilities", mcp.CLIENT_CAPABILITIES_META_KEY)
    for holder, key in zip(declared, keys, strict=True):
        capabilities = holder.get(key)
        offered = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
        if isinstance(offered, dict):
            offered.pop("url", None)
