"""Opens the artifact service of a URL: local files, or any service registered with ADK."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from sluicegate.errors import ConfigurationError

if TYPE_CHECKING:
    from google.adk.artifacts.base_artifact_service import BaseArtifactService

_FILES: Final = "file"
_SHAPES: Final = "file:PATH, gs://BUCKET, memory:// or a scheme that is registered with ADK"


def open_artifacts(url: str) -> BaseArtifactService:
    """Open the artifact service of a URL such as ``file:artifacts`` or ``gs://bucket``.

    The folder of ``file:PATH`` is created when it is missing, and private to its owner. Every
    other scheme is looked up in ADK's service registry, where a program may register its own.

    Raises:
        ConfigurationError: the URL cannot be parsed, or its service cannot be opened.
    """
    try:
        parsed = urlsplit(url)
    except ValueError:
        raise ConfigurationError(f"The artifacts URL cannot be read; write {_SHAPES}.") from None
    if parsed.scheme == _FILES:
        return _files(unquote(parsed.path), parsed.netloc)
    # ADK's registry imports the service of a scheme on demand.
    registry = importlib.import_module("google.adk.cli.service_registry").get_service_registry()
    try:
        service: BaseArtifactService | None = registry.create_artifact_service(url)
    except ImportError as error:
        raise ConfigurationError(
            f"The artifacts URL {parsed.scheme}:// needs a package that is not installed "
            f"({error.name or 'unknown'}); install it beside sluicegate."
        ) from error
    except Exception as error:
        # The service's message may contain a password of the URL.
        raise ConfigurationError(
            f"The artifact service of {parsed.scheme}:// cannot be opened "
            f"({type(error).__name__}); check the artifacts URL and its credentials."
        ) from error
    if service is None:
        raise ConfigurationError(
            f"The artifacts URL begins with {parsed.scheme or 'no scheme'}, which is not known; "
            f"write {_SHAPES}."
        )
    return service


def _files(path: str, host: str) -> BaseArtifactService:
    if not path.strip("/") or host not in ("", "localhost"):
        raise ConfigurationError("The artifacts URL names no folder; write file:PATH.")
    service = importlib.import_module("sluicegate.stores.private_artifact_files")
    try:
        opened: BaseArtifactService = service.PrivateFileArtifactService(Path(path))
    except OSError as error:
        raise ConfigurationError(
            f"The folder {path} of the artifacts cannot be used: {error.strerror or error}."
        ) from error
    return opened
