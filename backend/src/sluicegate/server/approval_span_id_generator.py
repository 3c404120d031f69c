"""The id generator of the SDK with which the spans of approvals have their own ids."""

from __future__ import annotations

from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

from sluicegate.engine.telemetry import IDS


class ApprovalIds(RandomIdGenerator):
    """Random ids, but for the span of an approval, whose ids are known before it is written.

    An application that has a ``TracerProvider`` of its own passes one as its ``id_generator``.
    """

    def generate_trace_id(self) -> int:
        """Return the id of a trace."""
        given = IDS.get()
        return super().generate_trace_id() if given is None else given.trace_id

    def generate_span_id(self) -> int:
        """Return the id of a span."""
        given = IDS.get()
        return super().generate_span_id() if given is None else given.span_id
