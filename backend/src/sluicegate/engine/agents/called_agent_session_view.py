"""The session as an agent that is called sees it.

`AgentTool` gives its agent a session of its own, which begins with the request. An agent that runs
in the session of the chat sees the same events: the request, and what happened in the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsIndex, cast

from google.adk.events.event import Event

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from google.adk.sessions.session import Session
    from google.genai import types


class CallSession:
    """A view of a session, in place of it: the request of a call, and the events of the call.

    ``branch`` is that of the call, ``parallel`` are the names of the
    ParallelAgents in it. Everything but the events is that of the session.
    """

    def __init__(
        self,
        session: Session,
        request: types.Content,
        *,
        invocation_id: str,
        branch: str,
        parallel: Collection[str],
    ) -> None:
        request_event = Event(author="user", invocation_id=invocation_id, content=request)
        own = {
            "_stored_session": session,
            "_asked": request_event,
            "_branch": branch,
            "_parallel": parallel,
        }
        vars(self).update(own)

    def of_branch(self) -> CallSession:
        """The session as an agent on a branch sees it, to which no other branch has joined."""
        view = CallSession.__new__(CallSession)
        vars(view).update(vars(self), _parallel=())
        return view

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stored_session, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._stored_session, name, value)

    def model_copy(self, **settings: Any) -> Session:
        """Return a copy of the session with the events of the call."""
        update = {"events": list(self.events), **(settings.pop("update", None) or {})}
        return cast("Session", self._stored_session.model_copy(update=update, **settings))

    @property
    def events(self) -> list[Event]:
        """The events of the call; changes of the list are those of the session."""
        own = list(self._own_events())
        joined = {
            position: event.model_copy(update={"branch": self._branch})
            for position, event in enumerate(own)
            if self._has_joined(event, own[position:])
        }
        shown = [joined.get(position, event) for position, event in enumerate(own)]
        return _Events([self._asked, *shown], self._stored_session.events)

    def _own_events(self) -> Iterator[Event]:
        calls: set[str | None] = set()
        for event in self._stored_session.events:
            is_own = f"{event.branch}.".startswith(f"{self._branch}.")
            # ADK: the result of a task in a node of a Workflow has no branch.
            if is_own or _answers(event, calls):
                calls.update(call.id for call in event.get_function_calls())
                yield event

    def _has_joined(self, event: Event, later: list[Event]) -> bool:
        """Whether the ParallelAgent of an event has ended; a session of its own has no branch then.

        ADK: an agent sees all branches if it has none itself.
        """
        below = (event.branch or "").removeprefix(f"{self._branch}.")
        first = below.partition(".")[0]
        # What is called has a branch with the id of the call, and is not seen.
        return (
            first in self._parallel
            and "@" not in below
            and any(each.author == first and each.actions.end_of_agent for each in later)
        )


def _answers(event: Event, calls: Collection[str | None]) -> bool:
    """Whether an event of the user without a branch answers some of the calls."""
    if event.branch or event.author != "user":
        return False
    return any(response.id in calls for response in event.get_function_responses())


class _Events(list[Event]):
    """Events of a session that are shown: what is added or removed is so in the session too."""

    def __init__(self, shown: list[Event], stored: list[Event]) -> None:
        super().__init__(shown)
        self._stored = stored

    def append(self, event: Event) -> None:
        super().append(event)
        self._stored.append(event)

    def insert(self, index: SupportsIndex, event: Event) -> None:
        following = self[index].id
        super().insert(index, event)
        ids = [each.id for each in self._stored]
        self._stored.insert(ids.index(following), event)

    def remove(self, event: Event) -> None:
        super().remove(event)
        self._stored.remove(event)
