"""The stored conversation of a chat, loaded for planning and for history."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sluicegate.core.exchanges import Exchange, exchanges, in_view, was_replaced
from sluicegate.core.history import RebuiltExchange, rebuild
from sluicegate.core.plan import ChatLog
from sluicegate.engine.turn.remote_turns import UNREAD, ChatLocation

if TYPE_CHECKING:
    from sluicegate.core.approvals import Rows
    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.engine.agents.survey import AgentSurvey
    from sluicegate.engine.application_chat_tools import ChatTools
    from sluicegate.engine.options import EngineOptions
    from sluicegate.engine.turn.local_turns import LocalTurns
    from sluicegate.engine.turn.session_log import SessionLog
    from sluicegate.stores.approvals.ledger import Ledger
    from sluicegate.tools.worker_registry import WorkerRegistry


@dataclass(frozen=True, slots=True)
class ChatLogs:
    """Folds the session and the ledger rows of a chat into exchanges."""

    options: EngineOptions
    survey: AgentSurvey
    session_log: SessionLog
    ledger: Ledger
    turns: LocalTurns
    workers: WorkerRegistry | None = None
    chat_tools: ChatTools | None = None

    async def load(self, chat: ChatKey, location: ChatLocation = UNREAD) -> ChatLog:
        """Load the conversation; ``location`` was read before."""
        if self.workers is not None:
            await self.workers.refresh_new()
        while True:
            running = self.turns.running(chat)
            session = await self.session_log.load(chat)
            if self.chat_tools is not None and session is not None:
                await self.chat_tools.load_once(chat)
            rows = {row.approval_id: row for row in await self.ledger.rows(chat)}
            if self.turns.running(chat) is running:
                break
            # A turn has begun or ended meanwhile; without its end it would look cut by a crash.
        events = session.events if session is not None else []
        found = exchanges(events)
        files_url, survey = self.options.files_url_of(chat.chat), self.survey.of_chat(chat)
        last = found[-1] if found else None

        def is_running(exchange: Exchange) -> bool:
            if running is not None:
                return running.stamp.message == exchange.message_id
            remote = location.remote
            return remote is not None and remote.is_running(
                exchange.message_id, last=exchange is last
            )

        def rebuilt(exchange: Exchange, rows: Rows) -> RebuiltExchange:
            running = is_running(exchange)
            return rebuild(
                exchange,
                rows,
                survey,
                files_url=files_url,
                running=running,
                abandoned=exchange is last and not running and exchange.was_abandoned,
            )

        def is_over(exchange: Exchange) -> bool:
            return not is_running(exchange) and not rebuilt(exchange, rows).is_unfinished

        shown = in_view(found, is_over)
        return ChatLog(
            chat,
            shown,
            rows,
            rebuilt,
            partial(was_replaced, events),
            is_new=session is None,
            limits=self.options.request_limits,
            fence=location.fence,
        )
