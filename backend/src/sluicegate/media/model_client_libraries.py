"""The client library through which the requests of a model go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from sluicegate.adk_private import uses_vertex

if TYPE_CHECKING:
    from google.adk.models.base_llm import BaseLlm

Route: TypeAlias = Literal["genai", "vertex", "litellm", "anthropic", "other"]
"""The client of a request: Google's on one of its two backends, LiteLLM, Anthropic's, or that of
an unknown model class."""


def route_of(model: BaseLlm) -> Route:
    """Return the client library that carries a model's requests.

    Classes are compared by name, since importing LiteLLM takes seconds.
    """
    if has_class_named(model, "LiteLlm"):
        return "litellm"
    if has_class_named(model, "AnthropicLlm"):
        return "anthropic"
    if has_class_named(model, "Gemini"):
        return "vertex" if uses_vertex(model) else "genai"
    return "other"


def has_class_named(value: object, name: str) -> bool:
    """Whether the class of an object, or one that it inherits from, has a name."""
    return any(cls.__name__ == name for cls in type(value).__mro__)
