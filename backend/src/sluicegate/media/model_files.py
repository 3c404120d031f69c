"""The wrapper of each model that replaces a request's file references by files.

It is the last step before the model: callbacks and plugins see small references, and a request is
shaped for the model that receives it, also if a fallback has chosen it (S3-R17).
"""

from __future__ import annotations

import logging
from contextlib import aclosing
from types import MethodType
from typing import TYPE_CHECKING, Any, Final, Protocol

from google.adk.models.google_llm import Gemini
from google.adk.models.registry import LLMRegistry

from sluicegate.adk_private import uses_vertex
from sluicegate.errors import Unknown
from sluicegate.media.litellm_block_client import block_client
from sluicegate.media.model_request_shaping import LoadedFile, RequestShaper, ShapedRequest
from sluicegate.media.provider_uploads import ProviderUploads
from sluicegate.media.selection import ModelProfile
from sluicegate.media.thought_signatures import record_signer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Sequence

    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.genai import Client, types

    from sluicegate.core.chat_keys import ChatKey
    from sluicegate.media.capabilities import CapabilityTable, Route
    from sluicegate.media.chat_files import ChatFiles, FileCache
    from sluicegate.media.model_request_shaping import FileForm
    from sluicegate.wire.stored_files import StoredFile

_MARK: Final = "_sluicegate_wraps_files"
logger = logging.getLogger("sluicegate")


class NoticeSink(Protocol):
    """Takes sentences for the user of a run."""

    def add(self, sentences: Iterable[str], /) -> None:
        """Add sentences."""


class RunWithFiles(Protocol):
    """The run that calls a model: the chat whose files it reads, and the notices for its user."""

    @property
    def chat(self) -> ChatKey:
        """The chat."""

    @property
    def notices(self) -> NoticeSink:
        """The notices."""


class ModelFiles:
    """Shapes requests: reads the files that a model is sent, in the form of its family.

    ``table`` holds the capabilities of models; a file stays visible for ``turns`` user messages.
    ``untrusted`` are tools whose results come from the page. ``current_run`` returns the run that
    calls the model, None outside of runs.
    """

    def __init__(
        self,
        files: ChatFiles,
        table: CapabilityTable,
        cache: FileCache,
        current_run: Callable[[], RunWithFiles | None],
        *,
        turns: int,
        untrusted: frozenset[str] = frozenset(),
    ) -> None:
        self._files = files
        self._table = table
        self._cache = cache
        self._current_run = current_run
        self._uploads = ProviderUploads(files)
        self._google: list[Gemini] = []
        self._turns = turns
        self._untrusted = untrusted

    def wrap(self, model: BaseLlm) -> BaseLlm:
        """Return a copy of a model that adds files to its requests."""
        if _is(model, "FallbackModel"):
            inner = [self._entry(entry) for entry in getattr(model, "models", ())]
            return _mark(model.model_copy(update={"models": inner}))
        blocks: dict[str, list[dict[str, Any]]] = {}
        # A method of the instance may shadow that of the class.
        own = vars(model).get("generate_content_async")
        hooked = own is None and _is(model, "LiteLlm")
        client = {"llm_client": block_client(model, blocks)} if hooked else {}
        fresh = _mark(model.model_copy(update=client))
        if isinstance(model, Gemini):
            self._google.append(model)
        original = own or MethodType(type(model).generate_content_async, fresh)

        async def generate_content_async(
            llm_request: LlmRequest,
            stream: bool = False,  # noqa: FBT001, FBT002 - ADK's signature
        ) -> AsyncGenerator[LlmResponse, None]:
            name = llm_request.model or fresh.model
            shaped = await self.shape(llm_request.contents, fresh, name, hooked=hooked)
            # ADK traces and keeps the request itself, so that one stays with references.
            request = llm_request.model_copy(update={"contents": shaped.contents})
            blocks.update(shaped.blocks)
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
                    blocks.pop(token, None)

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
        """Return contents as a model reads them; ``name`` is the model's name in the request."""
        row = self._table.row(name or model.model)
        profile = ModelProfile(row, route_of(model), hooked, self._turns, self._untrusted)
        shaping = RequestShaper(contents, profile)
        loaded: dict[tuple[str, FileForm], LoadedFile | None] = {}
        run = self._current_run()
        for file, form in shaping.required:
            read = None if run is None else await self._load(run.chat, file, form, model)
            loaded[file.name, form] = read
        shaped = shaping.shape(loaded)
        if run is not None and shaped.left_out:
            run.notices.add(shaped.notices)
        return shaped

    async def delete_uploads(self, chat: ChatKey) -> None:
        """Delete the copies of a chat's files at the providers of the models."""
        await self._uploads.delete_all(chat, self._google_client)

    def _google_client(self) -> Client | None:
        return next((model.api_client for model in self._google if not uses_vertex(model)), None)

    async def _load(
        self, chat: ChatKey, file: StoredFile, form: FileForm, model: BaseLlm
    ) -> LoadedFile | None:
        try:
            if form == "upload":
                # Only Google's class has this route.
                return LoadedFile(url=await self._uploads.uri(chat, file, _client(model)))
            return await self._cache.get(
                (chat, file.name, form), lambda: self._files.read(chat, file.name)
            )
        except Unknown:
            return None
        except Exception as error:  # noqa: BLE001 - artifact services raise errors of their own
            logger.error("a file was not read chat=%s %s", chat.chat, type(error).__name__)
            return None

    def _entry(self, entry: str | BaseLlm) -> BaseLlm:
        return self.wrap(LLMRegistry.new_llm(entry) if isinstance(entry, str) else entry)


def route_of(model: BaseLlm) -> Route:
    """Return the client library that carries a model's requests.

    Classes are compared by name, since importing LiteLLM takes seconds.
    """
    if _is(model, "LiteLlm"):
        return "litellm"
    if _is(model, "AnthropicLlm"):
        return "anthropic"
    if _is(model, "Gemini"):
        return "vertex" if uses_vertex(model) else "genai"
    return "other"


def _client(model: BaseLlm) -> Client:
    client: Client = getattr(model, "api_client")  # noqa: B009 - a field of Gemini alone
    return client


def _is(model: object, name: str) -> bool:
    return any(cls.__name__ == name for cls in type(model).__mro__)


def is_wrapped(model: object) -> bool:
    """Whether a model was returned by `ModelFiles.wrap`."""
    return getattr(model, _MARK, False) is True


def _mark(model: BaseLlm) -> BaseLlm:
    object.__setattr__(model, _MARK, True)
    return model
