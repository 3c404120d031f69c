"""A model that plays a script through the real ADK, without a key and without a network."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from google.adk.models import BaseLlm, LlmCapabilities
from google.adk.utils.streaming_utils import StreamingResponseAggregator
from pydantic import Field

from sluicegate.replay.provider_errors import provider_error
from sluicegate.replay.recorded_script import recorded_scenarios
from sluicegate.replay.recording import load_recording
from sluicegate.replay.scenario import Scenarios, load_scenarios, parse_scenarios
from sluicegate.replay.scenarios_of_agent import AgentScript
from sluicegate.replay.script_position import read_position, speaking_agent
from sluicegate.replay.scripted_gemini_chunks import provider_chunks
from sluicegate.replay.scripted_live_session import live_connection

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator, AsyncIterator

    from google.adk.models.base_llm_connection import BaseLlmConnection
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse

    from sluicegate.replay.scenario import ScriptedResponse
    from sluicegate.replay.script_position import Position


class ScriptedModel(BaseLlm):
    """Plays scenarios in place of a model.

    It keeps no state: the scenario is the first whose ``match`` is found in the last user text and
    whose ``agent`` is the speaking one, and the response is number k, where k is the count of that
    agent's responses after this text. A missing scenario or response is reported in one sentence.

    ``root`` names the root agent, to which scenarios without ``agent`` belong; without it they
    belong to every agent that no scenario names. ``sleep`` takes seconds and is awaited between
    deltas, also for 0.

    In a live conversation it receives the user's audio, PCM16 little-endian mono (16 kHz, or the
    rate in ``rate=``). Speech ends at the client's own mark or at a pause, counted in samples, and
    is transcribed as "a tone of 440 Hz", or as the scenario's ``heard``. If ``model`` is the name
    of a live Gemini 3, calls come at once and their turn continues with the results; otherwise they
    come at the end of their turn.
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
        """Play the data of a scenario file: ``{"scenarios": [...]}``.

        Raises:
            ScenarioError: The data cannot be played.
        """
        return cls(scenarios=parse_scenarios(data), root=root)

    @classmethod
    def from_recording(cls, path: str | os.PathLike[str]) -> ScriptedModel:
        """Repeat the responses of the models of a recorded chat.

        The same text of a user, sent for the nth time, gets the same response as then.

        Raises:
            RecordingError: The file is not a recording, or has no response of a model.
        """
        return cls(scenarios=recorded_scenarios(load_recording(path)))

    @property
    def capabilities(self) -> LlmCapabilities:
        """The capabilities of a script, which follows no output schema."""
        return LlmCapabilities(output_schema_and_tools=False)

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT001, FBT002
    ) -> AsyncGenerator[LlmResponse, None]:
        """Yield partial responses when ``stream`` is set, then the aggregate that repeats them.

        Raises:
            google.genai.errors.APIError: The script holds an error of the provider; ``code`` is the
                HTTP status.
        """
        response = self.choose_response(read_position(llm_request))
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
            raise provider_error(response.error)
        if response.hang:
            await asyncio.Event().wait()
        aggregate = aggregator.close()
        if aggregate is not None:
            aggregate.interrupted = True if response.interrupted else None
            yield aggregate

    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncIterator[BaseLlmConnection]:
        """Open a live conversation.

        The next response is played when all calls of a response have their results, and it answers
        the text of these calls, regardless of what was said in between.

        Raises:
            google.genai.errors.ClientError: ``session_resumption`` has no handle of a script.
        """
        script = AgentScript(self.scenarios, speaking_agent(llm_request), self.root)
        connection = live_connection(script, self.model, self.sleep, llm_request)
        try:
            yield connection
        finally:
            await connection.close()

    def choose_response(self, position: Position) -> ScriptedResponse:
        """Return the response for a position of the conversation."""
        script = AgentScript(self.scenarios, position.agent, self.root, position.times)
        number = script.count_responses(position.text, position.contents)
        return script.response(position.text, number)
