"""Plays a script without a Runner, as ADK would ask the model for one response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from sluicegate.replay import ScriptedModel


def scripted(*responses: Mapping[str, object], match: str = "") -> ScriptedModel:
    return ScriptedModel.from_data({"scenarios": [{"match": match, "responses": [*responses]}]})


def request(text: str = "go", agent: str = "helper") -> LlmRequest:
    config = types.GenerateContentConfig(labels={"adk_agent_name": agent})
    content = types.Content(role="user", parts=[types.Part(text=text)])
    return LlmRequest(contents=[content], config=config)


async def played(
    model: ScriptedModel, llm_request: LlmRequest | None = None, *, stream: bool = True
) -> list[LlmResponse]:
    return [
        response
        async for response in model.generate_content_async(llm_request or request(), stream=stream)
    ]


def parts(response: LlmResponse) -> list[types.Part]:
    return (response.content.parts if response.content else None) or []


def words(responses: Sequence[LlmResponse]) -> list[str]:
    return [
        ("(" + part.text + ")") if part.thought else part.text
        for response in responses
        for part in parts(response)
        if part.text
    ]
