"""What a person may see and do about approvals outside the chat page (A8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluicegate.core.keys import ChatKey
from sluicegate.engine.parts import moment
from sluicegate.errors import Unknown

if TYPE_CHECKING:
    from sluicegate.engine.parts import EngineParts


class Approvals:
    """The approvals of each user's chats."""

    def __init__(self, parts: EngineParts) -> None:
        self._parts = parts

    async def grants(self, chat_id: str, *, user: str) -> dict[str, Any]:
        """``{grants: [{tool, approvalId, grantedAt}]}``: tools that need not ask in a chat.

        Raises:
            Unknown: no such chat of this user.
        """
        chat = await self._known(chat_id, user)
        grants = [
            {
                "tool": grant.tool,
                "approvalId": grant.approval_id,
                "grantedAt": moment(grant.granted_at),
            }
            for grant in await self._parts.grants.all(chat)
        ]
        return {"grants": grants}

    async def revoke(self, chat_id: str, tool: str, *, user: str, via: str) -> None:
        """Let a tool ask again, from its next call on.

        Raises:
            Unknown: no such chat of this user, or nothing is remembered of the tool.
        """
        chat = await self._known(chat_id, user)
        if not await self._parts.grants.revoke(chat, tool, by=user, via=via):
            raise Unknown("No approval of this tool is remembered in this chat.")

    async def _known(self, chat_id: str, user: str) -> ChatKey:
        chat = ChatKey(self._parts.app, user, chat_id)
        if await self._parts.chats.get(chat) is None:
            raise Unknown("There is no such chat.")
        return chat
