"""Redacts fields in recordings."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias

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
        "editedPayload",
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
        "authcode",
        "authorization",
        "authresponseuri",
        "codeverifier",
        "cookie",
        "credentials",
        "csrftoken",
        "cvc",
        "cvv",
        "jwt",
        "otp",
        "passcode",
        "pwd",
        "setcookie",
        "token",
    }
)
"""Names of secrets, ADK's among them; their values are never recorded, in any spelling."""

_SECRET_ENDINGS: Final = (
    "accesskey",
    "accesstoken",
    "apikey",
    "apitoken",
    "authtoken",
    "authorization",
    "bearertoken",
    "encryptionkey",
    "idtoken",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "refreshtoken",
    "secret",
    "secretkey",
    "sessiontoken",
    "signingkey",
    "webhooktoken",
)
"""Endings of names of secrets, such as ``db_password`` and ``AWS_SECRET_ACCESS_KEY``."""

_SECRET: Final = re.compile("|".join(sorted({*_SECRETS, *_SECRET_ENDINGS})))
_PAIR: Final = ("name", "key")
"""The keys under which a list of fields names each of them, with its value under ``value``."""

_KEY: Final = re.compile(r'"([^"\\]{1,100})\\*"\s*:')
"""A key in a piece of JSON, also in one that is a text in JSON."""

_NAMED: Final = re.compile(r'"(?:name|key)\\*"\s*:\s*\\*"([^"\\]{1,100})\\*"')
"""The name of a field that is a pair in a piece of JSON, as `_PAIR` has it."""

_PATH_NAME: Final = re.compile(r"[\w-]+")
"""A name in a JSON path, such as ``$.login.password``."""

_LONGEST_KEY: Final = 200
"""Characters before a delta in which the name of its field is looked for."""

StreamedCalls: TypeAlias = dict[tuple[int, str], str | None]
"""The end of the arguments that have arrived, by turn and call; None after the name of a secret."""

_SEPARATORS: Final = str.maketrans("", "", "_-")
_REDACTED_DELTAS: Final = {"inputTextDelta": "", "delta": REDACTED, "partialArgs": []}


class Redaction:
    """Redacts the fields with these names, at any depth of arguments and results.

    Names are equal in any case, and with or without ``_`` and ``-``. Secrets by their common names
    (``password``, ``api_key``, ``client_secret``, ``access_token`` and the like) are always
    redacted.

    Text that is JSON is parsed. The field of a streamed argument delta is not known, so with any
    name these deltas are empty, and without names those from the first secret of their call on; the
    call itself has its other arguments. The name ``text`` redacts all text of messages. A value
    that a model or a tool repeats in other words or under another name is not found, nor is one
    that is streamed before its name in a pair.

    Raises:
        ConfigurationError: A name is empty.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names = tuple(dict.fromkeys(names))
        if not all(name.strip() for name in self.names):
            raise ConfigurationError("The name of a field to redact is empty; give a name.")
        self._names = frozenset(map(_plain, self.names))

    def of(self, body: Any) -> Any:
        """Return a copy of a body without the values of these fields."""
        return self._of(body, is_data=False)

    def of_text(self, text: str) -> str:
        """As `of`, for compact JSON; text without such a field is returned as it is."""
        if not self._names and not _SECRET.search(_plain(text)):
            return text
        return compact(self.of(json.loads(text)))

    def of_chunk(self, text: str, turn: int, streamed: StreamedCalls) -> str:
        """As `of_text`, for a chunk of a response, which has the number of a turn.

        ``streamed`` belongs to the chat: it is updated.
        """
        if '"tool-input-' not in text:
            return self.of_text(text)
        chunk = json.loads(text)
        call = (turn, str(chunk.get("toolCallId")))
        if chunk.get("type") != "tool-input-delta":
            streamed.pop(call, None)
            return self.of_text(text)
        arrived = streamed.get(call, "")
        if arrived is not None:
            arrived += chunk["inputTextDelta"]
            has_secret = any(map(_is_secret, _names_in(arrived)))
            arrived = streamed[call] = None if has_secret else arrived[-_LONGEST_KEY:]
        if arrived is None:
            text = compact({**chunk, "inputTextDelta": ""})
        return self.of_text(text)

    def _of(self, value: Any, *, is_data: bool) -> Any:
        if isinstance(value, dict):
            named = is_data and "value" in value and self._names_a_field(value)
            return {
                key: REDACTED
                if named and key == "value"
                else self._field(key, item, is_data=is_data)
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [self._of(item, is_data=is_data) for item in value]
        if is_data and isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
            return self._text(value)
        return value

    def _field(self, key: str, value: Any, *, is_data: bool) -> Any:
        if _is_secret(key) or (self._is_named(key) and (is_data or key not in _PROTOCOL)):
            return REDACTED
        if self._names and not is_data and key in ("inputTextDelta", "partialArgs"):
            return _REDACTED_DELTAS[key]
        if not is_data and key == "partialArgs" and isinstance(value, list):
            return [each for each in value if not _streams_secret(each)]
        if not is_data and key == "delta" and "text" in self._names:
            return REDACTED
        return self._of(value, is_data=is_data or key in _USER_DATA)

    def _text(self, text: str) -> str:
        try:
            value = json.loads(text)
        except ValueError:
            # Incomplete JSON cannot be parsed.
            is_known = any(map(self._is_known, _names_in(text)))
            return REDACTED if is_known else text
        redacted = self._of(value, is_data=True)
        return text if redacted == value else json.dumps(redacted, ensure_ascii=False)

    def _names_a_field(self, item: dict[Any, Any]) -> bool:
        return any(isinstance(item.get(key), str) and self._is_known(item[key]) for key in _PAIR)

    def _is_known(self, name: str) -> bool:
        return _is_secret(name) or self._is_named(name)

    def _is_named(self, name: str) -> bool:
        return _plain(name) in self._names


def _is_secret(name: str) -> bool:
    plain = _plain(name)
    return plain in _SECRETS or plain.endswith(_SECRET_ENDINGS)


def _names_in(text: str) -> list[str]:
    """The names of fields in a piece of JSON."""
    return [*_KEY.findall(text), *_NAMED.findall(text)]


def _streams_secret(argument: Any) -> bool:
    """Whether a streamed argument of ADK is within a field with the name of a secret."""
    path = argument.get("jsonPath") if isinstance(argument, dict) else None
    return isinstance(path, str) and any(map(_is_secret, _PATH_NAME.findall(path)))


def _plain(text: str) -> str:
    return text.lower().translate(_SEPARATORS)
