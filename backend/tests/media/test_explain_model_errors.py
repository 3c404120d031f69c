"""A failed call of a model is one line in the log: who, which status, what was said, what to do.

The real clients of Google, Anthropic and LiteLLM call endpoints that answer as the providers do.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import anthropic
import pytest
from google.adk.models.anthropic_llm import AnthropicLlm
from google.adk.models.google_llm import Gemini
from google.adk.models.lite_llm import LiteLlm

from sluicegate.errors import ModelError
from sluicegate.server.logging_config import SafeFormatter
from sluicegate.testing.providers.endpoint import Endpoint, events, listening
from sluicegate.wire.encoding import to_json
from tests.engine.talk import Talk
from tests.media.conftest import Open
from tests.media.scripted_replies import reply

if TYPE_CHECKING:
    from google.adk.models.base_llm import BaseLlm

KEY = "sk-secret-4711-abcdefghijklmnop"
WORDS = "the words of the user"


@dataclass
class Refusing:
    """A provider that answers every request in the same way."""

    status: int = 200
    body: dict[str, Any] = field(default_factory=dict)


class RefusingEndpoint(Endpoint):
    """An endpoint of such a provider."""

    refusing: Refusing

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, str, str]:
        self.requests.append(body)
        if self.refusing.status == 200:
            return 200, "text/event-stream", events(self.refusing.body)
        return self.refusing.status, "application/json", json.dumps(self.refusing.body)


@pytest.fixture(scope="module")
def endpoint(families: object) -> Iterator[RefusingEndpoint]:
    """The endpoint; ``families`` sets up the client libraries."""
    provider: Any = Refusing()
    with listening(provider, reply, RefusingEndpoint) as listens:
        assert isinstance(listens, RefusingEndpoint)
        listens.refusing = provider
        yield listens


def gemini(url: str) -> BaseLlm:
    return Gemini(model="gemini-3.5-flash", base_url=url, client_kwargs={"api_key": KEY})


def claude(url: str) -> BaseLlm:
    client = anthropic.AsyncAnthropic(api_key=KEY, base_url=url, max_retries=0)
    return AnthropicLlm(model="claude-test", client=client)


def lite(name: str) -> Callable[[str], BaseLlm]:
    path = "/v1" if name.startswith("openai") else ""
    return lambda url: LiteLlm(model=name, api_base=url + path, api_key=KEY, num_retries=0)


CLIENTS: dict[str, tuple[Callable[[str], BaseLlm], str]] = {
    "google": (gemini, "Google gemini-3.5-flash"),
    "anthropic": (claude, "Anthropic claude-test"),
    "litellm openai": (lite("openai/gpt-5"), "OpenAI gpt-5"),
    "litellm anthropic": (lite("anthropic/claude-test"), "Anthropic claude-test"),
}


def of_google(code: int, status: str, message: str, **more: Any) -> Refusing:
    return Refusing(code, {"error": {"code": code, "message": message, "status": status, **more}})


def of_anthropic(code: int, kind: str, message: str) -> Refusing:
    return Refusing(code, {"type": "error", "error": {"type": kind, "message": message}})


def of_openai(code: int, kind: str, message: str) -> Refusing:
    return Refusing(code, {"error": {"message": message, "type": "x", "param": None, "code": kind}})


class Refused(NamedTuple):
    """A refusal by a provider, and what the line says of it."""

    client: str
    refusal: Refusing
    status: int
    code: str
    said: str


REFUSALS = [
    Refused(
        "google",
        of_google(400, "INVALID_ARGUMENT", f"API key not valid: {KEY}."),
        400,
        "model_key_refused",
        "API key not valid: ***",
    ),
    Refused(
        "google",
        of_google(403, "PERMISSION_DENIED", "Your project may not use it."),
        403,
        "model_key_refused",
        "Your project may not use it.",
    ),
    Refused(
        "google",
        of_google(404, "NOT_FOUND", "models/gemini-9 is not found."),
        404,
        "model_unknown",
        "models/gemini-9 is not found.",
    ),
    Refused(
        "google",
        of_google(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota."),
        429,
        "model_quota",
        "You exceeded your current quota.",
    ),
    Refused(
        "google",
        of_google(400, "INVALID_ARGUMENT", "The input token count (2) exceeds the maximum."),
        400,
        "model_context",
        "The input token count (2) exceeds the maximum.",
    ),
    Refused(
        "google",
        of_google(400, "INVALID_ARGUMENT", "Unknown name 'x' at 'tools'."),
        400,
        "model_request_refused",
        "Unknown name 'x' at 'tools'.",
    ),
    Refused(
        "google",
        of_google(503, "UNAVAILABLE", "The model is overloaded."),
        503,
        "model_unavailable",
        "The model is overloaded.",
    ),
]
for client in ("anthropic", "litellm anthropic"):
    REFUSALS += [
        Refused(
            client,
            of_anthropic(401, "authentication_error", "invalid x-api-key"),
            401,
            "model_key_refused",
            "invalid x-api-key",
        ),
        Refused(
            client,
            of_anthropic(404, "not_found_error", "model: claude-9"),
            404,
            "model_unknown",
            "model: claude-9",
        ),
        Refused(
            client,
            of_anthropic(429, "rate_limit_error", "This exceeds your rate limit."),
            429,
            "model_quota",
            "This exceeds your rate limit.",
        ),
        Refused(
            client,
            of_anthropic(400, "invalid_request_error", "prompt is too long: 3 tokens > 2 maximum"),
            400,
            "model_context",
            "prompt is too long: 3 tokens > 2 maximum",
        ),
    ]
REFUSALS += [
    Refused(
        "litellm openai",
        of_openai(401, "invalid_api_key", f"Incorrect API key provided: {KEY}."),
        401,
        "model_key_refused",
        "Incorrect API key provided: ***",
    ),
    Refused(
        "litellm openai",
        of_openai(404, "model_not_found", "The model gpt-9 does not exist."),
        404,
        "model_unknown",
        "The model gpt-9 does not exist.",
    ),
    Refused(
        "litellm openai",
        of_openai(429, "insufficient_quota", "You exceeded your current quota."),
        429,
        "model_quota",
        "You exceeded your current quota.",
    ),
    Refused(
        "litellm openai",
        of_openai(400, "context_length_exceeded", "This model's maximum context length is 9."),
        400,
        "model_context",
        "This model's maximum context length is 9.",
    ),
    Refused(
        "litellm openai",
        of_openai(400, "content_policy_violation", "It was rejected by our safety system."),
        400,
        "model_blocked",
        "It was rejected by our safety system.",
    ),
]


@pytest.fixture
def lines(families: object, caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """The lines of failed turns."""
    caplog.set_level(logging.INFO)

    def failures() -> list[str]:
        return [
            record.getMessage()
            for record in caplog.records
            if record.levelno >= logging.ERROR and "Unclosed" not in record.getMessage()
        ]

    return failures


async def fail(open_with: Open, model: BaseLlm) -> str:
    """Send a message; return the sentence that the user reads."""
    async with open_with(model) as engine:
        turn = await Talk(engine).say(WORDS)
    assert turn.types[-1] == "error"
    text = "".join(to_json(chunk) for chunk in turn.chunks)
    found = re.search(r"The agent could not finish its answer \(error [0-9a-f]{8}\)\.", text)
    assert found is not None
    assert "status" not in text
    return found[0]


def the_line(failures: list[str], sentence: str) -> str:
    [line] = failures
    assert "\n" not in line
    assert f"error={sentence[-10:-2]} " in line
    assert KEY not in line
    assert WORDS not in line
    return line


@pytest.mark.parametrize(
    "refused", REFUSALS, ids=lambda refused: f"{refused.client}-{refused.code}-{refused.status}"
)
async def test_a_refused_call_is_one_line_with_provider_status_sentence_and_advice(
    endpoint: RefusingEndpoint,
    open_with: Open,
    lines: Callable[[], list[str]],
    refused: Refused,
) -> None:
    make, named = CLIENTS[refused.client]
    endpoint.refusing, code = refused.refusal, refused.code
    sentence = await fail(open_with, make(endpoint.url))
    line = the_line(lines(), sentence)
    assert f'{named} status {refused.status}: "{refused.said}' in line
    assert f"[{code}] " in line
    fix = next(kind.fix for kind in kinds() if kind.code == code).replace("`", "")
    assert line.endswith(f"{fix} See docs/reference/errors.md#{code}")


def kinds() -> list[type[ModelError]]:
    return [ModelError, *ModelError.__subclasses__()]


async def test_the_line_about_a_refused_key_names_the_variable_that_it_is_in(
    endpoint: RefusingEndpoint,
    open_with: Open,
    lines: Callable[[], list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", endpoint.url)
    endpoint.refusing = of_google(400, "INVALID_ARGUMENT", "API key not valid.")
    sentence = await fail(open_with, Gemini(model="gemini-3.5-flash"))
    assert "] The key is in GOOGLE_API_KEY. Check the key, " in the_line(lines(), sentence)


@pytest.mark.parametrize("client", CLIENTS)
async def test_an_unreachable_provider_is_named(
    open_with: Open, lines: Callable[[], list[str]], client: str
) -> None:
    make, named = CLIENTS[client]
    sentence = await fail(open_with, make("http://127.0.0.1:9"))
    line = the_line(lines(), sentence)
    assert f" {named}" in line
    assert "[model_unreachable] " in line


def is_own(record: logging.LogRecord) -> bool:
    return record.name == "sluicegate"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}, "PROHIBITED_CONTENT"),
        ({"candidates": [{"finishReason": "SAFETY", "index": 0}]}, "SAFETY"),
    ],
    ids=["message", "answer"],
)
async def test_a_block_by_safety_rules_is_named(
    endpoint: RefusingEndpoint,
    open_with: Open,
    caplog: pytest.LogCaptureFixture,
    body: dict[str, Any],
    said: str,
) -> None:
    endpoint.refusing = Refusing(200, body)
    async with open_with(gemini(endpoint.url)) as engine:
        turn = await Talk(engine).say(WORDS)
    assert turn.types[-1] == "finish"
    warnings = [each for each in caplog.records if each.levelname == "WARNING"]
    [line] = [SafeFormatter(as_json=False).format(each) for each in warnings if is_own(each)]
    assert f"Google gemini-3.5-flash status {said} [model_blocked] " in line
    assert line.endswith("See docs/reference/errors.md#model_blocked")


NO_KEY: dict[str, tuple[Callable[[], BaseLlm], str]] = {
    "google": (lambda: Gemini(model="gemini-3.5-flash"), "GOOGLE_API_KEY"),
    "anthropic": (lambda: AnthropicLlm(model="claude-test"), "ANTHROPIC_API_KEY"),
    "litellm openai": (lambda: LiteLlm(model="openai/gpt-5"), "OPENAI_API_KEY"),
    "litellm anthropic": (
        lambda: LiteLlm(model="anthropic/claude-test"),
        "ANTHROPIC_API_KEY",
    ),
}


@pytest.mark.parametrize("client", NO_KEY)
async def test_a_missing_key_is_named_at_the_start_and_at_the_turn(
    open_with: Open,
    caplog: pytest.LogCaptureFixture,
    lines: Callable[[], list[str]],
    monkeypatch: pytest.MonkeyPatch,
    client: str,
) -> None:
    for name in (
        "GOOGLE_API_KEY",
        "GEMINI_API_KEY",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "OPENAI_API_KEY",
    ):
        monkeypatch.delenv(name, raising=False)
    make, variable = NO_KEY[client]
    async with open_with(make()):
        [warned] = [
            record.getMessage() for record in caplog.records if record.levelname == "WARNING"
        ]
    assert f"there is no API key in {variable}" in warned
    sentence = await fail(open_with, make())
    line = the_line(lines(), sentence)
    assert "[model_key_missing] Set the key" in line
    assert variable in line


async def test_an_unknown_failure_has_its_text_and_its_place(
    open_with: Open, lines: Callable[[], list[str]]
) -> None:
    class Odd(Gemini):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:  # noqa: FBT002 - ADK's
            raise RuntimeError(f"the moon is {KEY}")
            yield

    sentence = await fail(open_with, Odd(model="gemini-3.5-flash", client_kwargs={"api_key": KEY}))
    line = the_line(lines(), sentence)
    assert 'Google gemini-3.5-flash: "the moon is ***" [model_failed] ' in line
    assert "; RuntimeError at " in line
    assert " > test_explain_model_errors.py:" in line


async def test_litellm_prints_nothing_of_its_own(
    endpoint: RefusingEndpoint, open_with: Open, capsys: pytest.CaptureFixture[str]
) -> None:
    endpoint.refusing = of_anthropic(401, "authentication_error", "invalid x-api-key")
    await fail(open_with, lite("anthropic/claude-test")(endpoint.url))
    written = capsys.readouterr()
    assert "Give Feedback" not in written.out + written.err
