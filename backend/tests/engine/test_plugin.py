"""The plugin's own callbacks; gated calls are tested in test_approvals and others."""

from __future__ import annotations

from google.adk.agents.invocation_context import InvocationContext
from google.adk.events.event import Event
from google.adk.sessions import InMemorySessionService

from sluicegate.engine.guard.adk_plugins import ApprovalPlugin


async def test_events_of_earlier_live_runs_are_read_as_own_events_and_not_changed() -> None:
    service = InMemorySessionService()
    session = await service.create_session(app_name="app", user_id="u")
    shared = [Event(author="agent", live_session_id="live"), Event(author="user")]
    session.events = list(shared)
    run = InvocationContext(session_service=service, invocation_id="i", session=session)

    await ApprovalPlugin().before_run_callback(invocation_context=run)

    assert [event.live_session_id for event in run.session.events] == [None, None]
    assert [event.id for event in run.session.events] == [event.id for event in shared]
    assert [event.live_session_id for event in shared] == ["live", None]
