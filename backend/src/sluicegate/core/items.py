"""What a lane has to tell: the translator's words between events and signals.

Rule: an item names calls by ADK's ids and blocks not at all; wire ids and block ids are given when
the item is told, in natural order, so they are the same live and replayed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from sluicegate.core.event_parts import Code, CodeOutput, Media, Said

if TYPE_CHECKING:
    from pydantic import JsonValue

    from sluicegate.core.signals import Outcome, ToolKind


@dataclass(frozen=True, slots=True)
class InputBegun:
    """A call whose arguments are about to be written."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class InputText:
    """A piece of the JSON text of a call's arguments."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class CallMade:
    """A call is complete. ``kind`` is what it is whatever the tools say, ``wire_id`` its own."""

    id: str
    name: str
    args: JsonValue
    kind: ToolKind | None = None
    wire_id: str | None = None


@dataclass(frozen=True, slots=True)
class CallCut:
    """A call whose arguments were never completed, or that the model took back."""

    id: str


@dataclass(frozen=True, slots=True)
class Cited:
    """A page or document the answer rests on; ``media_type`` only for documents."""

    uri: str
    title: str
    media_type: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A confirmation request; ``original`` is the call it is about."""

    id: str
    original: CallMade
    answer_name: Literal["adk_request_confirmation", "adk_request_input"]
    hint: str
    payload: JsonValue
    invocation: str


@dataclass(frozen=True, slots=True)
class Response:
    """A function response; ``by_user``: a person or a browser gave it."""

    id: str
    name: str
    outcome: Outcome
    media: tuple[Media, ...] = ()
    by_user: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
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
    Said
    | InputBegun
    | InputText
    | CallMade
    | CallCut
    | Code
    | CodeOutput
    | Media
    | Cited
    | Question
    | Response
    | Verdict
    | NodeEnded
    | Progress
)
