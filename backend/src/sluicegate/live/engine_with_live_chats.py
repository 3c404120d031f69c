"""The engine that answers all transports: chats over requests, and chats that are open live."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.live.chat import open_live
from sluicegate.live.options import LiveOptions
from sluicegate.live.run_config import check_live_models, live_run_config

if TYPE_CHECKING:
    from google.adk.agents.run_config import RunConfig

    from sluicegate.engine.client_request_options import RequestingClient
    from sluicegate.live.chat import OpenChat


class LiveEngine(ChatEngine):
    """A `ChatEngine` whose chats can be opened live, too."""

    _run_config: RunConfig | None = None

    def configure_live(self, config: RunConfig) -> None:
        """Set the configuration of live runs, one of `live_run_config`.

        Raises:
            ConfigurationError: A live model does not support it.
        """
        check_live_models(config, self.resources.live_models)
        self._run_config = config

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

        A chat that is open live, at this replica or another, is taken over from its socket.

        Raises:
            HeldByAnotherOwner: the chat is being answered, or another replica does not release it.
            RequestError: too many chats are open.
        """
        return await open_live(
            self,
            chat_id,
            user=user,
            client=client,
            options=LiveOptions(
                with_audio=with_audio,
                marked_by_client=marked_by_client,
                run_config=self._run_config or live_run_config(self.resources.options),
                trace_contents=self.resources.options.trace_contents,
            ),
        )
