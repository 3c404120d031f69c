"""Thoughts and signatures are a provider's own: what another one signed is not sent to it.

A chat may change its model. The new one refuses a signature that it did not make, and Gemini 3
refuses a call without one (S1-R43); so each signed part says who made it, and a call that comes
from elsewhere gets the mark that providers of Gemini accept in its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.genai import types

    from sluicegate.media.capabilities import ModelCapabilities

SIGNER_KEY: Final = "sluicegate_signed_by"
"""Where ``Part.part_metadata`` says who made a thought or a signature."""

SKIP_VALIDATION: Final = b"skip_thought_signature_validator"
"""Google's own mark for a call that came from another model."""


def record_signer(content: types.Content | None, row: ModelCapabilities) -> None:
    """Note on each thought and each signed part of an answer who made it."""
    for part in (content.parts if content is not None else None) or []:
        if part.thought or part.thought_signature:
            part.part_metadata = {**(part.part_metadata or {}), SIGNER_KEY: row.signatures}


def readable_parts(parts: Sequence[types.Part], row: ModelCapabilities) -> list[types.Part]:
    """The parts of an answer as a model reads them: foreign thoughts gone, calls signed."""
    kept = [_own(part, row) for part in parts if not (part.thought and _is_foreign(part, row))]
    if row.signs_calls:
        first = next((index for index, part in enumerate(kept) if part.function_call), None)
        if first is not None and not kept[first].thought_signature:
            kept[first] = kept[first].model_copy(update={"thought_signature": SKIP_VALIDATION})
    return kept


def _is_foreign(part: types.Part, row: ModelCapabilities) -> bool:
    maker = (part.part_metadata or {}).get(SIGNER_KEY)
    return maker is not None and maker != row.signatures


def _own(part: types.Part, row: ModelCapabilities) -> types.Part:
    """A part without our note, which no provider knows, and without a foreign signature."""
    metadata = part.part_metadata
    if not metadata or SIGNER_KEY not in metadata:
        return part
    rest = {key: value for key, value in metadata.items() if key != SIGNER_KEY}
    signature = None if _is_foreign(part, row) else part.thought_signature
    return part.model_copy(update={"part_metadata": rest or None, "thought_signature": signature})
