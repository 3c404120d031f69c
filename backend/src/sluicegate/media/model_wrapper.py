"""The wrapper of each model that replaces a request's file references by files.

It is the last step before the model: callbacks and plugins see small references, and a request is
shaped for the model that receives it, also if a fallback has chosen it (S3-R17).
"""

from __future__ import annotations

import logging
from contextlib import aclosing
from types import MethodType
from typing import TYPE_CHECKING, Any, Final, Protocol

from google.adk.models.registry import LLMRegistry
from google.genai import types

from sluicegate.errors import Unknown
from sluicegate.media.claude_encrypted_thinking import unmark_response
from sluicegate.media.file_labels import unread_notice
from sluicegate.media.file_selection import LeftOut, ModelProfile, choose_files
from sluicegate.media.model_client_libraries import has_class_named, route_of
from sluicegate.media.model_request_shaping import LoadedFile, RequestShaper, ShapedRequest
from sluicegate.media.provider_client_wrappers import anthropic_block_model, litellm_block_client
from sluicegate.media.provider_files_api import files_api
from sluicegate.media.provider_uploads import ProviderUploads
from sluicegate.media.thought_signature_filter import record_signer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence

    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse

    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.media.chat_files import ChatFiles
    from sluicegate.media.file_cache import FileCache
    from sluicegate.media.model_capability_table import CapabilityTable
    from sluicegate.media.model_request_shaping import FileForm
    from sluicegate.media.provider_files_api import FilesApi
    from sluicegate.wire.stored_files import StoredFile

    _Call = Callable[[LlmRequest, bool], AsyncGenerator[LlmResponse, None]]

_HOOKED: Final = ("LiteLlm", "AnthropicLlm")
"""Classes whose client replaces tokens in requests."""

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
        self._models: list[BaseLlm] = []
        self._turns = turns
        self._untrusted = untrusted

    def wrap(self, model: BaseLlm) -> BaseLlm:
        """Return a copy of a model that adds files to its requests."""
        if has_class_named(model, "FallbackModel"):
            inner = [self._entry(entry) for entry in getattr(model, "models", ())]
            return _mark(model.model_copy(update={"models": inner}))
        self._models.append(model)
        return _ModelCalls(self, self._table, model).wrapped

    async def shape(
        self,
        contents: Sequence[types.Content],
        model: BaseLlm,
        name: str | None,
        *,
        hooked: bool = False,
    ) -> ShapedRequest:
        """Return contents as a model reads them; ``name`` is the model's name in the request."""
        profile, api = self._profile(model, name, hooked=hooked)
        shaping = RequestShaper(contents, profile)
        loaded: dict[tuple[str, FileForm], LoadedFile | None] = {}
        run = self._current_run()
        for file, form in shaping.required:
            read = None if run is None else await self._load(run.chat, file, form, api)
            loaded[file.name, form] = read
        shaped = shaping.shape(loaded)
        if run is not None and shaped.left_out:
            run.notices.add(shaped.notices)
        return shaped

    def notice_before_sending(self, file: StoredFile) -> str | None:
        """Return a sentence about a file that none of the models reads, for the user."""
        reference = types.FileData(file_uri=file.uri, mime_type=file.media_type)
        content = types.Content(role="user", parts=[types.Part(file_data=reference)])
        reasons: list[str] = []
        for model in self._models:
            hooked = any(has_class_named(model, name) for name in _HOOKED)
            profile, _ = self._profile(model, None, hooked=hooked)
            [(_, choice)] = choose_files([content], profile).values()
            if not isinstance(choice, LeftOut):
                return None
            reasons.append(choice.reason)
        return unread_notice(file.media_type, file.title, reasons[0]) if reasons else None

    def _profile(
        self, model: BaseLlm, name: str | None, *, hooked: bool
    ) -> tuple[ModelProfile, FilesApi | None]:
        row, route = self._table.row(name or model.model), route_of(model)
        # Without the client of `wrap`, only Google's accepts references.
        api = files_api(model, route) if hooked or route == "genai" else None
        profile = ModelProfile(
            row,
            route,
            hooked and route == "litellm",
            self._turns,
            self._untrusted,
            uploads=api is not None,
        )
        return profile, api

    async def forget_missing(self, shaped: ShapedRequest, model: BaseLlm, error: Exception) -> bool:
        """Forget the copies that an error says are missing; return whether there are any.

        Each provider names the file in its error.
        """
        run = self._current_run()
        api = files_api(model, route_of(model)) if shaped.uploads else None
        if run is None or api is None:
            return False
        text = str(error)
        missing = [file for file, uri in shaped.uploads if uri.rpartition("/")[2] in text]
        for file in missing:
            await self._uploads.forget(run.chat, file, api)
        return bool(missing)

    async def delete_uploads(self, chat: ChatKey) -> None:
        """Delete the copies of a chat's files at the providers of the models."""
        await self._uploads.delete_all(chat, self._files_apis)

    def _files_apis(self) -> Iterator[FilesApi]:
        for model in self._models:
            api = files_api(model, route_of(model))
            if api is not None:
                yield api

    async def _load(
        self, chat: ChatKey, file: StoredFile, form: FileForm, api: FilesApi | None
    ) -> LoadedFile | None:
        try:
            if form == "upload" and api is not None:
                copy = await self._uploads.get(chat, file, api)
                return LoadedFile(url=copy.uri, pages=copy.pages)
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


class _ModelCalls:
    """The calls of one model, on a copy of it whose requests are shaped."""

    def __init__(self, files: ModelFiles, table: CapabilityTable, model: BaseLlm) -> None:
        # A method of the instance may shadow that of the class.
        own = vars(model).get("generate_content_async")
        self._files = files
        self._table = table
        self._blocks: dict[str, list[dict[str, Any]]] = {}
        is_litellm = own is None and has_class_named(model, "LiteLlm")
        self._is_anthropic = own is None and has_class_named(model, "AnthropicLlm")
        self._hooked = is_litellm or self._is_anthropic
        client = {"llm_client": litellm_block_client(model, self._blocks)} if is_litellm else {}
        self.wrapped = _mark(model.model_copy(update=client))
        self._call: _Call = own or MethodType(type(model).generate_content_async, self.wrapped)
        object.__setattr__(self.wrapped, "generate_content_async", self._generate)

    async def _generate(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT001, FBT002 - ADK's signature
    ) -> AsyncGenerator[LlmResponse, None]:
        has_answered = False
        shaped = await self._shape(llm_request)
        try:
            async with aclosing(self._send(llm_request, shaped, stream=stream)) as responses:
                async for response in responses:
                    has_answered = True
                    yield response
            return
        except Exception as error:
            # A copy may be deleted at the provider before it expires.
            if has_answered or not await self._files.forget_missing(shaped, self.wrapped, error):
                raise
        shaped = await self._shape(llm_request)
        async with aclosing(self._send(llm_request, shaped, stream=stream)) as responses:
            async for response in responses:
                yield response

    async def _shape(self, request: LlmRequest) -> ShapedRequest:
        name = request.model or self.wrapped.model
        return await self._files.shape(request.contents, self.wrapped, name, hooked=self._hooked)

    async def _send(
        self, llm_request: LlmRequest, shaped: ShapedRequest, *, stream: bool
    ) -> AsyncGenerator[LlmResponse, None]:
        # ADK traces and keeps the request itself, so that one stays with references.
        request = llm_request.model_copy(update={"contents": shaped.contents})
        call = self._call
        if shaped.blocks and self._is_anthropic:
            model = await anthropic_block_model(self.wrapped, shaped.blocks)
            call = MethodType(type(model).generate_content_async, model)
        self._blocks.update(shaped.blocks)
        try:
            async with aclosing(call(request, stream)) as responses:
                async for response in responses:
                    unmarked = unmark_response(response)
                    if unmarked is None:
                        continue
                    if not unmarked.partial:
                        row = self._table.row(llm_request.model or self.wrapped.model)
                        record_signer(unmarked.content, row)
                    yield unmarked
        finally:
            for token in shaped.blocks:
                self._blocks.pop(token, None)


def is_wrapped(model: object) -> bool:
    """Whether a model was returned by `ModelFiles.wrap`."""
    return getattr(model, _MARK, False) is True


def _mark(model: BaseLlm) -> BaseLlm:
    object.__setattr__(model, _MARK, True)
    return model
