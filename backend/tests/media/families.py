"""The families of models, each with the real client of its provider and a local endpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anthropic import AsyncAnthropic
from google.adk.models.anthropic_llm import AnthropicLlm
from google.adk.models.google_llm import Gemini
from google.adk.models.lite_llm import LiteLlm

from sluicegate.testing.providers import (
    Endpoint,
    FakeAnthropic,
    FakeGemini,
    FakeOpenAI,
    listening,
)
from tests.media.scripted_replies import reply

if TYPE_CHECKING:
    from google.adk.models.base_llm import BaseLlm


@dataclass(frozen=True)
class Family:
    """A family: where its endpoint listens, and how a model of it is made."""

    name: str
    endpoint: Endpoint
    make: Callable[[], BaseLlm]


NAMES = ("gemini-3", "gemini-2", "openai", "claude")
ALL = (*NAMES, "claude-adk", "vertex-3", "vertex-2", "unknown", "unknown-lite")
"""Also Claude by Anthropic's own client, Google's other backend, and models that no row knows."""


@contextmanager
def every_family() -> Iterator[dict[str, Family]]:
    """Endpoints of all families, for as long as the block lasts."""
    with (
        listening(FakeGemini(), reply) as gemini,
        listening(FakeOpenAI(), reply) as openai,
        listening(FakeAnthropic(), reply) as anthropic,
    ):
        yield {
            "gemini-3": Family("gemini-3", gemini, lambda: _gemini("gemini-3.5-flash", gemini)),
            "gemini-2": Family("gemini-2", gemini, lambda: _gemini("gemini-2.5-flash", gemini)),
            "openai": Family("openai", openai, lambda: _lite("openai/gpt-5", f"{openai.url}/v1")),
            "claude": Family(
                "claude", anthropic, lambda: _lite("anthropic/claude-sonnet-4-5", anthropic.url)
            ),
            "claude-adk": Family("claude-adk", anthropic, lambda: _claude(anthropic)),
            "vertex-3": Family(
                "vertex-3", gemini, lambda: _gemini("gemini-3.5-flash", gemini, vertexai=True)
            ),
            "vertex-2": Family(
                "vertex-2", gemini, lambda: _gemini("gemini-2.5-pro", gemini, vertexai=True)
            ),
            "unknown": Family("unknown", gemini, lambda: _gemini("house-vision-1", gemini)),
            "unknown-lite": Family(
                "unknown-lite", openai, lambda: _lite("openai/house-vision-1", f"{openai.url}/v1")
            ),
        }


def _gemini(name: str, endpoint: Endpoint, *, vertexai: bool = False) -> BaseLlm:
    more = {"api_key": "none", "vertexai": vertexai}
    return Gemini(model=name, base_url=endpoint.url, client_kwargs=more)


def _claude(endpoint: Endpoint) -> BaseLlm:
    client = AsyncAnthropic(base_url=endpoint.url, api_key="none", max_retries=0)
    return AnthropicLlm(model="claude-sonnet-9", client=client)


def _lite(name: str, url: str) -> BaseLlm:
    more: dict[str, Any] = {"api_base": url, "api_key": "none", "num_retries": 0}
    return LiteLlm(model=name, **more)
