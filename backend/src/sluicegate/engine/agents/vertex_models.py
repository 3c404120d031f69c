"""Whether a Gemini is called through Vertex AI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.adk.utils.variant_utils import GoogleLLMVariant, get_google_llm_variant

if TYPE_CHECKING:
    from google.adk.models.base_llm import BaseLlm


def is_for_vertex(model: BaseLlm) -> bool:
    """Whether a Gemini is called through Vertex AI, which has other credentials."""
    given = getattr(model, "client_kwargs", None) or {}
    chosen = given.get("enterprise", given.get("vertexai"))
    if chosen is not None:
        return bool(chosen)
    return (
        model.model.startswith("projects/")
        or get_google_llm_variant() is GoogleLLMVariant.VERTEX_AI
    )
