"""The JSON bodies of approvals, grants and their history, as `sluicegate.server.schemas`."""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field

# typing's own cannot be inspected by pydantic before Python 3.12.
from typing_extensions import TypedDict

from sluicegate.core.approvals import ApprovalState
from sluicegate.server.schemas import Reason
from sluicegate.wire.limits import DEFAULT_LIMITS


class GrantScope(TypedDict):
    """The later calls that a decision approves."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    where: NotRequired[
        Annotated[
            list[str] | None,
            Field(
                min_length=1,
                max_length=100,
                description="Arguments that must keep their values.",
                json_schema_extra={"uniqueItems": True},
            ),
        ]
    ]
    ttl: NotRequired[
        Annotated[
            float | None,
            Field(
                ge=1,
                description="Seconds from the decision on, at most `grantTtl` of the approval.",
            ),
        ]
    ]


class DefinitionChange(TypedDict):
    """The old and the new value of what differs from the tool that a grant was given for."""

    description: NotRequired[list[str]]
    parameters: NotRequired[list[Any]]


class ApproverRule(TypedDict):
    """The people who decide an approval in place of the user of the chat."""

    users: list[str]
    roles: list[str]
    quorum: Annotated[int, Field(description="How many of them have to approve.", ge=1)]
    requesterMayApprove: Annotated[
        bool, Field(description="Whether the user of the chat counts, if named.")
    ]
    veto: Annotated[bool, Field(description="Whether one no ends the approval.")]


class PersonalDecision(TypedDict):
    """The decision of one person on an approval that several people decide."""

    by: str
    approved: bool
    at: str
    reason: NotRequired[str]
    edited: NotRequired[Annotated[bool, Field(description="It changed what would run.")]]
    voided: NotRequired[Annotated[bool, Field(description="A later edit has voided it.")]]


class UnknownOutcome(TypedDict):
    """What helps to find out what happened to a call whose outcome is unknown."""

    key: Annotated[str, Field(description="The key that the tool gave to the other system.")]
    hasLookUp: Annotated[bool, Field(description="Whether the tool can look its outcome up.")]
    isIdempotent: Annotated[bool, Field(description="Whether the call may run again.")]


class Resolved(TypedDict):
    """What a person has found out about an unknown outcome."""

    outcome: Literal["executed", "failed"]
    reason: str


class Resolution(TypedDict):
    """What became of a call whose outcome is unknown, by a person who has checked."""

    outcome: Annotated[
        Literal["executed", "failed", "run-again"],
        Field(description="`run-again` only where the tool is declared idempotent."),
    ]
    reason: Annotated[
        str,
        Field(
            max_length=DEFAULT_LIMITS.reason,
            # What `str.strip` leaves is not blank.
            json_schema_extra={"pattern": r"[^\s\x1c-\x1f]"},
        ),
    ]


class EarlierPreview(TypedDict):
    """The preview of an earlier request of the same call, which had changed since its approval."""

    kind: Literal["text", "table", "diff", "image", "failed"]
    approvalId: str
    text: NotRequired[str]
    columns: NotRequired[list[str]]
    rows: NotRequired[list[list[Any]]]
    before: NotRequired[str]
    after: NotRequired[str]
    mediaType: NotRequired[str]
    sha256: NotRequired[str]
    file: NotRequired[str]
    reason: NotRequired[str]
    version: NotRequired[str]


class Preview(TypedDict):
    """What the call would do, as its tool says; without one that is shown nothing is approved."""

    kind: Literal["text", "table", "diff", "image", "failed"]
    text: NotRequired[str]
    columns: NotRequired[list[str]]
    rows: NotRequired[list[list[Any]]]
    before: NotRequired[str]
    after: NotRequired[str]
    mediaType: NotRequired[
        Annotated[str, Field(description="Of the picture, which `/previews/{id}` has.")]
    ]
    sha256: NotRequired[str]
    file: NotRequired[str]
    reason: NotRequired[Annotated[str, Field(description="Why it has failed.")]]
    version: NotRequired[str]
    editedBy: NotRequired[Annotated[str, Field(description="Who has changed the arguments.")]]
    previous: NotRequired[EarlierPreview]


class Approval(TypedDict):
    """An approval request and its decision, if there is one."""

    approvalId: str
    chatId: str
    title: NotRequired[Annotated[str, Field(description="The title of the tool.")]]
    toolMetadata: NotRequired[
        Annotated[dict[str, Any], Field(description="What the author of the tool declares.")]
    ]
    unknown: NotRequired[UnknownOutcome]
    resolution: NotRequired[Resolved]
    defaults: NotRequired[
        Annotated[
            dict[str, Any], Field(description="What the tool uses for the arguments left out.")
        ]
    ]
    tool: str
    agent: Annotated[str, Field(description="Names from the root agent to the caller: `a/b`.")]
    state: ApprovalState
    requestedAt: str
    expiresAt: str
    arguments: NotRequired[dict[str, Any]]
    editable: NotRequired[bool]
    rememberable: NotRequired[bool]
    grantTtl: NotRequired[Annotated[float, Field(description="Seconds for `remember`, at most.")]]
    changed: NotRequired[DefinitionChange]
    hint: NotRequired[str]
    schema: NotRequired[dict[str, Any]]
    approved: NotRequired[bool]
    reason: NotRequired[str]
    edits: NotRequired[dict[str, Any]]
    payload: NotRequired[
        Annotated[Any, Field(description="What the tool asks the approver to check or to fill in.")]
    ]
    payloadSchema: NotRequired[
        Annotated[
            dict[str, Any],
            Field(description="The schema of the answer, where the payload is a form."),
        ]
    ]
    editedPayload: NotRequired[
        Annotated[Any, Field(description="What was approved in place of the payload.")]
    ]
    remember: NotRequired[GrantScope]
    decidedBy: NotRequired[str]
    decidedAt: NotRequired[str]
    responseSchema: NotRequired[
        Annotated[
            dict[str, Any],
            Field(description="The schema of an answer in place of the tool, if one is accepted."),
        ]
    ]
    response: NotRequired[
        Annotated[Any, Field(description="What a person answered in place of the tool.")]
    ]
    approvers: NotRequired[ApproverRule]
    requester: NotRequired[Annotated[str, Field(description="The user of the chat.")]]
    digest: NotRequired[
        Annotated[
            str,
            Field(description="Of the arguments, the payload and the preview of what would run."),
        ]
    ]
    preview: NotRequired[Preview]
    decisions: NotRequired[list[PersonalDecision]]
    missing: NotRequired[Annotated[int, Field(description="People whose yes is missing.", ge=0)]]
    mayDecide: NotRequired[
        Annotated[bool, Field(description="Whether the user who asks may decide it now.")]
    ]


class ApprovalPage(TypedDict):
    """One page of a list of approvals."""

    approvals: list[Approval]
    next: str | None


class Approve(TypedDict):
    """A yes."""

    approved: Literal[True]
    reason: NotRequired[Reason | None]
    edits: NotRequired[
        Annotated[
            dict[str, Any] | None,
            Field(
                description="Arguments to run with in place of the first, by the schema of the "
                "tool; whole numbers are from -(2^53 - 1) to 2^53 - 1."
            ),
        ]
    ]
    payload: NotRequired[
        Annotated[
            Any, Field(description="The payload for the tool, in the shape of the requested one.")
        ]
    ]
    remember: NotRequired[
        Annotated[
            Literal["chat"] | GrantScope | None,
            Field(description="Approve later calls too; `chat` is any arguments."),
        ]
    ]
    digest: NotRequired[
        Annotated[
            str | None,
            Field(description="The `digest` that the approver saw; required after an edit."),
        ]
    ]


class Deny(TypedDict):
    """A no; what an approval may have besides is ignored."""

    approved: Literal[False]
    reason: NotRequired[Reason | None]
    response: NotRequired[
        Annotated[
            Any,
            Field(description="An answer in place of the tool, which fits its `responseSchema`."),
        ]
    ]


Decision = Approve | Deny
"""A decision on an approval request."""


class HistoryEntry(TypedDict):
    """A line of the audit trail."""

    id: Annotated[int, Field(description="The number of the line.")]
    at: str
    requester: Annotated[str, Field(description="The user of the chat.")]
    chatId: str
    tool: str
    action: Annotated[
        str, Field(description="The state that the call has got, or `granted` or `revoked`.")
    ]
    approvalId: NotRequired[str]
    by: NotRequired[Annotated[str, Field(description="The person who decided.")]]
    via: NotRequired[str]
    reason: NotRequired[str]
    argumentsHash: NotRequired[str]


class HistoryPage(TypedDict):
    """One page of the history."""

    entries: list[HistoryEntry]
    next: str | None


class AuditVerification(TypedDict):
    """Whether every line of the audit trail is as it was written."""

    state: Literal["intact", "broken"]
    checkedAt: str
    detail: NotRequired[Annotated[str, Field(description="The first line that is not.")]]


class HistoryExport(TypedDict):
    """The whole history, with the verification of the trail."""

    verification: AuditVerification
    entries: list[HistoryEntry]


class Grant(TypedDict):
    """Calls of a tool that an earlier decision in the chat approves."""

    id: str
    tool: str
    agent: str
    where: Annotated[dict[str, Any], Field(description="Arguments that must have these values.")]
    approvalId: str
    grantedAt: str
    expiresAt: str


class Grants(TypedDict):
    """The grants of a chat."""

    grants: list[Grant]
