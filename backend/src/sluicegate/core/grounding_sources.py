"""The sources that a model's response names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sluicegate.core.event_reading import attribute, text
from sluicegate.core.signals import (
    Source,
)
from sluicegate.wire.media_types import UNKNOWN_TYPE

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


_SOURCE_KINDS: Final = ("web", "maps", "retrieved_context", "image")


def sources_in(event: object) -> list[Source]:
    """Sources of ``grounding_metadata`` and ``citation_metadata``, in order, each with its URI."""
    return [*_grounding(event), *_citations(event)]


def _grounding(event: object) -> Iterator[Source]:
    for chunk in as_list(attribute(event, "grounding_metadata", "grounding_chunks")):
        for kind in _SOURCE_KINDS:
            source = attribute(chunk, kind)
            uri = text(source, "uri") or text(source, "source_uri")
            if uri:
                yield _source(uri, text(source, "title"))


def _citations(event: object) -> Iterator[Source]:
    for citation in as_list(attribute(event, "citation_metadata", "citations")):
        if text(citation, "uri"):
            yield _source(text(citation, "uri"), text(citation, "title"))


def _source(uri: str, title: str) -> Source:
    """A page for a web address; a document for any other URI (``gs://``)."""
    if uri.startswith(("https://", "http://")):
        return Source(uri, title)
    name = uri.rstrip("/").rpartition("/")[2]
    media_type = _MEDIA_TYPES.get(name.rpartition(".")[2].lower(), UNKNOWN_TYPE)
    return Source(uri, title or name or uri, media_type)


def as_list(value: Any) -> list[Any]:
    """A list or tuple as a list, anything else as an empty one."""
    return list(value) if isinstance(value, list | tuple) else []
