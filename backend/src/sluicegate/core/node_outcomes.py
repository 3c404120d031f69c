"""The outcomes of tool nodes of a Workflow, which are events of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluicegate.core.event_reading import (
    NODE_CONFIRMATION,
    attribute,
    code_of,
    media_in_output,
    parts_of,
    recorded_outcome,
    text,
)
from sluicegate.core.json_values import json_safe
from sluicegate.core.signals import (
    NOT_FINISHED,
    ApprovalRequested,
    Media,
    Outcome,
    ReadSignal,
    Settled,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


_COMPLETED: Final = 3
"""ADK's ``NodeStatus.COMPLETED``, as checkpoints store it."""


class NodeOutcomes:
    """Outcomes of the tool nodes of a Workflow whose approval was requested, by their path.

    ADK: a node's result is no function response but an event of its own, with the node's path and
    the result as ``Event.output``. A tool that returned None leaves an event without output; the
    Workflow's next checkpoint says that it is complete. A node that raised leaves an error event,
    and may be retried.
    """

    def __init__(self, files_url: str = "") -> None:
        self._files_url = files_url
        self._requested: set[str] = set()
        self._failed: set[str] = set()
        self._without_output: set[str] = set()

    def add_requests(self, signals: Iterable[ReadSignal]) -> None:
        """Note the approval requests of an event."""
        for signal in signals:
            if isinstance(signal, ApprovalRequested) and signal.request.is_of_node:
                path = signal.request.confirmation_id.removeprefix(NODE_CONFIRMATION)
                self._requested.add(path)

    def read(self, event: object) -> list[Settled]:
        """The outcomes that this event reports."""
        path = text(attribute(event, "node_info"), "path")
        if path not in self._requested:
            return self._completed(event)
        interrupt = NODE_CONFIRMATION + path
        outcome = recorded_outcome(event, interrupt, f"{text(event, 'invocation_id')}:{interrupt}")
        if outcome is not None:
            return [self._settle(path, outcome)]
        output = attribute(event, "output")
        if output is not None:
            rest, files = media_in_output(json_safe(output), self._files_url)
            return [self._settle(path, Outcome("output", rest), files)]
        if code_of(event):
            self._failed.add(path)
        elif attribute(event, "node_info", "message_as_output"):
            message = "".join(text(part, "text") for part in parts_of(event))
            return [self._settle(path, Outcome("output", message))]
        elif not parts_of(event):
            self._without_output.add(path)
        return []

    def end(self) -> list[Settled]:
        """Settle the nodes that failed and were not retried, at the end of a turn."""
        return [self._settle(path, NOT_FINISHED) for path in sorted(self._failed)]

    def _completed(self, event: object) -> list[Settled]:
        if not self._without_output:
            return []
        nodes = attribute(event, "actions", "agent_state", "nodes")
        completed = [
            path
            for path in self._without_output
            if attribute(nodes, _node_name(path), "status") == _COMPLETED
        ]
        return [self._settle(path, Outcome("output", None)) for path in sorted(completed)]

    def _settle(self, path: str, outcome: Outcome, files: Iterable[Media] = ()) -> Settled:
        self._requested.discard(path)
        self._failed.discard(path)
        self._without_output.discard(path)
        return Settled(NODE_CONFIRMATION + path, outcome, files=tuple(files))


def _node_name(path: str) -> str:
    return path.rpartition("/")[2].partition("@")[0]
