"""The callbacks of agents and plugins around a call that waits: how often they run and answer."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.loop_agent import LoopAgent
from google.adk.apps.app import App, ResumabilityConfig
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

from sluicegate import every_turn
from tests.engine.adk_story import Story, call, step
from tests.engine.stage import words
from tests.engine.talk import Talk, decide
from tests.engine.test_custom_agents import in_order
from tests.engine.test_transfers_to_shells import approve_all, plain, said, with_restarts
from tests.engine.topologies import delegate, flow, parallel, sequence, singles

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.agents.callback_context import CallbackContext
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.tools.base_tool import BaseTool
    from google.adk.workflow import BaseNode

    from tests.engine.stage import Open
    from tests.engine.test_transfers_to_shells import OpenEngine

    Build = Callable[[Story], Any]

pytestmark = [
    pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated"),  # AgentTool's own
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
]


def _asks_in_two_steps(story: Story, name: str) -> LlmAgent:
    model = story.model(call(f"pay_{name}"), call(f"book_{name}"), f"{name} done")
    tools: list[Any] = [story.gated(f"pay_{name}"), story.gated(f"book_{name}")]
    return LlmAgent(name=name, description=name, model=model, tools=tools)


def _rounds(story: Story) -> LoopAgent:
    turns: list[types.Part | str] = [call("pay_a"), "a done"] * 2
    tools: list[Any] = [story.gated("pay_a")]
    asker = LlmAgent(name="a", model=story.model(*turns), tools=tools)
    reviewer = LlmAgent(name="r", model=story.model("Again.", "Good."))
    return LoopAgent(
        name="loop", max_iterations=2, sub_agents=[parallel(asker, name="p"), reviewer]
    )


def _called_twice(story: Story, *, as_tool: bool) -> LlmAgent:
    turns: list[types.Part | str] = [call("pay_a"), "a done"] * 2
    settings: dict[str, Any] = {} if as_tool else {"mode": "single_turn"}
    tools: list[Any] = [story.gated("pay_a")]
    agent = LlmAgent(name="a", description="a", model=story.model(*turns), tools=tools, **settings)
    model = story.model(call("a", request="one"), call("a", request="two"), "root done")
    below: dict[str, Any] = {"tools": [AgentTool(agent)]} if as_tool else {"sub_agents": [agent]}
    return LlmAgent(name="root", model=model, **below)


def _there_and_back(story: Story) -> LlmAgent:
    model = story.model(call("pay_a"), call("transfer_to_agent", agent_name="root"))
    tools: list[Any] = [story.gated("pay_a")]
    agent = LlmAgent(name="a", description="a", model=model, tools=tools)
    turns: list[types.Part | str] = [
        call("transfer_to_agent", agent_name="a"),
        call("pay_root"),
        "root done",
    ]
    return LlmAgent(
        name="root", model=story.model(*turns), tools=[story.gated("pay_root")], sub_agents=[agent]
    )


def _hands_over_in_a_tool(story: Story) -> LlmAgent:
    inner = story.hander("a", b := story.asker("b"), sub_agents=[b])
    return story.talker("root", *delegate("a"), tools=[AgentTool(inner)])


KINDS: dict[str, Build] = {
    "the root": lambda s: s.asker("root"),
    "two calls in one step": lambda s: s.asker("root", "pay", "book"),
    "two steps that wait": lambda s: _asks_in_two_steps(s, "root"),
    "single_turn agents": lambda s: s.talker("root", *delegate("a"), sub_agents=singles(s, "a")),
    "a single_turn agent that is called twice": lambda s: _called_twice(s, as_tool=False),
    "an agent that was transferred to": lambda s: s.hander(
        "root", a := s.asker("a"), sub_agents=[a]
    ),
    "a transfer there and back": _there_and_back,
    "a sequence": lambda s: sequence(s.asker("a"), s.asker("b")),
    "parallel agents": lambda s: parallel(s.asker("a"), s.talker("b")),
    "each round of a loop": _rounds,
    "an AgentTool": lambda s: s.talker("root", *delegate("a"), tools=[AgentTool(s.asker("a"))]),
    "an AgentTool that is called twice": lambda s: _called_twice(s, as_tool=True),
    "an AgentTool whose agent hands over": _hands_over_in_a_tool,
    "a transfer to a sequence": lambda s: s.hander(
        "root", q := sequence(s.asker("a"), s.asker("b")), sub_agents=[q]
    ),
    "a sequence as node of a Workflow": lambda s: flow(
        "wf", sequence(s.asker("a"), s.asker("b")), step("end")
    ),
    "an agent as node of a Workflow": lambda s: flow("wf", s.asker("a"), step("end")),
    "a task": lambda s: s.talker(
        "root",
        call("t", request="x"),
        sub_agents=[s.tasker("t", call("pay_t"), tools=[s.gated("pay_t")])],
    ),
    "a class with its own order": lambda s: in_order(s, s.talker("b")),
}
"""Each way in which an agent goes on after an answer."""

TURNS = {
    "the root": {"root": 2},
    "a sequence": {"seq": 3, "a": 2, "b": 2},
    "parallel agents": {"par": 2, "a": 2, "b": 1},
}
"""In how many turns each agent runs."""


def _agents(node: BaseNode) -> list[BaseAgent]:
    found = [node] if isinstance(node, BaseAgent) else []
    below = [*getattr(node, "sub_agents", ())]
    below += [each.agent for each in getattr(node, "tools", ()) if isinstance(each, AgentTool)]
    if (graph := getattr(node, "graph", None)) is not None:
        below += graph.nodes
    return found + [agent for each in below for agent in _agents(each)]


def _noting(root: BaseNode, log: list[str]) -> BaseNode:
    """A tree whose agents note the runs of their callbacks, in a log and in the state."""

    def noted(kind: str, name: str) -> Callable[[CallbackContext], None]:
        def callback(callback_context: CallbackContext) -> None:
            log.append(f"{kind} {name}")
            state = callback_context.state
            state[f"{kind}_{name}"] = state.get(f"{kind}_{name}", 0) + 1

        return callback

    for agent in _agents(root):
        agent.before_agent_callback = noted("before", agent.name)
        agent.after_agent_callback = noted("after", agent.name)
    return root


async def _of_adk(root: BaseNode) -> None:
    """Approve what waits in plain ADK."""
    app = App(
        name="app", root_agent=root, resumability_config=ResumabilityConfig(is_resumable=True)
    )
    runner = InMemoryRunner(app=app)
    await runner.session_service.create_session(app_name="app", user_id="u", session_id="s")
    message: types.Content | None = types.Content(role="user", parts=[types.Part(text="go")])
    while message is not None:
        parts: list[types.Part] = []
        async for event in runner.run_async(user_id="u", session_id="s", new_message=message):
            for asked in event.get_function_calls():
                if asked.name == "adk_request_confirmation":
                    parts.append(
                        types.Part(
                            function_response=types.FunctionResponse(
                                id=asked.id, name=asked.name, response={"confirmed": True}
                            )
                        )
                    )
        message = types.Content(role="user", parts=parts) if parts else None
    await runner.close()


@pytest.mark.parametrize("kind", TURNS)
async def test_adk_runs_the_callbacks_of_an_agent_whenever_it_goes_on(kind: str) -> None:
    log: list[str] = []
    await _of_adk(_noting(KINDS[kind](Story()), log))
    for when in ("before", "after"):
        assert {name: log.count(f"{when} {name}") for name in TURNS[kind]} == TURNS[kind]


@pytest.mark.parametrize("kind", KINDS)
async def test_callbacks_run_as_often_as_in_plain_adk_without_the_gates(
    open_engine: OpenEngine, kind: str
) -> None:
    free: list[str] = []
    log: list[str] = []
    await plain(_noting(KINDS[kind](Story(has_gates=False)), free), ["go"])
    story = Story(is_stateless=True)
    tree = KINDS[kind](story)
    talk = await with_restarts(open_engine, lambda: _noting(tree, log), ["go"])
    assert Counter(log) == Counter(free)
    if "parallel" not in kind:
        assert log == free
    async with open_engine(tree) as engine:
        talk.engine = engine
        session = await engine.resources.session_log.load(talk.key)
        assert session is not None
    counted = {name.replace(" ", "_"): count for name, count in Counter(free).items()}
    assert {name: session.state.get(name) for name in counted} == counted


def _text(text: str) -> types.Content:
    return types.Content(role="model", parts=[types.Part(text=text)])


def _with_one_that_is_skipped(story: Story) -> BaseAgent:
    skipped = story.talker("a")
    skipped.before_agent_callback = lambda callback_context: _text("a skipped")
    return parallel(skipped, story.asker("b"))


def _with_a_last_word(agent: BaseAgent) -> BaseAgent:
    agent.after_agent_callback = lambda callback_context: _text(f" {agent.name} over")
    return agent


ANSWERS: dict[str, Build] = {
    "an agent that is skipped beside one that waits": _with_one_that_is_skipped,
    "a last word of the root": lambda s: _with_a_last_word(s.asker("root")),
    "a last word of an agent beside one that waits": lambda s: parallel(
        _with_a_last_word(s.talker("a")), s.asker("b")
    ),
    "a last word of parallel agents": lambda s: _with_a_last_word(
        parallel(s.asker("a"), s.talker("b"))
    ),
    "a last word in a sequence": lambda s: sequence(_with_a_last_word(s.asker("a")), s.asker("b")),
}


@pytest.mark.parametrize("name", ANSWERS)
async def test_what_a_callback_answers_is_said_once(open_stage: Open, name: str) -> None:
    free, story = Story(has_gates=False), Story()
    texts = await plain(ANSWERS[name](free), ["go"])
    talk = Talk(await open_stage(ANSWERS[name](story)))
    await talk.say("go")
    await approve_all(talk)
    assert "".join(said(talk)) == "".join(texts)
    assert words(await talk.history()) == "".join(texts)


@pytest.mark.parametrize("is_in_a_sequence", [False, True])
async def test_the_last_word_of_a_called_agent_that_hands_over_is_not_said(
    open_stage: Open, is_in_a_sequence: bool
) -> None:
    def build(story: Story) -> BaseAgent:
        inner: BaseAgent = _with_a_last_word(
            story.hander("a", b := story.asker("b"), sub_agents=[b])
        )
        inner = sequence(inner) if is_in_a_sequence else inner
        return story.talker("root", *delegate(inner.name), tools=[AgentTool(inner)])

    free, story = Story(has_gates=False), Story()
    await plain(build(free), ["go"])
    talk = Talk(await open_stage(build(story)))
    await talk.say("go")
    await approve_all(talk)
    # ADK: it is said below a sequence, where the agent is no node.
    assert ("a over" in free.requests[-1]) is is_in_a_sequence
    assert ("a over" in story.requests[-1]) is is_in_a_sequence


async def test_a_callback_that_skips_an_agent_after_the_decision_ends_it(open_stage: Open) -> None:
    story, runs = Story(), Counter[str]()

    @every_turn
    def before(callback_context: CallbackContext) -> types.Content | None:
        runs["before"] += 1
        return _text("Closed for today.") if runs["before"] > 1 else None

    agent = story.asker("root")
    agent.before_agent_callback = before
    talk = Talk(await open_stage(agent))
    await talk.say("go")
    for part in talk.pending():
        decide(part, approved=True)
    turn = await talk.post_last()
    assert not turn.failed
    assert story.effects == []
    assert words(talk.messages[-1]) == "Closed for today."
    assert not talk.pending()


class _Noting(BasePlugin):
    """Notes what it sees."""

    def __init__(self, seen: list[str] | None = None) -> None:
        super().__init__(name="noting")
        self.seen = [] if seen is None else seen

    async def on_user_message_callback(
        self, *, invocation_context: InvocationContext, user_message: types.Content
    ) -> None:
        self.seen.append(f"message {user_message.parts and user_message.parts[0].text}")

    async def before_agent_callback(
        self, *, agent: BaseAgent, callback_context: CallbackContext
    ) -> None:
        self.seen.append(f"before {agent.name}")

    async def after_agent_callback(
        self, *, agent: BaseAgent, callback_context: CallbackContext
    ) -> None:
        self.seen.append(f"after {agent.name}")

    async def after_tool_callback(self, *, tool: BaseTool, **_: Any) -> None:
        self.seen.append(f"result of {tool.name}")


def _app(root: BaseNode, plugin: BasePlugin) -> App:
    return App(name="app", root_agent=root, plugins=[plugin])


@pytest.mark.parametrize(
    "kind", ["two steps that wait", "a sequence", "an AgentTool", "a transfer there and back"]
)
async def test_a_plugin_sees_what_it_sees_in_plain_adk_without_the_gates(
    open_engine: OpenEngine, kind: str
) -> None:
    free, seen = _Noting(), _Noting()
    await plain(_app(KINDS[kind](Story(has_gates=False)), free), ["go"])
    tree = KINDS[kind](Story(is_stateless=True))
    await with_restarts(open_engine, lambda: _app(tree, seen), ["go"])
    # ADK: the agent in an AgentTool has a run of its own, whose request is a message.
    expected = [each for each in free.seen if each != "message please"]
    assert seen.seen == expected


class _Turns(BasePlugin):
    """Prepares each turn."""

    def __init__(self, turns: list[str]) -> None:
        super().__init__(name="turns")
        self.turns = turns

    @every_turn
    async def before_agent_callback(self, *, agent: BaseAgent, **_: Any) -> None:
        self.turns.append(f"plugin before {agent.name}")

    @every_turn
    async def on_user_message_callback(self, *, user_message: types.Content, **_: Any) -> None:
        is_answer = not any(part.text for part in user_message.parts or ())
        self.turns.append("answers" if is_answer else "message")

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> None:
        self.turns.append("before run")

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        self.turns.append("after run")


async def test_a_callback_that_prepares_each_turn_is_marked(open_stage: Open) -> None:
    turns: list[str] = []

    def once(callback_context: CallbackContext) -> None:
        turns.append("once")

    @every_turn
    def prepares(callback_context: CallbackContext) -> None:
        turns.append("prepares")
        callback_context.state["temp:prepared"] = True

    @every_turn
    def checks(callback_context: CallbackContext) -> None:
        turns.append("checks")

    agent = Story().asker("root")
    agent.before_agent_callback = [once, prepares]
    agent.after_agent_callback = checks
    talk = Talk(await open_stage(_app(agent, _Turns(turns))))
    await talk.say("go")
    first, turns[:] = list(turns), []
    await approve_all(talk)
    run = ["before run", "plugin before root"]
    assert first == ["message", *run, "once", "prepares", "checks", "after run"]
    assert turns == ["answers", *run, "prepares", "checks", "after run"]


async def test_a_marked_callback_after_an_agent_that_waits_changes_the_state_and_says_nothing(
    open_stage: Open,
) -> None:
    @every_turn
    def counts(callback_context: CallbackContext) -> types.Content:
        callback_context.state["turns"] = callback_context.state.get("turns", 0) + 1
        return _text("Anything else?")

    agent = Story().asker("root")
    agent.after_agent_callback = counts
    talk = Talk(await open_stage(agent))
    await talk.say("go")
    assert words(talk.messages[-1]) == ""
    await approve_all(talk)
    assert words(talk.messages[-1]) == "root doneAnything else?"
    session = await talk.engine.resources.session_log.load(talk.key)
    assert session is not None
    assert session.state["turns"] == 2
