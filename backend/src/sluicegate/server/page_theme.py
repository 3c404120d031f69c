"""The look of the chat page that the settings choose: its title, texts, logo and stylesheet."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sluicegate.errors import ConfigurationError
from sluicegate.server.page import REVALIDATE, PageFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluicegate.server.settings import Settings

LOGO_PATH: Final = "logo"
STYLESHEET_PATH: Final = "theme.css"
FAVICON: Final = "favicon.svg"
"""The logo of a page without the setting."""

MAX_FILE_BYTES: Final = 512 * 1024
"""Bytes of a logo or a stylesheet."""

_LOGO_TYPES: Final = {
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webp": "image/webp",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
}
_STYLESHEET_TYPES: Final = {".css": "text/css; charset=utf-8"}


@dataclass(frozen=True)
class PageTheme:
    """The texts and files of the page; a logo or a stylesheet that is not set is None."""

    title: str
    welcome: str | None
    suggestions: tuple[str, ...]
    logo: PageFile | None
    stylesheet: PageFile | None

    def placeholders(self, root: str) -> dict[str, str]:
        """The HTML for the placeholders of the page, by name.

        ``root`` is the URL of the chat page relative to that of the page, such as ``../``.
        """
        logo = f"{root}{FAVICON if self.logo is None else LOGO_PATH}"
        content = {
            "title": self.title,
            "logo": logo,
            "welcome": self.welcome,
            "suggestions": self.suggestions,
        }
        return {
            "title": html.escape(self.title),
            "logo": logo,
            "theme": html.escape(json.dumps(content, ensure_ascii=False)),
        }

    def links(self, root: str) -> str:
        """The elements that are added to the head of the page; ``root`` as in `placeholders`."""
        # After the styles of the page, which it overrides.
        if self.stylesheet is None:
            return ""
        return f'<link rel="stylesheet" href="{root.removeprefix("./")}{STYLESHEET_PATH}">'


def load_theme(settings: Settings, suggestions: Sequence[str] = ()) -> PageTheme:
    """Read the files that the settings name.

    Args:
        settings: The settings of the application.
        suggestions: First messages that the page offers if the settings name none.

    Raises:
        ConfigurationError: A file cannot be used.
    """
    return PageTheme(
        settings.title,
        settings.welcome,
        settings.suggestions or tuple(suggestions),
        _load("logo", settings.logo, _LOGO_TYPES),
        _load("page_stylesheet", settings.page_stylesheet, _STYLESHEET_TYPES),
    )


def _load(setting: str, name: str | None, media_types: dict[str, str]) -> PageFile | None:
    if name is None:
        return None
    path = Path(name)
    media_type = media_types.get(path.suffix.lower())
    if media_type is None:
        known = ", ".join(media_types)
        raise ConfigurationError(f"The {setting} {name} must be a file whose name ends in {known}.")
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(
            f"The {setting} {name} cannot be read: {error.strerror}."
        ) from None
    if len(content) > MAX_FILE_BYTES:
        raise ConfigurationError(
            f"The {setting} {name} is too large; it may have {MAX_FILE_BYTES // 1024} KiB."
        )
    return PageFile(media_type, content, REVALIDATE)
