"""The states of an approval as a table, and the ledger's row with its decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from sluicegate.core.approval_previews import DRIFTED
from sluicegate.core.approvers import approving
from sluicegate.core.json_values import hash_arguments, is_same

if TYPE_CHECKING:
    from collections.abc import Collection

    from pydantic import JsonValue

    from sluicegate.core.approvers import ApproverRule, PersonalDecision
    from sluicegate.core.call_keys import CallKey
    from sluicegate.core.tool_definition_changes import ToolDefinition

ApprovalState = Literal[
    "requested",
    "approved",
    "denied",
    "expired",
    "superseded",
    "refused",
    "executing",
    "executed",
    "failed",
    "unknown",
    "asked_again",
]

AtExpiry = Literal["deny", "expire"]
"""What the model reads when a request expires: that it was denied, or that it expired."""

TRANSITIONS: dict[ApprovalState, frozenset[ApprovalState]] = {
    "requested": frozenset({"approved", "denied", "expired", "superseded"}),
    "approved": frozenset({"executing", "expired", "superseded", "refused"}),
    "executing": frozenset({"executed", "failed", "unknown", "asked_again"}),
    "unknown": frozenset({"executing", "executed", "failed"}),
    "asked_again": frozenset({"executing", "superseded", "refused"}),
    "denied": frozenset(),
    "expired": frozenset(),
    "superseded": frozenset(),
    "refused": frozenset(),
    "executed": frozenset(),
    "failed": frozenset(),
}
"""Which state may follow which; any other transition is refused."""

EFFECTFUL: frozenset[ApprovalState] = frozenset({"executing", "executed", "failed", "unknown"})
"""States in which the effect happened or may have happened; such a call is never forgotten."""


RESOLVED: Final = "resolved_by_person"
"""The key in a stored outcome that a person has given, with what was said."""


def sources(target: ApprovalState) -> tuple[ApprovalState, ...]:
    """The states from which ``target`` may be reached, for a compare-and-set."""
    return tuple(state for state, targets in TRANSITIONS.items() if target in targets)


@dataclass(frozen=True, slots=True)
class GrantScope:
    """The later calls that a decision approves: those of the next ``ttl`` seconds.

    ``where`` are the names of the arguments that must have the same values; without names, any
    arguments are approved.
    """

    ttl: float
    where: tuple[str, ...] = ()

    def as_json(self) -> dict[str, JsonValue]:
        """The scope as it is stored and shown."""
        return {"ttl": self.ttl} | ({"where": list(self.where)} if self.where else {})


@dataclass(frozen=True, slots=True)
class ApprovalRow:
    """One approval request in the ledger (A1). Times are epoch seconds, by the database clock.

    ``answer`` is the decision, also when it came too late; ``owner`` names the process and turn
    that claimed the call; ``outcome`` is the result for the model, once known, and ``actions`` what
    the call did beside it.
    ``arguments`` are the requested ones, ``edits`` those that were approved in their place;
    ``payload`` is that of the confirmation, ``edited_payload`` what was approved in its place.
    ``grant_id`` is the grant that approved this call (A8). ``via`` is the transport that brought
    the decision (A10). ``agent`` is the path of the agent that calls; ``definition_hash`` is the
    digest of the tool's definition when the approval was requested, and ``changed`` what differs
    from the definition of an earlier grant. ``remember`` is the scope of the grant that the
    decision asks for.
    ``approvers`` is the rule of an approval that other people decide, with their ``decisions``;
    ``edits_hash`` is the digest of what was edited, and ``response`` what one of them answered in
    place of the tool. ``remind_at`` is a time, ``at_expiry`` what an expiry means, if declared.
    ``preview`` is what the card shows of what the call would do (`core.approval_previews`), with
    its digest.
    """

    key: CallKey
    approval_id: str
    tool: str
    args_hash: str
    requested_at: float
    deadline: float
    state: ApprovalState = "requested"
    answer: bool | None = None
    reason: str | None = None
    decided_by: str | None = None
    decided_at: float | None = None
    owner: str | None = None
    claimed_at: float | None = None
    outcome: JsonValue = None
    finished_at: float | None = None
    actions: JsonValue = None
    arguments: JsonValue = None
    edits: JsonValue = None
    hint: str | None = None
    grant_id: str | None = None
    via: str | None = None
    agent: str | None = None
    definition_hash: str | None = None
    changed: JsonValue = None
    remember: GrantScope | None = None
    payload: JsonValue = None
    edited_payload: JsonValue = None
    edits_hash: str | None = None
    approvers: ApproverRule | None = None
    decisions: tuple[PersonalDecision, ...] = ()
    response: JsonValue = None
    remind_at: float | None = None
    at_expiry: AtExpiry | None = None
    preview: dict[str, Any] | None = None
    preview_hash: str | None = None

    @property
    def digest(self) -> str:
        """The digest of what would run: of the last edit, else of what was requested.

        It covers the preview, if there is one.
        """
        arguments = self.args_hash if self.edits_hash is None else self.edits_hash
        if self.preview_hash is None:
            return arguments
        return hash_arguments([arguments, self.preview_hash])

    @property
    def has_drifted(self) -> bool:
        """Whether its run was refused because its preview had changed since the approval."""
        return (
            self.state == "refused" and isinstance(self.outcome, dict) and DRIFTED in self.outcome
        )

    def is_seen(self, digest: str | None) -> bool:
        """Whether a yes is about what would run; one without a digest, if nothing was edited."""
        return self.edits_hash is None if digest is None else digest == self.digest

    @property
    def approved_by(self) -> list[str]:
        """The people whose yes counts for what would run."""
        return approving(self.decisions, self.digest)

    @property
    def approved_payload(self) -> JsonValue:
        """The payload that the tool gets, None without one."""
        return self.payload if self.edited_payload is None else self.edited_payload

    @property
    def is_denied(self) -> bool:
        """Whether a person has denied it, or its expiry counts as that (A6)."""
        return self.state == "denied" or (
            self.state == "expired" and self.answer is None and self.at_expiry == "deny"
        )

    @property
    def is_expiry_unreported(self) -> bool:
        """Whether the request has expired undecided and the agent does not know it (A5).

        The first decision is still recorded: it is what the message shows.
        """
        return self.state == "expired" and self.answer is None and self.finished_at is None

    @property
    def is_automatic(self) -> bool:
        """Whether a grant approved the call (A8)."""
        return self.grant_id is not None

    @property
    def resolution(self) -> Mapping[str, JsonValue] | None:
        """What a person has said of an unknown outcome: ``{outcome, reason}`` (A5).

        The row then has no owner; a row whose tool returned the same value has one.
        """
        is_resolved = self.owner is None and self.state in ("executed", "failed")
        said = self.outcome.get(RESOLVED) if isinstance(self.outcome, dict) else None
        return said if is_resolved and isinstance(said, dict) else None


@dataclass(frozen=True, slots=True)
class NewApproval:
    """An approval request to record; ``ttl`` in seconds counts from the database's now.

    ``agent`` is the path of the agent that calls. ``definition`` is that of the tool, if it is
    known, and ``changed`` what differs from the definition of an earlier grant. ``payload`` is that
    of the confirmation, None without one. ``approvers`` is the rule if other people decide;
    ``remind_after`` are seconds.
    """

    key: CallKey
    approval_id: str
    tool: str
    args_hash: str
    ttl: float
    arguments: JsonValue = None
    hint: str | None = None
    agent: str = ""
    definition: ToolDefinition | None = None
    changed: JsonValue = None
    payload: JsonValue = None
    approvers: ApproverRule | None = None
    remind_after: float | None = None
    at_expiry: AtExpiry | None = None
    preview: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """A person's decision on one approval request.

    ``edits`` are the arguments to run with in place of the requested ones, ``payload`` is what the
    tool gets in place of the requested payload; ``remember`` is the scope in which later calls are
    approved too, None for this call alone (A8). ``digest`` is that of what the person saw, if the
    decision states it; ``response`` is an answer in place of the tool, which denies the call.
    """

    request: NewApproval
    approved: bool
    reason: str | None
    edits: JsonValue = None
    payload: JsonValue = None
    remember: GrantScope | None = None
    digest: str | None = None
    response: JsonValue = None

    @property
    def is_edit(self) -> bool:
        """Whether it approves something else than what was shown."""
        return self.edits is not None or self.payload is not None

    def equals(self, row: ApprovalRow) -> bool:
        """Whether the row holds the same decision: approving anything else is another one."""
        is_approved_alike = row.answer is self.approved and row.remember == self.remember
        # The edits of a call with a preview are stored before the decision on them.
        is_shown = row.preview is not None and self.edits is None
        is_edited_alike = is_shown or is_same(row.edits, self.edits)
        is_unchanged = is_edited_alike and is_same(row.response, self.response)
        return is_approved_alike and is_unchanged and is_same(row.edited_payload, self.payload)


@dataclass(frozen=True, slots=True)
class Resolver:
    """The person who resolves an outcome, the transport, and why: as the audit trail names them."""

    user: str
    via: str
    reason: str


@dataclass(frozen=True, slots=True)
class ClaimBasis:
    """What was found immediately before a claim, which its transaction compares with the row.

    ``entitled`` are the people whose yes counts now, for a call that other people decide.
    ``preview`` is the digest of its preview as it is now. ``resolver`` is the person who wants a
    call with an unknown outcome to run again.
    """

    entitled: Collection[str] | None = None
    preview: str | None = None
    resolver: Resolver | None = None


NO_BASIS: Final = ClaimBasis()
"""The basis of the claim of a call that the user of the chat has approved."""


@dataclass(frozen=True, slots=True)
class Grant:
    """An approval of later calls of one tool of one agent in a chat (A8).

    ``agent`` is the path of the agent. A call is approved if the tool has the same definition and
    each argument in ``where`` has that value. Times are seconds since the epoch.
    """

    tool: str
    agent: str
    definition: ToolDefinition
    where: Mapping[str, JsonValue]
    approval_id: str
    granted_by: str
    granted_at: float
    expires_at: float

    @property
    def id(self) -> str:
        """The id of the grant; one with the same agent, definition and values has the same."""
        scope: list[JsonValue] = [self.agent, self.definition.digest, dict(self.where)]
        return f"grant-{hash_arguments(scope)[:24]}"

    def covers(self, call: NewApproval) -> bool:
        """Whether the grant approves a call of its tool."""
        if call.definition is None or call.definition.digest != self.definition.digest:
            return False
        arguments = call.arguments if isinstance(call.arguments, dict) else {}
        return all(
            name in arguments and is_same(arguments[name], value)
            for name, value in self.where.items()
        )


def is_closed(row: ApprovalRow) -> bool:
    """Whether the state of a row is final."""
    return not TRANSITIONS[row.state]


def is_effectful(row: ApprovalRow, invocations: Collection[str | None]) -> bool:
    """Whether a call of these invocations has run or may have run, so that it is not forgotten."""
    return row.key.invocation in invocations and row.state in EFFECTFUL


Rows = Mapping[str, ApprovalRow]
"""Ledger rows by approval id."""
