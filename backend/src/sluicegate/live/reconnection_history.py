"""What was said on the connections of a live run, and what of it a resumed session does not know.

Google gives no handle of a session while the model speaks or a call is open, and a session that is
resumed with an older handle has lost what came after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.genai import types

from sluicegate.live.history_as_text import call_text

if TYPE_CHECKING:
    from google.adk.models.llm_response import LlmResponse


class ReconnectionHistory:
    """The contents that a model was sent and has said since its first connection, as it knows them.

    Calls and results are in words. Files stay until the session can be resumed.
    """

    def __init__(self) -> None:
        self.contents: list[types.Content] = []
        self.is_resumable = False
        """Whether the model has given a handle."""
        self._known = 0

    @property
    def unknown(self) -> list[types.Content]:
        """What a resumed session does not know."""
        return self.contents[self._known :]

    @property
    def ends_with_user(self) -> bool:
        """Whether the model has not begun to answer what it was sent last."""
        return bool(self.contents) and self.contents[-1].role == "user"

    def clear(self) -> None:
        """Begin anew: the model gets another history."""
        self.contents.clear()
        self.is_resumable = False
        self._known = 0

    def became_resumable(self) -> None:
        """Note that the session can be resumed as it is now."""
        self.is_resumable = True
        self.contents[self._known :] = map(_without_files, self.unknown)
        self._known = len(self.contents)

    def sent(self, content: types.Content) -> None:
        """Note a message of the user."""
        self.contents.append(types.Content(role="user", parts=content.parts))

    def add(self, role: str, text: str) -> None:
        """Note a text."""
        self.contents.append(types.Content(role=role, parts=[types.Part(text=text)]))

    def received(self, response: LlmResponse) -> None:
        """Note what is complete in a response of the model."""
        speakers = (
            ("user", response.input_transcription),
            ("model", response.output_transcription),
        )
        for role, said in speakers:
            if said is not None and said.finished and said.text:
                self.add(role, said.text)
        for part in (response.content and response.content.parts) or ():
            if part.function_call is not None:
                self.add("model", f"[I called {call_text(part.function_call)}.]")
            elif part.text and not part.thought and not response.partial:
                self.add("model", part.text)


def _without_files(content: types.Content) -> types.Content:
    parts = [
        part if part.text else types.Part(text="[A file that the user has sent.]")
        for part in content.parts or ()
    ]
    return types.Content(role=content.role, parts=parts)
