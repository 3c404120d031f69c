"""The previews of the calls of a turn: shown before the request, and compared before the claim."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from sluicegate.core.approval_previews import (
    RENEWALS,
    contents_of,
    difference,
    digest_of,
    is_failed,
)
from sluicegate.tools.approval_terms import GatedCall, terms_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pydantic import JsonValue

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.core.call_keys import CallKey
    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.core.exactly_shown_arguments import ShownArguments
    from sluicegate.engine.guard.claims import ToolCall
    from sluicegate.engine.guard.compute_previews import Previews

_DRIFTED: Final = (
    "what it would do is not what was approved any more: {}. Call it again; the user is asked anew."
)
_NOT_COMPARED: Final = (
    "whether it would still do what was approved could not be determined. Call it again; the user "
    "is asked anew."
)
_NOT_SHOWN: Final = (
    "what it would do was not shown to the user. Call it again; the user is asked anew."
)
_TOO_OFTEN: Final = (
    "Not run: what it would do has changed each time before it was to run. Do not call it again; "
    "tell the user."
)


@dataclass(slots=True)
class CallPreviews:
    """Previews of gated calls of one chat; ``previews`` computes them.

    ``shown`` are the previews of the calls whose approval is requested, by name. ``drifted`` are
    the rows of calls that did not run since their preview had changed, ``digests`` those of the
    previews as they were immediately before a claim.
    """

    chat: ChatKey
    previews: Previews | None
    report: Callable[[BaseException], str]
    shown: dict[str, dict[str, Any]] = field(default_factory=dict)
    drifted: dict[CallKey, ApprovalRow] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)

    async def request(
        self, call: ToolCall, shown: ShownArguments | None, rows: Iterable[ApprovalRow]
    ) -> str | None:
        """Compute the preview of a call for its card; returns why it is not requested, else None.

        ``rows`` are those of the agent in the exchange. The model may ask anew by itself for a
        call whose preview has changed, `RENEWALS` times; the card then has the earlier preview too.
        """
        preview_of = terms_of(call.tool).preview
        if preview_of is None or shown is None or self.previews is None:
            return None
        arguments = shown.arguments
        same = [
            row
            for row in rows
            if row.has_drifted and row.tool == call.tool.name and row.arguments == arguments
        ]
        if len(same) > RENEWALS:
            return _TOO_OFTEN
        gated = self._gated_call(call, arguments)
        preview = await self.previews.of_request(preview_of, gated, self.report)
        last = max(same, key=lambda row: row.requested_at, default=None)
        if last is not None and last.preview is not None:
            previous = contents_of(last.preview) | {"approvalId": last.approval_id}
            preview = {**preview, "previous": previous}
        self.shown[call.name] = preview
        return None

    async def drift(
        self, call: ToolCall, row: ApprovalRow, shown: ShownArguments | None
    ) -> str | None:
        """Return why a call would not do what was approved; None if it still would."""
        preview_of = terms_of(call.tool).preview
        if preview_of is None and row.preview is None:
            return None
        if preview_of is None or row.preview is None or shown is None or self.previews is None:
            # The tool has got its preview since, or has lost it.
            return _NOT_SHOWN
        gated = self._gated_call(call, shown.arguments if row.edits is None else row.edits)
        now = await self.previews.of_claim(preview_of, gated, self.report)
        if is_failed(now):
            return _NOT_COMPARED
        digest = self.digests[call.name] = digest_of(now)
        return None if digest == row.preview_hash else _DRIFTED.format(difference(row.preview, now))

    def _gated_call(self, call: ToolCall, arguments: JsonValue) -> GatedCall:
        """The call as its preview gets it, the same before the request and before the claim."""
        copied = copy.deepcopy(arguments) if isinstance(arguments, dict) else {}
        return GatedCall(*self.chat, tool=call.tool.name, arguments=copied, approval=None)
