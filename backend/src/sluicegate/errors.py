"""Every exception of the package.

::

    SluicegateError
    ├── RequestError              they erred: an HTTP status, a code, one public sentence
    │   ├── Malformed             400 malformed
    │   ├── Unauthenticated       401 unauthenticated
    │   ├── Forbidden             403 origin, host
    │   ├── Unknown               404 unknown
    │   ├── RequestTimeout        408 timeout
    │   ├── TurnRunning           409 turn_running
    │   ├── AlreadyDecided        409 already_decided
    │   ├── Superseded            409 superseded
    │   ├── WouldForgetEffect     409 would_forget_effect
    │   ├── NotRewindable         409 not_rewindable
    │   ├── HeldElsewhere         409 held_elsewhere
    │   ├── TooLarge              413 too_large
    │   ├── UnsupportedMediaType  415 unsupported_media_type
    │   ├── TooManyRequests       429 too_many_requests
    │   └── Unavailable           503 unavailable
    ├── ChunkOrderError           we erred: a chunk that may not follow
    ├── ConfigurationError        one sentence for the command line, exit code 2
    │   ├── DeclarationError      a tool that cannot be declared so (ValueError too)
    │   ├── RecordingError        a recording that cannot be read, written or played
    │   └── ScenarioError         a script for the model that cannot be played
    ├── MediaError                a file that cannot be used (ValueError); one public sentence
    ├── DetailError               a detail of a ToolResult that cannot be used (ValueError)
    │   └── DetailTypeError       one of a type that no detail has (TypeError too)
    ├── StoreError                a store refused or lost what it was given
    │   └── StoreUnavailable      a store does not answer, or cannot write now
    └── ToolError                 a tool says more to the user and to the model
"""

from __future__ import annotations

import secrets
from typing import ClassVar, Literal


class SluicegateError(Exception):
    """The root of the tree; never raised itself."""


class RequestError(SluicegateError):
    """A request that is refused before anything has changed.

    ``str(error)`` is one public sentence that says what to do. It is sent as text/plain with
    ``status``; ``code`` goes into the header ``x-error-code`` and ``retry_after`` (whole seconds)
    into ``retry-after``.
    """

    status: ClassVar[int] = 400
    code: str = "malformed"
    sentence: ClassVar[str] = "The request could not be read; check it and send it again."
    default_retry_after: ClassVar[int | None] = None

    def __init__(self, message: str | None = None, *, retry_after: int | None = None) -> None:
        """Take a public sentence; without one the class's own is used."""
        super().__init__(self.sentence if message is None else message)
        self.retry_after = self.default_retry_after if retry_after is None else retry_after

    @property
    def message(self) -> str:
        """The public sentence."""
        return str(self.args[0])


class Malformed(RequestError):
    """The request is not what the protocol allows."""


class Unauthenticated(RequestError):
    """Nobody is known to be calling."""

    status = 401
    code = "unauthenticated"
    sentence = "You are not signed in; sign in and send the request again."


class Forbidden(RequestError):
    """The Origin or the Host of the request is not allowed; the sentence names the flag."""

    status = 403
    code: Literal["origin", "host"] = "origin"
    sentence = "This origin may not call the server; start the server with --origin to allow it."
    _host_sentence: ClassVar[str] = (
        "The server does not answer to this host name; "
        "start the server with --allowed-host to allow it."
    )

    def __init__(
        self, message: str | None = None, *, code: Literal["origin", "host"] = "origin"
    ) -> None:
        """Take what was refused: the Origin header or the Host header."""
        super().__init__(self._host_sentence if message is None and code == "host" else message)
        self.code = code


class Unknown(RequestError):
    """No such thing, or somebody else's: the answer is the same for both (A4)."""

    status = 404
    code = "unknown"
    sentence = "There is no such thing here; load the chat again to see what there is."


class RequestTimeout(RequestError):
    """The request did not arrive in time."""

    status = 408
    code = "timeout"
    sentence = "The request took too long to arrive; send it again."


class TurnRunning(RequestError):
    """The chat has a running turn and this cannot happen beside it."""

    status = 409
    code = "turn_running"
    sentence = "The chat is still answering; wait until it has finished, or stop it first."


class AlreadyDecided(RequestError):
    """The approval was decided the other way (A4)."""

    status = 409
    code = "already_decided"
    sentence = "This approval was already decided differently; load the chat again to see it."


class Superseded(RequestError):
    """The approval was closed by a newer message or by a stop (A4, A5)."""

    status = 409
    code = "superseded"
    sentence = "This approval is no longer open; load the chat again to see what is."


class WouldForgetEffect(RequestError):
    """Rewinding would take a tool's effect out of the history."""

    status = 409
    code = "would_forget_effect"
    sentence = (
        "This answer ran an approved tool and cannot be taken back; send a new message instead."
    )


class NotRewindable(RequestError):
    """A spoken exchange cannot be run again."""

    status = 409
    code = "not_rewindable"
    sentence = "A spoken exchange cannot be taken back; send a new message instead."


class HeldElsewhere(RequestError):
    """Another turn, socket or replica holds the chat (A2)."""

    status = 409
    code = "held_elsewhere"
    sentence = "This chat is in use somewhere else; close it there, or wait and send again."


class TooLarge(RequestError):
    """Something is over its limit."""

    status = 413
    code = "too_large"
    sentence = "The request is too large; send less."


class UnsupportedMediaType(RequestError):
    """The body or a file has a type that is not accepted."""

    status = 415
    code = "unsupported_media_type"
    sentence = "This type of content is not accepted; send it in another format."


class TooManyRequests(RequestError):
    """A rate limit is reached; there is always a ``retry_after``."""

    status = 429
    code = "too_many_requests"
    sentence = "There were too many requests; wait a moment and send it again."
    default_retry_after = 10


class Unavailable(RequestError):
    """The server cannot work now; there is always a ``retry_after``."""

    status = 503
    code = "unavailable"
    sentence = "The server cannot answer now; send the request again in a moment."
    default_retry_after = 5


class ChunkOrderError(SluicegateError):
    """A chunk that may not follow what was sent before; the client would end the response."""


class ConfigurationError(SluicegateError):
    """A setting, a flag or a target cannot be used; one sentence, exit code 2."""


class DeclarationError(ConfigurationError, ValueError):
    """A tool, a call or an answer cannot be told a model so; the sentence begins with the place."""


class RecordingError(ConfigurationError):
    """A recording cannot be read, written or played; the sentence names the file and the line."""


class ScenarioError(ConfigurationError):
    """A script for the model cannot be read or played."""


class MediaError(SluicegateError, ValueError):
    """A file cannot be used; the text is one public sentence without names or contents."""


class DetailError(SluicegateError, ValueError):
    """A tool result cannot be made of this; the text names the place, such as ``details[1].rows``.

    It is for the author of the tool, not for the user.
    """


class DetailTypeError(DetailError, TypeError):
    """A detail has a type that none may have."""


class StoreError(SluicegateError):
    """A store refused or lost what it was given; the text is for the log only."""


class StoreUnavailable(StoreError):
    """A store does not answer, or cannot write now; the same may work in a moment."""


class ToolError(SluicegateError):
    """A tool fails and wants to say why (T8).

    The message is public: the user and the model both read it.
    """

    def __init__(self, message: str) -> None:
        """Take the public sentence."""
        super().__init__(message)

    @property
    def message(self) -> str:
        """The public sentence."""
        return str(self.args[0])


def new_error_id() -> str:
    """The id that stands in a public sentence and in the log."""
    return secrets.token_hex(4)


def refusal_of(error: Exception) -> RequestError | None:
    """What whoever asked is told of an error; None for one that is ours alone.

    A store that does not answer is no fault of the request: the same one may work in a moment.
    """
    if isinstance(error, RequestError):
        return error
    return Unavailable() if isinstance(error, StoreUnavailable) else None


def error_of(code: str, sentence: str) -> RequestError:
    """The request error that was told with this code, as far as it is known."""
    kinds: list[type[RequestError]] = [RequestError]
    for kind in kinds:
        kinds.extend(kind.__subclasses__())
        if kind.code == code:
            return kind(sentence)
    return RequestError(sentence)
