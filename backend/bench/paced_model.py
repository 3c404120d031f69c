"""A model that speaks at the pace of a real one, to people that `bench.people` plays."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from bench.prepared_model import PARTIAL, is_answered, response_of
from bench.script import DELTA, PACE, paced

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from google.adk.models.llm_request import LlmRequest


class PacedModel(BaseLlm):
    """Generates the deltas of `bench.script.paced`, each when it is due.

    A delta that the event loop delays does not delay the next one: a provider would go on, too.
    """

    model: str = "paced"

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT001, FBT002
    ) -> AsyncGenerator[LlmResponse, None]:
        """Yield the partial responses of an answer, then the complete response."""
        count, is_calling = paced(_last_user_text(llm_request), is_called=is_answered(llm_request))
        now = asyncio.get_running_loop().time
        began = now()
        for number in range(count):
            await asyncio.sleep(max(0, began + number / PACE - now()))
            yield PARTIAL
        if is_calling:
            # ADK writes an id into it.
            call = types.FunctionCall(name="transfer", args={"amount": 5})
            parts = [types.Part(text=DELTA * count), types.Part(function_call=call)]
            whole = LlmResponse(content=types.ModelContent(parts))
        else:
            whole = response_of(DELTA * count)
        # ADK warns about a model that reports none.
        whole.usage_metadata = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=1, candidates_token_count=count, total_token_count=count + 1
        )
        yield whole


def _last_user_text(request: LlmRequest) -> str:
    contents = (content for content in reversed(request.contents) if content.role == "user")
    texts = (part.text for content in contents for part in content.parts or ())
    return next((text for text in texts if text), "")
