"""Every exception of the package.

::

    SluicegateError
    ├── RequestError              the client erred: an HTTP status, a code, one public sentence
    │   ├── Malformed             400 malformed
    │   ├── Unauthenticated       401 unauthenticated
    │   ├── Forbidden             403 origin, host
    │   ├── NotEntitled           403 not_entitled
    │   ├── Unknown               404 unknown
    │   ├── RequestTimeout        408 timeout
    │   ├── TurnRunning           409 turn_running
    │   ├── AlreadyDecided        409 already_decided
    │   ├── Changed               409 changed
    │   ├── NoPreview             409 no_preview
    │   ├── NotIdempotent         409 not_idempotent
    │   ├── Superseded            409 superseded
    │   ├── WouldForgetEffect     409 would_forget_effect
    │   ├── NotRewindable         409 not_rewindable
    │   ├── HeldByAnotherOwner    409 held_elsewhere
    │   ├── TakenOver             409 taken_over
    │   ├── TooLarge              413 too_large
    │   ├── UnsupportedMediaType  415 unsupported_media_type
    │   ├── UpgradeRequired       426 upgrade_required
    │   ├── TooManyRequests       429 too_many_requests
    │   └── Unavailable           503 unavailable
    ├── ChunkOrderError           the server erred: a chunk that may not follow
    ├── ConfigurationError        one sentence for the command line, exit code 2
    │   ├── DeclarationError      an invalid declaration of a tool (ValueError too)
    │   ├── RecordingError        a recording that cannot be read, written or played
    │   └── ScenarioError         a script of the model that cannot be played
    ├── UnusableSchema            arguments cannot be checked with it (ValueError)
    ├── MediaError                an invalid file (ValueError); one public sentence
    ├── DetailError               an invalid detail of a ToolResult (ValueError)
    │   └── DetailTypeError       a detail of another type (TypeError too)
    ├── ModelError                a call of a model failed; one line for the log
    │   ├── ModelKeyMissing       model_key_missing
    │   ├── ModelKeyRefused       model_key_refused
    │   ├── ModelUnknown          model_unknown
    │   ├── ModelQuotaExceeded    model_quota
    │   ├── ModelUnreachable      model_unreachable
    │   ├── ModelUnavailable      model_unavailable
    │   ├── ModelContextTooLong   model_context
    │   ├── ModelBlocked          model_blocked
    │   └── ModelRequestRefused   model_request_refused
    ├── StoreError                a store refused an operation or lost data
    │   └── StoreUnavailable      a store does not answer, or cannot write now
    └── ToolError                 a tool fails with a sentence for user and model

``docs/reference/errors.md`` is written from this file by ``scripts/error_catalogue.py``: of each
class with a ``fix``, its code, the first line of its docstring as the cause, and the fix.
"""

from __future__ import annotations

import secrets
from typing import ClassVar, Final, Literal

CATALOGUE: Final = "docs/reference/errors.md"
"""The page that explains every code, with a heading for each."""


class SluicegateError(Exception):
    """The base of all exceptions; it is not raised itself."""


class RequestError(SluicegateError):
    """A request that is refused before anything has changed.

    ``str(error)`` is one public sentence that says what to do; the default is that of the class.
    It is sent as text/plain with ``status``; ``code`` is sent in the header ``x-error-code`` and
    ``retry_after`` (whole seconds) in ``retry-after``.
    """

    status: ClassVar[int] = 400
    code: str = "malformed"
    sentence: ClassVar[str] = "The request could not be read; check it and send it again."
    fix: ClassVar[str] = ""
    default_retry_after: ClassVar[int | None] = None

    def __init__(self, message: str | None = None, *, retry_after: int | None = None) -> None:
        super().__init__(self.sentence if message is None else message)
        self.retry_after = self.default_retry_after if retry_after is None else retry_after

    @property
    def message(self) -> str:
        """The public sentence."""
        return str(self.args[0])


class Malformed(RequestError):
    """The request does not follow the protocol."""

    fix = "Send what the protocol describes; the response and the log line name the field."


class Unauthenticated(RequestError):
    """The request has no valid authentication."""

    status = 401
    code = "unauthenticated"
    sentence = "You are not signed in; sign in and send the request again."
    fix = (
        "Send a valid token, cookie or proxy header; the setting `auth` says which one is expected."
    )


class Forbidden(RequestError):
    """The Origin or the Host (``code``) is not allowed; the sentence names the flag."""

    status = 403
    code: Literal["origin", "host"] = "origin"
    sentence = "This origin may not call the server; start the server with --origin to allow it."
    fix = (
        "Start the server with `--origin URL` for a page on another origin, and with "
        "`--allowed-host NAME` for another host name."
    )
    _host_sentence: ClassVar[str] = (
        "The server does not answer to this host name; "
        "start the server with --allowed-host to allow it."
    )

    def __init__(
        self, message: str | None = None, *, code: Literal["origin", "host"] = "origin"
    ) -> None:
        super().__init__(self._host_sentence if message is None and code == "host" else message)
        self.code = code


class NotEntitled(RequestError):
    """The user sees the approval, and other people decide it."""

    status = 403
    code = "not_entitled"
    sentence = "Other people decide this approval; wait for their answer."
    fix = (
        "Ask one of the people that the approval names; `gated(approvers=…)` says who they are, "
        "and the authentication which roles a user has."
    )


class Unknown(RequestError):
    """It does not exist, or belongs to another user: the response is the same for both (A4)."""

    status = 404
    code = "unknown"
    sentence = "There is no such thing here; load the chat again to see what there is."
    fix = (
        "Check the id and the signed-in user. Behind a proxy, also check that `prefix` "
        "matches the path that the proxy forwards."
    )


class RequestTimeout(RequestError):
    """The request did not arrive in time."""

    status = 408
    code = "timeout"
    sentence = "The request took too long to arrive; send it again."
    fix = "Check the connection of the client, or raise `body_timeout`."


class TurnRunning(RequestError):
    """The chat has a running turn, and the request cannot be served during it."""

    status = 409
    code = "turn_running"
    sentence = "The chat is still answering; wait until it has finished, or stop it first."
    fix = "Wait for the end of the turn, or stop it with an `abort_signal`."


class AlreadyDecided(RequestError):
    """The approval was decided the other way (A4)."""

    status = 409
    code = "already_decided"
    sentence = "This approval was already decided differently; load the chat again to see it."
    fix = "Load the chat again; the first decision counts. `sluicegate audit` prints who made it."


class Changed(RequestError):
    """A yes is about arguments that another person has changed since."""

    status = 409
    code = "changed"
    sentence = "Another person has changed this call; load the approval again and check it."
    fix = "Load the approval again and send its `digest` with the decision."


class NoPreview(RequestError):
    """A yes to a call whose preview could not be shown."""

    status = 409
    code = "no_preview"
    sentence = "What this call would do could not be shown, so it cannot be approved; deny it."
    fix = (
        "Deny the call and let the agent ask again; the log has the error of `gated(preview=…)`, "
        "and `preview_timeout` is the time that it has."
    )


class NotIdempotent(RequestError):
    """The call may not run again: its tool is not declared idempotent (A5)."""

    status = 409
    code = "not_idempotent"
    sentence = (
        "This tool may not run twice; check what happened, and say whether the call took effect."
    )
    fix = (
        "Look the call up in the other system and resolve it as executed or failed. "
        "`gated(tool, idempotent=True)` allows a tool to run again with the same key."
    )


class Superseded(RequestError):
    """The approval was closed by a newer message, another answer or a stop (A4, A5)."""

    status = 409
    code = "superseded"
    sentence = "This approval is no longer open; load the chat again to see what is."
    fix = "Load the chat again; a new message, another answer or a stop has closed the approval."


class WouldForgetEffect(RequestError):
    """Rewinding would remove a tool's effect from the history."""

    status = 409
    code = "would_forget_effect"
    sentence = (
        "This answer ran an approved tool and cannot be taken back; send a new message instead."
    )
    fix = "Send a new message; a page offers an edit only if the metadata `rewindable` is true."


class NotRewindable(RequestError):
    """A live exchange cannot be run again."""

    status = 409
    code = "not_rewindable"
    sentence = "A spoken exchange cannot be taken back; send a new message instead."
    fix = "Send a new message; a spoken exchange has no text to run again."


class HeldByAnotherOwner(RequestError):
    """Another turn, socket or replica holds the lease of the chat (A2)."""

    status = 409
    code = "held_elsewhere"
    sentence = "This chat is in use somewhere else; close it there, or wait and send again."
    fix = (
        "Close the other tab or socket. After the death of a replica, wait for `lease_ttl` seconds."
    )


class TakenOver(RequestError):
    """A newer socket of the same user has opened the live chat; only a socket gets this."""

    status = 409
    code = "taken_over"
    sentence = "This chat was opened in another place; connect here again to take it back."
    fix = "Connect again to take the chat back."


class TooLarge(RequestError):
    """A limit is exceeded."""

    status = 413
    code = "too_large"
    sentence = "The request is too large; send less."
    fix = (
        "Send less, or raise the limit that the sentence is about: `max_body_bytes`, "
        "`max_file_bytes` or `max_json_values`."
    )


class UnsupportedMediaType(RequestError):
    """The body or a file has a type that is not accepted."""

    status = 415
    code = "unsupported_media_type"
    sentence = "This type of content is not accepted; send it in another format."
    fix = "Send JSON as `application/json`, and files of a type that `file_types` accepts."


class UpgradeRequired(RequestError):
    """An HTTP request for the address of a socket (RFC 9110, 15.5.22)."""

    status = 426
    code = "upgrade_required"
    sentence = "This is the address of a WebSocket; connect to it with ws: or wss:."


class TooManyRequests(RequestError):
    """A rate limit is reached; ``retry_after`` is always set."""

    status = 429
    code = "too_many_requests"
    sentence = "There were too many requests; wait a moment and send it again."
    fix = "Wait as long as `retry-after` says; the log line names the limit, which is a setting."
    default_retry_after = 10


class Unavailable(RequestError):
    """The server cannot serve the request now; ``retry_after`` is always set."""

    status = 503
    code = "unavailable"
    sentence = "The server cannot answer now; send the request again in a moment."
    fix = (
        "Look at `/readyz` and at the log: the server is shutting down, or a store does not answer."
    )
    default_retry_after = 5


class ChunkOrderError(SluicegateError):
    """A chunk that may not follow the previous ones; the client would end the response."""

    fix: ClassVar[str] = "Report it with the line of the log: it is a defect of the server."


class ConfigurationError(SluicegateError):
    """A setting, a flag or a target is not valid; one sentence, exit code 2."""

    fix: ClassVar[str] = (
        "Change what the sentence names; `sluicegate check TARGET` finds all of them."
    )


class DeclarationError(ConfigurationError, ValueError):
    """A tool, a call or a response is not valid; the sentence begins with the path of the field."""


class RecordingError(ConfigurationError):
    """A recording cannot be read, written or played; the sentence names the file and the line."""


class ScenarioError(ConfigurationError):
    """A script of the model cannot be read or played."""


class UnusableSchema(SluicegateError, ValueError):
    """Arguments cannot be checked with a JSON schema; the text is a clause that says why."""


class MediaError(SluicegateError, ValueError):
    """A file is not valid; the text is one public sentence without names or contents."""


class DetailError(SluicegateError, ValueError):
    """A detail of a tool result is not valid; the text names the path, such as ``details[1].rows``.

    It is for the author of the tool, not for the user.
    """


class DetailTypeError(DetailError, TypeError):
    """A detail of a tool result has another type."""


class ModelError(SluicegateError):
    """A call of a model failed for another reason.

    ``str(error)`` is one line for the log: provider, model, status, what the provider said, what
    to do. Credentials are removed from it.
    """

    code: ClassVar[str] = "model_failed"
    fix: ClassVar[str] = (
        "Read what the provider or its client library says; the line has the place."
    )


class ModelKeyMissing(ModelError):
    """There is no API key, or no other credential, for the provider of the model."""

    code = "model_key_missing"
    fix = (
        "Set the key in the environment or in the `.env` beside the agent (`GOOGLE_API_KEY`, "
        "`ANTHROPIC_API_KEY`, `OPENAI_API_KEY`), or serve with `--model-script FILE`."
    )


class ModelKeyRefused(ModelError):
    """The provider does not accept the API key, or the key may not use the model."""

    code = "model_key_refused"
    fix = "Check the key, its restrictions and its project at the provider, and restart the server."


class ModelUnknown(ModelError):
    """The provider has no model of this name, or the key has no access to it."""

    code = "model_unknown"
    fix = "Correct the name in the agent, or choose a model with `--model NAME`."


class ModelQuotaExceeded(ModelError):
    """The quota or the rate limit of the key is used up."""

    code = "model_quota"
    fix = "Wait, raise the quota at the provider, or choose a model with another quota."


class ModelUnreachable(ModelError):
    """The provider could not be reached, or did not answer in time."""

    code = "model_unreachable"
    fix = "Check the network, the proxy and the base URL of the model, and send the message again."


class ModelUnavailable(ModelError):
    """The provider is overloaded or has failed."""

    code = "model_unavailable"
    fix = "Send the message again later; if it lasts, look at the status page of the provider."


class ModelContextTooLong(ModelError):
    """The chat, its files and the tools are longer than the context of the model."""

    code = "model_context"
    fix = (
        "Start a new chat, lower `file_turns`, configure the events compaction of the ADK App, or "
        "choose a model with a longer context."
    )


class ModelBlocked(ModelError):
    """The provider has blocked the message or the answer by its safety rules."""

    code = "model_blocked"
    fix = (
        "Change the message or the instruction; for Gemini, `safety_settings` of the agent's "
        "`generate_content_config` set the thresholds."
    )


class ModelRequestRefused(ModelError):
    """The provider does not accept the request, such as a parameter or a declaration of a tool."""

    code = "model_request_refused"
    fix = "Change what the provider names: a parameter of the model, a tool or a file."


class StoreError(SluicegateError):
    """A store refused an operation or lost data; the text is for the log only."""


class StoreUnavailable(StoreError):
    """A store does not answer, or cannot write now; a retry may succeed."""

    fix: ClassVar[str] = "Start the store or correct its URL; requests are answered 503 until then."


class ToolError(SluicegateError):
    """A tool fails with a message for the user and the model (T8)."""

    fix: ClassVar[str] = "Nothing: the tool has said so to the user and the model."

    def __init__(self, message: str) -> None:
        super().__init__(message)

    @property
    def message(self) -> str:
        """The public sentence."""
        return str(self.args[0])


def new_error_id() -> str:
    """Return an id that joins a public sentence with the log."""
    return secrets.token_hex(4)


def as_request_error(error: Exception) -> RequestError | None:
    """Return the error that the client receives; None for an internal error.

    If a store does not answer, a retry of the request may succeed.
    """
    if isinstance(error, RequestError):
        return error
    return Unavailable() if isinstance(error, StoreUnavailable) else None


def error_from_code(code: str, sentence: str) -> RequestError:
    """Return the request error of a code with this sentence, a `RequestError` for other codes."""
    kinds: list[type[RequestError]] = [RequestError]
    for kind in kinds:
        kinds.extend(kind.__subclasses__())
        if kind.code == code:
            return kind(sentence)
    return RequestError(sentence)
