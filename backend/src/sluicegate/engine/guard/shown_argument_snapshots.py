"""The arguments of a turn's calls as their approvers see them, kept from the last callback on."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sluicegate.core.event_reading import CONFIRMATION, adk_calls_of, arguments_of, attribute, text
from sluicegate.core.exactly_shown_arguments import NotShowable
from sluicegate.core.json_values import canonical_json
from sluicegate.core.payload_validation import shown_payload

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.adk.events.event import Event
    from google.adk.tools.tool_confirmation import ToolConfirmation
    from pydantic import JsonValue

    from sluicegate.core.exactly_shown_arguments import ShownArguments
    from sluicegate.engine.guard.claims import ToolCall


class ArgumentSnapshots:
    """The shown arguments of calls by name, or why they cannot be shown."""

    def __init__(self) -> None:
        self._snapshots: dict[str, ShownArguments | NotShowable] = {}
        self._schemas: dict[str, dict[str, Any]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._snapshots

    def add(self, call: ToolCall) -> None:
        """Copy the arguments of a call: its tool may change them before it requests approval."""
        try:
            self._snapshots[call.name] = call.shown()
        except NotShowable as reason:
            self._snapshots[call.name] = reason

    def add_payload(self, name: str, confirmation: ToolConfirmation) -> None:
        """Copy the payload of a confirmation: the request, the card and the digest get the copy."""
        snapshot = self.get(name)
        if snapshot is None or confirmation.payload is None:
            return
        try:
            confirmation.payload = shown_payload(confirmation.payload)
            self._snapshots[name] = replace(snapshot, payload=confirmation.payload)
        except NotShowable as reason:
            self._snapshots[name] = reason

    def remove(self, name: str) -> None:
        """Forget the arguments of a call whose callbacks run again."""
        self._snapshots.pop(name, None)

    def add_schema(self, name: str, schema: dict[str, Any]) -> None:
        """Show a call with this schema in place of the one that was read at the start."""
        self._schemas[name] = schema

    def get(self, name: str) -> ShownArguments | None:
        """Return the shown arguments of a call; None if they cannot be shown."""
        snapshot = self._snapshots.get(name)
        return None if isinstance(snapshot, NotShowable) else snapshot

    def digest(self, name: str, payload: JsonValue) -> str | None:
        """Return the digest of a call's arguments with a payload; None if they cannot be shown."""
        snapshot = self.get(name)
        return None if snapshot is None else replace(snapshot, payload=payload).digest

    def refusal(self, name: str) -> str | None:
        """Return why the approval of a call cannot be requested; None if it can."""
        snapshot = self._snapshots.get(name)
        if not isinstance(snapshot, NotShowable):
            return None
        return f"Not run: {snapshot.subject} cannot be shown to the user exactly, since {snapshot}."

    def note(self, event: Event) -> dict[str, Any]:
        """Return what an event that requests approvals needs of the shown arguments.

        ADK: its request quotes the arguments that the model wrote, before all callbacks.
        """
        notes: dict[str, Any] = {}
        for call in adk_calls_of(event):
            args = attribute(call, "args")
            if call.name == CONFIRMATION:
                original = attribute(args, "originalFunctionCall")
                name, quoted = text(original, "id"), arguments_of(original)
                payload = attribute(args, "toolConfirmation", "payload")
            else:
                name, quoted = text(call, "id"), arguments_of(attribute(args, "payload"))
                payload = attribute(args, "payload", "confirmation_payload")
            note = self._card(name, quoted)
            if payload is not None:
                # ADK: the request of a node of a Workflow is not shown to callbacks.
                with suppress(NotShowable):
                    note["payload"] = shown_payload(payload)
            if note:
                notes[name] = note
        return {"cards": notes} if notes else {}

    def _card(self, name: str, quoted: Mapping[str, Any]) -> dict[str, Any]:
        """What the card of a call shows otherwise than its request quotes, or beside it."""
        snapshot = self.get(name)
        note: dict[str, Any] = {}
        if snapshot is None:
            return note
        if canonical_json(dict(snapshot.arguments)) != canonical_json(dict(quoted)):
            note["arguments"] = snapshot.arguments
        if snapshot.defaults:
            note["defaults"] = dict(snapshot.defaults)
        if name in self._schemas:
            note["schema"] = self._schemas[name]
        return note
