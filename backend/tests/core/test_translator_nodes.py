"""Workflows: approvals of tool nodes and questions of nodes, through the real ADK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from fastapi.openapi.models import OAuth2, OAuthFlowAuthorizationCode, OAuthFlows
from google.adk.auth.auth_credential import AuthCredential, AuthCredentialTypes, OAuth2Auth
from google.adk.auth.auth_tool import AuthConfig
from google.adk.events.request_input import RequestInput
from google.adk.tools.function_tool import FunctionTool
from google.adk.workflow import START, RetryConfig, Workflow, node

from sluicegate.core.signals import Answered, ApprovalRequested, InputAvailable
from tests.core.adk_conversations import AdkConversation, agent, call
from tests.core.signal_words import translate, words

if TYPE_CHECKING:
    from google.adk.tools.tool_context import ToolContext


def amount(node_input: str) -> dict[str, int]:
    """What to pay."""
    return {"amount": 5}


def pay(amount: int) -> dict[str, int]:
    """Pay."""
    return {"paid": amount}


def pay_silently(amount: int) -> None:
    """Pay and say nothing."""


def pay_badly(amount: int) -> None:
    """Fail to pay."""
    raise RuntimeError("secret")


def flow(tool: Any, *, times: int = 1) -> Workflow:
    nodes = [FunctionTool(tool, require_confirmation=True)] * times
    return Workflow(name="flow", edges=[(START, amount, *nodes)])


async def decided(conversation: AdkConversation, *, yes: bool) -> list[str]:
    await conversation.say("go")
    [question] = conversation.questions
    await conversation.respond(question.id, question.name, {"confirmed": yes})
    wire = f"{conversation.live[0].invocation_id}:{question.id}"
    return [line.replace(wire, "w") for line in await conversation.emitted()]


@pytest.mark.parametrize(
    ("tool", "yes", "outcome"),
    [
        (pay, True, 'done w {"paid":5}'),
        (pay_silently, True, "done w null"),
        (pay, False, 'done w {"error":"This tool call is rejected."}'),
    ],
)
async def test_a_gated_node_is_a_call_with_a_request_and_an_outcome(
    tool: Any, yes: bool, outcome: str
) -> None:
    assert await decided(AdkConversation(flow(tool)), yes=yes) == [
        "step flow",
        f'call w {tool.__name__} {{"amount":5}} gated',
        "ask w",
        "end",
        outcome,
    ]


async def test_a_node_that_raises_ends_its_call_in_an_error() -> None:
    conversation = AdkConversation(flow(pay_badly))
    with pytest.raises(RuntimeError, match="secret"):
        await decided(conversation, yes=True)
    emitted = await conversation.emitted()
    assert emitted[-2].endswith("error: This call did not finish.")
    assert emitted[-1] == "failed RuntimeError"


async def test_the_answer_of_a_node_goes_under_its_interrupt_id() -> None:
    conversation = AdkConversation(flow(pay))
    await conversation.say("go")
    [question] = conversation.questions
    signals = translate(conversation.live)
    [asked] = [signal.request for signal in signals if isinstance(signal, ApprovalRequested)]
    [made] = [signal.call for signal in signals if isinstance(signal, InputAvailable)]
    wire = f"{question.invocation_id}:{question.id}"
    approval = f"{wire}:approval"
    assert (made.id, asked.call_id, asked.approval_id) == (wire, wire, approval)
    assert (asked.confirmation_id, asked.answer_name) == (question.id, "adk_request_input")
    await conversation.respond(question.id, question.name, {"confirmed": True})
    logged = translate(await conversation.stored())
    answers = [signal for signal in logged if isinstance(signal, Answered)]
    assert [(a.call_id, a.approval_id, a.approved) for a in answers] == [(wire, approval, True)]


async def test_a_question_of_a_node_is_answered_by_the_browser() -> None:
    async def ask(node_input: str) -> Any:
        yield RequestInput(message="Name?", interrupt_id="name", response_schema=None)

    conversation = AdkConversation(Workflow(name="flow", edges=[(START, ask)]))
    await conversation.say("go")
    [question] = conversation.questions
    await conversation.respond(question.id, question.name, {"result": "Ann"})
    emitted = words(translate(await conversation.stored()))
    [made] = [line for line in emitted if line.startswith("call")]
    assert made.startswith('call name adk_request_input {"interruptId":"name"')
    assert made.endswith("} client")
    assert emitted[-1] == 'answer name {"result":"Ann"}'


async def test_a_node_that_is_retried_has_not_failed() -> None:
    tries = []

    @node(retry_config=RetryConfig(max_attempts=3, initial_delay=0.0))
    def flaky(node_input: str) -> str:
        tries.append(1)
        if len(tries) < 3:
            raise RuntimeError("not yet")
        return "done"

    conversation = AdkConversation(Workflow(name="flow", edges=[(START, flaky)]))
    await conversation.say("go")
    assert [event.error_code for event in conversation.live if event.error_code] == [
        "RuntimeError"
    ] * 2
    assert await conversation.emitted() == []


async def test_a_credential_request_is_shown_without_secrets() -> None:
    flows = OAuthFlows(
        authorizationCode=OAuthFlowAuthorizationCode(
            authorizationUrl="https://id.example/auth",
            tokenUrl="https://id.example/token",
            scopes={"mail": "read mail"},
        )
    )
    secret = OAuth2Auth(client_id="me", client_secret="s3cret", redirect_uri="http://localhost/")
    config = AuthConfig(
        auth_scheme=OAuth2(flows=flows),
        raw_auth_credential=AuthCredential(auth_type=AuthCredentialTypes.OAUTH2, oauth2=secret),
        credential_key="mail",
    )

    def read_mail(tool_context: ToolContext) -> dict[str, str]:
        """Read mail."""
        tool_context.request_credential(config)
        return {"status": "waiting"}

    conversation = AdkConversation(agent([call("read_mail")], tools=[read_mail]))
    await conversation.say("mail?")
    emitted = await conversation.emitted()
    signals = translate(conversation.live)
    asked = next(
        s.call for s in signals if isinstance(s, InputAvailable) and s.call.facts.kind == "client"
    )
    assert isinstance(asked.args, dict)
    assert set(asked.args) == {"functionCallId", "authScheme", "authUri"}
    assert asked.args["authScheme"] == "oauth2"
    assert str(asked.args["authUri"]).startswith("https://id.example/auth?")
    assert "s3cret" not in str(signals)
    assert not any(line.startswith("done") for line in emitted)
