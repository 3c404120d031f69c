from __future__ import annotations

import pytest
from google.adk.flows.llm_flows.context._contents import _SINGLE_TURN_NUDGE
from google.adk.flows.llm_flows.context._fencing import OTHER_AGENT_CONTEXT_PREAMBLE
from google.adk.flows.llm_flows.prompt._instructions import _label_dynamic_instruction
from google.adk.models.llm_request import LlmRequest
from google.genai import types

from sluicegate.media.file_labels import attached_label, left_out_label, tool_label
from sluicegate.replay.script_position import Position, read_position
from sluicegate.replay.scripted_model import ScriptedModel

IMAGE = types.Part(inline_data=types.Blob(data=b"PNG", mime_type="image/png"))


def said(*parts: str | types.Part, role: str = "user") -> types.Content:
    return types.Content(
        role=role,
        parts=[types.Part(text=part) if isinstance(part, str) else part for part in parts],
    )


def called() -> types.Content:
    call = types.FunctionCall(name="pay", args={})
    return said(types.Part(function_call=call), role="model")


def returned(*beside: types.Part) -> types.Content:
    response = types.FunctionResponse(name="pay", response={"paid": 5})
    return said(types.Part(function_response=response), *beside)


def request(*contents: types.Content) -> LlmRequest:
    config = types.GenerateContentConfig(labels={"adk_agent_name": "helper"})
    return LlmRequest(contents=list(contents), config=config)


def static_reference() -> types.Content:
    """The content that ADK builds from a picture in a static instruction."""
    return LlmRequest().append_instructions(types.Content(parts=[IMAGE]))[0]


def filler(*contents: types.Content) -> types.Content:
    """The content that ADK appends for a model that requires a final user message."""
    model_request = LlmRequest(contents=list(contents))
    model = ScriptedModel.from_data({"scenarios": [{"match": "", "responses": [{}]}]})
    model._maybe_append_user_content(model_request)
    return model_request.contents[-1]


GO = said("go")
NOT_THE_USER = {
    "another agent's words": said(OTHER_AGENT_CONTEXT_PREAMBLE, "[root] said:\nstop"),
    "an instruction in the user's role": said(_label_dynamic_instruction("stop")),
    "a picture of the instruction": static_reference(),
    "an artifact": said("Artifact stop.png is:", IMAGE),
    "a file without text": said(IMAGE),
    "the filler of an empty request": filler(),
    "the filler after the model": filler(GO, said("hm", role="model")),
    "the files of tools": said(tool_label(1, "draw", "c1", "image/png"), IMAGE),
    "a file that is not shown": said(left_out_label("image/png", "it is too large")),
    "a tool result with its picture and a word beside": returned(IMAGE, types.Part(text="stop")),
}


@pytest.mark.parametrize("kind", NOT_THE_USER)
def test_contents_that_the_user_has_not_written_are_ignored(kind: str) -> None:
    contents = (GO, called(), NOT_THE_USER[kind])
    assert read_position(request(*contents)) == Position("helper", "go", answered=1)


@pytest.mark.parametrize(
    ("contents", "text", "answered"),
    [
        ((), "", 0),
        ((GO,), "go", 0),
        ((GO, called(), returned()), "go", 1),
        ((GO, called(), returned(), called(), returned()), "go", 2),
        ((GO, said("done", role="model"), said("again")), "again", 0),
        ((said("first", IMAGE, "second"),), "first\nsecond", 0),
        ((said(attached_label("a.png"), IMAGE, "look"),), "look", 0),
        ((said('{"request": "pay"}', _SINGLE_TURN_NUDGE), called()), '{"request": "pay"}', 1),
        ((said("Artifact a is:"),), "Artifact a is:", 0),
        ((said("For context: I am tired"),), "For context: I am tired", 0),
        ((called(), returned()), "", 1),
    ],
)
def test_the_position_counts_the_agents_contents_after_the_last_user_text(
    contents: tuple[types.Content, ...], text: str, answered: int
) -> None:
    assert read_position(request(*contents)) == Position("helper", text, answered)


def test_a_live_request_names_its_agent_in_the_instruction() -> None:
    instruction = 'Be kind.\n\nYou are an agent. Your internal name is "talker".'
    config = types.GenerateContentConfig(system_instruction=instruction)
    assert read_position(LlmRequest(contents=[GO], config=config)).agent == "talker"


def test_a_request_without_an_agent_is_read() -> None:
    assert read_position(LlmRequest(contents=[GO])) == Position(None, "go", answered=0)
