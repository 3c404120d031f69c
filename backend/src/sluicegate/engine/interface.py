"""The port between transports and what answers them: an agent, or a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Mapping

    from pydantic import JsonValue

    from sluicegate.engine.client_request_options import RequestingClient
    from sluicegate.engine.entitled_user_events import EntitledEvents
    from sluicegate.engine.entitlement import RolesOf
    from sluicegate.engine.turn.reader import TurnReader
    from sluicegate.live.chat import OpenChat
    from sluicegate.stores.approvals.audit_reading import AuditEntry, HistoryFilter
    from sluicegate.stores.approvals.inbox import ApprovalFilter
    from sluicegate.stores.cookie_sessions import CookieSessions
    from sluicegate.stores.streams.valkey_shared_rate_limits import SharedLimit
    from sluicegate.tools.worker_registry import WorkerRegistry
    from sluicegate.wire.requests import ChatRequest


class Approvals(Protocol):
    """The approvals of a user outside the chat page (A8)."""

    async def waiting(
        self, *, user: str, limit: int, after: str | None, selection: ApprovalFilter
    ) -> dict[str, Any]:
        """Return one page of what waits for the user over all chats: ``{approvals, next}``."""

    async def unknown_outcomes(
        self, *, user: str, limit: int, after: str | None, selection: ApprovalFilter
    ) -> dict[str, Any]:
        """As `waiting`, of calls whose outcome is unknown."""

    async def get(self, approval_id: str, *, user: str) -> dict[str, Any]:
        """Return one approval, open or not; raises Unknown."""

    async def preview_image(self, approval_id: str, *, user: str) -> tuple[bytes, str]:
        """Return the picture of a preview and its media type; raises Unknown."""

    async def decide(
        self, approval_id: str, body: Mapping[str, JsonValue], *, user: str, via: str
    ) -> dict[str, Any]:
        """Record ``{approved, reason?, edits?, payload?, remember?, digest?, response?}``."""

    async def resolve(
        self, approval_id: str, body: Mapping[str, JsonValue], *, user: str, via: str
    ) -> dict[str, Any]:
        """Resolve an unknown outcome by ``{outcome, reason}``."""

    async def grants(self, chat_id: str, *, user: str) -> dict[str, Any]:
        """Return the grants of a chat: ``{grants: [{id, tool, agent, where, …}]}``."""

    async def revoke(self, chat_id: str, grant_id: str, *, user: str, via: str) -> None:
        """Revoke a grant; raises Unknown."""


class History(Protocol):
    """The audit trail of approvals, as far as a user may see it (A10)."""

    async def page(
        self, *, user: str, selection: HistoryFilter, limit: int, after: str | None
    ) -> dict[str, Any]:
        """Return one page, newest first: ``{entries, next}``."""

    def entries(self, *, user: str, selection: HistoryFilter) -> AsyncIterator[AuditEntry]:
        """Read all entries, newest first."""

    async def verify(self) -> dict[str, Any]:
        """Return whether the trail is as it was written: ``{state, checkedAt, detail?}``."""


class Engine(Protocol):
    """Answers the requests of all transports; every method raises `RequestError` to refuse."""

    @property
    def approvals(self) -> Approvals:
        """The approvals of each user's chats."""

    @property
    def history(self) -> History:
        """The audit trail of approvals."""

    @property
    def cookie_sessions(self) -> CookieSessions:
        """The sessions of browsers that signed in with a token."""

    async def start(
        self, request: ChatRequest, *, user: str, client: RequestingClient
    ) -> TurnReader:
        """Start or continue an exchange; the reader yields its chunks."""

    async def resume(
        self, chat_id: str, *, user: str, client: RequestingClient
    ) -> TurnReader | None:
        """Read the running message from its beginning; None when nothing runs (section 7)."""

    async def stop(self, chat_id: str, *, user: str) -> None:
        """Stop the running turn, or supersede the open approvals."""

    async def open_live(
        self,
        chat_id: str,
        *,
        user: str,
        client: RequestingClient,
        with_audio: bool,
        marked_by_client: bool,
    ) -> OpenChat:
        """Open a chat live; the caller closes it.

        ``with_audio``: the client plays the audio of the model. ``marked_by_client``: the client
        marks where the user's speech begins and ends; else the model detects it.
        """

    async def read_events(self, after: str | None, *, user: str) -> EntitledEvents:
        """Read what changes for a user, after the event with the id ``after`` if it is known.

        Raises:
            StoreError: The roles of the user cannot be read.
        """

    async def list_chats(
        self, *, user: str, limit: int, after: str | None, query: str | None
    ) -> dict[str, Any]:
        """``{chats: [{id, title, updatedAt, pendingApprovals, status}], next}``, newest first."""

    async def get_chat(self, chat_id: str, *, user: str) -> dict[str, Any]:
        """``{id, title, messages, status}``; raises Unknown."""

    async def get_version(
        self, chat_id: str, message_id: str, version: int, *, user: str
    ) -> dict[str, Any]:
        """What a message replaced: ``{version, messages}``; raises Unknown."""

    async def rename_chat(self, chat_id: str, title: str, *, user: str) -> None:
        """Set the title; raises Unknown."""

    async def delete_chat(self, chat_id: str, *, user: str) -> None:
        """Delete the conversation; raises Unknown, TurnRunning."""

    async def save_file(
        self, chat_id: str, data: bytes, media_type: str, *, title: str | None, user: str
    ) -> dict[str, Any]:
        """Store an attachment: ``{url, mediaType, name, filename?}``, as a file part has them."""

    async def get_file(self, chat_id: str, name: str, *, user: str) -> tuple[bytes, str]:
        """The bytes and media type of a file of the chat; raises Unknown."""

    def ask_roles(self, roles_of: RolesOf) -> None:
        """Ask a function for the roles of users, instead of noting them."""

    async def record_roles(self, user: str, roles: frozenset[str]) -> None:
        """Record the roles with which a user is seen; raises StoreError."""

    async def worker_registry(self) -> WorkerRegistry:
        """The registry in which remote tool workers announce themselves; raises Unavailable."""

    async def ready(self) -> list[str]:
        """Return notes for the operator; raises Unavailable when requests cannot be answered."""

    def share_rate(self, limit: SharedLimit) -> None:
        """Count a limit together with other processes, if they share streams."""

    async def finish_turns(self, *, within: float, hurried: asyncio.Event) -> bool:
        """Wait until no turn runs, ``within`` seconds at most, or until ``hurried`` is set.

        Returns whether none runs.
        """

    async def drain(self, *, within: float, hurried: asyncio.Event) -> None:
        """End every turn before `close`: refuse new ones, wait for claimed calls.

        After ``within`` seconds, or once ``hurried`` is set, claimed calls are cut, and their
        outcome is unknown.
        """

    async def close(self) -> None:
        """Stop the turns and close the stores."""
