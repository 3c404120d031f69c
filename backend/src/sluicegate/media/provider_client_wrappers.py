"""Clients of LiteLLM and Anthropic that add file blocks to messages, which ADK cannot write."""

from __future__ import annotations

import importlib
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from sluicegate.adk_private import anthropic_client, with_anthropic_client
from sluicegate.media.claude_encrypted_thinking import (
    mark_encrypted,
    marked_chunks,
    unmark_messages,
)
from sluicegate.media.litellm_blocks import insert_blocks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from google.adk.models.base_llm import BaseLlm

FILES_BETA: Final = "files-api-2025-04-14"
_GATEWAY: Final = "litellm.responses.mcp.litellm_proxy_mcp_handler"


def litellm_block_client(model: BaseLlm, blocks: Mapping[str, Sequence[Mapping[str, Any]]]) -> Any:
    """Return a client for ``LiteLlm.llm_client`` that replaces tokens by blocks.

    It also keeps encrypted thinking.

    ADK: a tool's message is text, and a document is uploaded first; messages to LiteLLM can be
    changed only here (S4-R14).
    """
    _import_litellm()
    inner = getattr(model, "llm_client")  # noqa: B009 - a field of LiteLlm alone

    class BlockClient(type(inner)):  # type: ignore[misc]  # code checks the client's class
        async def acompletion(self, model: Any, messages: Any, tools: Any, **more: Any) -> Any:
            fresh = unmark_messages(insert_blocks(messages, blocks) if blocks else messages)
            more = _without_gateway(more) if tools else more
            response = await inner.acompletion(model=model, messages=fresh, tools=tools, **more)
            return marked_chunks(response) if more.get("stream") else mark_encrypted(response)

        def completion(self, model: Any, messages: Any, tools: Any, **more: Any) -> Any:
            fresh = insert_blocks(messages, blocks) if blocks else messages
            more = _without_gateway(more) if tools else more
            return inner.completion(model=model, messages=fresh, tools=tools, **more)

    fresh = object.__new__(BlockClient)
    fresh.__dict__.update(vars(inner))
    return fresh


async def anthropic_block_model(
    model: BaseLlm, blocks: Mapping[str, Sequence[Mapping[str, Any]]]
) -> BaseLlm:
    """Return a copy of an ``AnthropicLlm`` whose client replaces tokens by blocks.

    ADK: it raises for a reference to a file (S4-R14).
    """
    inner = await anthropic_client(model)

    class BlockMessages(type(inner.messages)):  # type: ignore[misc]  # known when it is called
        async def create(self, *, messages: Any, **more: Any) -> Any:
            # Before Anthropic's API of files was final, a request had to ask for it.
            headers = {**(more.pop("extra_headers", None) or {}), "anthropic-beta": FILES_BETA}
            fresh = insert_blocks(messages, blocks)
            return await super().create(messages=fresh, extra_headers=headers, **more)

    fresh = inner.copy()
    vars(fresh)["messages"] = BlockMessages(fresh)
    return with_anthropic_client(model, fresh)


def _without_gateway(more: dict[str, Any]) -> dict[str, Any]:
    return {"_skip_mcp_handler": True, **more} if _has_broken_gateway() else more


def _import_litellm() -> None:
    """Import LiteLLM now: ADK does so in the first call, which blocks every chat for seconds."""
    if find_spec("litellm") is not None:
        importlib.import_module("litellm")
        _has_broken_gateway()


@cache
def _has_broken_gateway() -> bool:
    """Whether LiteLLM fails on every call with tools.

    LiteLLM: for a call with tools it imports a gateway that needs a newer ``mcp`` than may be
    installed. ADK's tools are functions, which the gateway does not handle.
    """
    try:
        if find_spec(_GATEWAY) is None:
            return False
        importlib.import_module(_GATEWAY)
    except ImportError:
        return find_spec("litellm") is not None
    return False
