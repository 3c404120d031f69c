"""Agents without a model of their own run on ADK's defaults, wrapped as every model."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.sequential_agent import SequentialAgent
from google.genai.errors import APIError

from sluicegate.live.outgoing_frame_queue import ChatEnded
from sluicegate.replay import ScriptedModel
from sluicegate.replay.scenario import parse_scenarios
from sluicegate.wire.live_frames import ReadyFrame
from tests.engine.stage import Counted, calls, says, words
from tests.engine.talk import Talk
from tests.live.caller import Caller, calling, spoken_response

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.models.base_llm_connection import BaseLlmConnection
    from google.adk.models.llm_request import LlmRequest
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from tests.engine.stage import Open, Responses


def plays(responses: Responses) -> ScriptedModel:
    """A model that answers any text with a script."""
    scenario = {"match": "", "responses": list(responses)}
    return ScriptedModel(scenarios=parse_scenarios({"scenarios": [scenario]}))


@pytest.fixture(autouse=True)
def defaults() -> Iterator[None]:
    """ADK's defaults are those of the process, so they are set back."""
    yield
    LlmAgent.set_default_model(LlmAgent.DEFAULT_MODEL)
    LlmAgent.set_default_live_model(LlmAgent.DEFAULT_LIVE_MODEL)


def alone(paid: Counted) -> BaseAgent:
    return LlmAgent(name="stage", tools=[paid.tool()])


def below_a_node(paid: Counted) -> BaseAgent:
    return SequentialAgent(name="root", sub_agents=[alone(paid)])


def below_an_agent(paid: Counted) -> BaseAgent:
    """Both inherit, the child from its parent."""
    child = LlmAgent(name="child", description="Helps.")
    return LlmAgent(name="stage", tools=[paid.tool()], sub_agents=[child])


TREES = [alone, below_an_agent]


@pytest.mark.parametrize("tree", TREES)
async def test_a_live_chat_is_ready_and_holds_a_gated_call(open_stage: Open, tree: Any) -> None:
    paid = Counted()
    LlmAgent.set_default_live_model(plays([calls(("pay", {"n": 3})), spoken_response("Paid.")]))
    LlmAgent.set_default_model(plays([says("The text model has answered.")]))
    engine = await open_stage(tree(paid))
    async with calling(Caller(engine)) as caller:
        await caller.frame(ReadyFrame)
        await caller.say("pay")
        assert paid.runs == []
        turn = await caller.approve()
        assert words(turn.message) == "Paid."
    assert paid.runs == [3]


class UnknownModel(ScriptedModel):
    """A name that the backend does not know."""

    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncIterator[BaseLlmConnection]:
        raise APIError(1008, f"models/{llm_request.model} is not found")
        yield


async def test_a_live_model_that_the_backend_does_not_know_is_answered_with_the_setting(
    open_stage: Open,
) -> None:
    LlmAgent.set_default_live_model(
        UnknownModel(model="gemini-9-live", scenarios=plays([says("No.")]).scenarios)
    )
    engine = await open_stage(alone(Counted()))
    async with calling(Caller(engine)) as caller:
        ended = await caller.frame(ChatEnded)
    assert "gemini-9-live is not available" in ended.error.message
    assert "the setting live_model" in ended.error.message


@pytest.mark.parametrize("tree", [*TREES, below_a_node])
async def test_a_text_turn_keeps_the_words_of_an_error_out_of_the_spans(
    open_stage: Open, spans: InMemorySpanExporter, tree: Any
) -> None:
    failing = {"parts": [], "error": {"code": 500, "message": "key sk-123 is wrong"}}
    LlmAgent.set_default_model(plays([failing]))
    engine = await open_stage(tree(Counted()))
    turn = await Talk(engine, "progressive").say("hi")
    assert turn.types[-1] == "error"
    exported = "".join(span.to_json() for span in spans.get_finished_spans())
    assert exported
    assert "sk-123" not in exported
