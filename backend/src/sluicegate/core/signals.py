"""What one turn consists of, between ADK's events and the AI SDK's chunks.

The translator says *what happened* in these words; a gate decides *when* it may be shown and
turns it into chunks. Rule 1: a signal never depends on the release. Rule 2: the order of the
signals is the natural order of the turn (T2: one model call at a time, the first to speak first).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from sluicegate.core.events import Code, CodeOutput, Media, TextContent

if TYPE_CHECKING:
    from pydantic import JsonValue

    from sluicegate.wire.chunks import BaseChunk

ToolKind = Literal["free", "gated", "conditional", "client", "gated-client"]
"""``free`` never asks; ``gated`` always asks; ``conditional`` is known only once it ran or asked
(a predicate, ``request_confirmation``); the client kinds run in the browser."""


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """What the wire says of a tool (T7); ``expires`` is the seconds its approvals wait (A5)."""

    kind: ToolKind = "free"
    title: str | None = None
    metadata: Mapping[str, JsonValue] | None = None
    schema: Mapping[str, JsonValue] | None = None
    editable: bool = True
    rememberable: bool = True
    expires: float | None = None
    dynamic: bool = False


class ToolLookup(Protocol):
    """Facts of the tools of an agent tree."""

    def facts(self, author: str, name: str) -> ToolFacts:
        """Facts of tool ``name`` as agent ``author`` sees it; unknown tools are ``free``."""


@dataclass(frozen=True, slots=True)
class Call:
    """A function call of the model, as the wire names it.

    ``id`` is the wire's toolCallId; for nodes of a Workflow ``<invocation>:<interrupt id>``.
    ``adk_id`` is the id ADK knows the call by, where it is another one.
    """

    id: str
    name: str
    args: JsonValue
    facts: ToolFacts
    author: str
    branch: str | None = None
    adk_id: str = ""

    @property
    def id_in_adk(self) -> str:
        """The id ADK expects in a function response to this call."""
        return self.adk_id or self.id


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A confirmation request for a call.

    ``confirmation_id`` is the id ADK expects the answer under (it is ``approval_id`` except for
    nodes of a Workflow), ``answer_name`` the function name of that answer. ``expires_at`` is the
    ledger's deadline in seconds since the epoch, filled in by whoever knows the row.
    ``automatic``: a remembered approval has answered it, and ADK never asked (A8).
    """

    approval_id: str
    call_id: str
    confirmation_id: str
    answer_name: Literal["adk_request_confirmation", "adk_request_input"]
    hint: str
    payload: JsonValue
    branch: str | None
    invocation: str
    expires_at: float | None = None
    automatic: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended (T8): its output, one public sentence, or the user's no."""

    kind: Literal["output", "error", "denied"]
    output: JsonValue = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A model call begins; its chunks stand between start-step and finish-step."""

    lane: str


@dataclass(frozen=True, slots=True)
class StepFinished:
    """That model call has ended: its aggregate was seen, all its calls are known."""

    lane: str


@dataclass(frozen=True, slots=True)
class UnheldChunk:
    """A chunk no release holds: reasoning, ``data-*``."""

    chunk: BaseChunk


@dataclass(frozen=True, slots=True)
class TextChunk:
    """A text chunk of the model call that is under way."""

    chunk: BaseChunk


@dataclass(frozen=True, slots=True)
class InputStreamed:
    """``tool-input-start`` or ``tool-input-delta`` of a call that is still being written."""

    call_id: str
    chunk: BaseChunk


@dataclass(frozen=True, slots=True)
class InputAvailable:
    """A call is complete: name and arguments are final."""

    call: Call


@dataclass(frozen=True, slots=True)
class ApprovalRequested:
    """A call waits for a person."""

    ask: ApprovalRequest


@dataclass(frozen=True, slots=True)
class Answered:
    """A person or a browser answered; the one who posted it knows, so only rebuilds show it.

    ``delivered``: the answer stands in the session, so ADK knows it too.
    """

    call_id: str
    approval_id: str | None = None
    approved: bool = False
    reason: str | None = None
    outcome: Outcome | None = None
    delivered: bool = True


@dataclass(frozen=True, slots=True)
class Settled:
    """A call has ended, or reports progress (``preliminary``)."""

    call_id: str
    outcome: Outcome
    preliminary: bool = False


@dataclass(frozen=True, slots=True)
class ResultChunk:
    """A file or source chunk: a result in the sense of D1."""

    chunk: BaseChunk


@dataclass(frozen=True, slots=True)
class Failed:
    """The model or ADK failed (T10); ``code`` is ADK's ``error_code``, never shown."""

    code: str


Signal = (
    StepStarted
    | StepFinished
    | UnheldChunk
    | TextChunk
    | InputStreamed
    | InputAvailable
    | ApprovalRequested
    | Answered
    | Settled
    | ResultChunk
    | Failed
)


@dataclass(slots=True)
class Usage:
    """Token counts of the exchange so far (T3)."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    reasoning_tokens: int = 0
    cached_input_tokens: int = 0


@dataclass(slots=True)
class TurnFacts:
    """What ``finish`` reports of the exchange: filled by the translator as events pass."""

    usage: Usage = field(default_factory=Usage)
    model: str | None = None
    finish_reason: Literal["stop", "length", "content-filter", "other"] = "stop"


Signals = Sequence[Signal]


@dataclass(frozen=True, slots=True)
class InputStarted:
    """A call whose arguments are about to be written."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class InputDelta:
    """A piece of the JSON text of a call's arguments."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class CallCompleted:
    """A call is complete. ``kind`` is what it is whatever the tools say, ``wire_id`` its own."""

    id: str
    name: str
    args: JsonValue
    kind: ToolKind | None = None
    wire_id: str | None = None


@dataclass(frozen=True, slots=True)
class CallAborted:
    """A call whose arguments were never completed, or that the model took back."""

    id: str


@dataclass(frozen=True, slots=True)
class Cited:
    """A page or document the answer rests on; ``media_type`` only for documents."""

    uri: str
    title: str
    media_type: str | None = None


@dataclass(frozen=True, slots=True)
class ConfirmationRequest:
    """A confirmation request; ``original`` is the call it is about."""

    id: str
    original: CallCompleted
    answer_name: Literal["adk_request_confirmation", "adk_request_input"]
    hint: str
    payload: JsonValue
    invocation: str


@dataclass(frozen=True, slots=True)
class ResponseReceived:
    """A function response; ``by_user``: a person or a browser gave it."""

    id: str
    name: str
    outcome: Outcome
    media: tuple[Media, ...] = ()
    by_user: bool = False


@dataclass(frozen=True, slots=True)
class ConfirmationAnswer:
    """The answer to a confirmation request."""

    id: str
    approved: bool
    reason: str | None


@dataclass(frozen=True, slots=True)
class NodeEnded:
    """A tool node of a Workflow has ended; ``id`` is its interrupt id."""

    id: str
    outcome: Outcome
    media: tuple[Media, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """A tool that still runs has something to show."""

    id: str
    output: JsonValue


Item: TypeAlias = (
    TextContent
    | InputStarted
    | InputDelta
    | CallCompleted
    | CallAborted
    | Code
    | CodeOutput
    | Media
    | Cited
    | ConfirmationRequest
    | ResponseReceived
    | ConfirmationAnswer
    | NodeEnded
    | Progress
)
