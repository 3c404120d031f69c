"""Takes chosen fields out of what is recorded."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from sluicegate.errors import ConfigurationError
from sluicegate.replay.recording import compact

if TYPE_CHECKING:
    from collections.abc import Iterable

REDACTED: Final = "[redacted]"

_OPEN: Final = frozenset(
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
"""Keys below which everything is somebody's own; above, the protocol has its words."""

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
"""What is never recorded, however it is written: ADK's own words for credentials."""

_SECRET: Final = re.compile("|".join(sorted(_SECRETS)))
_JOINTS: Final = str.maketrans("", "", "_-")
_PIECES: Final = {"inputTextDelta": "", "delta": REDACTED, "partialArgs": []}


class Redaction:
    """The names of fields whose values are not recorded, at any depth of arguments and results.

    What ADK calls a credential (``client_secret``, ``access_token`` and the like) never is.

    Text that is JSON is looked into. While a call's arguments are streamed nobody knows of which
    field a piece is, so with any name these pieces are left empty; the call itself has the rest of
    its arguments. The name ``text`` means all words of messages. A value that a model or a tool
    repeats in other words or under another name stays.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        """Take the names.

        Raises:
            ConfigurationError: A name is empty.
        """
        self.names = tuple(dict.fromkeys(names))
        if not all(name.strip() for name in self.names):
            raise ConfigurationError("The name of a field to redact is empty; give a name.")
        self._names = frozenset(self.names)

    def of(self, body: Any) -> Any:
        """A copy of a body without the values of these fields."""
        return self._of(body, inside=False)

    def of_text(self, text: str) -> str:
        """The same for compact JSON, which stays as it is where nothing is taken out."""
        if not self._names and not _SECRET.search(_plain(text)):
            return text
        return compact(self.of(json.loads(text)))

    def _of(self, value: Any, *, inside: bool) -> Any:
        if isinstance(value, dict):
            return {key: self._field(key, item, inside=inside) for key, item in value.items()}
        if isinstance(value, list):
            return [self._of(item, inside=inside) for item in value]
        if inside and isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
            return self._text(value)
        return value

    def _field(self, key: str, value: Any, *, inside: bool) -> Any:
        if _plain(key) in _SECRETS or (key in self._names and (inside or key not in _PROTOCOL)):
            return REDACTED
        if self._names and not inside and key in ("inputTextDelta", "partialArgs"):
            return _PIECES[key]
        if not inside and key == "delta" and "text" in self._names:
            return REDACTED
        return self._of(value, inside=inside or key in _OPEN)

    def _text(self, text: str) -> str:
        try:
            value = json.loads(text)
        except ValueError:
            # A piece of JSON cannot be looked into.
            named = any(f'"{name}"' in text for name in self._names)
            return REDACTED if named or _SECRET.search(_plain(text)) else text
        found = self._of(value, inside=True)
        return text if found == value else json.dumps(found, ensure_ascii=False)


def _plain(text: str) -> str:
    return text.lower().translate(_JOINTS)
