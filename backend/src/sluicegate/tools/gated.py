"""Tools that require approval: their terms, the policy, and the approval a tool runs under (A9)."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypedDict, Unpack
from weakref import WeakKeyDictionary

from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter

from sluicegate.adk_private import (
    confirmation_setting,
    keeps_confirmation_setting,
    set_confirmation,
)
from sluicegate.core.chat_keys import ChatKey
from sluicegate.core.schema_structure import read_structure, unusable_pattern
from sluicegate.errors import ConfigurationError
from sluicegate.tools.approvers import Role, as_approvers, check_quorum
from sluicegate.tools.client_tools import ClientTool
from sluicegate.tools.spoken_phrases import LONGEST, SHORTEST, is_usable

if TYPE_CHECKING:
    from google.adk.tools.tool_context import ToolContext

    from sluicegate.core.approvals import AtExpiry
    from sluicegate.tools.approvers import ApproversOf, People
    from sluicegate.tools.previews import PreviewOf


@dataclass(frozen=True, slots=True)
class Approval:
    """The approval under which a tool runs.

    ``key`` is the call's idempotency key: 64 hexadecimal digits, the same each time this call
    runs, another for every other call of any chat. ``decided_at`` is seconds since the epoch.
    ``is_edited``: the approver changed the arguments. ``is_automatic``: a grant approved the call.
    ``is_repeated``: the call may have taken effect before a crash. ``approved_by`` are all who have
    approved it, where others than the user of the chat do. ``preview`` is the version of the
    approved preview: the one that its function returned, else its digest; None without one.
    """

    key: str
    decided_by: str
    decided_at: float
    reason: str | None = None
    is_edited: bool = False
    is_automatic: bool = False
    is_repeated: bool = False
    approved_by: tuple[str, ...] = ()
    preview: str | None = None


_APPROVALS: Final[WeakKeyDictionary[object, Approval]] = WeakKeyDictionary()


def approval_of(tool_context: ToolContext) -> Approval | None:
    """Return the approval under which a tool runs; None for a call that required none."""
    return _APPROVALS.get(tool_context)


def set_approval(tool_context: ToolContext, approval: Approval) -> None:
    """Set the approval under which a tool is about to run."""
    _APPROVALS[tool_context] = approval


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
    ``rememberable`` None: the approvals of tools of this process are, those of tools of MCP servers
    and workers are not, unless the setting ``rememberable_tools`` names them. ``by_voice`` is the
    phrase that approves a call when it is spoken in a live chat, None for none.
    ``approvers`` are those who decide in place of the user of the chat, ``quorum`` of them.
    ``requester_may_approve``: that user counts if named. ``veto``: one no ends it.
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


DEFAULT_TERMS: Final = ApprovalTerms()
"""The terms of a tool that declares none."""


def gated(
    tool: BaseTool | Callable[..., Any],
    *,
    require_confirmation: bool | Callable[..., bool] = True,
    **terms: Unpack[ApprovalTermOptions],
) -> BaseTool:
    """Make a tool that requires approval, and declare the terms of its approvals.

    A tool is copied and stays unchanged; a function becomes a function tool. A tool that decides
    by itself when it requires approval continues to do so.

    Args:
        tool: A tool, or a function as ADK accepts it.
        require_confirmation: As in ADK: always, or a function of the arguments. False leaves it to
            the tool, which requests approval in its own code.
        **terms: ``editable``: the approver may change the arguments (A7). ``rememberable``: the
            approver may grant later calls in the chat (A8). ``idempotent``: the tool may run again
            with the same key after a crash. ``find``: looks up the outcome of a call by its key
            (A9). ``expires``: seconds an approval stays open (A5). ``by_voice``: the phrase that
            approves a call when it is spoken in a live chat. ``approvers``: the user ids and
            `Role`s that decide in place of the user of the chat, or a function of the `GatedCall`
            that returns them (also async), or None for that user. ``quorum``: how many of them have
            to approve. ``requester_may_approve``: the user of the chat counts, if named. ``veto``:
            one no ends it. ``remind_after``: seconds until a reminder. ``then``: ``"deny"`` tells
            the model that an expired request was denied. ``respond``: a JSON schema, a pydantic
            model or a type: the approver may answer in place of the tool, with a value of it.
            ``preview``: a function of the `GatedCall`, also async, that returns what the call would
            do without doing it: a text, the rows of a table, a `Diff`, an `Image`, or a `Preview`
            of one of them with its version. It runs before the approval is requested and again
            before the claim; if it returns something else then, the call does not run.

    Raises:
        ConfigurationError: The tool runs in the browser, or the terms are not valid.
    """
    checked = _checked(ApprovalTerms(**terms))
    if isinstance(tool, ClientTool):
        raise ConfigurationError(
            f"The tool {tool.name!r} runs in the browser; "
            "declare its approval with client_tool(..., require_confirmation=True)."
        )
    if isinstance(tool, BaseTool):
        result = copy.copy(tool)
        if require_confirmation:
            _require_confirmation(result, when=require_confirmation)
    else:
        result = FunctionTool(tool, require_confirmation=require_confirmation)
    result.custom_metadata = {**(result.custom_metadata or {}), TERMS_KEY: checked}
    return result


def asking_first(tool: BaseTool) -> BaseTool:
    """Return a copy of a tool that requires approval, unless its author has set the condition."""
    result = copy.copy(tool)
    _require_confirmation(result, when=True)
    return result


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


def _checked(terms: ApprovalTerms) -> ApprovalTerms:
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
        # What a grant or a phrase would approve is shown to nobody.
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


def _require_confirmation(tool: BaseTool, *, when: bool | Callable[..., bool]) -> None:
    """Make ADK request confirmation for a tool, unless its author has set the condition already."""
    if keeps_confirmation_setting(tool):
        set_confirmation(tool, when=confirmation_setting(tool) or when)
        return
    if type(tool).check_require_confirmation is not BaseTool.check_require_confirmation:
        return

    async def check(args: dict[str, Any], tool_context: ToolContext) -> bool:
        required: Any = when(**args) if callable(when) else when
        # ADK: it runs the call without confirmation for every value other than True.
        return bool(await required if inspect.isawaitable(required) else required)

    vars(tool)["check_require_confirmation"] = check
    set_confirmation(tool, when=when)
