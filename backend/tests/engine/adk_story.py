"""Small agents on scripted models, run by the real Runner on a real database."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.events.event import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import DatabaseSessionService
from google.adk.sessions.session import Session
from google.adk.tools.function_tool import FunctionTool
from google.adk.workflow import BaseNode, FunctionNode, node
from google.genai import types
from pydantic import PrivateAttr
from sqlalchemy.event import listen
from sqlalchemy.ext.asyncio import create_async_engine

from sluicegate.engine.agents.app_copy import build_app
from sluicegate.tools import ClientTool, client_tool

PLACEHOLDER = "This tool call requires confirmation"
"""What the models of other agents are told of a call while it waits."""

APPROVALS = ("adk_request_confirmation", "adk_request_input")


def call(name: str, **args: Any) -> types.Part:
    """A call of the model."""
    return types.Part(function_call=types.FunctionCall(name=name, args=args))


def as_sent(request: LlmRequest) -> str:
    """A request as its model sees it, without the ids of calls, and placeholders of approvals."""
    tools = [
        declaration.name
        for tool in request.config.tools or ()
        for declaration in getattr(tool, "function_declarations", None) or ()
    ]
    contents = [content.model_dump(exclude_none=True) for content in request.contents]
    contents = [each for each in contents if PLACEHOLDER not in repr(each)]
    for content in contents:
        for part in content.get("parts", ()):
            for kind in ("function_call", "function_response"):
                part.get(kind, {}).pop("id", None)
    return repr((request.config.system_instruction, sorted(map(str, tools)), contents))


def words_of(request: str) -> tuple[str, ...]:
    """A request without the order of its instructions, and of results that came at once."""
    return tuple(sorted(re.findall(r"\w+", request.replace("\\n", " "))))


class ScriptedLlm(BaseLlm):
    """Plays its turns in order and fails on a further request."""

    model: str = "scripted"
    turns: list[list[types.Part]]
    requests: Any = None
    """The list to which each request is appended; copies of the model share it."""
    is_stateless: bool = False
    """Whether the history says which turn is next, so that it plays on after a restart."""
    _said: int = PrivateAttr(default=0)

    @property
    def is_finished(self) -> bool:
        return self._said == len(self.turns)

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT002 - ADK's
    ) -> AsyncGenerator[LlmResponse, None]:
        if self.requests is not None:
            self.requests.append(as_sent(llm_request))
        if self.is_stateless:
            self._said = sum(content.role == "model" for content in llm_request.contents)
        turn = self.turns[self._said]
        self._said += 1
        yield LlmResponse(content=types.Content(role="model", parts=turn))


class Story:
    """Builds agents and records the effects of their tools and the responses of their models."""

    def __init__(self, *, has_gates: bool = True, is_stateless: bool = False) -> None:
        self.has_gates = has_gates
        self.is_stateless = is_stateless
        self.effects: list[str] = []
        self.models: list[ScriptedLlm] = []
        self.requests: list[str] = []
        """What the models were sent, in the order of their calls."""

    @property
    def is_told(self) -> bool:
        """Whether every model has played all its turns."""
        return all(model.is_finished for model in self.models)

    def model(self, *turns: types.Part | str | Sequence[types.Part]) -> ScriptedLlm:
        made = ScriptedLlm(
            turns=[_parts(turn) for turn in turns],
            requests=self.requests,
            is_stateless=self.is_stateless,
        )
        self.models.append(made)
        return made

    def function(self, name: str) -> Callable[[], dict[str, str]]:
        def effect() -> dict[str, str]:
            self.effects.append(name)
            return {"did": name}

        effect.__name__ = effect.__qualname__ = name
        effect.__doc__ = f"Do {name}."
        return effect

    def gated(self, name: str) -> FunctionTool:
        return FunctionTool(self.function(name), require_confirmation=self.has_gates)

    def asker(self, name: str, *tools: str, **settings: Any) -> LlmAgent:
        """An agent that calls its gated tools in one turn (default: ``pay_NAME``), then ends."""
        names = tools or (f"pay_{name}",)
        return LlmAgent(
            name=name,
            description=f"Does {name}.",
            model=self.model([call(each) for each in names], f"{name} done"),
            tools=[self.gated(each) for each in names],
            **settings,
        )

    def talker(self, name: str, *calls: types.Part, **settings: Any) -> LlmAgent:
        """An agent that makes some calls in one turn and completes in the next."""
        turns = ([*calls], f"{name} done") if calls else (f"{name} done",)
        settings.setdefault("description", f"Does {name}.")
        return LlmAgent(name=name, model=self.model(*turns), **settings)

    def hander(self, name: str, to: BaseNode, **settings: Any) -> LlmAgent:
        """An agent that transfers to its sub-agent."""
        model = self.model(call("transfer_to_agent", agent_name=to.name))
        return LlmAgent(name=name, model=model, description="Hands on.", **settings)

    def tasker(self, name: str, *calls: types.Part, **settings: Any) -> LlmAgent:
        """A task agent that makes some calls in one turn, then finishes its task."""
        model = self.model([*calls], call("finish_task", result=f"{name} finished"))
        return LlmAgent(name=name, description="A task.", mode="task", model=model, **settings)


def location(name: str = "get_location") -> ClientTool:
    """A tool that the page runs."""
    return client_tool(name, "Where the user is.", {"type": "object", "properties": {}})


def step(name: str, output: Any = None) -> FunctionNode:
    """A node of a Workflow with an output, by default its input."""

    def run(node_input: Any) -> Any:
        return {"from": node_input} if output is None else output

    made = node(run, name=name)
    assert isinstance(made, FunctionNode)
    return made


@dataclass(frozen=True)
class Open:
    """An open request, read from its event."""

    id: str
    name: str
    tool: str
    branch: str | None
    invocation: str
    scope: str | None

    @property
    def is_approval(self) -> bool:
        return self.name in APPROVALS


class Conversation:
    """One chat with a copy of the agent on the real Runner, its sessions in SQLite."""

    def __init__(self, root: BaseNode, folder: Path, app: App | None = None) -> None:
        """``app`` runs in place of the copy."""
        self.engine = create_async_engine(f"sqlite+aiosqlite:///{folder / 'sessions.db'}")
        listen(self.engine.sync_engine, "connect", _without_waiting_for_the_disk)
        self.service = DatabaseSessionService(db_engine=self.engine)
        self.app = app or build_app(root, [])
        self.runner = Runner(app=self.app, session_service=self.service, auto_create_session=True)

    async def close(self) -> None:
        await self.runner.close()
        await self.service.close()
        await self.engine.dispose()

    async def say(self, text: str) -> list[Event]:
        return await self.run([types.Part(text=text)])

    async def run(self, parts: list[types.Part]) -> list[Event]:
        message = types.Content(role="user", parts=parts)
        stream = self.runner.run_async(user_id="u", session_id="s", new_message=message)
        return [event async for event in stream]

    async def append(self, waiting: Sequence[Open], parts: list[types.Part]) -> None:
        """One user event with the branch and invocation of the request that it answers."""
        first = waiting[0]
        event = Event(
            author="user",
            invocation_id=first.invocation,
            branch=first.branch,
            isolation_scope=first.scope,
            content=types.Content(role="user", parts=parts),
        )
        await self.service.append_event(await self.session(), event)

    async def session(self) -> Session:
        found = await self.service.get_session(app_name=self.app.name, user_id="u", session_id="s")
        assert found is not None
        return found

    async def waiting(self, client_tools: Sequence[str] = ()) -> list[Open]:
        """Open requests in order; interrupt ids of Workflows may repeat."""
        found: dict[str, Open] = {}
        for event in (await self.session()).events:
            for asked in event.get_function_calls():
                if asked.name in (*APPROVALS, *client_tools) and asked.id and asked.name:
                    found.pop(asked.id, None)
                    found[asked.id] = _open(event, asked)
            for response in event.get_function_responses() if event.author == "user" else ():
                found.pop(response.id or "", None)
        return list(found.values())


def answer(open_: Open, *, approved: bool = True) -> types.Part:
    """The answer ADK expects: of a person, or the output of a client-side tool."""
    response = {"confirmed": approved} if open_.is_approval else {"result": "here"}
    return types.Part(
        function_response=types.FunctionResponse(id=open_.id, name=open_.name, response=response)
    )


def _without_waiting_for_the_disk(connection: Any, _: Any) -> None:
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA journal_mode = MEMORY")


def _open(event: Event, asked: types.FunctionCall) -> Open:
    args = asked.args or {}
    original, payload = args.get("originalFunctionCall") or {}, args.get("payload") or {}
    return Open(
        id=asked.id or "",
        name=asked.name or "",
        tool=original.get("name") or payload.get("tool_name") or asked.name or "",
        branch=event.branch,
        invocation=event.invocation_id,
        scope=event.isolation_scope,
    )


def _parts(turn: types.Part | str | Sequence[types.Part]) -> list[types.Part]:
    if isinstance(turn, str):
        return [types.Part(text=turn)]
    return [turn] if isinstance(turn, types.Part) else list(turn)
