"""Agents in the manner of ADK's samples, one of each kind, with tools that require approval.

``app`` serves each of them in both approval styles, under ``/STYLE/NAME``. The variable
``SLUICEGATE_SAMPLES`` names the folder of its databases; effects are recorded as those of the
conformance agent.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final, Literal

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.loop_agent import LoopAgent
from google.adk.agents.parallel_agent import ParallelAgent
from google.adk.agents.sequential_agent import SequentialAgent
from google.adk.events.request_input import RequestInput
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.exit_loop_tool import exit_loop
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import START, Workflow, node
from starlette.applications import Starlette
from starlette.routing import Mount

from sluicegate import client_tool, create_app
from sluicegate.replay import ScriptedModel, load_scenarios
from tests.agents.conformance_agent import record_effect, wait_while_held

SCRIPT = load_scenarios(Path(__file__).with_name("samples.yaml"))
STYLES: Final[tuple[Literal["call", "confirmation"], ...]] = ("call", "confirmation")

_NOTHING: Final = {"type": "object", "properties": {}}

Root = BaseAgent | Workflow


def coordinator() -> Root:
    """A coordinator that hands over to a sequence, whose second step buys."""
    steps: list[BaseAgent] = [
        _agent("planner", tools=[FunctionTool(find_train)]),
        _agent("buyer", tools=[_gated(buy_ticket)]),
        _agent("writer"),
    ]
    return _agent("coordinator", sub_agents=[SequentialAgent(name="journey", sub_agents=steps)])


def agent_as_tool() -> Root:
    """An editor whose researcher is a tool, and may pay for what it reads."""
    researcher = _agent("researcher", tools=[_gated(buy_article)])
    return _agent("editor", tools=[AgentTool(researcher)])


def loop() -> Root:
    """A draft that is saved and reviewed until the reviewer ends the loop, then published."""
    draft = LoopAgent(
        name="draft",
        max_iterations=4,
        sub_agents=[
            _agent("author", tools=[_gated(save_draft)]),
            _agent("reviewer", tools=[exit_loop]),
        ],
    )
    return SequentialAgent(name="essay", sub_agents=[draft, _agent("publisher")])


def human_in_the_loop() -> Root:
    """A clerk who pays small expenses, has large ones approved, and asks about days off."""
    return _agent(
        "clerk",
        tools=[
            FunctionTool(reimburse, require_confirmation=_is_large),
            FunctionTool(request_time_off),
            LongRunningFunctionTool(ask_manager),
        ],
    )


def together() -> Root:
    """A guide, who asks the page for a place, and a cashier, who pays, at the same time."""
    guide = _agent(
        "guide",
        tools=[client_tool("locate", "Find the user.", _NOTHING, require_confirmation=True)],
    )
    cashier = _agent("cashier", tools=[_gated(pay_out)])
    return ParallelAgent(name="together", sub_agents=[guide, cashier])


def workflow() -> Root:
    """A Workflow that asks for an amount, has an agent check it, pays it in a node and reports."""

    def ask(node_input: Any) -> Iterator[RequestInput]:
        yield RequestInput(message="Which amount?", response_schema={"type": "number"})

    def payment(node_input: Any) -> dict[str, float]:
        return {"amount": 7}

    checker = _agent("checker", tools=[_gated(file_receipt)])
    gated = node(_gated(pay_out), name="payment_node")
    return Workflow(name="expenses", edges=[(START, ask, checker, payment, gated, _agent("clerk"))])


SAMPLES: dict[str, Callable[[], Root]] = {
    build.__name__: build
    for build in (coordinator, agent_as_tool, loop, human_in_the_loop, together, workflow)
}


def find_train(city: str, tool_context: ToolContext) -> dict[str, str]:
    """Find the next train to a city."""
    record_effect("find_train", {"city": city}, tool_context)
    return {"train": f"09:10 to {city}"}


def buy_ticket(train: str, price: float, tool_context: ToolContext) -> dict[str, str]:
    """Buy a ticket for a train."""
    record_effect("buy_ticket", {"train": train, "price": price}, tool_context)
    return {"ticket": f"T-1 for {train}"}


def buy_article(title: str, tool_context: ToolContext) -> dict[str, str]:
    """Buy an article of a newspaper."""
    record_effect("buy_article", {"title": title}, tool_context)
    return {"text": f"All about {title}."}


def save_draft(version: int, tool_context: ToolContext) -> dict[str, int]:
    """Save a version of the draft."""
    record_effect("save_draft", {"version": version}, tool_context)
    return {"saved": version}


def reimburse(purpose: str, amount: float, tool_context: ToolContext) -> dict[str, Any]:
    """Reimburse an expense."""
    record_effect("reimburse", {"purpose": purpose, "amount": amount}, tool_context)
    return {"status": "ok", "amount": amount}


def request_time_off(days: int, tool_context: ToolContext) -> dict[str, Any]:
    """Request days off; the manager says how many of them."""
    confirmation = tool_context.tool_confirmation
    if confirmation is None:
        tool_context.request_confirmation(
            hint=f"How many of {days} days off are approved?", payload={"approved_days": 0}
        )
        return {"status": "The manager has to approve."}
    granted = dict(confirmation.payload or {})
    record_effect("request_time_off", granted, tool_context)
    return granted


def ask_manager(purpose: str, amount: float) -> None:
    """Ask the manager in another system, whose answer comes later."""


def file_receipt(amount: float, tool_context: ToolContext) -> dict[str, float]:
    """File the receipt of an expense."""
    record_effect("file_receipt", {"amount": amount}, tool_context)
    return {"filed": amount}


def pay_out(amount: float, tool_context: ToolContext) -> dict[str, float]:
    """Pay an amount of money out."""
    record_effect("pay_out", {"amount": amount}, tool_context)
    return {"paid": amount}


def _is_large(purpose: str, amount: float, tool_context: ToolContext) -> bool:
    return amount >= 100


def _gated(function: Callable[..., Any]) -> FunctionTool:
    return FunctionTool(function, require_confirmation=True)


def _agent(name: str, **more: Any) -> LlmAgent:
    return LlmAgent(
        name=name,
        description=f"The agent called {name}.",
        model=ScriptedModel(scenarios=SCRIPT),
        before_model_callback=wait_while_held,
        **more,
    )


def serve(folder: Path) -> Starlette:
    """Return one application with every sample in each style, and their databases in a folder."""
    apps = {
        f"/{style}/{name}": create_app(
            build(),
            auth="header:x-user",
            approval_style=style,
            client_tools=["ask_manager"],
            sessions=f"sqlite+aiosqlite:///{folder / f'{style}-{name}.db'}",
            artifacts=f"file:{folder / f'{style}-{name}'}",
        )
        for style in STYLES
        for name, build in SAMPLES.items()
    }

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for app in apps.values():
                await stack.enter_async_context(app.router.lifespan_context(app))
            yield

    return Starlette(
        routes=[Mount(path, app) for path, app in apps.items()],
        lifespan=lifespan,
    )


def app() -> Starlette:
    """Return the application of the stories, for ``uvicorn --factory``."""
    return serve(Path(os.environ["SLUICEGATE_SAMPLES"]))
