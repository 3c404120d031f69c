"""What a failed call of a model says to the operator: one line, by what the provider answered.

The client libraries have exceptions of their own, and LiteLLM maps those of every provider to its
own. Common to all are a status, and the provider's body as an attribute or within the text.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from google.adk.models.google_llm import Gemini

from sluicegate.engine.agents.vertex_models import is_for_vertex
from sluicegate.engine.describe_exceptions import describe
from sluicegate.engine.models.api_key_variables import key_variables
from sluicegate.engine.redact_log_text import without_secrets
from sluicegate.errors import (
    CATALOGUE,
    ModelBlocked,
    ModelContextTooLong,
    ModelError,
    ModelKeyMissing,
    ModelKeyRefused,
    ModelQuotaExceeded,
    ModelRequestRefused,
    ModelUnavailable,
    ModelUnknown,
    ModelUnreachable,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_response import LlmResponse

_BY_TEXT: Final[tuple[tuple[re.Pattern[str], type[ModelError]], ...]] = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (
            r"no api key was|missing .{0,30}api key|missing credentials|no .{0,20}credential was"
            r"|api_key client option must be set|default credentials were not found"
            r"|project or api key must be set",
            ModelKeyMissing,
        ),
        (
            r"api[ -_]key not valid|api_key_invalid|invalid x-api-key|incorrect api key"
            r"|api key expired",
            ModelKeyRefused,
        ),
        (
            r"context (length|window)|contextwindowexceeded|prompt is too long"
            r"|input is too long|token count .{0,40}exceeds|too many (input )?tokens",
            ModelContextTooLong,
        ),
        (r"contentpolicyviolation|content.policy|safety system", ModelBlocked),
        (r"llm provider not provided|unknown model|model_not_found", ModelUnknown),
        (r"connection error|connection attempts failed|cannot connect", ModelUnreachable),
        (r"insufficient_quota|credit balance is too low", ModelQuotaExceeded),
    )
)
_BY_STATUS: Final[dict[int, type[ModelError]]] = {
    401: ModelKeyRefused,
    402: ModelQuotaExceeded,
    403: ModelKeyRefused,
    404: ModelUnknown,
    408: ModelUnreachable,
    429: ModelQuotaExceeded,
    504: ModelUnreachable,
}
_CONNECTION_ERRORS: Final = frozenset(
    {
        "APIConnectionError",
        "APITimeoutError",
        "ClientConnectionError",
        "ConnectionError",
        "ServerTimeoutError",
        "TimeoutError",
        "TimeoutException",
        "TransportError",
        "gaierror",
    }
)
"""Classes of aiohttp, httpx, Python and the client libraries, which may not be installed."""

_BLOCKED: Final = frozenset(
    {
        "BLOCKLIST",
        "CONTENT_FILTER",
        "IMAGE_SAFETY",
        "PROHIBITED_CONTENT",
        "RECITATION",
        "REFUSAL",
        "SAFETY",
        "SPII",
    }
)
"""Reasons with which providers end an answer for what it, or the message, contains."""

_WRAPPERS: Final = re.compile(
    r"^(litellm\.\w+: |\w+(Error|Exception): |\w+(Exception|Error) - )+|"
    r" Handle with `litellm\.\w+`\.?$| Traceback \(most recent call last\):.*$"
)
_PROVIDERS: Final = {
    "anthropic": "Anthropic",
    "azure": "Azure",
    "bedrock": "Amazon Bedrock",
    "gemini": "Google",
    "mistral": "Mistral",
    "openai": "OpenAI",
    "vertex_ai": "Vertex AI",
}


class CalledModel(NamedTuple):
    """The provider and the name of a model, as an operator knows them.

    ``keys`` are the environment variables that its key may be in; none if that is not known.
    """

    provider: str
    name: str
    keys: tuple[str, ...] = ()

    def error(self, kind: type[ModelError], *, status: object = "", said: str = "") -> ModelError:
        """Return an error of a kind with its whole line."""
        head = f"{self.provider} {self.name}" + (f" status {status}" if status else "")
        quoted = f': "{said}"' if said else ""
        fix = kind.fix.replace("`", "")
        used = next((key for key in self.keys if os.environ.get(key)), None)
        if kind is ModelKeyRefused and used is not None:
            fix = f"The key is in {used}. {fix}"
        return kind(f"{head}{quoted} [{kind.code}] {fix} See {CATALOGUE}#{kind.code}")


def called_model(model: BaseLlm, name: str | None = None) -> CalledModel:
    """Return the provider of a model, and its name, or the one that a request has."""
    provider, known = _provider_and_name(model, name or model.model)
    return CalledModel(provider, known, key_variables(model))


def _provider_and_name(model: BaseLlm, known: str) -> tuple[str, str]:
    classes = {cls.__name__ for cls in type(model).__mro__}
    if "LiteLlm" in classes:
        prefix, slash, rest = known.partition("/")
        if slash:
            return _PROVIDERS.get(prefix, prefix), rest
        return "LiteLLM", known
    if "AnthropicLlm" in classes:
        return "Vertex AI" if "Claude" in classes else "Anthropic", known
    if "Gemini" in classes:
        return "Vertex AI" if is_for_vertex(model) else "Google", known
    return type(model).__name__, known


def error_of_exception(error: Exception, called: CalledModel) -> ModelError:
    """Return the error of a call that raised; its cause is the exception."""
    text, status = str(error), _status(error)
    said = without_secrets(_sentence(error, text))
    kind = _kind(error, text, status)
    # LiteLLM: its exceptions have the status 500 if there was no response.
    shown = "" if kind in (ModelKeyMissing, ModelUnreachable) and status >= 500 else status or ""
    found = called.error(kind or ModelError, status=shown, said=said)
    if kind is None:
        found = ModelError(f"{found}; {describe(error)}")
    found.__cause__ = error
    return found


def error_of_response(response: LlmResponse, called: CalledModel) -> ModelError:
    """Return the error of a response with an error code, such as one that safety rules ended."""
    code = getattr(response.error_code, "name", None) or str(response.error_code)
    kind = ModelBlocked if code.upper() in _BLOCKED else ModelError
    said = without_secrets(response.error_message or "")
    return called.error(kind, status=without_secrets(code), said=said)


def _kind(error: Exception, text: str, status: int) -> type[ModelError] | None:
    for pattern, kind in _BY_TEXT:
        if pattern.search(text) or pattern.search(type(error).__name__):
            return kind
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if any(_is_connection_error(each) for each in _chain(error)):
        return ModelUnreachable
    if status >= 500:
        return ModelUnavailable
    return ModelRequestRefused if status >= 400 else None


def _chain(error: BaseException) -> Iterator[BaseException]:
    current: BaseException | None = error
    for _ in range(5):
        if current is None:
            return
        yield current
        current = current.__cause__ or current.__context__


def _is_connection_error(error: BaseException) -> bool:
    return any(cls.__name__ in _CONNECTION_ERRORS for cls in type(error).__mro__)


def _status(error: Exception) -> int:
    """Return the HTTP status, even one that a client library makes up; 0 without one."""
    for name in ("status_code", "code"):
        value = getattr(error, name, None)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return 0


def _sentence(error: Exception, text: str) -> str:
    """Return the sentence of the provider, without what client libraries put around it."""
    for body in (getattr(error, "body", None), getattr(error, "details", None), _json_in(text)):
        said = _message_in(body)
        if said:
            return said
    line = " ".join(text.split())
    previous = ""
    while line != previous:
        previous, line = line, _WRAPPERS.sub("", line)
    return line


def _json_in(text: str) -> Any:
    start = text.find("{")
    if start < 0:
        return None
    try:
        return json.JSONDecoder().raw_decode(text, start)[0]
    except ValueError:
        return None


def _message_in(body: Any) -> str:
    for _ in range(3):
        if isinstance(body, list) and body:
            body = body[0]
        if not isinstance(body, dict):
            return ""
        if isinstance(body.get("message"), str):
            return str(body["message"])
        body = body.get("error")
    return ""


def missing_key(model: BaseLlm) -> ModelError | None:
    """Return why calls of a model will fail for want of a key; None if they may succeed.

    A custom client or base URL may get a key otherwise, or need none.
    """
    variables = key_variables(model)
    if not variables or any(os.environ.get(name) for name in variables):
        return None
    said = f"there is no API key in {' or '.join(variables)}"
    return called_model(model).error(ModelKeyMissing, said=said)


def refuse_without_key(model: BaseLlm) -> None:
    """Refuse to call a Gemini that has no key.

    Google: a client without a key leaves an exception behind that only the event loop logs.

    Raises:
        ModelKeyMissing: Its client cannot be created.
    """
    missing = missing_key(model) if isinstance(model, Gemini) else None
    if missing is not None:
        raise missing
