"""A conversation with an agent through the real Runner, like that of a page with the server."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

from google.adk.agents._streaming_mode import StreamingMode
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App, ResumabilityConfig
from google.adk.events.event import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session
from google.adk.workflow import BaseNode
from google.genai import types

CONFIRMATION = "adk_request_confirmation"
INPUT = "adk_request_input"
USER = "user"
CHAT = "chat"


class _Prompts(BasePlugin):
    def __init__(self) -> None:
        super().__init__("prompts")
        self.last: list[types.Content] = []

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> None:
        self.last = llm_request.contents


class Question(NamedTuple):
    """A call that needs an answer of the user."""

    id: str
    name: str
    branch: str | None
    invocation_id: str

    @property
    def is_approval(self) -> bool:
        """Whether the answer is a confirmation; for a workflow node the id decides."""
        return self.name == CONFIRMATION or self.id.startswith("wf_tool_confirmation:")


class Conversation:
    """One chat with an agent; ``events`` are the events of the last run."""

    def __init__(
        self,
        root: BaseAgent | BaseNode,
        *,
        sessions: BaseSessionService | None = None,
        plugins: Sequence[BasePlugin] = (),
        streaming: bool = True,
    ) -> None:
        self.sessions = sessions or InMemorySessionService()
        self._prompts = _Prompts()
        with warnings.catch_warnings():
            # ADK: resumability announces itself as experimental.
            warnings.filterwarnings("ignore", r"\[EXPERIMENTAL\]", UserWarning)
            resumability = ResumabilityConfig(is_resumable=True)
        app = App(
            name="chats",
            root_agent=root,
            plugins=[*plugins, self._prompts],
            resumability_config=resumability,
        )
        self.runner = Runner(app=app, session_service=self.sessions, auto_create_session=True)
        self.config = RunConfig(
            streaming_mode=StreamingMode.SSE if streaming else StreamingMode.NONE
        )
        self.events: list[Event] = []

    async def say(self, text: str, *, stop_after: int | None = None) -> list[Event]:
        """Send a user message; stop the run after ``stop_after`` events if given."""
        return await self._run([types.Part(text=text)], stop_after)

    async def decide(
        self,
        *,
        yes: Sequence[str] = (),
        no: Sequence[str] = (),
        stop_after: int | None = None,
    ) -> list[Event]:
        """Answer confirmations by their ids, all in one message; ``stop_after`` as in ``say``."""
        answers = {**dict.fromkeys(yes, True), **dict.fromkeys(no, False)}
        message = [
            _response(id, CONFIRMATION, {"confirmed": confirmed})
            for id, confirmed in answers.items()
        ]
        return await self._run(message, stop_after)

    async def respond(self, id: str, name: str, response: dict[str, object]) -> list[Event]:
        """Send the result of a client-side tool, or the requested input."""
        return await self._run([_response(id, name, response)])

    async def store(self, id: str, name: str, response: dict[str, object]) -> None:
        """Append the result of a client-side tool to the session, without a run."""
        part = _response(id, name, response)
        event = Event(
            author="user",
            invocation_id=self.events[-1].invocation_id,
            content=types.Content(role="user", parts=[part]),
        )
        await self.sessions.append_event(await self._session(), event)

    async def stored(self) -> list[Event]:
        """Every event of the session so far."""
        return (await self._session()).events

    @property
    def read(self) -> list[tuple[str | None, dict[str, object] | None]]:
        """Name and response of each tool result in the last model request."""
        return [
            (part.function_response.name, part.function_response.response)
            for content in self._prompts.last
            for part in content.parts or []
            if part.function_response
        ]

    @property
    def asked(self) -> dict[str, str]:
        """Confirmation id to tool name, of the last run, in order."""
        return {
            call.id or "": call.args["originalFunctionCall"]["name"]
            for call in calls(self.events)
            if call.name == CONFIRMATION and call.args
        }

    @property
    def questions(self) -> list[Question]:
        """The requests of the last run to the user: confirmations and inputs."""
        return [
            Question(call.id or "", call.name, event.branch, event.invocation_id)
            for event in self.events
            for call in calls([event])
            if call.name in (CONFIRMATION, INPUT)
        ]

    async def answer_all(self, response: Callable[[Question], dict[str, object]]) -> None:
        """Store the answers of all branches but the last, then run once with the last."""
        branches: dict[str | None, list[Question]] = {}
        for question in self.questions:
            branches.setdefault(question.branch, []).append(question)
        *others, last = [
            (questions[0], [_response(each.id, each.name, response(each)) for each in questions])
            for questions in branches.values()
        ]
        for question, message in others:
            event = Event(
                author="user",
                branch=question.branch,
                invocation_id=question.invocation_id,
                content=types.Content(role="user", parts=message),
            )
            await self.sessions.append_event(await self._session(), event)
        await self._run(last[1])

    @property
    def sentences(self) -> list[str]:
        """The texts of the last run's aggregates, one each."""
        return [
            part.text
            for event in self.events
            if not event.partial
            for part in parts(event)
            if part.text and not part.thought
        ]

    @property
    def open_calls(self) -> list[types.FunctionCall]:
        """Calls of the last run that the page has to answer, including gated ones."""
        return [
            call
            for event in self.events
            for call in calls([event])
            if call.id in (event.long_running_tool_ids or ())
            and call.name not in (CONFIRMATION, INPUT)
        ]

    @property
    def text(self) -> str:
        """The text of the aggregates of the last run, without thoughts."""
        return "".join(self.sentences)

    async def _session(self) -> Session:
        session = await self.sessions.get_session(app_name="chats", user_id=USER, session_id=CHAT)
        assert session is not None
        return session

    async def _run(self, message: list[types.Part], stop_after: int | None = None) -> list[Event]:
        self.events = []
        stop = asyncio.Event()
        async for event in self.runner.run_async(
            user_id=USER,
            session_id=CHAT,
            new_message=types.Content(role="user", parts=message),
            run_config=self.config,
            abort_signal=stop,
        ):
            self.events.append(event)
            if len(self.events) == stop_after:
                stop.set()
        return self.events


def parts(event: Event) -> list[types.Part]:
    """The parts of an event; empty if it has no content."""
    return (event.content.parts if event.content else None) or []


def calls(events: Sequence[Event]) -> list[types.FunctionCall]:
    """The function calls of all complete events."""
    return [call for event in events if not event.partial for call in event.get_function_calls()]


def results(events: Sequence[Event]) -> list[tuple[str | None, dict[str, object] | None]]:
    """Name and response of each tool result, without placeholders of open confirmations."""
    return [
        (response.name, response.response)
        for event in events
        for response in event.get_function_responses()
        if response.id not in event.actions.requested_tool_confirmations
    ]


def _response(id: str, name: str, response: dict[str, object]) -> types.Part:
    return types.Part(function_response=types.FunctionResponse(id=id, name=name, response=response))
