"""The assistant message that a request continues: the answers and the outputs it brings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeGuard

from pydantic import JsonValue

from sluicegate.errors import Malformed, TooLarge
from sluicegate.wire.messages import is_tool_part, tool_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluicegate.wire.messages import Part
    from sluicegate.wire.requests import RequestLimits

_MAX_HANDLE: Final = 256
_ENDED: Final = ("output-available", "output-error", "output-denied")


@dataclass(frozen=True)
class PostedDecision:
    """A person's decision; for an approval that is decided already, a repeat.

    ``edits`` are the arguments to run with in place of those asked about, ``is_remembered``
    says that later calls of the tool are approved too (A8); both stand only beside a yes.
    """

    approval_id: str
    approved: bool
    reason: str | None
    edits: dict[str, JsonValue] | None = None
    is_remembered: bool = False


@dataclass(frozen=True)
class StagedOptions:
    """The body's ``edits`` and ``remember``: what a page has prepared, by approval id.

    A page sends all of it with every request, so what belongs to no answer of the request is
    ignored, whatever it is.
    """

    edits: JsonValue = None
    remember: JsonValue = None

    def edits_of(self, approval_id: str) -> dict[str, JsonValue] | None:
        """The changed arguments of an approval; raises Malformed."""
        found = _entry(self.edits, approval_id)
        if found is not None and not isinstance(found, dict):
            raise Malformed("The changed arguments of an approval must be an object.")
        return found

    def remembers(self, approval_id: str) -> bool:
        """Whether an approval is to be remembered; raises Malformed."""
        found = _entry(self.remember, approval_id)
        if found not in (None, "chat"):
            raise Malformed('An approval can be remembered for its chat alone; send "chat".')
        return found is not None


def _entry(staged: JsonValue, approval_id: str) -> JsonValue:
    # What cannot be read is refused: a yes to changed arguments is no yes to the first ones.
    if staged is not None and not isinstance(staged, dict):
        raise Malformed("What is staged for approvals must be an object with their ids as keys.")
    return None if staged is None else staged.get(approval_id)


NO_STAGED_OPTIONS: Final = StagedOptions()


@dataclass(frozen=True)
class ClientOutput:
    """How a call ended, in the client's words.

    It counts only for an open call of a client-side tool; for any other it is decoration.
    ``error_text`` is None unless the call failed, and ``output`` is None if it did.
    """

    tool_call_id: str
    tool_name: str
    output: JsonValue
    error_text: str | None


@dataclass(frozen=True)
class PostedPart:
    """One part, by its names only; None where there is none that could be ours."""

    type: str
    tool_call_id: str | None
    state: str | None
    approval_id: str | None


@dataclass(frozen=True)
class PostedAssistantMessage:
    """The message that a request continues, its parts in order.

    ``decisions`` holds each approval once.
    """

    id: str
    parts: tuple[PostedPart, ...]
    decisions: tuple[PostedDecision, ...]
    outputs: tuple[ClientOutput, ...]


def parse_assistant_message(
    message_id: str,
    parts: Sequence[Part],
    limits: RequestLimits,
    staged: StagedOptions = NO_STAGED_OPTIONS,
) -> PostedAssistantMessage:
    """Read the parts of a continued message; each is an object with a ``type``.

    Raises:
        Malformed: a part in ``approval-responded`` does not say clearly what was decided, or two
            parts decide one approval differently.
        TooLarge: there are more answers than ``limits.parts``.
    """
    answers: dict[str, PostedDecision] = {}
    outputs: list[ClientOutput] = []
    for part in parts:
        if not is_tool_part(part):
            continue
        answer = _decision(part, limits, staged)
        if answer is not None and _differs(answers.setdefault(answer.approval_id, answer), answer):
            raise Malformed("One approval is answered both yes and no; answer it once.")
        output = _client_output(part)
        if output is not None:
            outputs.append(output)
    if len(answers) > limits.parts:
        raise TooLarge(f"There are more than {limits.parts} answers in one request; send fewer.")
    return PostedAssistantMessage(
        id=message_id,
        parts=tuple(_posted(part) for part in parts),
        decisions=tuple(answers.values()),
        outputs=tuple(outputs),
    )


def _decision(part: Part, limits: RequestLimits, staged: StagedOptions) -> PostedDecision | None:
    approval = part.get("approval")
    if part.get("state") == "approval-responded":
        return with_staged_options(parse_decision(approval, limits), staged)
    if part.get("state") not in _ENDED or not isinstance(approval, dict):
        return None
    approval_id, approved = approval.get("id"), approval.get("approved")
    reason = approval.get("reason")
    if not is_call_id(approval_id) or not isinstance(approved, bool):
        return None
    return PostedDecision(approval_id, approved, reason if isinstance(reason, str) else None)


def with_staged_options(answer: PostedDecision, staged: StagedOptions) -> PostedDecision:
    """Add to a yes what is staged for it; raises Malformed."""
    if not answer.approved:
        return answer
    return replace(
        answer,
        edits=staged.edits_of(answer.approval_id),
        is_remembered=staged.remembers(answer.approval_id),
    )


def parse_decision(approval: object, limits: RequestLimits) -> PostedDecision:
    """Read ``{id, approved, reason?}``; raises Malformed."""
    if not isinstance(approval, dict) or not is_call_id(approval.get("id")):
        raise Malformed("An answer does not name its approval; load the chat and answer again.")
    approved, reason = approval.get("approved"), approval.get("reason")
    if not isinstance(approved, bool):
        raise Malformed("An answer must say true or false under approved; answer again.")
    if reason is not None and not isinstance(reason, str):
        raise Malformed("The reason of an answer must be text; write it again.")
    if reason is not None and len(reason) > limits.reason:
        raise Malformed(
            f"The reason of an answer is longer than {limits.reason} characters; shorten it."
        )
    return PostedDecision(approval["id"], approved, reason)


def _differs(one: PostedDecision, other: PostedDecision) -> bool:
    return one.approved is not other.approved


def _client_output(part: Part) -> ClientOutput | None:
    state, call_id = part.get("state"), part.get("toolCallId")
    if state not in ("output-available", "output-error") or not is_call_id(call_id):
        return None
    if part.get("preliminary") is True or not isinstance(part.get("toolName", ""), str):
        return None
    if part["type"] == "dynamic-tool" and "toolName" not in part:
        return None
    if state == "output-available":
        return ClientOutput(call_id, tool_name(part), part.get("output"), None)
    error_text = part.get("errorText")
    return ClientOutput(
        call_id,
        tool_name(part),
        None,
        error_text if isinstance(error_text, str) else "The tool failed in the browser.",
    )


def _posted(part: Part) -> PostedPart:
    call_id, state, approval = part.get("toolCallId"), part.get("state"), part.get("approval")
    approval_id = approval.get("id") if isinstance(approval, dict) else None
    return PostedPart(
        type=part["type"],
        tool_call_id=call_id if is_call_id(call_id) else None,
        state=state if isinstance(state, str) else None,
        approval_id=approval_id if is_call_id(approval_id) else None,
    )


def is_call_id(value: object) -> TypeGuard[str]:
    """Whether this can name a call or an approval; those of workflows hold ``@`` and ``/``."""
    return isinstance(value, str) and 0 < len(value) <= _MAX_HANDLE and value.isprintable()
