"""Who may decide an approval that other people decide, and what their decisions add up to (A1).

Rule 1: a rule never changes after its request. Rule 2: a yes counts for the digest that it saw, and
an edit voids the earlier ones. Rule 3: nothing here knows roles; the caller asks for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pydantic import JsonValue

AUDITOR: Final = "auditor"
"""The role that sees every approval with a rule and decides none."""


@dataclass(frozen=True, slots=True)
class ApproverRule:
    """The people whose yes an approval needs: ``quorum`` of these users and roles.

    ``requester_may_approve``: the user of the chat counts, if entitled as others are. ``veto``: one
    no ends the approval.
    """

    users: tuple[str, ...]
    roles: tuple[str, ...]
    quorum: int = 1
    requester_may_approve: bool = True
    veto: bool = True

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ApproverRule:
        """Read what `as_json` has written."""
        return cls(
            tuple(value["users"]),
            tuple(value["roles"]),
            value["quorum"],
            value["requesterMayApprove"],
            value["veto"],
        )

    def as_json(self) -> dict[str, JsonValue]:
        """The rule as it is stored and shown."""
        return {
            "users": list(self.users),
            "roles": list(self.roles),
            "quorum": self.quorum,
            "requesterMayApprove": self.requester_may_approve,
            "veto": self.veto,
        }

    def entitles(self, user: str, roles: Collection[str], *, requester: str) -> bool:
        """Whether a user with these roles may decide an approval of ``requester``."""
        if AUDITOR in roles or (user == requester and not self.requester_may_approve):
            return False
        return user in self.users or not set(self.roles).isdisjoint(roles)

    def can_reach_quorum(self, requester: str, refusing: Collection[str] = ()) -> bool:
        """Whether enough people may say yes; any number of people may have a role."""
        if self.roles:
            return True
        able = set(self.users) - set(refusing)
        if not self.requester_may_approve:
            able.discard(requester)
        return len(able) >= self.quorum

    @property
    def subjects(self) -> list[str]:
        """The users and roles as subjects of entitlements."""
        return [*map(user_subject, self.users), *map(role_subject, self.roles)]

    @property
    def who(self) -> str:
        """The entitled people for a sentence: ``finance or bob``."""
        return " or ".join([*self.roles, *self.users])


def user_subject(user: str) -> str:
    """The subject of the entitlements of a user."""
    return f"user:{user}"


def role_subject(role: str) -> str:
    """The subject of the entitlements of a role."""
    return f"role:{role}"


@dataclass(frozen=True, slots=True)
class PersonalDecision:
    """The decision of one person on an approval with a rule; ``number`` counts from 1.

    ``digest`` is that of the arguments and the payload that it is about. ``is_edit``: it changed
    them. ``voided_by`` is the number of the later edit after which it no longer counts.
    """

    number: int
    by: str
    approved: bool
    at: float
    digest: str
    reason: str | None = None
    via: str | None = None
    is_edit: bool = False
    voided_by: int | None = None

    def as_json(self) -> dict[str, Any]:
        """The decision as it is shown; the time in seconds since the epoch."""
        shown: dict[str, Any] = {"by": self.by, "approved": self.approved, "at": self.at}
        if self.reason is not None:
            shown["reason"] = self.reason
        if self.is_edit:
            shown["edited"] = True
        if self.voided_by is not None:
            shown["voided"] = True
        return shown


@dataclass(frozen=True, slots=True)
class Decider:
    """The person who decides, with the roles of that moment."""

    user: str
    roles: frozenset[str] = frozenset()


def decision_of(decisions: Iterable[PersonalDecision], by: str) -> PersonalDecision | None:
    """The decision of a person that counts, None if there is none."""
    own = (each for each in decisions if each.by == by and each.voided_by is None)
    return next(own, None)


def approving(decisions: Iterable[PersonalDecision], digest: str) -> list[str]:
    """The people whose yes counts for a digest, each once, in the order of their decisions."""
    yes = (
        each.by
        for each in decisions
        if each.approved and each.voided_by is None and each.digest == digest
    )
    return list(dict.fromkeys(yes))


def not_entitled(rule: ApproverRule) -> str:
    """The sentence for a person who may not decide."""
    return f"Only {rule.who} may decide this; wait for the answer."


def still_missing(tool: str, rule: ApproverRule, approved_by: Collection[str]) -> str:
    """What a call of a tool still needs: ``pay still needs 1 more yes, of finance``."""
    count = max(0, rule.quorum - len(approved_by))
    return f"{tool} still needs {count} more {'yes' if count == 1 else 'yeses'}, of {rule.who}"
