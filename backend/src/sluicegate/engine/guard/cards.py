"""The arguments of a turn's calls as their approvers see them, kept from the last callback on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluicegate.core.events import CONFIRMATION, adk_calls_of, arguments_of, attribute, text
from sluicegate.core.json_values import canonical_json
from sluicegate.core.shown_arguments import NotShowable

if TYPE_CHECKING:
    from google.adk.events.event import Event

    from sluicegate.core.shown_arguments import ShownArguments
    from sluicegate.engine.guard.claims import ToolCall


class Cards:
    """The shown arguments of calls by name, or why they cannot be shown."""

    def __init__(self) -> None:
        self._cards: dict[str, ShownArguments | NotShowable] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._cards

    def add(self, call: ToolCall) -> None:
        """Copy the arguments of a call: its tool may change them before it requests approval."""
        try:
            self._cards[call.name] = call.shown()
        except NotShowable as reason:
            self._cards[call.name] = reason

    def get(self, name: str) -> ShownArguments | None:
        """Return the shown arguments of a call; None if they cannot be shown."""
        card = self._cards.get(name)
        return None if isinstance(card, NotShowable) else card

    def digest(self, name: str) -> str | None:
        """Return the digest of a call's arguments; None if they cannot be shown."""
        card = self.get(name)
        return None if card is None else card.digest

    def refusal(self, name: str) -> str | None:
        """Return why the approval of a call cannot be requested; None if it can."""
        card = self._cards.get(name)
        if not isinstance(card, NotShowable):
            return None
        return f"Not run: the arguments cannot be shown to the user exactly, since {card}."

    def note(self, event: Event) -> dict[str, Any]:
        """Return what an event that requests approvals needs of the shown arguments.

        ADK: its request quotes the arguments that the model wrote, before all callbacks.
        """
        notes: dict[str, Any] = {}
        for call in adk_calls_of(event):
            name, quoted = text(call, "id"), arguments_of(attribute(call, "args", "payload"))
            if call.name == CONFIRMATION:
                original = attribute(call, "args", "originalFunctionCall")
                name, quoted = text(original, "id"), arguments_of(original)
            card = self.get(name)
            if card is None:
                continue
            note: dict[str, Any] = {}
            if canonical_json(dict(card.arguments)) != canonical_json(dict(quoted)):
                note["arguments"] = card.arguments
            if card.defaults:
                note["defaults"] = dict(card.defaults)
            if note:
                notes[name] = note
        return {"cards": notes} if notes else {}
