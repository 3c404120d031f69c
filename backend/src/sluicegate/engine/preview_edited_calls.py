"""Edits of calls with a preview: the card shows what they would do before a yes counts (A7)."""

from __future__ import annotations

import copy
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from sluicegate.core.approval_previews import is_failed
from sluicegate.core.json_values import is_same
from sluicegate.engine.describe_exceptions import describe
from sluicegate.errors import Changed, NoPreview, new_error_id
from sluicegate.tools.approval_terms import GatedCall

if TYPE_CHECKING:
    from sluicegate.core.approvals import Decision
    from sluicegate.core.plan import ChatLog
    from sluicegate.engine.agents.survey import AgentSurvey
    from sluicegate.engine.guard.compute_previews import Previews
    from sluicegate.stores.approvals.ledger import Ledger

logger = logging.getLogger("sluicegate")

_PREVIEW_FIRST: Final = (
    "The card shows what the changed call would do now; check it, and approve it then."
)


@dataclass(frozen=True, slots=True)
class PreviewEdits:
    """Stores what a yes with edits would run, and what that would do, without deciding."""

    survey: AgentSurvey
    previews: Previews
    ledger: Ledger

    async def __call__(
        self, log: ChatLog, decisions: list[Decision], *, by: str, via: str
    ) -> list[Decision]:
        """Return the decisions to record; those on calls with a preview have no edits any more.

        Raises:
            Changed: the card now shows edits that have no approval.
            NoPreview: nothing can be shown, and nothing has changed.
            TooManyRequests: the person has changed too many calls.
        """
        recorded = [await self._decision(log, each, by=by, via=via) for each in decisions]
        if None in recorded:
            raise Changed(_PREVIEW_FIRST)
        return [each for each in recorded if each is not None]

    async def _decision(
        self, log: ChatLog, decision: Decision, *, by: str, via: str
    ) -> Decision | None:
        """Return a decision to record; None if its edits were stored for the card in its place."""
        request, row = decision.request, log.rows.get(decision.request.approval_id)
        preview_of = self.survey.of_chat(log.chat).terms(request.agent, request.tool).preview
        has_none = preview_of is None and (row is None or row.preview is None)
        if has_none or not decision.approved:
            return decision
        if row is None or row.preview is None or preview_of is None:
            # A crash has lost it, or the tool has got one since.
            raise NoPreview
        edits = decision.edits
        if edits is None or (decision.digest is not None and is_same(edits, row.edits)):
            return replace(decision, edits=None)
        arguments: dict[str, Any] = copy.deepcopy(edits) if isinstance(edits, dict) else {}
        call = GatedCall(*log.chat, tool=request.tool, arguments=arguments, approval=None)
        preview = await self.previews.of_edit(preview_of, call, _report, by=by)
        if is_failed(preview):
            raise NoPreview(f"{preview['reason']} The change was not stored.")
        await self.ledger.personal.propose_edit(decision, preview, by=by, via=via)
        return None


def _report(error: BaseException) -> str:
    error_id = new_error_id()
    logger.error("a preview failed error=%s %s", error_id, describe(error, with_text=True))
    return error_id
