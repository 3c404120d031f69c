"""The decision that a client posts, and its options."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from pydantic import JsonValue

from sluicegate.errors import Malformed
from sluicegate.wire.ids import is_call_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sluicegate.wire.limits import RequestLimits

_MAX_NAMES: Final = 100


_MAX_TTL: Final = 1e12


DecisionForm: TypeAlias = Literal["whole", "part", "known"]
"""What a decision without edits says of the arguments, once the approval is decided.

``whole``: it approves the requested ones. ``part``, the part of a message in
``approval-responded``: pages send it again beside later answers, so it says nothing there.
``known``, a part that the server has announced again or ended since: it repeats what the server
has sent.
"""


@dataclass(frozen=True)
class RememberOption:
    """The later calls that a decision is to approve too (A8).

    ``where`` are the names of arguments that must keep their values, empty for any arguments.
    ``ttl`` is in seconds, None for the server's default.
    """

    where: tuple[str, ...] = ()
    ttl: float | None = None


@dataclass(frozen=True)
class PostedDecision:
    """A decision on an approval; a repetition if the approval is already decided.

    ``edits`` are the arguments to run with in place of the requested ones, ``payload`` is what the
    tool gets in place of the requested payload, ``remember`` grants later calls of the tool (A8);
    they are set for approvals only, not for denials. ``digest`` is that of what the person saw, if
    it is stated; ``response`` is an answer in place of the tool, of denials only.
    """

    approval_id: str
    approved: bool
    reason: str | None
    edits: dict[str, JsonValue] | None = None
    remember: RememberOption | None = None
    form: DecisionForm = "part"
    payload: JsonValue = None
    digest: str | None = None
    response: JsonValue = None


@dataclass(frozen=True)
class StagedOptions:
    """The body's options that are staged for decisions, by approval id.

    A page sends all of them with every request; entries that belong to no decision of the request
    are ignored and not validated.
    """

    edits: JsonValue = None
    remember: JsonValue = None
    payload: JsonValue = None
    digest: JsonValue = None
    response: JsonValue = None

    def response_of(self, approval_id: str) -> JsonValue:
        """Return what is answered in place of a tool; raises Malformed."""
        return _staged_entry(self.response, approval_id)

    def digest_of(self, approval_id: str) -> str | None:
        """Return the digest of what an approver saw; raises Malformed."""
        digest = _staged_entry(self.digest, approval_id)
        if digest is not None and not isinstance(digest, str):
            raise Malformed("The digest of an approval must be the text that its card has.")
        return digest

    def payload_of(self, approval_id: str) -> JsonValue:
        """Return the payload that replaces that of an approval; raises Malformed."""
        return _staged_entry(self.payload, approval_id)

    def edits_of(self, approval_id: str) -> dict[str, JsonValue] | None:
        """Return the changed arguments of an approval; raises Malformed."""
        edits = _staged_entry(self.edits, approval_id)
        if edits is not None and not isinstance(edits, dict):
            raise Malformed("The changed arguments of an approval must be an object.")
        return edits

    def remember_of(self, approval_id: str) -> RememberOption | None:
        """Return how an approval is to be remembered, None if it is not; raises Malformed."""
        scope = _staged_entry(self.remember, approval_id)
        if scope is None:
            return None
        if scope == "chat":
            return RememberOption()
        if not isinstance(scope, dict) or not scope.keys() <= {"where", "ttl"}:
            raise Malformed(
                'An approval can be remembered for its chat alone; send "chat", or an object with '
                "where and ttl."
            )
        return RememberOption(_argument_names(scope), _seconds(scope))


STAGED: Final = tuple(each.name for each in fields(StagedOptions))
"""The names of the options in a body."""


NO_STAGED_OPTIONS: Final = StagedOptions()


def _staged_entry(staged: JsonValue, approval_id: str) -> JsonValue:
    # Invalid options are refused: approving changed arguments does not approve the original ones.
    if staged is not None and not isinstance(staged, dict):
        raise Malformed("What is staged for approvals must be an object with their ids as keys.")
    return None if staged is None else staged.get(approval_id)


def _argument_names(scope: Mapping[str, JsonValue]) -> tuple[str, ...]:
    names = scope.get("where")
    if names is None:
        return ()
    if isinstance(names, list) and 0 < len(names) <= _MAX_NAMES:
        texts = [name for name in names if isinstance(name, str)]
        if len(set(texts)) == len(names):
            return tuple(sorted(texts))
    raise Malformed("The arguments that must keep their values must be a list of different names.")


def _seconds(scope: Mapping[str, JsonValue]) -> float | None:
    ttl = scope.get("ttl")
    if ttl is None:
        return None
    # The upper bound is the server's; this one is for integers that no float holds.
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not 1 <= ttl <= _MAX_TTL:
        raise Malformed("The time for which an approval is remembered must be seconds from 1 on.")
    return float(ttl)


def parse_decision(approval: object, limits: RequestLimits) -> PostedDecision:
    """Parse ``{id, approved, reason?}``; raises Malformed."""
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


def with_staged_options(decision: PostedDecision, staged: StagedOptions) -> PostedDecision:
    """Return a decision with the options staged for it; raises Malformed."""
    if not decision.approved:
        return replace(decision, response=staged.response_of(decision.approval_id))
    return replace(
        decision,
        edits=staged.edits_of(decision.approval_id),
        remember=staged.remember_of(decision.approval_id),
        payload=staged.payload_of(decision.approval_id),
        digest=staged.digest_of(decision.approval_id),
    )
