"""The terms under which the calls of a tool may be approved, and the policy that judges a call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypedDict

from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter

from sluicegate.core.bounded_schema_structure import read_structure, unusable_pattern
from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.errors import ConfigurationError
from sluicegate.tools.approvers import Role, as_approvers, check_quorum
from sluicegate.tools.spoken_approval_phrases import LONGEST, SHORTEST, is_usable

if TYPE_CHECKING:
    from google.adk.tools.base_tool import BaseTool

    from sluicegate.core.approvals import AtExpiry
    from sluicegate.tools.approvers import ApproversOf, People
    from sluicegate.tools.current_approval import Approval
    from sluicegate.tools.preview_content import PreviewOf


@dataclass(frozen=True, slots=True)
class GatedCall:
    """A call that a policy judges.

    ``arguments`` are those it would run with. ``approval`` is None before the approval is
    requested.
    """

    app: str
    user: str
    chat: str
    tool: str
    arguments: Mapping[str, Any]
    approval: Approval | None

    @property
    def chat_key(self) -> ChatKey:
        """The key of the chat in the stores."""
        return ChatKey(self.app, self.user, self.chat)


Policy: TypeAlias = Callable[[GatedCall, str], Awaitable[bool | str]]
"""Whether a call may run for a user: True, or False, or one public sentence with the reason.

It is called with the chat's user before the approval is requested, and with the approver
immediately before the call runs. Any other value refuses the call, and so does an exception.
"""

OutcomeLookup: TypeAlias = Callable[[str], Awaitable[Any] | Any]
"""Returns the outcome of a call by its idempotency key; None if none is known."""

TERMS_KEY: Final = "sluicegate"
"""The key of a tool's ``custom_metadata`` that holds its `ApprovalTerms`."""


@dataclass(frozen=True, slots=True)
class ApprovalTerms:
    """How the approvals of a tool, and calls that a crash interrupted, may be treated.

    ``expires`` is the seconds an approval stays open, None for the setting ``approval_ttl``.
    ``rememberable`` None: approvals may become grants if the tool runs in this process, or if the
    setting ``rememberable_tools`` names it. ``by_voice`` is the phrase that approves a call when it
    is spoken in a live chat, None for none.
    ``approvers`` are those who decide in place of the user of the chat, ``quorum`` of them.
    ``requester_may_approve``: that user counts if named. ``veto``: one denial ends it.
    ``remind_after`` are the seconds until they are reminded, ``then`` is what an expiry means.
    ``respond`` is the JSON schema of an answer in place of the tool, None if none is accepted.
    ``preview`` returns what a call would do, which its card shows and its approval covers.
    """

    editable: bool = True
    rememberable: bool | None = None
    idempotent: bool = False
    find: OutcomeLookup | None = None
    expires: float | None = None
    by_voice: str | None = None
    approvers: People | ApproversOf | None = None
    quorum: int = 1
    requester_may_approve: bool = True
    veto: bool = True
    remind_after: float | None = None
    then: AtExpiry = "expire"
    respond: Any = None
    preview: PreviewOf | None = None


DEFAULT_TERMS: Final = ApprovalTerms()
"""The terms of a tool that declares none."""


class ApprovalTermOptions(TypedDict, total=False):
    """The fields of `ApprovalTerms` as keywords."""

    editable: bool
    rememberable: bool | None
    idempotent: bool
    find: OutcomeLookup | None
    expires: float | None
    by_voice: str | None
    approvers: People | ApproversOf | None
    quorum: int
    requester_may_approve: bool
    veto: bool
    remind_after: float | None
    then: AtExpiry
    respond: Any
    preview: PreviewOf | None


def terms_of(tool: BaseTool) -> ApprovalTerms:
    """Return the terms that `gated` or ``custom_metadata`` declares for a tool.

    Tools of a toolset can set ``editable`` and ``rememberable`` in their ``custom_metadata``.
    """
    metadata = tool.custom_metadata or {}
    terms = metadata.get(TERMS_KEY)
    if isinstance(terms, ApprovalTerms):
        return terms
    editable = metadata.get("editable", True) is not False
    declared = metadata.get("rememberable")
    rememberable = declared if isinstance(declared, bool) else None
    is_default = editable and rememberable is None
    return DEFAULT_TERMS if is_default else ApprovalTerms(editable, rememberable)


def checked_terms(terms: ApprovalTerms) -> ApprovalTerms:
    """Return terms as they are used; raises ConfigurationError where they contradict each other."""
    if terms.find is not None and not callable(terms.find):
        raise ConfigurationError("The look-up find of a gated tool must be a function of its key.")
    if terms.expires is not None and not (isfinite(terms.expires) and terms.expires > 0):
        raise ConfigurationError("The time expires of a gated tool must be seconds above 0.")
    if terms.by_voice is not None and not is_usable(terms.by_voice):
        raise ConfigurationError(
            f"The phrase by_voice of a gated tool must have {SHORTEST} letters or more, "
            f"{LONGEST} characters at most, and no digits."
        )
    if terms.remind_after is not None and not (
        isfinite(terms.remind_after) and terms.remind_after > 0
    ):
        raise ConfigurationError("The time remind_after of a gated tool must be seconds above 0.")
    if terms.then not in ("deny", "expire"):
        raise ConfigurationError('The option then of a gated tool must be "deny" or "expire".')
    if terms.respond is not None:
        terms = replace(terms, respond=_response_schema(terms.respond))
    return _checked_approvers(_checked_preview(terms))


def _response_schema(declared: Any) -> Mapping[str, Any]:
    try:
        schema = declared if isinstance(declared, Mapping) else TypeAdapter(declared).json_schema()
        why = unusable_pattern(schema)
        read_structure(schema)
    except (PydanticUserError, PydanticSchemaGenerationError, TypeError, ValueError) as error:
        raise ConfigurationError(
            "The option respond of a gated tool must be a JSON schema, a pydantic model or a type."
        ) from error
    if why is not None:
        raise ConfigurationError(f"The schema respond of a gated tool cannot be used: {why}.")
    return schema


def _checked_preview(terms: ApprovalTerms) -> ApprovalTerms:
    if terms.preview is None:
        return terms
    if not callable(terms.preview):
        raise ConfigurationError("The preview of a gated tool must be a function of the call.")
    if terms.rememberable or terms.by_voice is not None:
        # What a grant or a phrase would approve is not shown.
        raise ConfigurationError(
            "A tool with a preview cannot be rememberable, and no phrase approves it by voice."
        )
    return replace(terms, rememberable=False)


def _checked_approvers(terms: ApprovalTerms) -> ApprovalTerms:
    check_quorum(terms.quorum)
    if terms.approvers is None:
        if terms.quorum > 1 or not terms.requester_may_approve or not terms.veto:
            raise ConfigurationError("A gated tool with a quorum needs approvers; name them.")
        return terms
    if terms.rememberable or terms.by_voice is not None:
        # A grant would get around the quorum, and a voice is not a second person.
        raise ConfigurationError(
            "A tool with approvers cannot be rememberable, and no phrase approves it by voice."
        )
    if callable(terms.approvers):
        return replace(terms, rememberable=False)
    named = as_approvers(terms.approvers)
    quorum = named.quorum or terms.quorum
    if quorum > len(set(named.people)) and not any(isinstance(p, Role) for p in named.people):
        raise ConfigurationError(
            f"A quorum of {quorum} cannot be reached by {len(set(named.people))} approvers; "
            "name more, or a role."
        )
    return replace(terms, approvers=named, rememberable=False)
