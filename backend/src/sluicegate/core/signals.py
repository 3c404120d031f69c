"""The types between ADK's events and the AI SDK's chunks.

`sluicegate.core.event_reading` reads *contents* from an event: text, files, code, calls. The
translator turns them into *signals*, which say what happened in the turn. A release buffer decides
when a signal is shown and turns it into chunks.

Rule 1: a signal never depends on the release policy. Rule 2: signals come in the natural order of
the turn (T2: one model call at a time, in the order in which they began). Rule 3: until the
`SignalBuilder` replaces them with the wire's, ``call_id`` and ``approval_id`` are ADK's ids.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from sluicegate.core.tool_facts import UNKNOWN_TOOL, ToolFacts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from sluicegate.wire.chunks import BaseChunk


class Speaker(NamedTuple):
    """The branch of an event and the agent that is its author."""

    branch: str | None
    agent: str

    @property
    def label(self) -> str:
        """Branch and agent as one string."""
        return self.agent if self.branch is None else f"{self.branch}/{self.agent}"


# Contents of an event.


@dataclass(frozen=True, slots=True)
class TextContent:
    """A piece of text, or of a thought."""

    thought: bool
    text: str


@dataclass(frozen=True, slots=True)
class Media:
    """A file by its URL; ``title`` is its name for the user."""

    url: str
    media_type: str
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Code:
    """Code that the model wrote for a code executor; ``language`` in lower case."""

    language: str
    code: str


@dataclass(frozen=True, slots=True)
class CodeOutput:
    """The result of executed code; ``outcome`` is one of ADK's ``OUTCOME_…``."""

    outcome: str
    output: str


@dataclass(frozen=True, slots=True)
class Source:
    """A cited page or document; ``media_type`` only for documents."""

    uri: str
    title: str
    media_type: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A complete function call of the model.

    ``id`` is the wire's toolCallId; for nodes of a Workflow ``<invocation>:<interrupt id>``.
    ``adk_id`` is ADK's id of the call where it differs. The `SignalBuilder` fills in ``facts``,
    ``author`` and ``branch``.
    """

    id: str
    name: str
    args: JsonValue
    facts: ToolFacts = UNKNOWN_TOOL
    author: str = ""
    branch: str | None = None
    adk_id: str = ""

    @property
    def id_in_adk(self) -> str:
        """The id ADK expects in a function response to this call."""
        return self.adk_id or self.id


StreamedContent: TypeAlias = TextContent | Media | Code | CodeOutput
"""Contents that are final when they are streamed."""

Content: TypeAlias = StreamedContent | Call
"""Contents of a model response."""


# Values of signals.


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """ADK's confirmation request for a call.

    ``confirmation_id`` is the id ADK expects the answer under (it is ``approval_id`` except for
    nodes of a Workflow), ``answer_name`` the function name of that answer. ``expires_at`` is the
    ledger's deadline in seconds since the epoch and ``changed`` says what is new in the tool's
    definition since an earlier grant; both are filled in from the ledger row. ``arguments`` are
    those that the call would run with, if callbacks changed the model's; ``defaults`` those of the
    tool for what they leave out; ``schema`` is what the tool declared at the call, if it differs
    from that of the call's facts.
    ``payload`` is that of ADK's confirmation. ``covers_payload``: the approval covers it, so the
    tool gets it; requests of earlier versions do not.
    ``automatic``: a grant has approved the call, so ADK has no request for it (A8).
    ``approvers`` is the rule if other people decide, ``preview`` what the call would do, and
    ``digest`` that of the request, from the ledger row too.
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
    arguments: Mapping[str, JsonValue] | None = None
    defaults: Mapping[str, JsonValue] | None = None
    schema: Mapping[str, JsonValue] | None = None
    changed: JsonValue = None
    covers_payload: bool = False
    automatic: bool = False
    approvers: Mapping[str, JsonValue] | None = None
    digest: str | None = None
    preview: Mapping[str, JsonValue] | None = None

    @property
    def is_of_node(self) -> bool:
        """Whether it is the request of a node of a Workflow."""
        return self.answer_name == "adk_request_input"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended (T8): its output, one public sentence, or the user's denial."""

    kind: Literal["output", "error", "denied"]
    output: JsonValue = None
    text: str = ""


NOT_FINISHED: Final = Outcome("error", text="This call did not finish.")
CONNECTED: Final = Outcome("output", output={"connected": True})
"""The shown output of a credential request, in place of the credentials."""


# Signals.


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A model call begins; its chunks stand between start-step and finish-step."""

    speaker: str


@dataclass(frozen=True, slots=True)
class StepFinished:
    """The model call has ended: its aggregate was read, all its calls are known."""

    speaker: str


@dataclass(frozen=True, slots=True)
class TextSignal:
    """A text chunk of the current model call."""

    chunk: BaseChunk


@dataclass(frozen=True, slots=True)
class ImmediateSignal:
    """A chunk that no release policy holds: reasoning, ``data-*``."""

    chunk: BaseChunk


@dataclass(frozen=True, slots=True)
class ResultSignal:
    """A file or source chunk: a result in the sense of D1."""

    chunk: BaseChunk


@dataclass(frozen=True, slots=True)
class InputStarted:
    """The arguments of a call begin to stream; its ``args`` are not set."""

    call: Call


@dataclass(frozen=True, slots=True)
class InputDelta:
    """A piece of the JSON text of a call's arguments."""

    call_id: str
    delta: str


@dataclass(frozen=True, slots=True)
class InputAvailable:
    """A call is complete: name and arguments are final."""

    call: Call


@dataclass(frozen=True, slots=True)
class ApprovalRequested:
    """A call waits for a decision.

    ``call`` is the call as ADK quotes it in its request; None after the `SignalBuilder`.
    """

    request: ApprovalRequest
    call: Call | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """A decision, or a browser's output (``approval_id`` None); its sender has it already.

    A rebuilt message shows it. A running turn shows few, such as those of calls that it closes.
    ``delivered``: the answer is in the session, so ADK has it too.
    """

    call_id: str
    approval_id: str | None = None
    approved: bool = False
    reason: str | None = None
    outcome: Outcome | None = None
    delivered: bool = True


@dataclass(frozen=True, slots=True)
class Settled:
    """A call has ended, or reports progress (``preliminary``).

    ``files`` are the files of the result and ``by_user`` says that the response came from the
    user's side; the `SignalBuilder` turns them into `ResultSignal` and `Answered`.
    """

    call_id: str
    outcome: Outcome
    preliminary: bool = False
    files: tuple[Media, ...] = ()
    by_user: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """The model or ADK failed (T10); ``code`` is ADK's ``error_code``, never shown."""

    code: str


Signal: TypeAlias = (
    StepStarted
    | StepFinished
    | TextSignal
    | ImmediateSignal
    | ResultSignal
    | InputStarted
    | InputDelta
    | InputAvailable
    | ApprovalRequested
    | Answered
    | Settled
    | Failed
)

CallSignal: TypeAlias = InputStarted | InputDelta | InputAvailable | Settled

ReadSignal: TypeAlias = StreamedContent | Source | CallSignal | ApprovalRequested | Answered
"""What is read of ADK's events: contents, and signals with ADK's ids; see `SignalBuilder`."""
