"""Sends histories, messages and results in the form that a live model accepts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from google.genai import types

from sluicegate.adk_private import send_content, send_contents
from sluicegate.live.history_as_text import as_text, result_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from google.adk.models.base_llm_connection import BaseLlmConnection

    from sluicegate.live.model_input_rules import LiveModelRules
    from sluicegate.live.reconnection_history import ReconnectionHistory

ASKED: Final = "I have asked the user to allow this, and am waiting for the answer."
LISTENING: Final = "I am listening."
REOPENED: Final = "[The conversation goes on from here; wait for what the user says next.]"
"""Ends of a history that the model does not answer when the user opens the chat again."""
GO_ON: Final = (
    "[The connection was lost here. Go on with your answer from this point, and repeat nothing.]"
)
"""The text after which a model continues an answer that has begun on an earlier connection."""

MEANWHILE: Final[dict[str, Any]] = {
    "status": "waiting",
    "message": "This call waits for a person. Its result comes later, as a message.",
}
"""The response to a call whose result comes later, for a model that is silent until it has one."""


class CallNames(Protocol):
    """The calls of a chat, by their ids there."""

    @property
    def memory(self) -> ReconnectionHistory:
        """What was said on the connections of the run."""

    def model_call_id(self, call_id: str) -> str:
        """Return the model's id of a call."""

    def describe_call(self, call_id: str, name: str) -> str:
        """Return a call in words."""

    def is_waiting(self, call_id: str) -> bool:
        """Whether a call waits for a decision since before the run."""


class ModelContentSender:
    """The input of one connection; calls are named by their ids in the chat."""

    def __init__(
        self, inner: BaseLlmConnection, protocol: LiveModelRules, calls: CallNames
    ) -> None:
        self._inner = inner
        self._protocol = protocol
        self._calls = calls
        self._issued: set[str] = set()
        self._notes: list[str] = []

    @property
    def has_open_calls(self) -> bool:
        """Whether a call that the model has made here has no response."""
        return bool(self._issued)

    def call_issued(self, call_id: str) -> None:
        """Note that the model has made a call on this connection."""
        self._issued.add(call_id)

    def calls_cancelled(self, model_ids: Iterable[str]) -> list[str]:
        """Note that the model has cancelled calls; returns those of them that it has made here."""
        ids = set(model_ids)
        cancelled = [each for each in self._issued if self._calls.model_call_id(each) in ids]
        self._issued.difference_update(cancelled)
        return cancelled

    async def send_history(self, history: list[types.Content], *, reopened: bool) -> None:
        """Send the history; ``reopened``: the user has opened the chat, and nothing is answered."""
        last = history[-1] if history else None
        ends_with_user = last is not None and last.role == "user"
        if not self._protocol.is_google:
            if reopened and last is not None and ends_with_user:
                history = [*history, _content("model", self._closing(last))]
            await self._inner.send_history(history)
            return
        texts = as_text(history)
        user_message = None
        if ends_with_user and not reopened and texts and not _results(last):
            user_message = texts.pop()
        if not self._protocol.is_gemini_3:
            # Gemini 2.5 ignores a history that ends with the model.
            texts.append(_content("user", REOPENED))
        elif last is None or ends_with_user or not texts:
            texts.append(_content("model", self._closing(last)))
        await send_contents(self._inner, texts, turn_complete=True)
        if user_message is not None:
            await self._send_message(user_message, partial=False)

    async def send_unknown(self, *, answered: bool) -> None:
        """Send what a resumed session has lost; ``answered``: the model answers the last of it."""
        unknown = self._calls.memory.unknown
        if unknown:
            await send_contents(self._inner, unknown, turn_complete=answered)

    async def send(self, content: types.Content, *, partial: bool) -> None:
        """Send a content; ``partial``: the user's turn continues."""
        if results := _results(content):
            await self._send_results(results, content, partial=partial)
            return
        self._calls.memory.sent(content)
        if not self._protocol.is_google:
            await send_content(self._inner, content, partial=partial)
        elif partial and self._protocol.is_sequential:
            self._notes += [part.text for part in content.parts or [] if part.text]
        else:
            await self._send_message(content, partial=partial)

    async def answer_meanwhile(self, call: types.FunctionCall, *, announced: bool) -> None:
        """Answer a call that waits for a person, if the model is silent until it has a response.

        ``announced``: other models say that it waits, if they take a response before the result.
        """
        call_id = call.id or ""
        if not self._protocol.is_google or call_id not in self._issued:
            return
        response = types.FunctionResponse(
            id=self._calls.model_call_id(call_id), name=call.name, response=MEANWHILE
        )
        if self._protocol.is_sequential:
            self._issued.discard(call_id)
        elif announced and self._protocol.takes_behavior:
            response.will_continue = True
            response.scheduling = types.FunctionResponseScheduling.WHEN_IDLE
        else:
            return
        described = self._calls.describe_call(call_id, call.name or "")
        self._calls.memory.add("user", f"[{result_text(response, described)}]")
        part = types.Part(function_response=response)
        await self._inner.send_content(types.Content(role="user", parts=[part]))

    async def _send_results(
        self, results: list[types.FunctionResponse], content: types.Content, *, partial: bool
    ) -> None:
        parts: list[types.Part] = []
        late: list[str] = []
        for result in results:
            call_id = result.id or ""
            text = result_text(result, self._calls.describe_call(call_id, result.name or ""))
            self._calls.memory.add("user", f"[{text}]")
            if not self._protocol.is_google or call_id in self._issued:
                self._issued.discard(call_id)
                sent = result.model_copy(update={"id": self._calls.model_call_id(call_id)})
                parts.append(types.Part(function_response=sent))
                continue
            if result.scheduling is types.FunctionResponseScheduling.SILENT:
                self._notes.append(text)
            else:
                late.append(text)
        if parts:
            sent_content = types.Content(role=content.role, parts=parts)
            await send_content(self._inner, sent_content, partial=partial)
        if late:
            await self._send_message(_content("user", "\n".join(late)), partial=False)

    async def _send_message(self, content: types.Content, *, partial: bool) -> None:
        parts = [*(content.parts or [])]
        if self._notes and not partial:
            parts.insert(0, types.Part(text="\n".join(self._notes)))
            self._notes.clear()
        if self._protocol.is_sequential:
            parts = await self._send_pictures(parts)
        if all(part.text for part in parts):
            # ADK: a single text is sent as text, any other content as one that 3.1 refuses.
            parts = [types.Part(text="\n".join(part.text or "" for part in parts))]
        message = types.Content(role=content.role or "user", parts=parts)
        await send_content(self._inner, message, partial=partial)

    async def _send_pictures(self, parts: list[types.Part]) -> list[types.Part]:
        """Send pictures as such; returns the texts, which name what the model cannot take."""
        texts: list[types.Part] = []
        for part in parts:
            blob = part.inline_data
            if blob is not None and (blob.mime_type or "").startswith("image/"):
                await self._inner.send_realtime(blob)
            elif part.text:
                texts.append(types.Part(text=part.text))
            else:
                kind = (blob and blob.mime_type) or "unknown type"
                texts.append(types.Part(text=f"[A file of {kind}, which you cannot read here.]"))
        return texts or [types.Part(text="[Look at this picture.]")]

    def _closing(self, last: types.Content | None) -> str:
        waiting = (self._calls.is_waiting(each.id or "") for each in _results(last))
        return ASKED if any(waiting) else LISTENING


def _results(content: types.Content | None) -> list[types.FunctionResponse]:
    parts = content.parts if content is not None else None
    return [part.function_response for part in parts or () if part.function_response is not None]


def _content(role: str, text: str) -> types.Content:
    return types.Content(role=role, parts=[types.Part(text=text)])
