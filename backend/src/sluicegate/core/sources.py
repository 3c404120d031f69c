"""What an answer rests on: grounding and citations of a model event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sluicegate.core.event_parts import attribute, text
from sluicegate.core.items import Cited
from sluicegate.wire.stored_files import UNKNOWN_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator

_MEDIA_TYPES: Final = {
    "csv": "text/csv",
    "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "html": "text/html",
    "json": "application/json",
    "md": "text/markdown",
    "pdf": "application/pdf",
    "txt": "text/plain",
}
_KINDS: Final = ("web", "maps", "retrieved_context", "image")


def cited_in(event: object) -> list[Cited]:
    """Sources of ``grounding_metadata`` and ``citation_metadata``, in order, each with its URI."""
    return [*_grounding(event), *_citations(event)]


def _grounding(event: object) -> Iterator[Cited]:
    for chunk in _list(attribute(event, "grounding_metadata", "grounding_chunks")):
        for kind in _KINDS:
            source = attribute(chunk, kind)
            uri = text(source, "uri") or text(source, "source_uri")
            if uri:
                yield _cited(uri, text(source, "title"))


def _citations(event: object) -> Iterator[Cited]:
    for citation in _list(attribute(event, "citation_metadata", "citations")):
        if text(citation, "uri"):
            yield _cited(text(citation, "uri"), text(citation, "title"))


def _cited(uri: str, title: str) -> Cited:
    """A web address is a page; what only a cloud can open (``gs://``) is a document."""
    if uri.startswith(("https://", "http://")):
        return Cited(uri, title)
    name = uri.rstrip("/").rpartition("/")[2]
    media_type = _MEDIA_TYPES.get(name.rpartition(".")[2].lower(), UNKNOWN_TYPE)
    return Cited(uri, title or name or uri, media_type)


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []
