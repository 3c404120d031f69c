"""One run of ADK for one turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from google.adk.agents._streaming_mode import StreamingMode
from google.adk.agents.run_config import RunConfig, ToolThreadPoolConfig
from google.adk.telemetry import ContentCapturingMode, TelemetryConfig

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from google.adk.events.event import Event
    from google.adk.runners import Runner
    from google.genai import types

    from sluicegate.engine.running.running_turn import RunningTurn

TELEMETRY: Final = TelemetryConfig(capture_message_content=ContentCapturingMode.NO_CONTENT)
"""ADK writes texts and arguments into its spans unless it is told not to."""


def events_of(
    runner: Runner, turn: RunningTurn, message: types.Content | None, max_model_calls: int
) -> AsyncIterator[Event] | None:
    """The events of a run with a message; None where there is nothing to run."""
    if message is None:
        return None
    return runner.run_async(
        user_id=turn.chat.user,
        session_id=turn.chat.chat,
        new_message=message,
        run_config=RunConfig(
            streaming_mode=StreamingMode.SSE,
            max_llm_calls=max_model_calls,
            custom_metadata=turn.stamp.as_metadata(),
            tool_thread_pool_config=ToolThreadPoolConfig(),
            telemetry=TELEMETRY,
        ),
        abort_signal=turn.abort,
    )
