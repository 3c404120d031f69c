"""Artifacts in files that only their owner may read."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from google.adk.artifacts.file_artifact_service import FileArtifactService

from sluicegate.stores.private_files import make_private, make_tree_private, private_folder

if TYPE_CHECKING:
    from google.genai import types

_OWN: Final = ("apps", "users")
"""The subfolders that ADK uses, depending on its version."""


class PrivateFileArtifactService(FileArtifactService):
    """ADK's service for files, with modes 0600 and 0700; existing files are tightened.

    Args:
        root_dir: The folder, which is created if it is missing.

    Raises:
        OSError: The folder cannot be used.
    """

    def __init__(self, root_dir: Path) -> None:
        private_folder(root_dir.expanduser().resolve(), lambda name: name in _OWN)
        super().__init__(root_dir)
        for name in _OWN:
            make_tree_private(self.root_dir / name)

    async def save_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        artifact: types.Part | dict[str, Any],
        session_id: str | None = None,
        custom_metadata: dict[str, Any] | None = None,
    ) -> int:
        """Save an artifact; see `FileArtifactService`."""
        place: dict[str, Any] = {
            "app_name": app_name,
            "user_id": user_id,
            "session_id": session_id,
        }
        version = await super().save_artifact(
            **place, filename=filename, artifact=artifact, custom_metadata=custom_metadata
        )
        # ADK: the mode of a file follows the umask, which belongs to the whole process.
        saved = await self.get_artifact_version(**place, filename=filename, version=version)
        if saved is not None:
            payload = Path(url2pathname(urlsplit(saved.canonical_uri).path))
            await asyncio.to_thread(self._make_private, payload.parent)
        return version

    def _make_private(self, version: Path) -> None:
        make_tree_private(version)
        for folder in version.parents:
            if folder == self.root_dir or not folder.is_relative_to(self.root_dir):
                return
            make_private(folder)
