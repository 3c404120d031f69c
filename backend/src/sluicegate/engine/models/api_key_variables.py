"""The environment variables that hold the API keys of models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from google.adk.models.google_llm import Gemini

from sluicegate.adk_private import litellm_arguments
from sluicegate.engine.agents.vertex_models import is_for_vertex

if TYPE_CHECKING:
    from google.adk.models.base_llm import BaseLlm

_LITELLM_KEYS: Final = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "gemini": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "openai": ("OPENAI_API_KEY",),
}
_CONNECTION_ARGUMENTS: Final = frozenset({"api_base", "api_key", "base_url", "client"})


def key_variables(model: BaseLlm) -> tuple[str, ...]:
    """Return the environment variables of which one must hold a key; none if that is not known."""
    classes = {cls.__name__ for cls in type(model).__mro__}
    if "LiteLlm" in classes:
        given = litellm_arguments(model).keys()
        provider = model.model.partition("/")[0]
        return () if given & _CONNECTION_ARGUMENTS else _LITELLM_KEYS.get(provider, ())
    if "AnthropicLlm" in classes:
        is_custom = "Claude" in classes or getattr(model, "client", None) is not None
        return () if is_custom else ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
    if not isinstance(model, Gemini) or type(model).api_client is not Gemini.api_client:
        return ()
    has_key = model.client is not None or (model.client_kwargs or {}).get("api_key")
    return () if has_key or is_for_vertex(model) else ("GOOGLE_API_KEY", "GEMINI_API_KEY")
