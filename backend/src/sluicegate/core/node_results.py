"""What becomes of the gated tool nodes of a Workflow.

ADK: a node's result is no function response but an event of its own, with the node's path and the
result as ``Event.output``. A tool that returned None leaves an event without one; that it is over
stands in the Workflow's next checkpoint. A node that raised leaves an error event, and may be
tried again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluicegate.core.event_parts import (
    NODE_CONFIRMATION,
    attribute,
    code_of,
    media_in_output,
    notes_of,
    parts_of,
    text,
)
from sluicegate.core.exchange_events import noted
from sluicegate.core.gate import NOT_FINISHED
from sluicegate.core.items import NodeEnded, Question
from sluicegate.core.json_safe import json_safe
from sluicegate.core.signals import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sluicegate.core.event_parts import Media
    from sluicegate.core.items import Item

_COMPLETED: Final = 3
"""ADK's ``NodeStatus.COMPLETED``, as checkpoints store it."""


class NodeResults:
    """The tool nodes that were asked about, by their path."""

    def __init__(self, files_url: str = "") -> None:
        self._files_url = files_url
        self._asked: set[str] = set()
        self._failed: set[str] = set()
        self._silent: set[str] = set()

    def note(self, items: Iterable[Item]) -> None:
        """Take what an event asks."""
        for item in items:
            if isinstance(item, Question) and item.id.startswith(NODE_CONFIRMATION):
                self._asked.add(item.id.removeprefix(NODE_CONFIRMATION))

    def read(self, event: object) -> list[NodeEnded]:
        """Whatever this event says of a node that was asked about."""
        path = text(attribute(event, "node_info"), "path")
        if path not in self._asked:
            return self._completed(event)
        outcomes = attribute(notes_of(event), "outcomes")
        interrupt = NODE_CONFIRMATION + path
        wire_id = f"{text(event, 'invocation_id')}:{interrupt}"
        outcome = noted(outcomes, interrupt, wire_id)
        output = attribute(event, "output")
        if outcome is None and output is not None:
            rest, files = media_in_output(json_safe(output), self._files_url)
            return [self._end(path, Outcome("output", rest), files)]
        if outcome is not None:
            return [self._end(path, outcome)]
        if code_of(event):
            self._failed.add(path)
        elif attribute(event, "node_info", "message_as_output"):
            said = "".join(text(part, "text") for part in parts_of(event))
            return [self._end(path, Outcome("output", said))]
        elif not parts_of(event):
            self._silent.add(path)
        return []

    def end(self) -> list[NodeEnded]:
        """Nothing follows: what failed was not tried again."""
        return [self._end(path, NOT_FINISHED) for path in sorted(self._failed)]

    def _completed(self, event: object) -> list[NodeEnded]:
        if not self._silent:
            return []
        nodes = attribute(event, "actions", "agent_state", "nodes")
        over = [
            path for path in self._silent if attribute(nodes, _node(path), "status") == _COMPLETED
        ]
        return [self._end(path, Outcome("output", None)) for path in sorted(over)]

    def _end(self, path: str, outcome: Outcome, files: Sequence[Media] = ()) -> NodeEnded:
        self._asked.discard(path)
        self._failed.discard(path)
        self._silent.discard(path)
        return NodeEnded(NODE_CONFIRMATION + path, outcome, tuple(files))


def _node(path: str) -> str:
    return path.rpartition("/")[2].partition("@")[0]
