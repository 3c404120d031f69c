"""The Files APIs of the providers, each by the client that calls its models.

Google's takes chunks, Anthropic's and OpenAI's a form whose file their clients read in pieces of
64 KiB. LiteLLM: it reads a file for Anthropic whole.
"""

from __future__ import annotations

import asyncio
import importlib
import io
import re
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, cast

from google.genai import types

from sluicegate.adk_private import anthropic_client, litellm_arguments
from sluicegate.errors import MediaError
from sluicegate.media.model_client_libraries import has_class_named
from sluicegate.media.provider_client_wrappers import FILES_BETA

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.adk.models.base_llm import BaseLlm

    from sluicegate.media.model_client_libraries import Route
    from sluicegate.wire.stored_files import StoredFile

Provider: TypeAlias = Literal["genai", "anthropic", "openai"]

_CHUNK: Final = 4 * 1024 * 1024
"""Bytes of a chunk; Google's API accepts multiples of 256 KiB."""

_PROCESSING: Final = 60
"""Seconds that Google may take to process a file."""

_LIFETIME: Final = 30 * 24 * 3600
"""Seconds after which a copy is deleted by a provider that is asked to: OpenAI's longest."""

_NAMES: Final[tuple[tuple[re.Pattern[str], Provider], ...]] = (
    (re.compile(r"claude.*"), "anthropic"),
    (re.compile(r"(ft:)?(gpt-|chatgpt-|o\d).*"), "openai"),
)
_ENDPOINT: Final = ("api_key", "api_base", "base_url", "organization")


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """A copy at a provider.

    ``name`` deletes it, ``uri`` is its reference in requests; ``expires`` is in seconds since the
    epoch, None if the provider keeps it until it is deleted.
    """

    name: str
    uri: str
    expires: float | None
    pages: int = 0


class FilesApi(Protocol):
    """The Files API of one account."""

    @property
    def provider(self) -> Provider:
        """The provider."""

    async def upload(self, file: StoredFile, content: IO[bytes]) -> UploadedFile:
        """Upload a file; errors are those of the client."""

    async def delete(self, name: str) -> None:
        """Delete a copy; errors are those of the client."""


def files_api(model: BaseLlm, route: Route) -> FilesApi | None:
    """Return the Files API that a model's client reaches, None if there is none.

    Google has none on Vertex AI, for Claude neither.
    """
    match route:
        case "genai":
            return _Google(model)
        case "anthropic":
            client = getattr(model, "client", None)
            is_own = client is None or has_class_named(client, "AsyncAnthropic")
            return _Anthropic(model) if is_own and not has_class_named(model, "Claude") else None
        case "litellm":
            arguments = litellm_arguments(model)
            provider = _litellm_provider(model.model, arguments)
            return None if provider is None else _LiteLlm(provider, arguments)
    return None


def _litellm_provider(model: str, arguments: Mapping[str, Any]) -> Provider | None:
    prefix, slash, _ = model.partition("/")
    name = arguments.get("custom_llm_provider") or (prefix if slash else "")
    if not name:
        return next((provider for names, provider in _NAMES if names.fullmatch(model)), None)
    return cast("Provider", name) if name in ("anthropic", "openai") else None


class _Chunks(io.BufferedReader):
    """A file that is read in chunks: the client has two of them in memory at a time."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(_CHUNK if size is None or size < 0 else min(size, _CHUNK))


@dataclass(frozen=True, slots=True)
class _Google:
    model: BaseLlm
    provider: Provider = "genai"

    async def upload(self, file: StoredFile, content: IO[bytes]) -> UploadedFile:
        files = self._files()
        config = types.UploadFileConfig(mime_type=file.media_type)
        chunks = _Chunks(cast("io.RawIOBase", content))
        try:
            made = await files.upload(file=chunks, config=config)
        finally:
            # Without a buffer, the caller closes the file alone.
            chunks.detach()
        for _ in range(_PROCESSING):
            if made.state is not types.FileState.PROCESSING:
                break
            await asyncio.sleep(1)
            made = await files.get(name=made.name or "")
        if made.state is not types.FileState.ACTIVE or not made.name or not made.uri:
            raise MediaError("The provider cannot process the file.")
        until = made.expiration_time
        return UploadedFile(made.name, made.uri, None if until is None else until.timestamp())

    async def delete(self, name: str) -> None:
        await self._files().delete(name=name)

    def _files(self) -> Any:
        # A field of Gemini alone.
        return getattr(self.model, "api_client").aio.files  # noqa: B009


@dataclass(frozen=True, slots=True)
class _Anthropic:
    model: BaseLlm
    provider: Provider = "anthropic"

    async def upload(self, file: StoredFile, content: IO[bytes]) -> UploadedFile:
        client = await anthropic_client(self.model)
        made = await client.beta.files.upload(
            file=(_file_name(file), content, file.media_type),
            betas=[FILES_BETA],
            extra_body={"expires_in_seconds": _LIFETIME},
        )
        until = getattr(made, "expires_at", None)
        return UploadedFile(made.id, made.id, None if until is None else until.timestamp())

    async def delete(self, name: str) -> None:
        client = await anthropic_client(self.model)
        await client.beta.files.delete(name, betas=[FILES_BETA])


@dataclass(frozen=True, slots=True)
class _LiteLlm:
    provider: Provider
    arguments: Mapping[str, Any]

    async def upload(self, file: StoredFile, content: IO[bytes]) -> UploadedFile:
        more: dict[str, Any] = {"purpose": "messages"}
        if self.provider == "openai":
            expiry = {"anchor": "created_at", "seconds": _LIFETIME}
            more = {"purpose": "user_data", "expires_after": expiry}
        made = await _litellm().acreate_file(
            file=(_file_name(file), content, file.media_type), **more, **self._endpoint()
        )
        return UploadedFile(made.id, made.id, made.expires_at)

    async def delete(self, name: str) -> None:
        await _litellm().afile_delete(file_id=name, **self._endpoint())

    def _endpoint(self) -> dict[str, Any]:
        """Return the address and the key of the model's requests, so that files go nowhere else."""
        found = {key: self.arguments[key] for key in _ENDPOINT if self.arguments.get(key)}
        if "base_url" in found:
            found.setdefault("api_base", found.pop("base_url"))
        return {"custom_llm_provider": self.provider, **found}


def _litellm() -> Any:
    return importlib.import_module("litellm")


def _file_name(file: StoredFile) -> str:
    return file.title or file.name
