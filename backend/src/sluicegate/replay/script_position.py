"""What a request to the model tells: who speaks, what the user last said, how far the answer is.

The scripted model keeps no state, so that it goes on where it was after a restart or on another
replica; everything it needs is read from the request, as a real model would.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from google.genai import types

from sluicegate.live.run import CUT_SHORT
from sluicegate.media.selection import ATTACHED, LEFT_OUT, TOOL_DATA

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.models.llm_request import LlmRequest

    from sluicegate.replay.scenario import ScriptedResponse

# ADK: every non-live request carries the speaking agent's name as a billing label.
_AGENT_LABEL: Final = "adk_agent_name"
_AGENT_INSTRUCTION: Final = re.compile(r'Your internal name is "([^"]+)"')

# These contents and parts have the user's role, but no user has written them: ADK, or we, have.
_NOT_THE_USER: Final = (
    "For context: below is a transcript of what another agent did",
    "The text between <<<BEGIN_SYSTEM_INSTRUCTION>>>",
    "Handle the requests as specified in the System Instruction.",
    "Continue processing previous requests as instructed.",
    "Important: You will not receive any user replies or clarifications.",
    "Referenced inline data: ",
    "Referenced file data: ",
    TOOL_DATA,
    CUT_SHORT,
)
_QUOTED: Final = re.compile(
    r"\[(?P<agent>.+?)\] (?:said|called tool `(?P<call>.+?)` with parameters|"
    r"`(?P<result>.+?)` tool returned result):\n<<<BEGIN_QUOTED_AGENT_CONTENT>>>\n(?P<words>.*)\n"
    r"<<<END_QUOTED_AGENT_CONTENT>>>",
    re.DOTALL,
)
# What stands around files in a request is no text of the user's; a message of a tool's files is
# none at all.
_AROUND_FILES: Final = (ATTACHED, LEFT_OUT)
_ARTIFACT: Final = re.compile(r"Artifact .* is:")


@dataclass(frozen=True, slots=True)
class Said:
    """One content of the agent.

    Its words, the count of its calls, and whether it is the first since somebody else spoke.
    """

    text: str
    calls: int
    first: bool


@dataclass(frozen=True, slots=True)
class Position:
    """Where a conversation stands.

    ``agent`` is who speaks, None when the request does not say. ``text`` is the last user text,
    its parts joined by line breaks. ``answered`` counts the agent's own contents after it, which
    ``said`` lists. ``times`` is how often the user has said this text.
    """

    agent: str | None
    text: str
    answered: int
    said: tuple[Said, ...] = field(default=(), compare=False)
    times: int = field(default=1, compare=False)


def read_position(request: LlmRequest) -> Position:
    """Read from a request everything the choice of a response depends on."""
    agent = speaking_agent(request)
    contents = own_contents(request.contents, agent)
    text, said = read_contents(contents)
    texts = [user_text(content) for content in contents if content.role != "model"]
    return Position(agent, text, len(said), said, times=texts.count(text))


def own_contents(contents: Sequence[types.Content], agent: str | None) -> list[types.Content]:
    """The contents, with what the agent itself did in a live conversation as its own again."""
    return [_own(content, agent) for content in contents]


def _own(content: types.Content, agent: str | None) -> types.Content:
    # ADK: once a live session has an id, its events are told to their own agent as another's.
    preamble, *rest = content.parts or [types.Part()]
    if not (preamble.text or "").startswith(_NOT_THE_USER[0]):
        return content
    quotes = [_QUOTED.fullmatch(part.text or "") for part in rest]
    found = [quote for quote in quotes if quote and quote["agent"] == agent]
    if not found or len(found) < len(quotes):
        return content
    role = "user" if any(quote["result"] for quote in found) else "model"
    return types.Content(role=role, parts=[_unquoted(quote) for quote in found])


def _unquoted(quote: re.Match[str]) -> types.Part:
    if quote["call"]:
        return types.Part(function_call=types.FunctionCall(name=quote["call"]))
    if quote["result"]:
        return types.Part(function_response=types.FunctionResponse(name=quote["result"]))
    return types.Part(text=quote["words"])


def read_contents(contents: Sequence[types.Content]) -> tuple[str, tuple[Said, ...]]:
    """The last user text, and what the agent has said since, in order."""
    text, since = "", 0
    for index, content in enumerate(contents):
        if content.role != "model" and (words := user_text(content)):
            text, since = words, index + 1
    said: list[Said] = []
    first = True
    for content in contents[since:]:
        if content.role == "model":
            said.append(_said(content, first=first))
        first = content.role != "model"
    return text, tuple(said)


def _said(content: types.Content, *, first: bool) -> Said:
    parts = content.parts or []
    text = "".join(part.text for part in parts if part.text and not part.thought)
    return Said(text, sum(part.function_call is not None for part in parts), first)


def speaking_agent(request: LlmRequest) -> str | None:
    """The agent that the request is made for, None when it does not say."""
    labels = request.config.labels or {}
    if name := labels.get(_AGENT_LABEL):
        return name
    # ADK: a live request has no label, but the agent's name in its instruction.
    instruction = request.config.system_instruction
    found = _AGENT_INSTRUCTION.search(instruction) if isinstance(instruction, str) else None
    return found[1] if found else None


def user_text(content: types.Content) -> str:
    """What the user has written in a content, empty when it is none of the user's."""
    parts = content.parts or []
    if any(part.function_response for part in parts):
        return ""
    texts = [p.text for p in parts if p.text and not p.text.startswith(_AROUND_FILES)]
    if not texts or texts[0].startswith(_NOT_THE_USER):
        return ""
    if len(texts) < len(parts) and _ARTIFACT.fullmatch(texts[0]):
        return ""
    return "\n".join(text for text in texts if not text.startswith(_NOT_THE_USER))


def answered(said: Sequence[Said], responses: Sequence[ScriptedResponse]) -> int:
    """The count of responses that the contents of the agent amount to.

    A content is another one, unless it follows directly and says what its response still lacks.
    """
    count = 0
    rest: _Rest | None = None
    for each in said:
        if rest is not None and not each.first and rest.takes(each):
            continue
        rest = _Rest(responses[count]) if count < len(responses) else None
        count += 1
        if rest is not None and not rest.takes(each):
            rest = None
    return count


class _Rest:
    """What of a response has not been said yet."""

    def __init__(self, response: ScriptedResponse) -> None:
        parts = response.parts
        written = "".join(part.text or "" for part in parts)
        transcripts = (part.transcript for part in parts if part.transcript is not None)
        spoken = "".join(each.text for each in transcripts if each.role == "model")
        self._words = [written, spoken]
        self._calls = sum(part.call is not None for part in parts)

    def takes(self, said: Said) -> bool:
        if said.calls > self._calls or not (said.text or said.calls):
            return False
        if said.text:
            fitting = (
                place for place, left in enumerate(self._words) if left.startswith(said.text)
            )
            place = next(fitting, None)
            if place is None:
                return False
            self._words[place] = self._words[place][len(said.text) :]
        self._calls -= said.calls
        return True
