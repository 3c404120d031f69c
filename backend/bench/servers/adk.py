"""The application of ``adk api_server``."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from google.adk.cli.fast_api import get_fast_api_app

if TYPE_CHECKING:
    from starlette.types import ASGIApp


def build() -> ASGIApp:
    """Return the application, with the same agents and its own database."""
    with warnings.catch_warnings():
        # ADK: parts of its own server announce themselves as experimental.
        warnings.filterwarnings("ignore", r"\[EXPERIMENTAL\]", UserWarning)
        return get_fast_api_app(
            agents_dir=str(Path(__file__).parent.parent / "agents"),
            session_service_uri="sqlite+aiosqlite:///adk.db",
            artifact_service_uri="memory://",
            use_local_storage=False,
            web=False,
        )
