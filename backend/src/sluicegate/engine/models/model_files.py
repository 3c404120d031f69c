"""What stands around each model: a request's references become files, as that model reads them.

Rule: this is the last thing before the model. Callbacks and plugins see small references, and a
request is shaped for the model that really gets it, whoever chose that (S3-R17).
"""

from __future__ import annotations

import logging
from contextlib import aclosing
from types import MethodType
from typing import TYPE_CHECKING, Any, Final

from google.adk.models.registry import LLMRegistry

from sluicegate.adk_private import uses_vertex
from sluicegate.engine.models.litellm_client import block_client
from sluicegate.engine.turn_context import CURRENT_TURN
from sluicegate.errors import Unknown
from sluicegate.media.selection import ModelProfile
from sluicegate.media.shaping import RequestShaper, ShapedRequest
from sluicegate.media.signatures import record_signer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.genai import types

    from sluicegate.core.keys import ChatKey
    from sluicegate.engine.files.chat_files import ChatFiles, FileCache
    from sluicegate.media.capabilities import CapabilityTable, Route
    from sluicegate.media.shaping import FileForm, LoadedFile
    from sluicegate.wire.files import StoredFile

_MARK: Final = "_sluicegate_is_served"
logger = logging.getLogger("sluicegate")


class ModelFiles:
    """Shapes requests: reads what a model needs, in the form that its family takes."""

    def __init__(
        self,
        files: ChatFiles,
        table: CapabilityTable,
        cache: FileCache,
        *,
        turns: int,
        untrusted: frozenset[str] = frozenset(),
    ) -> None:
        """Take the files, what models read, and for how many messages a file stays visible."""
        self._files = files
        self._table = table
        self._cache = cache
        self._turns = turns
        self._untrusted = untrusted

    def around(self, model: BaseLlm) -> BaseLlm:
        """A copy of a model that gives files to it; the model itself stays as it is."""
        if _is(model, "FallbackModel"):
            inner = [self._entry(entry) for entry in getattr(model, "models", ())]
            return _marked(model.model_copy(update={"models": inner}))
        handed: dict[str, list[dict[str, Any]]] = {}
        # Somebody may have put a method of the instance before that of the class.
        own = vars(model).get("generate_content_async")
        hooked = own is None and _is(model, "LiteLlm")
        client = {"llm_client": block_client(model, handed)} if hooked else {}
        fresh = _marked(model.model_copy(update=client))
        original = own or MethodType(type(model).generate_content_async, fresh)

        async def generate_content_async(
            llm_request: LlmRequest,
            stream: bool = False,  # noqa: FBT001, FBT002 - ADK's signature
        ) -> AsyncGenerator[LlmResponse, None]:
            name = llm_request.model or fresh.model
            shaped = await self.shape(llm_request.contents, fresh, name, hooked=hooked)
            # What the request holds is traced and kept by others: they go on with references.
            request = llm_request.model_copy(update={"contents": shaped.contents})
            handed.update(shaped.blocks)
            responses: AsyncGenerator[LlmResponse, Any] = original(request, stream)
            try:
                async with aclosing(responses):
                    async for response in responses:
                        if not response.partial:
                            record_signer(
                                response.content, self._table.row(llm_request.model or fresh.model)
                            )
                        yield response
            finally:
                for token in shaped.blocks:
                    handed.pop(token, None)

        object.__setattr__(fresh, "generate_content_async", generate_content_async)
        return fresh

    async def shape(
        self,
        contents: Sequence[types.Content],
        model: BaseLlm,
        name: str | None,
        *,
        hooked: bool = False,
    ) -> ShapedRequest:
        """The contents as a model reads them; ``name`` is what the request calls it."""
        row = self._table.row(name or model.model)
        profile = ModelProfile(row, route_of(model), hooked, self._turns, self._untrusted)
        shaping = RequestShaper(contents, profile)
        loaded: dict[tuple[str, FileForm], LoadedFile | None] = {}
        turn = CURRENT_TURN.get()
        for file, form in shaping.required:
            read = None if turn is None else await self._load(turn.chat, file, form)
            loaded[file.name, form] = read
        shaped = shaping.shape(loaded)
        if turn is not None and shaped.left_out:
            turn.notices.add(shaped.notices)
        return shaped

    async def _load(self, chat: ChatKey, file: StoredFile, form: FileForm) -> LoadedFile | None:
        try:
            return await self._cache.get(
                (chat, file.name, form), lambda: self._files.read(chat, file.name)
            )
        except Unknown:
            return None
        except Exception as error:  # noqa: BLE001 - any service, with errors of its own
            logger.error("a file was not read chat=%s %s", chat.chat, type(error).__name__)
            return None

    def _entry(self, entry: str | BaseLlm) -> BaseLlm:
        return self.around(LLMRegistry.new_llm(entry) if isinstance(entry, str) else entry)


def route_of(model: BaseLlm) -> Route:
    """What carries a model's requests.

    Classes are compared by their names: to import LiteLLM takes seconds.
    """
    if _is(model, "LiteLlm"):
        return "litellm"
    if _is(model, "AnthropicLlm"):
        return "anthropic"
    if _is(model, "Gemini"):
        return "vertex" if uses_vertex(model) else "genai"
    return "other"


def _is(model: object, name: str) -> bool:
    return any(cls.__name__ == name for cls in type(model).__mro__)


def is_served(model: object) -> bool:
    """Whether a model is one of `ModelFiles.around`."""
    return getattr(model, _MARK, False) is True


def _marked(model: BaseLlm) -> BaseLlm:
    object.__setattr__(model, _MARK, True)
    return model
