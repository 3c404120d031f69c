"""Who may approve the calls of a tool: users, roles, or a function of the call."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from sluicegate.errors import ConfigurationError

if TYPE_CHECKING:
    from sluicegate.tools.approval_terms import GatedCall

_ROLE: Final = re.compile(r"[A-Za-z0-9._:@+=|/-]{1,128}")
_MAX: Final = 100
"""Users and roles of one rule."""


@dataclass(frozen=True, slots=True)
class Role:
    """All users who have a role: ``Role("finance")``.

    Raises:
        ConfigurationError: The name is not 1 to 128 of letters, digits and ``._:@+=|/-``.
    """

    name: str

    def __post_init__(self) -> None:
        if not is_role(self.name):
            raise ConfigurationError(
                f"The role {self.name!r} cannot be used; name it by 1 to 128 letters, digits and "
                "._:@+=|/-."
            )


def is_role(name: object) -> bool:
    """Whether a role may have this name."""
    return isinstance(name, str) and _ROLE.fullmatch(name) is not None


@dataclass(frozen=True, slots=True, init=False)
class Approvers:
    """The people who may approve a call, and how many of them have to.

    ``Approvers("ada", Role("finance"), quorum=2)``. What is left out is as `gated` declares it.

    Raises:
        ConfigurationError: No person is named, or the quorum is not a whole number from 1 on.
    """

    people: tuple[str | Role, ...]
    quorum: int | None
    requester_may_approve: bool | None
    veto: bool | None

    def __init__(
        self,
        *people: str | Role,
        quorum: int | None = None,
        requester_may_approve: bool | None = None,
        veto: bool | None = None,
    ) -> None:
        if not 0 < len(people) <= _MAX or not all(map(_is_person, people)):
            raise ConfigurationError(
                f"Approvers are 1 to {_MAX} user ids and Role(...)s; name who may approve."
            )
        check_quorum(quorum)
        for name, value in (
            ("people", people),
            ("quorum", quorum),
            ("requester_may_approve", requester_may_approve),
            ("veto", veto),
        ):
            object.__setattr__(self, name, value)


People: TypeAlias = "str | Role | Approvers | Iterable[str | Role]"
"""User ids and roles, in any of their forms."""

ApproversOf: TypeAlias = "Callable[[GatedCall], People | Awaitable[People | None] | None]"
"""Returns who may approve a call; None for the user of the chat."""


def as_approvers(people: Any) -> Approvers:
    """Return people in one form.

    Raises:
        ConfigurationError: They are none of `People`.
    """
    if isinstance(people, Approvers):
        return people
    if isinstance(people, str | Role):
        return Approvers(people)
    if isinstance(people, Iterable):
        return Approvers(*people)
    raise ConfigurationError("Approvers are user ids, Role(...)s, or a function of the call.")


def check_quorum(quorum: object) -> None:
    """Raise ConfigurationError unless a quorum is None or a whole number from 1 on."""
    is_whole = isinstance(quorum, int) and not isinstance(quorum, bool) and quorum >= 1
    if quorum is not None and not is_whole:
        raise ConfigurationError("The quorum of a gated tool must be a whole number from 1 on.")


def _is_person(person: object) -> bool:
    return isinstance(person, Role) or (isinstance(person, str) and bool(person))
