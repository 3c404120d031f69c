"""A model that plays a script through the real ADK, without a key and without a network."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from google.adk.models import BaseLlm, LlmCapabilities
from google.adk.utils.streaming_utils import StreamingResponseAggregator
from pydantic import Field

from sluicegate.replay.deltas import provider_chunks, provider_error
from sluicegate.replay.live_connection import Opening, live_connection
from sluicegate.replay.recorded_script import recorded_scenarios
from sluicegate.replay.recording import load_recording
from sluicegate.replay.scenario import Scenarios, load_scenarios, parse_scenarios, saying
from sluicegate.replay.script_position import answered, own_contents, read_position, speaking_agent

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence

    from google.adk.models.base_llm_connection import BaseLlmConnection
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.genai import errors, types

    from sluicegate.replay.scenario import Scenario, ScriptedResponse
    from sluicegate.replay.script_position import Position, Said


class ScriptedModel(BaseLlm):
    """Plays scenarios in place of a model.

    It keeps no state: the scenario is the first whose ``match`` is found in the last user text and
    whose ``agent`` speaks, and the response is number k, where k is the count of that agent's
    contents after this text. Where there is none, the model says so in one sentence.

    ``root`` names the root agent, to which scenarios without ``agent`` belong; left out, they
    belong to every agent that no scenario names. ``sleep`` takes seconds and is awaited between
    deltas, also for 0.

    It speaks live too. There it hears the user's audio, PCM16 little-endian mono (16 kHz, or what
    ``rate=`` says): what is spoken ends at the client's own mark or at a pause, counted in samples,
    and is taken as "a tone of 440 Hz", or as what the scenario calls ``heard``. With ``model``
    named as a live Gemini 3, calls come at once and their turn goes on with the results; else they
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
        """Play what a scenario file would hold: ``{"scenarios": [...]}``.

        Raises:
            ScenarioError: The data cannot be played.
        """
        return cls(scenarios=parse_scenarios(data), root=root)

    @classmethod
    def from_recording(cls, path: str | os.PathLike[str]) -> ScriptedModel:
        """Say again what the models of a recorded chat said.

        The same text of a user, said for the nth time, gets what it got then.

        Raises:
            RecordingError: The file is no recording, or no model speaks in it.
        """
        return cls(scenarios=recorded_scenarios(load_recording(path)))

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

        All calls of a response have their results before the next response is played, and this
        answers the text that the calls were made for, whatever was said in between.

        Raises:
            google.genai.errors.ClientError: ``session_resumption`` holds no handle of a script.
        """
        speaker = _Speaker(self, speaking_agent(llm_request))
        connection = live_connection(Opening(speaker, self.model, self.sleep), llm_request)
        try:
            yield connection
        finally:
            await connection.close()

    def _choose(self, position: Position) -> ScriptedResponse:
        speaker = _Speaker(self, position.agent, position.times)
        return speaker.response(position.text, speaker.answered(position.text, position.said))


@dataclass(frozen=True, slots=True)
class _Speaker:
    """The script of a model as one agent plays it."""

    model: ScriptedModel
    agent: str | None
    times: int | None = None

    def response(self, text: str, number: int) -> ScriptedResponse:
        agent = self.agent or "the agent"
        scenario = self._scenario(text)
        if scenario is None:
            return saying(f"The script has no scenario in which {agent} answers this message.")
        if number >= len(scenario.responses):
            return saying(f"The script has no response {number + 1} of {agent} to this message.")
        return scenario.responses[number]

    def answered(self, text: str, said: Sequence[Said]) -> int:
        scenario = self._scenario(text)
        return answered(said, scenario.responses if scenario else ())

    def _scenario(self, text: str) -> Scenario | None:
        return self.model.scenarios.first(text, self.agent, self.model.root, times=self.times)

    def own(self, contents: Sequence[types.Content]) -> list[types.Content]:
        return own_contents(contents, self.agent)

    def hear(self, sound: Callable[[], str]) -> str:
        return self.model.scenarios.heard(sound, self.agent, self.model.root)

    def failure(self, response: ScriptedResponse) -> errors.APIError | None:
        return None if response.error is None else provider_error(response.error)
