"""Thoughts and signatures are sent only to the provider that made them.

A chat may change its model. A provider refuses signatures of another one, and Gemini 3 refuses a
call without a signature (S1-R43). So each signed part records its signer, and a call by another
model gets the mark that Gemini's providers accept in place of a signature.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.genai import types

    from sluicegate.media.model_capability_table import ModelCapabilities

SIGNER_KEY: Final = "sluicegate_signed_by"
"""The key of ``Part.part_metadata`` for the signer of a thought or a signature."""

SKIP_VALIDATION: Final = b"skip_thought_signature_validator"
"""Google's mark for a call by another model."""


def record_signer(content: types.Content | None, row: ModelCapabilities) -> None:
    """Record the signer in each thought and each signed part of a response."""
    for part in (content.parts if content is not None else None) or []:
        if part.thought or part.thought_signature:
            part.part_metadata = {**(part.part_metadata or {}), SIGNER_KEY: row.signatures}


def readable_parts(parts: Sequence[types.Part], row: ModelCapabilities) -> list[types.Part]:
    """Return parts without other providers' thoughts and signatures, with the first call signed."""
    own = [_cleaned(part, row) for part in parts if not (part.thought and _is_foreign(part, row))]
    if row.signs_calls:
        first = next((index for index, part in enumerate(own) if part.function_call), None)
        if first is not None and not own[first].thought_signature:
            own[first] = own[first].model_copy(update={"thought_signature": SKIP_VALIDATION})
    return own


def _is_foreign(part: types.Part, row: ModelCapabilities) -> bool:
    signer = (part.part_metadata or {}).get(SIGNER_KEY)
    return signer is not None and signer != row.signatures


def _cleaned(part: types.Part, row: ModelCapabilities) -> types.Part:
    """Return a part without the record of the signer, and without another provider's signature."""
    metadata = part.part_metadata
    if not metadata or SIGNER_KEY not in metadata:
        return part
    rest = {key: value for key, value in metadata.items() if key != SIGNER_KEY}
    signature = None if _is_foreign(part, row) else part.thought_signature
    return part.model_copy(update={"part_metadata": rest or None, "thought_signature": signature})
