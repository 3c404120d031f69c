"""Requests of ADK to the user: input of a workflow, consent at a provider (section 4)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.openapi.models import OAuth2, OAuthFlowAuthorizationCode, OAuthFlows
from google.adk.agents.llm_agent import LlmAgent
from google.adk.auth.auth_credential import AuthCredential, AuthCredentialTypes, OAuth2Auth
from google.adk.auth.auth_tool import AuthConfig
from google.adk.events.request_input import RequestInput
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import START, Workflow
from pydantic import BaseModel

from sluicegate.engine.agents.survey import survey
from sluicegate.engine.agents.unsupported_agents import refusals
from sluicegate.errors import Malformed
from sluicegate.testing.message_comparison import comparable
from sluicegate.wire.encoding import to_json
from tests.engine.stage import Prompts, calls, part_of, says, scripted, words
from tests.engine.talk import Talk

if TYPE_CHECKING:
    from tests.engine.stage import Open

# ADK warns about experimental features.
pytestmark = pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning")

SECRET = "client-secret-4711"
RETURNED = "https://page.example/oauth/return?code=abc&state=xyz"


def config() -> AuthConfig:
    flow = OAuthFlowAuthorizationCode(
        authorizationUrl="https://provider.example/consent",
        tokenUrl="http://127.0.0.1:9/token",
        scopes={"read": "Read"},
    )
    credential = AuthCredential(
        auth_type=AuthCredentialTypes.OAUTH2,
        oauth2=OAuth2Auth(
            client_id="id-1", client_secret=SECRET, redirect_uri="https://page.example/oauth/return"
        ),
    )
    return AuthConfig(
        auth_scheme=OAuth2(flows=OAuthFlows(authorizationCode=flow)),
        raw_auth_credential=credential,
        credential_key="calendar",
    )


@dataclass
class Calendar:
    """A tool that needs the user's consent at a provider."""

    addresses: list[str | None] = field(default_factory=list)

    async def read_calendar(self, tool_context: ToolContext) -> dict[str, Any] | None:
        """Read the calendar."""
        found = tool_context.get_auth_response(config())
        if found is None or found.oauth2 is None or not found.oauth2.auth_response_uri:
            tool_context.request_credential(config())
            return None
        self.addresses.append(found.oauth2.auth_response_uri)
        return {"meetings": 2}


class Wish(BaseModel):
    """What a Workflow is called with."""

    request: str


def give(talk: Talk, tool: str, output: Any) -> None:
    part = part_of(talk.messages[-1], tool)
    part["state"], part["output"] = "output-available", output


async def test_a_page_sends_only_its_redirect_address(open_stage: Open) -> None:
    calendar = Calendar()
    script = [calls(("read_calendar", {})), says("Two meetings.")]
    talk = Talk(await open_stage(scripted(script, [calendar.read_calendar])))
    first = await talk.say("what is on?")
    assert first.finish_reason == "tool-calls"
    assert SECRET not in "".join(to_json(chunk) for chunk in first.chunks)
    asked = part_of(first.message, "adk_request_credential")
    assert asked["input"]["authUri"].startswith("https://provider.example/consent?")
    give(talk, "adk_request_credential", {"authResponseUri": RETURNED, "clientSecret": "mine"})
    turn = await talk.post_last()
    assert words(turn.message) == "Two meetings."
    assert calendar.addresses == [RETURNED]
    part = part_of(turn.message, "adk_request_credential")
    assert part["output"] == {"connected": True}
    stored = await talk.history()
    assert comparable(stored) == comparable(turn.message)
    assert RETURNED not in json.dumps(stored)
    assert SECRET not in json.dumps(stored)


@pytest.mark.parametrize("output", [None, {}, {"authResponseUri": "javascript:x"}, "https://a.b"])
async def test_a_consent_without_an_address_is_refused(open_stage: Open, output: Any) -> None:
    calendar = Calendar()
    script = [calls(("read_calendar", {})), says("Two meetings.")]
    talk = Talk(await open_stage(scripted(script, [calendar.read_calendar])))
    await talk.say("what is on?")
    stored = await talk.history()
    give(talk, "adk_request_credential", output)
    with pytest.raises(Malformed):
        await talk.post_last()
    assert await talk.history() == stored


def colours(given: list[Any], **settings: Any) -> Workflow:
    """A Workflow that asks for a colour, and adds to ``given`` what its next node gets."""

    def ask(node_input: Any) -> Iterator[RequestInput]:
        yield RequestInput(message="Which colour?", response_schema=None)

    def take(node_input: Any) -> str:
        given.append(node_input)
        return "taken"

    edges: list[Any] = [(START, ask, take)]
    return Workflow(name="colours", description="Asks.", edges=edges, **settings)


@pytest.mark.parametrize("answer", [{"result": "blue"}, "blue", {"colour": "blue"}])
async def test_an_input_reaches_the_workflow_that_requested_it(
    open_stage: Open, answer: Any
) -> None:
    given: list[Any] = []
    talk = Talk(await open_stage(colours(given)))
    first = await talk.say("begin")
    assert first.finish_reason == "tool-calls"
    assert part_of(first.message, "adk_request_input")["input"]["message"] == "Which colour?"
    give(talk, "adk_request_input", answer)
    turn = await talk.post_last()
    assert turn.finish_reason == "stop"
    assert len(given) == 1
    assert "blue" in str(given)
    assert comparable(await talk.history()) == comparable(turn.message)


async def test_two_runs_of_a_workflow_request_input_twice(open_stage: Open) -> None:
    """ADK: the interrupt ids of a workflow are the same in each run of a session."""
    given: list[Any] = []
    talk = Talk(await open_stage(colours(given)))
    for colour in ("blue", "red"):
        await talk.say("begin")
        give(talk, "adk_request_input", {"result": colour})
        turn = await talk.post_last()
        assert turn.finish_reason == "stop"
        assert comparable(await talk.history()) == comparable(turn.message)
    assert ["blue" in str(given[0]), "red" in str(given[1])] == [True, True]


async def test_a_refused_consent_reaches_the_model(open_stage: Open) -> None:
    calendar, prompts = Calendar(), Prompts()
    script = [calls(("read_calendar", {})), says("Then not.")]
    agent = scripted(script, [calendar.read_calendar], before_model_callback=prompts)
    talk = Talk(await open_stage(agent))
    await talk.say("what is on?")
    part = part_of(talk.messages[-1], "adk_request_credential")
    part["state"], part["errorText"] = "output-error", "The user said no."
    turn = await talk.post_last()
    assert calendar.addresses == []
    assert turn.types[-1] in ("finish", "error")
    assert comparable(await talk.history()) == comparable(turn.message)


async def test_a_workflow_in_a_called_agent_requests_input_without_a_gate(open_stage: Open) -> None:
    """ADK: a plain `AgentTool` ends when its agent asks, and the question is lost."""
    given: list[Any] = []
    script = [calls(("colours", {"request": "ask"})), says("Blue it is.")]
    painter = scripted(script, name="painter")
    # ADK: a list of tools may hold a Workflow, whatever its type says.
    painter.tools.append(colours(given, input_schema=Wish))  # type: ignore[arg-type]
    outer = [calls(("painter", {"request": "paint"})), says("Painted.")]
    talk = Talk(await open_stage(scripted(outer, [AgentTool(painter)])))
    assert (await talk.say("begin")).finish_reason == "tool-calls"
    assert given == []
    give(talk, "adk_request_input", "blue")
    turn = await talk.post_last()
    assert words(turn.message) == "Painted."
    assert "blue" in str(given)
    assert part_of(turn.message, "painter")["output"] == {"result": "Blue it is."}
    assert comparable(await talk.history()) == comparable(turn.message)


async def test_a_called_agent_requests_a_consent_without_a_gate(open_stage: Open) -> None:
    calendar = Calendar()
    script = [calls(("read_calendar", {})), says("Two meetings.")]
    secretary = scripted(script, [calendar.read_calendar], name="secretary")
    outer = [calls(("secretary", {"request": "read"})), says("Busy.")]
    talk = Talk(await open_stage(scripted(outer, [AgentTool(secretary)])))
    assert (await talk.say("what is on?")).finish_reason == "tool-calls"
    give(talk, "adk_request_credential", {"authResponseUri": RETURNED})
    turn = await talk.post_last()
    assert words(turn.message) == "Busy."
    assert calendar.addresses == [RETURNED]
    assert part_of(turn.message, "secretary")["output"] == {"result": "Two meetings."}
    assert comparable(await talk.history()) == comparable(turn.message)


def consenting(*, include_plugins: bool = True) -> AgentTool:
    secretary = scripted([says("Read.")], [Calendar().read_calendar], name="secretary")
    return AgentTool(secretary, include_plugins=include_plugins)


def twice() -> LlmAgent:
    tool = consenting()
    other = scripted([says("Other.")], [tool], name="other")
    return scripted([says("Yes.")], [tool], sub_agents=[other])


@pytest.mark.parametrize(
    "root",
    [twice(), scripted([says("Yes.")], [consenting(include_plugins=False)])],
    ids=["at two places", "without plugins"],
)
async def test_a_called_agent_that_could_not_be_resumed_with_a_consent_stays_one_of_adk(
    root: LlmAgent,
) -> None:
    found = await survey(root)
    assert (refusals(root, found), found.inline_agents) == ([], frozenset())
