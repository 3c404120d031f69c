"""Conversations that the real ADK runs: the signals live, and again from the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.adk.agents import LlmAgent
from google.adk.artifacts import InMemoryArtifactService
from google.adk.events.event import Event
from google.adk.models import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.function_tool import FunctionTool
from google.genai import types

from sluicegate.core.stored_emission_order import EmissionOrder
from sluicegate.core.tool_facts import ToolFacts
from sluicegate.replay import ScriptedModel
from tests.agents.conversation import Conversation
from tests.core.signal_words import Tools, replayed, translate, words

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.models.llm_request import LlmRequest

GATED = Tools({"pay": ToolFacts(kind="gated"), "get_location": ToolFacts(kind="client")})


def pay(amount: int) -> dict[str, int]:
    """Pay."""
    return {"paid": amount}


def price(item: str) -> int:
    """Ask for a price."""
    return len(item)


def gated_pay() -> FunctionTool:
    """A tool that asks a person first."""
    return FunctionTool(pay, require_confirmation=True)


def agent(
    *responses: Mapping[str, Any] | Sequence[Mapping[str, Any]], name: str = "helper", **more: Any
) -> LlmAgent:
    """An agent whose model answers with these responses, or parts, in order."""
    spoken = [r if isinstance(r, dict) else {"parts": list(r)} for r in responses]
    model = ScriptedModel.from_data({"scenarios": [{"match": "", "responses": spoken}]})
    return LlmAgent(name=name, model=model, **more)


def call(name: str, *, stream: bool = False, **args: Any) -> dict[str, Any]:
    return {"call": {"name": name, "args": args, "stream": stream}}


class RawModel(BaseLlm):
    """A model that answers each request with the next list of responses, as they are."""

    model: str = "raw"
    answers: list[list[LlmResponse]]

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT002 - ADK's signature
    ) -> AsyncGenerator[LlmResponse, None]:
        for response in self.answers.pop(0):
            yield response


def raw(*answers: list[LlmResponse], **more: Any) -> LlmAgent:
    """An agent on a `RawModel`."""
    return LlmAgent(name="helper", model=RawModel(answers=list(answers)), **more)


def fragment(*parts: types.Part) -> LlmResponse:
    """A partial response."""
    return LlmResponse(content=types.Content(role="model", parts=list(parts)), partial=True)


def whole(*parts: types.Part, **more: Any) -> LlmResponse:
    """An aggregate."""
    content = types.Content(role="model", parts=list(parts))
    return LlmResponse(content=content, partial=False, **more)


def text(words: str) -> types.Part:
    """A piece of text."""
    return types.Part(text=words)


def thought(words: str) -> types.Part:
    """A piece of a thought."""
    return types.Part(text=words, thought=True)


def function_call(name: str, **more: Any) -> types.Part:
    """A call of a tool."""
    return types.Part(function_call=types.FunctionCall(name=name, **more))


class Notes(BasePlugin):
    """Stores with each event what its order was, as the server's plugin does."""

    def __init__(self) -> None:
        super().__init__("notes")
        self._order = EmissionOrder()

    async def on_event_callback(
        self, *, invocation_context: InvocationContext, event: Event
    ) -> Event | None:
        note = self._order.note(event)
        return Event(author=event.author, custom_metadata={"sluicegate": note}) if note else None


class AdkConversation(Conversation):
    """A conversation whose runs are all kept."""

    def __init__(self, root: Any, **more: Any) -> None:
        super().__init__(root, plugins=[Notes()], **more)
        self.runner.artifact_service = InMemoryArtifactService()
        self.live: list[Event] = []

    async def _run(self, message: list[types.Part], stop_after: int | None = None) -> list[Event]:
        try:
            return await super()._run(message, stop_after)
        finally:
            self.live += self.events

    async def emitted(self, tools: Tools = GATED) -> list[str]:
        """The signals emitted live, which must equal those from the log."""
        live = words(translate(self.live, tools))
        assert words(replayed(await self.stored(), tools)) == live
        return live
