"""The position of a conversation in its script, read from the request to the model.

The scripted model keeps no state, so that it continues after a restart or on another replica:
everything it needs is in the request, as for a real model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from google.genai import types

from sluicegate.live.run import CUT_SHORT
from sluicegate.media.file_labels import ATTACHED, LEFT_OUT, TOOL_DATA

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.models.llm_request import LlmRequest

    from sluicegate.replay.scenario import ScriptedResponse

# ADK: every non-live request carries the agent's name as a billing label.
_AGENT_LABEL: Final = "adk_agent_name"
_AGENT_INSTRUCTION: Final = re.compile(r'Your internal name is "([^"]+)"')

# ADK or sluicegate writes these contents and parts in the user's role.
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
# Labels of files; the message with a tool's files has no text of the user at all.
_FILE_LABELS: Final = (ATTACHED, LEFT_OUT)
_ARTIFACT: Final = re.compile(r"Artifact .* is:")


@dataclass(frozen=True, slots=True)
class AgentContent:
    """One content of the agent: its text and the count of its calls.

    ``is_first``: it does not directly follow another content of the agent.
    """

    text: str
    calls: int
    is_first: bool


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a conversation.

    ``agent`` is the speaking agent, None when the request does not name it. ``text`` is the last
    user text, its parts joined by line breaks. ``answered`` counts the agent's own contents after
    it, which ``contents`` lists. ``times`` counts the user messages with this text.
    """

    agent: str | None
    text: str
    answered: int
    contents: tuple[AgentContent, ...] = field(default=(), compare=False)
    times: int = field(default=1, compare=False)


def read_position(request: LlmRequest) -> Position:
    """Read the position from a request."""
    agent = speaking_agent(request)
    contents = own_contents(request.contents, agent)
    text, answer = read_contents(contents)
    texts = [user_text(content) for content in contents if content.role != "model"]
    return Position(agent, text, len(answer), answer, times=texts.count(text))


def own_contents(contents: Sequence[types.Content], agent: str | None) -> list[types.Content]:
    """Return the contents; those of the agent that ADK quotes from a live run are its own again."""
    return [_own(content, agent) for content in contents]


def _own(content: types.Content, agent: str | None) -> types.Content:
    # ADK: once a live session has an id, it quotes its events to their own agent as another's.
    preamble, *rest = content.parts or [types.Part()]
    if not (preamble.text or "").startswith(_NOT_THE_USER[0]):
        return content
    quotes = [_QUOTED.fullmatch(part.text or "") for part in rest]
    own = [quote for quote in quotes if quote and quote["agent"] == agent]
    if not own or len(own) < len(quotes):
        return content
    role = "user" if any(quote["result"] for quote in own) else "model"
    return types.Content(role=role, parts=[_unquoted(quote) for quote in own])


def _unquoted(quote: re.Match[str]) -> types.Part:
    if quote["call"]:
        return types.Part(function_call=types.FunctionCall(name=quote["call"]))
    if quote["result"]:
        return types.Part(function_response=types.FunctionResponse(name=quote["result"]))
    return types.Part(text=quote["words"])


def read_contents(contents: Sequence[types.Content]) -> tuple[str, tuple[AgentContent, ...]]:
    """Return the last user text, and the agent's contents after it in order."""
    text, start = "", 0
    for index, content in enumerate(contents):
        if content.role != "model" and (words := user_text(content)):
            text, start = words, index + 1
    answer: list[AgentContent] = []
    is_first = True
    for content in contents[start:]:
        if content.role == "model":
            answer.append(_agent_content(content, is_first=is_first))
        is_first = content.role != "model"
    return text, tuple(answer)


def _agent_content(content: types.Content, *, is_first: bool) -> AgentContent:
    parts = content.parts or []
    text = "".join(part.text for part in parts if part.text and not part.thought)
    return AgentContent(text, sum(part.function_call is not None for part in parts), is_first)


def speaking_agent(request: LlmRequest) -> str | None:
    """Return the agent that a request is made for, None when the request does not name it."""
    labels = request.config.labels or {}
    if name := labels.get(_AGENT_LABEL):
        return name
    # ADK: a live request has no label, but the agent's name in its instruction.
    instruction = request.config.system_instruction
    match = _AGENT_INSTRUCTION.search(instruction) if isinstance(instruction, str) else None
    return match[1] if match else None


def user_text(content: types.Content) -> str:
    """Return the text that the user has written in a content, empty if there is none."""
    parts = content.parts or []
    if any(part.function_response for part in parts):
        return ""
    texts = [p.text for p in parts if p.text and not p.text.startswith(_FILE_LABELS)]
    if not texts or texts[0].startswith(_NOT_THE_USER):
        return ""
    if len(texts) < len(parts) and _ARTIFACT.fullmatch(texts[0]):
        return ""
    return "\n".join(text for text in texts if not text.startswith(_NOT_THE_USER))


def count_responses(contents: Sequence[AgentContent], responses: Sequence[ScriptedResponse]) -> int:
    """Count the responses that contents of the agent make up.

    A content begins another response, unless it directly follows the last one and is a part of that
    response that is still missing.
    """
    count = 0
    remainder: _Remainder | None = None
    for content in contents:
        if remainder is not None and not content.is_first and remainder.take(content):
            continue
        remainder = _Remainder(responses[count]) if count < len(responses) else None
        count += 1
        if remainder is not None and not remainder.take(content):
            remainder = None
    return count


class _Remainder:
    """The text and the calls of a response that no content has had yet."""

    def __init__(self, response: ScriptedResponse) -> None:
        parts = response.parts
        written = "".join(part.text or "" for part in parts)
        transcripts = (part.transcript for part in parts if part.transcript is not None)
        spoken = "".join(each.text for each in transcripts if each.role == "model")
        self._texts = [written, spoken]
        self._calls = sum(part.call is not None for part in parts)

    def take(self, content: AgentContent) -> bool:
        """Remove a content; False if it is not a part of the remainder."""
        if content.calls > self._calls or not (content.text or content.calls):
            return False
        if content.text:
            matching = (i for i, text in enumerate(self._texts) if text.startswith(content.text))
            index = next(matching, None)
            if index is None:
                return False
            self._texts[index] = self._texts[index][len(content.text) :]
        self._calls -= content.calls
        return True
