"""The engine that answers all transports: chats over requests, and chats that are open live."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.live.context import LiveOptions
from sluicegate.live.open_chat import open_live

if TYPE_CHECKING:
    from sluicegate.engine.turn.reader import Client
    from sluicegate.live.open_chat import OpenChat


class LiveEngine(ChatEngine):
    """A `ChatEngine` whose chats can be opened live, too."""

    async def open_live(
        self,
        chat_id: str,
        *,
        user: str,
        client: Client,
        with_audio: bool,
        marked_by_client: bool,
    ) -> OpenChat:
        """Open a chat live; the caller closes it.

        A chat that is open live in this process is taken over from its socket.

        Raises:
            HeldElsewhere: the chat is open live at another replica, or being answered.
            RequestError: too many chats are open.
        """
        return await open_live(
            self,
            chat_id,
            user=user,
            client=client,
            options=LiveOptions(with_audio=with_audio, marked_by_client=marked_by_client),
        )
