"""A model that plays a script through the real ADK, without a key and without a network."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from google.adk.models import BaseLlm, LlmCapabilities
from google.adk.utils.streaming_utils import StreamingResponseAggregator
from google.genai import errors
from pydantic import Field

from sluicegate.replay.deltas import provider_chunks
from sluicegate.replay.loading import load_scenarios, parse_scenarios
from sluicegate.replay.request import read_position
from sluicegate.replay.scenario import Scenarios, ScriptedPart, ScriptedResponse

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator

    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse

    from sluicegate.replay.request import Position
    from sluicegate.replay.scenario import ScriptedError

_STATUS: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class ScriptedModel(BaseLlm):
    """Plays scenarios in place of a model.

    It keeps no state: the scenario is the first whose ``match`` is found in the last user text and
    whose ``agent`` speaks, and the response is number k, where k is the count of that agent's
    contents after this text. Where there is none, the model says so in one sentence.

    ``root`` names the root agent, to which scenarios without ``agent`` belong; left out, they
    belong to every agent that no scenario names. ``sleep`` takes seconds and is awaited between
    deltas, also for 0.
    """

    model: str = "scripted"
    scenarios: Scenarios
    root: str | None = None
    sleep: Callable[[float], Awaitable[object]] = Field(
        default=asyncio.sleep, exclude=True, repr=False
    )

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], *, root: str | None = None) -> ScriptedModel:
        """Play a scenario file.

        Raises:
            ScenarioError: The file cannot be read or played.
        """
        return cls(scenarios=load_scenarios(path), root=root)

    @classmethod
    def from_data(cls, data: object, *, root: str | None = None) -> ScriptedModel:
        """Play what a scenario file would hold: ``{"scenarios": [...]}``.

        Raises:
            ScenarioError: The data cannot be played.
        """
        return cls(scenarios=parse_scenarios(data), root=root)

    @property
    def capabilities(self) -> LlmCapabilities:
        """A script follows no output schema."""
        return LlmCapabilities(output_schema_and_tools=False)

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT001, FBT002
    ) -> AsyncGenerator[LlmResponse, None]:
        """Yield partial responses when ``stream`` is set, then the aggregate that repeats them.

        Raises:
            google.genai.errors.APIError: The script says that the provider fails; ``code`` is the
                HTTP status.
        """
        response = self._choose(read_position(llm_request))
        if response.wait_ms:
            await self.sleep(response.wait_ms / 1000)
        aggregator = StreamingResponseAggregator()
        for number, chunk in enumerate(provider_chunks(response, self.model)):
            if number and stream:
                await self.sleep(response.delay_ms / 1000)
            async for partial in aggregator.process_response(chunk):
                if stream:
                    yield partial
        if response.error is not None:
            raise _provider_error(response.error)
        if response.hang:
            await asyncio.Event().wait()
        aggregate = aggregator.close()
        if aggregate is not None:
            aggregate.interrupted = True if response.interrupted else None
            yield aggregate

    def _choose(self, position: Position) -> ScriptedResponse:
        agent = position.agent or "the agent"
        scenario = self.scenarios.first(position.text, position.agent, self.root)
        if scenario is None:
            return _say(f"The script has no scenario in which {agent} answers this message.")
        if position.answered >= len(scenario.responses):
            number = position.answered + 1
            return _say(f"The script has no response {number} of {agent} to this message.")
        return scenario.responses[position.answered]


def _say(sentence: str) -> ScriptedResponse:
    return ScriptedResponse(parts=[ScriptedPart(text=sentence)])


def _provider_error(error: ScriptedError) -> errors.APIError:
    kind = errors.ClientError if error.code < 500 else errors.ServerError
    status = _STATUS.get(error.code, "UNKNOWN")
    detail = {"code": error.code, "message": error.message, "status": status}
    return kind(error.code, {"error": detail})
