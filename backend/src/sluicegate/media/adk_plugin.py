"""The plugin for a Runner outside of the server: `ToolResult` and files in results (S0-R16)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.models.base_llm import BaseLlm
from google.adk.plugins.base_plugin import BasePlugin

from sluicegate.adk_private import invocation_of
from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.media.chat_files import ChatFiles
from sluicegate.media.file_cache import FileCache
from sluicegate.media.model_capability_table import CapabilityTable
from sluicegate.media.model_wrapper import ModelFiles
from sluicegate.media.replace_files_by_references import ResultFiles
from sluicegate.media.result_limits import ResultLimits
from sluicegate.media.tool_result_with_files import MAX_FILE_BYTES, MAX_FILES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from os import PathLike

    from google.adk.agents.callback_context import CallbackContext
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext

logger = logging.getLogger("sluicegate")

_CACHE_BYTES: Final = 64 * 1024 * 1024
_CACHE_SECONDS: Final = 60.0
_TEXT_BYTES: Final = 100 * 1024


class MediaPlugin(BasePlugin):
    """Converts results with files, and sends each model the files in the form that it reads.

    It is for Runners outside of the server, such as ``adk web``, Agent Engine and tests; the server
    does the same without it. Files are stored in the artifact service of the Runner, and in the
    memory of this process if the Runner has none. The session keeps references.

    Args:
        model_table: The path of a table whose rows precede the built-in ones, as the setting
            ``model_table``.
        file_turns: User messages for which a file is sent again.
        file_folders: Folders from which tools may return files by their paths.

    Raises:
        ConfigurationError: The table cannot be read.
    """

    def __init__(
        self,
        *,
        model_table: str | None = None,
        file_turns: int = 10,
        file_folders: Sequence[str | PathLike[str]] = (),
    ) -> None:
        super().__init__(name="sluicegate_media")
        self._table = CapabilityTable.load(model_table)
        self._turns = file_turns
        folders = tuple(Path(folder) for folder in file_folders)
        self._limits = ResultLimits(MAX_FILES, MAX_FILE_BYTES, _TEXT_BYTES, folders)
        self._cache = FileCache(_CACHE_BYTES, _CACHE_SECONDS)
        self._memory = InMemoryArtifactService()

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Replace references to files by files, in the form of the model's family."""
        invocation = invocation_of(callback_context)
        model = getattr(invocation.agent, "canonical_model", None)
        if isinstance(model, BaseLlm):
            run = _Run(_chat(invocation))
            models = ModelFiles(
                self._files(invocation), self._table, self._cache, lambda: run, turns=self._turns
            )
            shaped = await models.shape(llm_request.contents, model, llm_request.model)
            llm_request.contents = shaped.contents
        return None

    async def after_tool_callback(
        self,
        *,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
        result: dict[str, Any],
    ) -> dict[str, Any] | None:
        """Convert a result, unless ADK can store and send it as it is."""
        results = self._results(invocation_of(tool_context))
        _, shown = await results.outcome_of(result, is_claimed=False)
        return shown

    async def on_event_callback(
        self, *, invocation_context: InvocationContext, event: Event
    ) -> Event | None:
        """Store an event's files and keep references; in live runs only files of results."""
        if invocation_context.live_request_queue is None or event.get_function_responses():
            await self._results(invocation_context).replace_files(event)
        # ADK: a returned event would end the chain of plugins.
        return None

    def _files(self, invocation: InvocationContext) -> ChatFiles:
        service = invocation.artifact_service or self._memory
        return ChatFiles(service, ("*/*",), self._limits.file_bytes)

    def _results(self, invocation: InvocationContext) -> ResultFiles:
        return ResultFiles(self._files(invocation), _chat(invocation), self._limits)


@dataclass(frozen=True, slots=True)
class _Run:
    """A run whose user cannot be shown notices; the model reads of each file that is left out."""

    chat: ChatKey

    @property
    def notices(self) -> _Run:
        return self

    def add(self, sentences: Iterable[str]) -> None:
        for _ in sentences:
            logger.info("a file was not sent to the model chat=%s", self.chat.chat)


def _chat(invocation: InvocationContext) -> ChatKey:
    session = invocation.session
    return ChatKey(session.app_name, session.user_id, session.id)
