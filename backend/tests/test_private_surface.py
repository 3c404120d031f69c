"""The private parts of google-adk that `sluicegate.adk_private` uses are still what they were."""

from __future__ import annotations

import ast
import asyncio
import importlib
import logging
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import google.adk
import pytest
from anthropic import AsyncAnthropic
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.context import Context
from google.adk.agents.invocation_context import InvocationContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.loop_agent import LoopAgent
from google.adk.agents.parallel_agent import ParallelAgent
from google.adk.agents.run_config import RunConfig
from google.adk.agents.sequential_agent import SequentialAgent
from google.adk.apps.app import App, ResumabilityConfig
from google.adk.apps.llm_event_summarizer import LlmEventSummarizer
from google.adk.errors import StaleSessionError
from google.adk.events.event import Event
from google.adk.models.anthropic_llm import AnthropicLlm
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.gemini_llm_connection import GeminiLlmConnection
from google.adk.models.google_llm import Gemini
from google.adk.models.lite_llm import LiteLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner, Runner
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.mcp_tool.mcp_tool import McpTool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import FunctionNode, Workflow
from google.genai import types
from mcp import types as mcp
from mcp.client.session import ClientSession
from pydantic import BaseModel
from sqlalchemy import func, select

from sluicegate import adk_private, adk_private_resumption
from sluicegate.core.event_reading import CONFIRMATION, INPUT, parts_of
from sluicegate.core.schema_validation import ArgumentSchema
from sluicegate.engine.agents.agent_runs_in_log import AgentRun
from sluicegate.engine.agents.app_copy import build_app
from sluicegate.engine.agents.every_turn_mark import runs_every_turn
from sluicegate.engine.agents.replay_ended_sub_agent_runs import Journal
from tests.engine.stage import calls, says, scripted

ADK = Path(google.adk.__path__[0])
MODEL = scripted([says("Hello.")]).canonical_model


async def run_tool(tool: BaseTool | Any) -> list[Event]:
    """The events of a run in which the model calls a tool named ``act``, with a plain Runner."""
    root = scripted([calls(("act", {})), says("Done.")], [tool])
    async with InMemoryRunner(root, app_name="app") as runner:
        await runner.session_service.create_session(app_name="app", user_id="u", session_id="s")
        message = types.Content(role="user", parts=[types.Part(text="go")])
        return [
            event
            async for event in runner.run_async(user_id="u", session_id="s", new_message=message)
        ]


async def in_tool(act: Any) -> list[Event]:
    """Run ``act(context)`` as a tool."""

    async def wrapped(tool_context: ToolContext) -> dict[str, Any]:
        """Act."""
        return {"ok": await act(tool_context)}

    wrapped.__name__ = "act"
    return await run_tool(FunctionTool(wrapped))


def results(events: list[Event]) -> list[Any]:
    return [response.response for event in events for response in event.get_function_responses()]


def test_the_streaming_mode_is_that_of_the_run_config() -> None:
    assert RunConfig(streaming_mode=adk_private.StreamingMode.SSE).streaming_mode.value == "sse"


def test_a_workflow_holds_a_graph() -> None:
    node = FunctionNode(func=lambda: None, name="node")
    assert isinstance(Workflow(name="flow", edges=[("START", node)]).graph, adk_private.Graph)


def test_the_names_of_adks_own_calls_are_those_of_the_core() -> None:
    names = importlib.import_module("google.adk.utils._function_call_names")

    assert names.REQUEST_CONFIRMATION_FUNCTION_CALL_NAME == CONFIRMATION
    assert names.REQUEST_INPUT_FUNCTION_CALL_NAME == INPUT


async def test_a_context_leads_to_the_run_itself() -> None:
    async def act(context: ToolContext) -> bool:
        run = adk_private.invocation_of(context)
        return isinstance(run, InvocationContext) and run is adk_private.invocation_of(context)

    assert results(await in_tool(act)) == [{"ok": True}]
    assert issubclass(CallbackContext, ToolContext) or CallbackContext is ToolContext


async def test_an_event_that_is_appended_through_the_run_is_stored_and_yielded() -> None:
    async def act(context: ToolContext) -> bool:
        run = adk_private.invocation_of(context)
        event = Event(author="act", invocation_id=run.invocation_id, id="mine")
        taken = adk_private.takes_events(run)
        await adk_private.append_event(run, event)
        return taken and run.session.events[-1].id == "mine"

    events = await in_tool(act)

    assert results(events) == [{"ok": True}]
    assert "mine" in [event.id for event in events]


async def test_a_run_outside_a_runner_takes_no_events() -> None:
    runner = InMemoryRunner(scripted([says("Done.")]), app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    run = InvocationContext(
        session_service=runner.session_service, invocation_id="i", session=session
    )

    assert not adk_private.takes_events(run)
    assert adk_private.background_tasks(run) == {}
    await runner.close()


async def test_the_background_tasks_of_a_run_are_kept_by_call_id() -> None:
    running = importlib.import_module("google.adk.live._active_background_tool")
    runner = InMemoryRunner(scripted([says("Done.")]), app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    run = InvocationContext(
        session_service=runner.session_service, invocation_id="i", session=session
    )
    task = asyncio.ensure_future(asyncio.sleep(0))
    entry = running.ActiveBackgroundTool(tool_name="act", function_call_id="call", task=task)

    run._add_background_tool(entry)

    assert adk_private.background_tasks(run) == {"call": task}
    await task
    await runner.close()


async def test_a_node_that_is_interrupted_waits_for_the_calls_that_are_named() -> None:
    ran: list[str] = []
    interrupted: list[Context] = []

    def wait(ctx: Context) -> None:
        ran.append("wait")
        interrupted.append(ctx)
        adk_private.interrupt(ctx, {"call"})

    def follow() -> None:
        ran.append("follow")

    nodes = [FunctionNode(func=each) for each in (wait, follow)]
    flow = Workflow(name="app", edges=[("START", *nodes)])
    async with InMemoryRunner(app=App(name="app", root_agent=flow)) as runner:
        await conversation(runner, types.Part(text="go"))

    assert ran == ["wait"]
    assert interrupted[0].interrupt_ids == {"call"}


def test_an_agent_class_runs_by_the_hook_that_is_looked_for() -> None:
    class Own(BaseAgent):
        async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
            yield Event(author=self.name)

    class Derived(Own):
        pass

    assert adk_private.overrides_run(Own)
    assert adk_private.overrides_run(LlmAgent)
    assert not adk_private.overrides_run(Derived)


async def conversation(runner: Runner, *parts: types.Part) -> list[list[Event]]:
    """The events of each run; an approval follows if there is only one part."""
    await runner.session_service.create_session(app_name="app", user_id="u", session_id="s")
    runs: list[list[Event]] = []
    for part in parts:
        message = types.Content(role="user", parts=[part])
        stream = runner.run_async(user_id="u", session_id="s", new_message=message)
        runs.append([event async for event in stream])
        for event in runs[-1]:
            for each in event.get_function_calls():
                if each.name == CONFIRMATION:
                    yes = types.FunctionResponse(
                        id=each.id, name=CONFIRMATION, response={"confirmed": True}
                    )
                    message = types.Content(role="user", parts=[types.Part(function_response=yes)])
                    stream = runner.run_async(user_id="u", session_id="s", new_message=message)
                    runs.append([event async for event in stream])
    return runs


def gated() -> FunctionTool:
    def act() -> dict[str, bool]:
        """Act."""
        return {"ok": True}

    return FunctionTool(act, require_confirmation=True)


async def test_a_shell_agent_marks_its_begin_and_its_end() -> None:
    agent = scripted([calls(("act", {})), says("Done.")], [gated()])
    app = build_app(adk_private_resumption.ResumableShell(name="app", sub_agents=[agent]), [])
    async with InMemoryRunner(app=app) as runner:
        asked, done = await conversation(runner, types.Part(text="go"))
    assert [event.actions.agent_state for event in asked if event.author == "app"] == [{}]
    assert results(done) == [{"ok": True}]
    assert (done[-1].author, done[-1].actions.end_of_agent) == ("app", True)


def handing(to: BaseAgent) -> LlmAgent:
    """A root that transfers to an agent."""
    root = scripted(
        [calls(("transfer_to_agent", {"agent_name": to.name}))], sub_agents=[to], description="d"
    )
    root.name = "app"
    return root


async def test_a_shell_agent_below_a_transfer_is_resumed_where_it_waited() -> None:
    first = scripted([calls(("act", {})), says("First.")], [gated()])
    last = scripted([says("Last.")])
    first.name, last.name = "first", "last"
    app = build_app(handing(SequentialAgent(name="seq", sub_agents=[first, last])), [])
    runner = adk_private_resumption.TreeRunner(app=app, session_service=InMemorySessionService())
    async with runner:
        [_, done] = await conversation(runner, types.Part(text="go"))
    assert results(done) == [{"ok": True}]
    texts = [part.text for event in done for part in parts_of(event) if part.text]
    assert texts == ["First.", "Last."]


async def test_a_root_shell_agent_runs_as_a_node() -> None:
    seen: list[bool] = []

    async def look(tool_context: ToolContext) -> str:
        """Look."""
        seen.append(adk_private.takes_events(adk_private.invocation_of(tool_context)))
        return "seen"

    for as_node in (False, True):
        agent = scripted([calls(("look", {})), says("Done.")], [look])
        app = build_app(SequentialAgent(name="app", sub_agents=[agent]), [])
        sessions = InMemorySessionService()
        async with adk_private_resumption.TreeRunner(
            as_node=as_node, app=app, session_service=sessions
        ) as runner:
            await conversation(runner, types.Part(text="go"))
    assert seen == [False, True]


async def resumed(root: BaseAgent) -> Session:
    """The session of plain ADK after the answer to a first question."""
    app = App(
        name="app", root_agent=root, resumability_config=ResumabilityConfig(is_resumable=True)
    )
    sessions = InMemorySessionService()
    async with Runner(app=app, session_service=sessions) as runner:
        await conversation(runner, types.Part(text="go"))
    session = await sessions.get_session(app_name="app", user_id="u", session_id="s")
    assert session is not None
    return session


@pytest.mark.filterwarnings("ignore:.EXPERIMENTAL. ResumabilityConfig:UserWarning")
@pytest.mark.parametrize("kept", [False, True])
async def test_adk_forgets_what_an_agent_has_said_before_it_waits(kept: bool) -> None:
    agent = scripted([calls(("act", {}), text="First. "), says("Last.")], [gated()])
    agent.output_key = "said"
    if kept:
        adk_private_resumption.keep_output(agent)
    session = await resumed(agent)
    assert session.state["said"] == ("First. Last." if kept else "Last.")


@pytest.mark.filterwarnings("ignore:.EXPERIMENTAL. ResumabilityConfig:UserWarning")
@pytest.mark.parametrize("kept", [False, True])
async def test_adk_forgets_that_a_loop_was_ended_before_a_call_waits(kept: bool) -> None:
    def leave(tool_context: ToolContext) -> str:
        """End the loop."""
        tool_context.actions.escalate = True
        return "left"

    script = [calls(("leave", {})), calls(("act", {})), says("Done."), says("Again.")]
    loop = LoopAgent(name="app", max_iterations=2, sub_agents=[scripted(script, [leave, gated()])])
    if kept:
        adk_private_resumption.keep_escalation(loop)
    session = await resumed(loop)
    texts = [part.text for event in session.events for part in parts_of(event) if part.text]
    assert ("Again." in texts) is not kept


@pytest.mark.filterwarnings("ignore:.EXPERIMENTAL. ResumabilityConfig:UserWarning")
@pytest.mark.parametrize("once", [False, True])
async def test_adk_repeats_callbacks_and_what_they_answer_in_each_run_of_an_agent(
    once: bool,
) -> None:
    def answer(text: str) -> Any:
        content = types.Content(role="model", parts=[types.Part(text=text)])
        return lambda callback_context: content

    skipped, waits = (
        scripted([says("Never.")]),
        scripted([calls(("act", {})), says("Done.")], [gated()]),
    )
    skipped.name, waits.name = "skipped", "waits"
    skipped.before_agent_callback = answer("Skipped.")
    both = ParallelAgent(name="app", sub_agents=[skipped, waits])
    both.after_agent_callback = answer("Over.")
    begun: list[str] = []
    waits.before_agent_callback = lambda callback_context: begun.append("waits")
    for agent in (skipped, waits, both) if once else ():
        adk_private_resumption.run_callbacks_once(agent, AgentRun, runs_every_turn)
    session = await resumed(both)
    texts = [part.text for event in session.events for part in parts_of(event) if part.text]
    assert texts.count("Skipped.") == texts.count("Over.") == len(begun) == (1 if once else 2)


class InOrder(BaseAgent):
    """Runs its sub-agents in order, and keeps no place."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        for agent in self.sub_agents:
            async for event in agent.run_async(ctx):
                yield event


async def test_the_runs_of_sub_agents_in_a_class_of_the_user_are_numbered() -> None:
    first = scripted([calls(("act", {})), says("First.")], [gated()])
    last = scripted([says("Last.")])
    first.name, last.name = "first", "last"
    root = InOrder(name="app", sub_agents=[first, last])
    app = build_app(root, [])
    assert adk_private.run_function_of(InOrder) is vars(InOrder)["_run_async_impl"]
    copied = app.root_agent
    assert isinstance(copied, InOrder)
    adk_private_resumption.follow_runs(copied, copied.sub_agents, Journal)
    runner = adk_private_resumption.TreeRunner(app=app, session_service=InMemorySessionService())
    async with runner:
        asked, done = await conversation(runner, types.Part(text="go"))
    states = [
        [event.actions.agent_state for event in run if event.author == "app"]
        for run in (asked, done)
    ]
    assert states == [
        [{"run": 0, "agent": ""}, {"run": 1, "agent": "first"}],
        [{"run": 2, "agent": "last"}, None],
    ]
    assert [p.text for event in done for p in parts_of(event) if p.text] == ["First.", "Last."]


class Interrupting(BaseAgent):
    """Interrupts its node."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        raise adk_private.NodeInterruptedError
        yield


class Slow(BaseAgent):
    """Ends after others have begun."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        for text in ("one", "two"):
            await asyncio.sleep(0)
            content = types.Content(role="model", parts=[types.Part(text=text)])
            yield Event(author=self.name, invocation_id=ctx.invocation_id, content=content)


@pytest.mark.parametrize("held", [False, True])
async def test_adk_cancels_the_branches_beside_one_that_interrupts(*, held: bool) -> None:
    branches = [Interrupting(name="interrupting"), Slow(name="slow")]
    root = ParallelAgent(name="app", sub_agents=branches)
    if held:
        adk_private_resumption.hold_interruptions(root)
    texts: list[str | None] = []
    async with InMemoryRunner(root, app_name="app") as runner:
        await runner.session_service.create_session(app_name="app", user_id="u", session_id="s")
        message = types.Content(role="user", parts=[types.Part(text="go")])
        stream = runner.run_async(user_id="u", session_id="s", new_message=message)
        with suppress(adk_private.NodeInterruptedError, BaseExceptionGroup):
            async for event in stream:
                texts += [part.text for part in parts_of(event)]
    assert ("two" in texts) is held


async def test_the_run_of_a_node_is_within_a_context_manager() -> None:
    ran: list[str] = []

    @contextmanager
    def around(ctx: Context, node_input: Any) -> Iterator[None]:
        ran.append(ctx.node_path)
        yield
        ran.append("end")

    agent = scripted([says("Hello.")])
    adk_private_resumption.shadow_node_run(agent, around)
    async with InMemoryRunner(agent, app_name="app") as runner:
        await conversation(runner, types.Part(text="go"))
    assert ran == [f"{agent.name}@1", "end"]


async def test_an_agent_whose_call_was_answered_continues_that_call() -> None:
    child = LlmAgent(name="child")
    agent = LlmAgent(name="agent", sub_agents=[child])
    session = Session(id="s", app_name="app", user_id="u")
    transfer = types.FunctionResponse(id="t", name="transfer_to_agent", response={})
    asked = types.FunctionCall(id="c", name="called", args={})
    question = types.FunctionCall(id="q", name=CONFIRMATION, args={})
    answer = types.FunctionResponse(id="q", name=CONFIRMATION, response={})

    def event(author: str, branch: str | None, **part: Any) -> Event:
        content = types.Content(role="user", parts=[types.Part(**part)])
        return Event(author=author, branch=branch, invocation_id="i", content=content)

    session.events += [
        event("agent", None, function_response=transfer),
        event("agent", None, function_call=asked),
        event("inner", "called@c", function_call=question),
        event("user", "called@c", function_response=answer),
    ]
    session.events[0].actions.transfer_to_agent = "child"
    run = InvocationContext(
        session_service=InMemorySessionService(), invocation_id="i", agent=agent, session=session
    )
    assert agent._get_subagent_to_resume(run) is child
    adk_private_resumption.resume_after_own_call(agent)
    assert agent._get_subagent_to_resume(run) is None


def test_an_output_is_validated_as_an_agent_tool_does() -> None:
    class Answer(BaseModel):
        count: int

    assert adk_private.validated(Answer, '```json\n{"count": 1}\n```') == {"count": 1}


async def test_a_synchronous_tool_runs_on_a_thread_of_the_pool() -> None:
    def act() -> dict[str, str]:
        """Act."""
        return {"thread": threading.current_thread().name}

    class Threaded(FunctionTool):
        async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
            with adk_private.tool_threads(2):
                return await super().run_async(args=args, tool_context=tool_context)

    [result] = results(await run_tool(Threaded(act)))

    assert result["thread"] != threading.current_thread().name


async def test_a_confirmation_is_requested_in_the_format_of_adk() -> None:
    async def act(context: ToolContext) -> bool:
        return True

    async def ask(tool_context: ToolContext) -> dict[str, Any]:
        """Ask."""
        tool = BaseTool(name="act", description="")
        placeholder = await adk_private.request_confirmation(tool, tool_context)
        asked.append(dict(tool_context.actions.requested_tool_confirmations))
        return placeholder

    asked: list[dict[str, Any]] = []
    ask.__name__ = "act"
    by_us = await run_tool(FunctionTool(ask))

    async def gated() -> dict[str, Any]:
        """Act."""
        return {}

    gated.__name__ = "act"
    by_adk = await run_tool(FunctionTool(gated, require_confirmation=True))

    assert results(by_us)[0] == results(by_adk)[0]
    [hint] = [each.hint for each in asked[0].values()]
    [stored] = [
        each.hint
        for event in by_adk
        for each in event.actions.requested_tool_confirmations.values()
    ]
    assert hint == stored


async def test_the_callbacks_before_a_tool_run_in_the_order_of_adk() -> None:
    ran: list[str] = []

    class Changing(BasePlugin):
        async def before_tool_callback(
            self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
        ) -> None:
            ran.append("plugin")

    def first(any_tool: BaseTool, its_arguments: Any, its_context: ToolContext) -> None:
        ran.append(f"first {its_arguments}")

    async def second(tool: BaseTool, args: Any, tool_context: ToolContext) -> dict[str, Any] | None:
        ran.append("second")
        return {"answered": True} if args == {"n": 2} else None

    def third(tool: BaseTool, args: Any, tool_context: ToolContext) -> None:
        ran.append("third")

    async def act(n: int, tool_context: ToolContext) -> dict[str, Any]:
        """Act."""
        by_adk, ran[:] = list(ran), []
        tool = BaseTool(name="act", description="")
        run = adk_private.run_before_tool_callbacks
        assert await run(tool, {"n": n}, tool_context) is None
        assert ran == by_adk == ["plugin", "first {'n': 1}", "second", "third"]
        assert await run(tool, {"n": 2}, tool_context) == {"answered": True}
        assert ran[-1] == "second"
        return {"ok": True}

    root = scripted([calls(("act", {"n": 1})), says("Done.")], [act])
    root.before_tool_callback = [first, second, third]
    app = App(name="app", root_agent=root, plugins=[Changing(name="changing")])
    async with InMemoryRunner(app=app) as runner:
        await runner.session_service.create_session(app_name="app", user_id="u", session_id="s")
        message = types.Content(role="user", parts=[types.Part(text="go")])
        events = runner.run_async(user_id="u", session_id="s", new_message=message)
        assert results([event async for event in events]) == [{"ok": True}]


def test_the_declaration_of_a_tool_is_read_and_given_by_the_hook() -> None:
    class Own(adk_private.DeclaredTool):
        def declaration(self) -> types.FunctionDeclaration:
            return types.FunctionDeclaration(name="own")

    def act(n: int) -> None:
        """Act."""

    told = adk_private.declaration_of(FunctionTool(act))

    assert told is not None
    assert told.name == "act"
    assert adk_private.declaration_of(Own(name="own", description="")) == (
        types.FunctionDeclaration(name="own")
    )
    assert "_get_declaration" in vars(BaseTool)


async def test_a_function_tool_gets_its_declaration_and_its_arguments_from_the_hooks() -> None:
    class Own(adk_private.DeclaredFunctionTool):
        def declaration(self) -> types.FunctionDeclaration:
            return types.FunctionDeclaration(name="act", description="declared")

        def read_arguments(self, args: dict[str, Any]) -> dict[str, Any]:
            return {"n": 7}

    async def act(n: int, tool_context: ToolContext) -> dict[str, int]:
        """Act."""
        return {"n": n}

    tool = Own(act)
    told = adk_private.declaration_of(tool)

    assert told is not None
    assert told.description == "declared"
    assert "tool_context" in tool.context_parameters
    assert results(await run_tool(tool)) == [{"n": 7}]


async def test_the_confirmation_setting_of_a_tool_is_read_and_set() -> None:
    async def act() -> dict[str, Any]:
        """Act."""
        return {}

    tool, predicate = FunctionTool(act, require_confirmation=True), bool
    assert adk_private.confirmation_setting(tool) is True
    assert adk_private.confirmation_setting(BaseTool(name="b", description="")) is None
    assert adk_private.keeps_confirmation_setting(tool)
    assert not adk_private.keeps_confirmation_setting(BaseTool(name="b", description=""))
    free = FunctionTool(act)
    adk_private.set_confirmation(free, when=predicate)
    assert adk_private.confirmation_setting(free) is predicate

    adk_private.set_confirmation(free, when=True)
    [*_, last] = [event for event in await run_tool(free) if event.actions]
    assert last.actions.requested_tool_confirmations


async def test_a_toolset_without_a_cache_lists_its_tools_each_time() -> None:
    class Own(adk_private.UncachedToolset):
        listed = 0

        async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
            self.listed += 1
            return []

    class Cached(BaseToolset):
        listed = 0

        async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
            self.listed += 1
            return []

    own, cached = Own(), Cached()
    for _ in range(2):
        await own.get_tools_with_prefix()
        await cached.get_tools_with_prefix()

    assert (own.listed, cached.listed) == (2, 1)


async def test_the_results_of_an_mcp_tool_are_checked_by_a_schema_of_the_server() -> None:
    class Sessions:
        async def create_session(self, *, headers: dict[str, str] | None) -> ClientSession:
            return object.__new__(ClientSession)

    assert callable(ClientSession.validate_tool_result)
    definition = mcp.Tool(name="a", input_schema={"type": "object"})
    tool = McpTool(mcp_tool=definition, mcp_session_manager=cast("Any", Sessions()))
    adk_private.check_results_of(tool, ArgumentSchema({"type": "object", "required": ["n"]}))
    session = await tool._create_session(headers=None)
    await session.validate_tool_result(
        "a", mcp.CallToolResult(content=[], structured_content={"n": 1})
    )
    for content, refused in (({}, "'n' is a required property"), (None, "no structured content")):
        result = mcp.CallToolResult(content=[], structured_content=content)
        with pytest.raises(RuntimeError, match=refused):
            await session.validate_tool_result("a", result)
    adk_private.check_results_of(tool, None)
    session = await tool._create_session(headers=None)
    await session.validate_tool_result("a", mcp.CallToolResult(content=[]))


def test_a_tool_for_a_delegated_agent_differs_from_an_ordinary_agent_tool() -> None:
    single = LlmAgent(name="single", model=MODEL, mode="single_turn")
    task = LlmAgent(name="task", model=MODEL, mode="task")
    root = LlmAgent(name="root", model=MODEL, sub_agents=[single, task])

    made = [tool for tool in root.tools if isinstance(tool, AgentTool)]

    assert len(made) == 2
    assert all(adk_private.delegation_mode(tool) for tool in made)
    assert not adk_private.delegation_mode(AgentTool(single))


def test_a_function_node_holds_its_function() -> None:
    def act() -> None:
        """Act."""

    assert adk_private.function_of(FunctionNode(func=act)) is act
    assert adk_private.function_of(LlmAgent(name="root", model=MODEL)) is None


def test_an_agent_on_another_server_is_known_by_the_name_of_its_class() -> None:
    # The module can be imported only with the a2a package.
    source = (ADK / "a2a" / "agent" / "_remote_a2a_agent.py").read_text()
    assert "\nclass RemoteA2aAgent(BaseAgent):" in source
    assert "requested_tool_confirmations" not in source


def test_a_gemini_model_exposes_its_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "key")
    monkeypatch.delenv("GOOGLE_GENAI_USE_VERTEXAI", raising=False)
    assert not adk_private.uses_vertex(Gemini(model="gemini-2.5-flash"))

    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "1")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "project")
    monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", "here")
    assert adk_private.uses_vertex(Gemini(model="gemini-2.5-flash"))
    assert not adk_private.uses_vertex(MODEL)


def test_a_litellm_model_exposes_its_arguments() -> None:
    model = LiteLlm(model="openai/gpt-5", api_key="key")
    assert adk_private.litellm_arguments(model)["api_key"] == "key"
    assert not adk_private.litellm_arguments(MODEL)


async def test_an_anthropic_model_exposes_its_client_and_calls_another_one() -> None:
    first = AsyncAnthropic(api_key="first")
    model = AnthropicLlm(model="claude-sonnet-4-5", client=first)
    assert await adk_private.anthropic_client(model) is first
    second = first.copy(api_key="second")

    other = adk_private.with_anthropic_client(model, second)
    assert await adk_private.anthropic_client(other) is second
    assert await adk_private.anthropic_client(model) is first
    await first.close()


def test_a_live_model_of_gemini_3_is_known_by_its_name_and_by_its_connection() -> None:
    older, newer = "gemini-2.5-flash-native-audio", "gemini-3.1-flash-live"
    session: Any = object()

    assert not adk_private.is_gemini_3_live(older)
    assert adk_private.is_gemini_3_live(newer)
    assert adk_private.continues_after_result(GeminiLlmConnection(session, model_version=newer))
    assert not adk_private.continues_after_result(GeminiLlmConnection(session, model_version=older))


async def test_a_live_connection_sends_partial_contents() -> None:
    class Session:
        def __init__(self) -> None:
            self.sent: list[dict[str, Any]] = []

        async def send_client_content(self, **given: Any) -> None:
            self.sent.append(given)

        async def send(self, **given: Any) -> None:
            self.sent.append(given["input"].model_dump())

    content = types.Content(role="user", parts=[types.Part(text="note")])
    session: Any = Session()
    connection = GeminiLlmConnection(session, model_version="gemini-2.5-flash")

    await adk_private.send_content(connection, content, partial=True)
    await adk_private.send_content(connection, content, partial=False)

    assert [each["turn_complete"] for each in session.sent] == [False, True]


async def test_a_live_connection_sends_contents_to_the_session_that_adk_uses() -> None:
    class Session:
        def __init__(self) -> None:
            self.sent: list[tuple[list[types.Content], bool]] = []

        async def send_client_content(
            self, *, turns: list[types.Content], turn_complete: bool
        ) -> None:
            self.sent.append((turns, turn_complete))

    contents = [
        types.Content(role=role, parts=[types.Part(text=role)]) for role in ("user", "model")
    ]
    session: Any = Session()
    connection = GeminiLlmConnection(session, model_version="gemini-2.5-flash")

    await connection.send_history(contents)
    for turn_complete in (False, True):
        await adk_private.send_contents(connection, contents, turn_complete=turn_complete)

    assert session.sent == [(contents, False), (contents, False), (contents, True)]


async def test_the_messages_of_a_live_session_are_observed_before_adk_reads_them() -> None:
    class Session:
        session_id = "live"

        async def receive(self) -> AsyncIterator[types.LiveServerMessage]:
            for message in messages:
                yield message

    # ADK has no response for the first message.
    cancelled = types.LiveServerToolCallCancellation(ids=["call"])
    messages = [
        types.LiveServerMessage(tool_call_cancellation=cancelled),
        types.LiveServerMessage(usage_metadata=types.UsageMetadata(total_token_count=1)),
    ]
    session: Any = Session()
    connection = GeminiLlmConnection(session, model_version="gemini-2.5-flash")
    observed: list[types.LiveServerMessage] = []
    adk_private.observe_live_messages(connection, observed.append)

    [response] = [each async for each in connection.receive()]

    assert observed == messages
    assert response.live_session_id == "live"


async def test_a_live_connection_of_our_own_gets_the_contents_that_adk_sends() -> None:
    class Own(adk_private.PartialContentConnection):
        def __init__(self) -> None:
            self.sent: list[bool] = []

        async def send_history(self, history: list[types.Content]) -> None: ...

        async def send_partial(self, content: types.Content, *, partial: bool) -> None:
            self.sent.append(partial)

        async def send_realtime(self, blob: Any) -> None: ...

        async def receive(self) -> AsyncIterator[LlmResponse]:  # type: ignore[override]
            if self.sent is None:
                yield LlmResponse()

        async def close(self) -> None: ...

    own, content = Own(), types.Content(role="user", parts=[types.Part(text="note")])

    await adk_private.send_content(own, content, partial=True)
    await own.send_content(content)

    assert own.sent == [True, False]
    assert "_send_content" in vars(BaseLlmConnection)
    flow = (ADK / "live/_live_llm_flow.py").read_text("utf-8")
    assert "._send_content(" in flow


def test_a_summarizer_holds_its_prompt() -> None:
    summarizer = LlmEventSummarizer(MODEL, "Say {conversation_history} in short.")
    assert adk_private.prompt_of(summarizer) == "Say {conversation_history} in short."


async def test_a_stored_session_has_a_revision_and_its_events_can_be_counted(
    tmp_path: Path,
) -> None:
    service = DatabaseSessionService(db_url=f"sqlite+aiosqlite:///{tmp_path}/sessions.db")
    session = await service.create_session(app_name="app", user_id="u", session_id="s")
    await service.append_event(session, Event(author="user", id="one"))
    read = await service.get_session(app_name="app", user_id="u", session_id="s")
    again = await service.get_session(app_name="app", user_id="u", session_id="s")
    assert read is not None
    assert again is not None
    before = adk_private.revision_of(read)
    assert before is not None
    assert adk_private.revision_of(again) == before

    await service.append_event(read, Event(author="user", id="two"))

    after = await service.get_session(app_name="app", user_id="u", session_id="s")
    assert after is not None
    assert adk_private.revision_of(after) != before
    stored = adk_private.session_tables(service).StorageEvent
    async with adk_private.read_transaction(service) as transaction:
        statement = select(func.count()).where(stored.session_id == "s", stored.app_name == "app")
        assert await transaction.scalar(statement) == 2
    await service.close()


async def test_an_append_follows_the_revision_that_was_set(tmp_path: Path) -> None:
    service = DatabaseSessionService(db_url=f"sqlite+aiosqlite:///{tmp_path}/sessions.db")
    session = await service.create_session(app_name="app", user_id="u", session_id="s")
    revision = adk_private.revision_of(session)
    assert revision is not None

    adk_private.set_revision(session, "2026-01-01T00:00:00.000000")
    with pytest.raises(StaleSessionError):
        await service.append_event(session, Event(author="user", id="one"))
    adk_private.set_revision(session, revision)
    await service.append_event(session, Event(author="user", id="one"))
    await service.close()


async def test_a_session_that_was_brought_to_a_newer_revision_is_appended_to(
    tmp_path: Path,
) -> None:
    service = DatabaseSessionService(db_url=f"sqlite+aiosqlite:///{tmp_path}/sessions.db")
    place: dict[str, Any] = {"app_name": "app", "user_id": "u", "session_id": "s"}
    session = await service.create_session(**place)
    newer = await service.get_session(**place)
    assert newer is not None
    changed = Event(author="user", id="one")
    changed.actions.state_delta["key"] = "value"
    await service.append_event(newer, changed)

    with pytest.raises(StaleSessionError):
        await service.append_event(session, Event(author="user", id="two"))
    adk_private.continue_from(session, newer)
    await service.append_event(session, Event(author="user", id="two"))

    assert [event.id for event in session.events] == ["one", "two"]
    assert session.state == {"key": "value"}
    await service.close()


@pytest.mark.parametrize("source", adk_private_resumption.NODE_FAILURE_LOGGERS)
async def test_adk_logs_an_exception_that_fails_a_node_on_these_loggers(
    source: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise LookupError

    flow = Workflow(name="app", edges=[("START", FunctionNode(func=fail))])
    async with InMemoryRunner(app=App(name="app", root_agent=flow)) as runner:
        with caplog.at_level(logging.ERROR, source), suppress(LookupError):
            await conversation(runner, types.Part(text="go"))

    failures = [record.exc_info for record in caplog.records if record.name == source]
    assert LookupError in [failure[0] for failure in failures if failure]


def definitions(module: ModuleType) -> Iterator[str]:
    """The public names of a module that are defined or passed on there, without its interfaces."""
    for node in ast.parse(Path(module.__file__ or "").read_text("utf-8")).body:
        names: list[str] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names = [node.target.id]
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names if alias.name == alias.asname]
        for name in names:
            is_interface = getattr(getattr(module, name), "_is_protocol", False)
            if not name.startswith("_") and not is_interface:
                yield name


def names_in_tests(module: ModuleType) -> set[str]:
    """The names of a module that the tests of this file use."""
    alias = module.__name__.rpartition(".")[2]
    return {
        node.attr
        for test in ast.parse(Path(__file__).read_text("utf-8")).body
        if isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef)
        if test.name.startswith("test_")
        for node in ast.walk(test)
        if isinstance(node, ast.Attribute)
        if isinstance(node.value, ast.Name) and node.value.id == alias
    }


@pytest.mark.parametrize("module", [adk_private, adk_private_resumption])
def test_each_definition_has_a_test(module: ModuleType) -> None:
    defined = set(definitions(module))

    assert defined
    assert defined - names_in_tests(module) == set()
