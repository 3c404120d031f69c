"""The world of a random tree: its tools, models and callbacks, and the log of what they do.

The same world serves the tree in plain ADK, without gates, and in the engine, with them. A server
that starts again finds the world as it was, so a model that is asked twice says so.
"""

from __future__ import annotations

import asyncio
import json
import re
from ast import literal_eval
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.context import Context
from google.adk.events.request_input import RequestInput
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools._request_input_tool import request_input
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import BaseNode, node
from google.genai import types

from sluicegate.adk_private import invocation_of
from sluicegate.adk_private_resumption import shadow_node_run
from sluicegate.tools import client_tool
from tests.engine.adk_story import PLACEHOLDER

DENIED: Final = {"status": "denied", "error": "The user denied this call."}
"""What the model is told of a denial."""

PAGE_OUTPUT: Final = {"seen": "by the page"}
INPUT: Final[dict[str, str]] = {"result": "blue"}
"""What the page answers, and the user."""

REQUEST_INPUT: Final = "adk_request_input"
_QUESTION: Final = f"`{REQUEST_INPUT}`"
_STAND_IN: Final = "answers_input"
"""ADK: a call with the name of its own tool pauses the agents around it, whatever the tool is."""
SKIPS: Final = "skips"
"""The kind of a callback before an agent that answers in its place."""

_TRANSFER: Final = "transfer_to_agent"
_QUOTES: Final = "For context:"
_QUOTED_RESULT: Final = re.compile(r"\[(\w+)\] `(\w+)` tool returned result")
_SAID_RESULT: Final = re.compile(r"user said  `\w+` tool returned result")
_QUOTED: Final = re.compile(r"\[(\w+)\]")


@dataclass(frozen=True, order=True)
class Segment:
    """One step from a construct of the tree to what runs in it."""

    construct: str
    slot: int
    is_concurrent: bool = False


Lane = tuple[Segment, ...]
"""Where something runs in the tree, from the root."""


def are_concurrent(one: Lane, other: Lane) -> bool:
    """Whether two things may happen in any order."""
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            return mine.is_concurrent and mine.construct == theirs.construct
    return False


def normal_form(items: Sequence[tuple[Lane, Any]]) -> list[Any]:
    """Items in an order that depends only on that of items which are not concurrent."""
    left, ordered = [(lane, repr(what), what) for lane, what in items], []
    while left:
        first = [
            index
            for index, (lane, _, _) in enumerate(left)
            if all(are_concurrent(lane, earlier) for earlier, _, _ in left[:index])
        ]
        chosen = min(first, key=lambda index: left[index][1])
        ordered.append(left.pop(chosen)[2])
    return ordered


class TreeLlm(BaseLlm):
    """Plays its turns in order, over all servers; what is asked further has no answer."""

    model: str = "scripted"
    agent: str
    turns: list[list[types.Part]]
    world: Any

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT002 - ADK's
    ) -> AsyncGenerator[LlmResponse, None]:
        self.world.note(self.agent, ("request", _seen(llm_request)))
        number = self.world.said[self.agent]
        self.world.said[self.agent] += 1
        await asyncio.sleep(0)
        nothing = [types.Part(text=f"{self.agent} has no turn {number}.")]
        turn = self.turns[number] if number < len(self.turns) else nothing
        yield LlmResponse(content=types.Content(role="model", parts=turn))


def _seen(request: LlmRequest) -> tuple[Any, ...]:
    """A request as its model sees it, apart from ids and placeholders of calls that wait.

    Instructions are sorted, since an agent that is called gets those of ADK in another order.
    """
    instruction = sorted(str(request.config.system_instruction).split())
    tools = sorted(
        _by_adk_name(str(declaration.name))
        for tool in request.config.tools or ()
        for declaration in getattr(tool, "function_declarations", None) or ()
    )
    parts = [(content.role, part) for content in request.contents for part in content.parts or ()]
    shown = [seen for role, part in parts if (seen := _part(role, part))]
    return instruction, tools, [(_by_adk_name(name), _by_adk_name(text)) for name, text in shown]


def _by_adk_name(text: str) -> str:
    return text.replace(_STAND_IN, REQUEST_INPUT)


def _part(role: str | None, part: types.Part) -> tuple[str, str] | None:
    """A part with what it is about; None if it only shows that a call waits."""
    if part.function_call is not None:
        return "", f"{role} calls {part.function_call.name} {part.function_call.args}"
    if part.function_response is not None:
        name, response = part.function_response.name, part.function_response.response
        waits = PLACEHOLDER in repr(response)
        return None if waits else (name or "", f"{role} got {name} {response}")
    text = part.text or ""
    if text.startswith(_QUOTES) or PLACEHOLDER in text:
        return None
    if result := _QUOTED_RESULT.match(text):
        # ADK: what the page answers is quoted as the user's.
        author, tool = result.groups()
        return author if tool == _TRANSFER else tool, f"{role} said {text.partition(']')[2]}"
    about = _QUOTED.match(text)
    return about[1] if about else "", f"{role} said {_with_sorted_names(text)}"


def _with_sorted_names(text: str) -> str:
    """The text, with sorted names if it is an object: PostgreSQL does not keep their order."""
    if not text.startswith("{"):
        return text
    return json.dumps(json.loads(text), sort_keys=True)


class World:
    """Builds tools, models and callbacks, and has the log of what they do.

    ``lanes`` says of each agent and tool where it runs, ``denied`` are calls by tool and number.
    ``open_results`` are agents whose result is that of whichever parallel agent has ended last.
    """

    def __init__(self, *, has_gates: bool) -> None:
        self.has_gates = has_gates
        self.log: list[tuple[str, Any]] = []
        self.said: Counter[str] = Counter()
        self.lanes: dict[str, Lane] = {}
        self.denied: set[tuple[str, int]] = set()
        self.open_results: set[str] = set()
        self._node_asks = False

    def note(self, about: str, what: Any) -> None:
        """Note what an agent or a tool does."""
        self.log.append((about, what))

    def history(self) -> list[Any]:
        """The log, in an order that does not depend on what happens at once."""
        return normal_form(
            [(self.lanes[about], self._told(about, what)) for about, what in self.log]
        )

    def _told(self, about: str, what: Any) -> tuple[Any, ...]:
        if what[0] != "request":
            return about, what
        instruction, tools, parts = what[1]
        own = self.lanes[about]
        parts = [
            (name, name if name in self.open_results else _with_sorted_keys(text))
            for name, text in parts
            if not (_SAID_RESULT.match(text) and self._is_of_the_same_step(own, name))
            and not (self._node_asks and _QUESTION in text)
        ]
        shown = normal_form([(self.lanes.get(name, own), text) for name, text in parts])
        return about, "request", instruction, tools, shown

    def _is_of_the_same_step(self, own: Lane, name: str) -> bool:
        """Whether a tool is called beside the call in which an agent runs.

        Its result is in the log as soon as something in the step waits, else with all results.
        """
        for mine, theirs in zip(own, self.lanes.get(name, own), strict=False):
            if mine != theirs:
                return "#" in mine.construct and mine.construct == theirs.construct
        return False

    def model(self, agent: str, turns: list[list[types.Part]]) -> TreeLlm:
        """A model that plays some turns."""
        return TreeLlm(agent=agent, turns=turns, world=self)

    # Tools.

    def tool(self, name: str, kind: str, lane: Lane, *, gated: bool) -> BaseTool:
        """A tool with an effect: it pays, notes in the state, saves a file, or ends a loop."""
        self.lanes[name] = lane

        async def effect(n: int, tool_context: ToolContext) -> dict[str, Any]:
            if not self.has_gates and (name, n) in self.denied:
                return DENIED
            self.note(name, ("ran", n))
            return {"did": name, **await _take_effect(kind, name, n, tool_context)}

        _rename(effect, name)
        return FunctionTool(effect, require_confirmation=gated and self.has_gates)

    def page_tool(self, name: str, lane: Lane, *, gated: bool) -> BaseTool:
        """A tool that the page runs."""
        self.lanes[name] = lane
        if self.has_gates:
            schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
            return client_tool(name, f"Does {name}.", schema, require_confirmation=gated)

        def answered(n: int) -> dict[str, Any]:
            return DENIED if (name, n) in self.denied else PAGE_OUTPUT

        _rename(answered, name)
        return FunctionTool(answered)

    @property
    def input_name(self) -> str:
        """The name of the tool that asks the user."""
        return REQUEST_INPUT if self.has_gates else _STAND_IN

    def input_tool(self, lane: Lane) -> BaseTool:
        """ADK's tool that asks the user."""
        self.lanes[REQUEST_INPUT] = lane
        if self.has_gates:
            return request_input

        def answered(message: str) -> dict[str, Any]:
            return INPUT

        _rename(answered, _STAND_IN)
        return FunctionTool(answered)

    # Shell agents.

    def keep_branches(self, shell: BaseAgent) -> None:
        """Have plain ADK leave events without a branch as they are, if the shell agent is a node.

        ADK: such an event gets the branch of the parallel agent that ended last, and so does the
        next node of a Workflow, so which agents see it depends on the time. An App that can be
        resumed writes the end of parallel agents, on their own branch.
        """
        if not self.has_gates:
            shadow_node_run(shell, _on_one_branch)

    # Nodes of Workflows.

    def step(self, name: str, lane: Lane) -> BaseNode:
        """A function node with an effect, whose output is the next node's input."""
        self.lanes[name] = lane

        def run(node_input: Any) -> dict[str, Any]:
            self.note(name, ("ran", repr(node_input)))
            return {"n": 0}

        return _node(run, name)

    def asking_step(self, name: str) -> BaseNode:
        """A function node that asks the user; later agents see that it was asked."""
        self._node_asks = True

        def ask(node_input: Any) -> Iterator[RequestInput]:
            yield RequestInput(message="Which colour?", response_schema=None)

        # ADK: an answer with nothing but a result is the result.
        def answered(node_input: Any) -> str:
            return INPUT["result"]

        return _node(ask if self.has_gates else answered, name)

    # Callbacks.

    def callbacks(self, agent: str, kinds: Sequence[str], first: str, last: str) -> dict[str, Any]:
        """Callbacks of an agent; one may answer in its place, and one after it."""
        known = {
            "before_agent_callback": self._counts(agent, "begins", ""),
            "after_agent_callback": self._counts(agent, "ends", last),
            "before_model_callback": self._notes(agent, "before model"),
            "after_model_callback": self._notes(agent, "after model"),
            "after_tool_callback": self._notes_results(agent),
        }
        made: dict[str, Any] = {kind: known[kind] for kind in kinds if kind in known}
        if SKIPS in kinds:
            made["before_agent_callback"] = self._counts(agent, "skips", first)
        return made

    def _counts(self, agent: str, what: str, word: str) -> Callable[..., types.Content | None]:
        """A callback with an effect, which is counted in the state, too."""

        def counts(callback_context: CallbackContext) -> types.Content | None:
            key = f"{what}_{agent}"
            callback_context.state[key] = callback_context.state.get(key, 0) + 1
            self.note(agent, (what, callback_context.state[key]))
            return _text(word) if word else None

        return counts

    def _notes(self, agent: str, what: str) -> Callable[..., None]:
        return lambda **_: self.note(agent, (what, agent))

    def _notes_results(self, agent: str) -> Callable[..., None]:
        """A callback that notes results."""

        def noted(
            *, tool: BaseTool, args: Any, tool_context: ToolContext, tool_response: Any
        ) -> None:
            name = _by_adk_name(tool.name)
            self.note(name if name in self.lanes else agent, ("result", agent))

        return noted


@contextmanager
def _on_one_branch(ctx: Context, _: Any) -> Iterator[None]:
    run = invocation_of(ctx)
    branch = run.branch
    yield
    run.branch = branch


def _text(text: str) -> types.Content:
    return types.Content(role="model", parts=[types.Part(text=text)])


def _with_sorted_keys(text: str) -> str:
    """The text with the keys of each flat dictionary in order: PostgreSQL does not keep theirs."""
    return re.sub(
        r"\{'[^{}]*\}", lambda found: repr(dict(sorted(literal_eval(found[0]).items()))), text
    )


async def _take_effect(kind: str, name: str, n: int, context: ToolContext) -> dict[str, Any]:
    await asyncio.sleep(0)
    if kind == "note":
        context.state[f"n_{name}"] = context.state.get(f"n_{name}", 0) + 1
        return {"noted": context.state[f"n_{name}"]}
    if kind == "save":
        version = await context.save_artifact(f"{name}.txt", types.Part(text=f"{name} {n}"))
        return {"version": version}
    if kind == "exit":
        context.actions.escalate = True
    return {"n": n}


def _node(function: Callable[..., Any], name: str) -> BaseNode:
    made = node(function, name=name)
    assert isinstance(made, BaseNode)
    return made


def _rename(function: Callable[..., Any], name: str) -> None:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Does {name}."
