"""What a model may not write: calls that ADK makes itself, and responses to calls.

By a call named ``adk_request_confirmation`` ADK asks for an approval, and by a function response a
call ends. From a model both would be decoys.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from sluicegate.core.event_reading import CONFIRMATION, CREDENTIAL
from sluicegate.core.reserved_call_names import REFUSED_PREFIX, RESERVED_PREFIX

if TYPE_CHECKING:
    from collections.abc import Container

    from google.adk.agents.callback_context import CallbackContext
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse

logger = logging.getLogger("sluicegate")

_NEVER_DECLARED: Final = frozenset({CONFIRMATION, CREDENTIAL})


class DeclaredTools:
    """The names of the tools that the running model calls of a turn were given, by agent."""

    def __init__(self) -> None:
        self._tools: dict[tuple[str, str | None], Container[str]] = {}

    def start_model_call(self, context: CallbackContext, request: LlmRequest) -> None:
        """Start a model call; callbacks that follow may add tools to its request."""
        self._tools[context.agent_name, context.branch] = request.tools_dict

    def refuse_reserved(self, context: CallbackContext, response: LlmResponse) -> None:
        """Apply `refuse_reserved` to a response of the running model call of an agent."""
        refuse_reserved(response, self._tools.get((context.agent_name, context.branch), ()))


def refuse_reserved(response: LlmResponse, declared: Container[str]) -> None:
    """Rename, in place, reserved calls of a model's response, and drop its function responses.

    ``declared`` are the names of the tools that the model was given: ADK's ``request_input`` is
    meant to be called.
    """
    # ADK: an event that contains a call with the name of a confirmation or of a credential request
    # never reaches the model again, nor does the result of that call. So the model is told under
    # another name.
    content = response.content
    if content is None or not content.parts:
        return
    has_responses = False
    for part in content.parts:
        has_responses = has_responses or part.function_response is not None
        call = part.function_call
        name = "" if call is None else call.name or ""
        may_call = name in declared and name not in _NEVER_DECLARED
        if call is not None and name.startswith(RESERVED_PREFIX) and not may_call:
            call.name = f"{REFUSED_PREFIX}{name}"
    if has_responses:
        logger.warning("a model wrote a function response, which was dropped")
        content.parts = [part for part in content.parts if part.function_response is None]


def refusal_of(name: str) -> str | None:
    """Return why a call of a renamed reserved name is refused; None for any other name."""
    reserved = name.removeprefix(REFUSED_PREFIX)
    if reserved == name or not reserved.startswith(RESERVED_PREFIX):
        return None
    return (
        f"Not run: {reserved} is not a tool. Call the tool itself; the server asks the user if the "
        "call requires an approval."
    )
