"""Builders of signals and short forms of chunks for the tests of release buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluicegate.core.signals import (
    Answered,
    ApprovalRequest,
    ApprovalRequested,
    Call,
    ImmediateSignal,
    InputAvailable,
    Outcome,
    ResultSignal,
    Settled,
    Signal,
    StepFinished,
    StepStarted,
    TextSignal,
)
from sluicegate.core.tool_facts import ToolFacts, ToolKind
from sluicegate.wire.chunks import (
    BaseChunk,
    DataChunk,
    FileChunk,
    ReasoningDeltaChunk,
    ReasoningEndChunk,
    ReasoningStartChunk,
    TextDeltaChunk,
    TextEndChunk,
    TextStartChunk,
    ToolInputAvailableChunk,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


def text(name: str) -> list[Signal]:
    """A whole text block."""
    return [
        TextSignal(TextStartChunk(id=name)),
        TextSignal(TextDeltaChunk(id=name, delta=name)),
        TextSignal(TextEndChunk(id=name)),
    ]


def reasoning(name: str) -> list[Signal]:
    """A whole reasoning block."""
    return [
        ImmediateSignal(ReasoningStartChunk(id=name)),
        ImmediateSignal(ReasoningDeltaChunk(id=name, delta=name)),
        ImmediateSignal(ReasoningEndChunk(id=name)),
    ]


def call(name: str, kind: ToolKind = "gated") -> Signal:
    """A call whose id and tool share a name."""
    return InputAvailable(Call(name, f"{name}_tool", {"n": 1}, ToolFacts(kind), "agent"))


def ask(name: str) -> Signal:
    """The question about a call."""
    return ApprovalRequested(
        ApprovalRequest(
            f"ask-{name}", name, f"ask-{name}", "adk_request_confirmation", "", None, None, "inv"
        )
    )


def yes(name: str) -> Signal:
    """A person's yes."""
    return Answered(name, f"ask-{name}", approved=True)


def no(name: str) -> Signal:
    """A person's no."""
    return Answered(name, f"ask-{name}", approved=False)


def result(name: str) -> Signal:
    """A call that ran."""
    return Settled(name, Outcome("output", output={"of": name}))


def refused(name: str) -> Signal:
    """A call the user denied."""
    return Settled(name, Outcome("denied", text="The user denied this call."))


def failed(name: str) -> Signal:
    """A call that raised."""
    return Settled(name, Outcome("error", text="It failed."))


def file(name: str) -> Signal:
    """A file that a tool made."""
    return ResultSignal(FileChunk(url=name, media_type="image/png"))


def step(*inner: Signal | list[Signal]) -> list[Signal]:
    """One model call."""
    flat: list[Signal] = []
    for signal in inner:
        flat.extend(signal if isinstance(signal, list) else [signal])
    return [StepStarted("agent"), *flat, StepFinished("agent")]


def shapes(chunks: Iterable[BaseChunk]) -> list[str]:
    """Chunks as words: the type, and what it is about; transient notices are left out."""
    words: list[str] = []
    for chunk in chunks:
        if isinstance(chunk, DataChunk) and chunk.transient:
            continue
        kind = str(getattr(chunk, "type"))  # noqa: B009 - the base class has no type
        about = next(
            (
                str(value)
                for name in ("tool_call_id", "id", "url")
                if (value := getattr(chunk, name, None)) is not None
            ),
            "",
        )
        if isinstance(chunk, ToolInputAvailableChunk) and chunk.provider_executed:
            about += "*"
        words.append(f"{kind} {about}".strip())
    return words
