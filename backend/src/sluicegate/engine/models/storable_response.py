"""What a model says, as every store keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluicegate.core.storable import storable_json, storable_text

if TYPE_CHECKING:
    from google.adk.models.llm_response import LlmResponse


def make_storable(response: LlmResponse) -> None:
    """Replace, in place, what the session's store would refuse: the turn would fail for it."""
    for part in (response.content and response.content.parts) or ():
        if part.text is not None:
            part.text = storable_text(part.text)
        call = part.function_call
        if call is not None and call.args is not None:
            call.args = storable_json(call.args)
    for heard in (response.input_transcription, response.output_transcription):
        if heard is not None and heard.text is not None:
            heard.text = storable_text(heard.text)
