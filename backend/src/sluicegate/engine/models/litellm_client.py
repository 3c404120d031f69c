"""Between ADK and LiteLLM: messages get what ADK cannot write into them."""

from __future__ import annotations

import importlib
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from sluicegate.media.litellm_blocks import insert_blocks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from google.adk.models.base_llm import BaseLlm

_GATEWAY: Final = "litellm.responses.mcp.litellm_proxy_mcp_handler"


def block_client(model: BaseLlm, handed: Mapping[str, Sequence[Mapping[str, Any]]]) -> Any:
    """A client in place of ``LiteLlm.llm_client`` that puts blocks where tokens are.

    ADK: a tool's message is text, a document is uploaded first; what goes to LiteLLM can be mended
    only here (S4-R14).
    """
    _prepare()
    inner = getattr(model, "llm_client")  # noqa: B009 - a field of LiteLlm alone

    class BlockClient(type(inner)):  # type: ignore[misc]  # whoever asks for the class finds it
        async def acompletion(self, model: Any, messages: Any, tools: Any, **more: Any) -> Any:
            fresh = insert_blocks(messages, handed) if handed else messages
            more = _mended(more) if tools else more
            return await inner.acompletion(model=model, messages=fresh, tools=tools, **more)

        def completion(self, model: Any, messages: Any, tools: Any, **more: Any) -> Any:
            fresh = insert_blocks(messages, handed) if handed else messages
            more = _mended(more) if tools else more
            return inner.completion(model=model, messages=fresh, tools=tools, **more)

    fresh = object.__new__(BlockClient)
    fresh.__dict__.update(vars(inner))
    return fresh


def _mended(more: dict[str, Any]) -> dict[str, Any]:
    return {"_skip_mcp_handler": True, **more} if _has_broken_gateway() else more


def _prepare() -> None:
    """Import LiteLLM now: ADK does so in the first call, and every chat waits for seconds then."""
    if find_spec("litellm") is not None:
        importlib.import_module("litellm")
        _has_broken_gateway()


@cache
def _has_broken_gateway() -> bool:
    """Whether LiteLLM fails as soon as there are tools.

    LiteLLM: for every call with tools it imports a gateway that needs a newer ``mcp`` than ADK and
    others may have installed. ADK's tools are functions, which no gateway has to look at.
    """
    try:
        if find_spec(_GATEWAY) is None:
            return False
        importlib.import_module(_GATEWAY)
    except ImportError:
        return find_spec("litellm") is not None
    return False
