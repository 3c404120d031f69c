"""Redacts fields in recordings."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from sluicegate.errors import ConfigurationError
from sluicegate.replay.recording import compact

if TYPE_CHECKING:
    from collections.abc import Iterable

REDACTED: Final = "[redacted]"

_USER_DATA: Final = frozenset(
    {
        "args",
        "artifactDelta",
        "customMetadata",
        "data",
        "edits",
        "input",
        "messageMetadata",
        "metadata",
        "originalFunctionCall",
        "outcome",
        "output",
        "payload",
        "providerMetadata",
        "rawInput",
        "response",
        "schema",
        "stateDelta",
        "toolMetadata",
    }
)
"""The keys whose values are user data; all other keys belong to the protocol."""

_PROTOCOL: Final = frozenset(
    {
        "actions",
        "approval",
        "approvalId",
        "author",
        "body",
        "branch",
        "content",
        "functionCall",
        "functionResponse",
        "id",
        "invocationId",
        "kind",
        "message",
        "messageId",
        "name",
        "parts",
        "role",
        "state",
        "timestamp",
        "toolCallId",
        "toolName",
        "trigger",
        "type",
    }
)

_SECRETS: Final = frozenset(
    {
        "accesstoken",
        "apikey",
        "authcode",
        "authorization",
        "authresponseuri",
        "clientsecret",
        "codeverifier",
        "idtoken",
        "password",
        "refreshtoken",
    }
)
"""ADK's names for credentials, which are never recorded, in any spelling."""

_SECRET: Final = re.compile("|".join(sorted(_SECRETS)))
_SEPARATORS: Final = str.maketrans("", "", "_-")
_REDACTED_DELTAS: Final = {"inputTextDelta": "", "delta": REDACTED, "partialArgs": []}


class Redaction:
    """Redacts the fields with these names, at any depth of arguments and results.

    ADK's credentials (``client_secret``, ``access_token`` and the like) are always redacted.

    Text that is JSON is parsed. The field of a streamed argument delta is not known, so with any
    name these deltas are empty; the call itself has its other arguments. The name ``text`` redacts
    all text of messages. A value that a model or a tool repeats in other words or under another
    name is not found.

    Raises:
        ConfigurationError: A name is empty.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names = tuple(dict.fromkeys(names))
        if not all(name.strip() for name in self.names):
            raise ConfigurationError("The name of a field to redact is empty; give a name.")
        self._names = frozenset(self.names)

    def of(self, body: Any) -> Any:
        """Return a copy of a body without the values of these fields."""
        return self._of(body, is_data=False)

    def of_text(self, text: str) -> str:
        """As `of`, for compact JSON; text without such a field is returned as it is."""
        if not self._names and not _SECRET.search(_plain(text)):
            return text
        return compact(self.of(json.loads(text)))

    def _of(self, value: Any, *, is_data: bool) -> Any:
        if isinstance(value, dict):
            return {key: self._field(key, item, is_data=is_data) for key, item in value.items()}
        if isinstance(value, list):
            return [self._of(item, is_data=is_data) for item in value]
        if is_data and isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
            return self._text(value)
        return value

    def _field(self, key: str, value: Any, *, is_data: bool) -> Any:
        if _plain(key) in _SECRETS or (key in self._names and (is_data or key not in _PROTOCOL)):
            return REDACTED
        if self._names and not is_data and key in ("inputTextDelta", "partialArgs"):
            return _REDACTED_DELTAS[key]
        if not is_data and key == "delta" and "text" in self._names:
            return REDACTED
        return self._of(value, is_data=is_data or key in _USER_DATA)

    def _text(self, text: str) -> str:
        try:
            value = json.loads(text)
        except ValueError:
            # Incomplete JSON cannot be parsed.
            named = any(f'"{name}"' in text for name in self._names)
            return REDACTED if named or _SECRET.search(_plain(text)) else text
        redacted = self._of(value, is_data=True)
        return text if redacted == value else json.dumps(redacted, ensure_ascii=False)


def _plain(text: str) -> str:
    return text.lower().translate(_SEPARATORS)
