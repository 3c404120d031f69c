"""What a request to the model tells: who speaks, what the user last said, how far the answer is.

The scripted model keeps no state, so that it goes on where it was after a restart or on another
replica; everything it needs is read from the request, as a real model would.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from google.adk.models.llm_request import LlmRequest
    from google.genai import types

# ADK: every non-live request carries the speaking agent's name as a billing label.
_AGENT_LABEL: Final = "adk_agent_name"
_AGENT_INSTRUCTION: Final = re.compile(r'Your internal name is "([^"]+)"')

# ADK: these contents and parts have the user's role, but no user has written them.
_NOT_THE_USER: Final = (
    "For context: below is a transcript of what another agent did",
    "The text between <<<BEGIN_SYSTEM_INSTRUCTION>>>",
    "Handle the requests as specified in the System Instruction.",
    "Continue processing previous requests as instructed.",
    "Important: You will not receive any user replies or clarifications.",
    "Referenced inline data: ",
    "Referenced file data: ",
)
_ARTIFACT: Final = re.compile(r"Artifact .* is:")


@dataclass(frozen=True, slots=True)
class Position:
    """Where a conversation stands.

    ``agent`` is who speaks, None when the request does not say. ``text`` is the last user text,
    its parts joined by line breaks. ``answered`` counts the agent's own contents after it.
    """

    agent: str | None
    text: str
    answered: int


def read_position(request: LlmRequest) -> Position:
    """Read from a request everything the choice of a response depends on."""
    text, answered = "", 0
    for content in reversed(request.contents):
        if content.role == "model":
            answered += 1
        elif said := _user_text(content):
            text = said
            break
    return Position(agent=_speaking_agent(request), text=text, answered=answered)


def _speaking_agent(request: LlmRequest) -> str | None:
    labels = request.config.labels or {}
    if name := labels.get(_AGENT_LABEL):
        return name
    # ADK: a live request has no label, but the agent's name in its instruction.
    instruction = request.config.system_instruction
    found = _AGENT_INSTRUCTION.search(instruction) if isinstance(instruction, str) else None
    return found[1] if found else None


def _user_text(content: types.Content) -> str:
    parts = content.parts or []
    if any(part.function_response for part in parts):
        return ""
    texts = [part.text for part in parts if part.text]
    if not texts or texts[0].startswith(_NOT_THE_USER):
        return ""
    if len(texts) < len(parts) and _ARTIFACT.fullmatch(texts[0]):
        return ""
    return "\n".join(text for text in texts if not text.startswith(_NOT_THE_USER))
