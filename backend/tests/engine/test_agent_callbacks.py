"""The callbacks of agents and plugins around a call that waits: how often they run and answer."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.base_agent import BaseAgent
from google.adk.apps.app import App, ResumabilityConfig
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

from tests.engine.adk_story import Story, step
from tests.engine.stage import words
from tests.engine.talk import Talk, decide
from tests.engine.test_own_order import in_order
from tests.engine.test_transfers_to_shells import approve_all, plain, said, with_restarts
from tests.engine.topologies import delegate, flow, parallel, sequence, singles

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.agents.callback_context import CallbackContext
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.workflow import BaseNode

    from tests.engine.stage import Open
    from tests.engine.test_transfers_to_shells import OpenEngine

    Build = Callable[[Story], Any]

pytestmark = [
    pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated"),  # AgentTool's own
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
]

KINDS: dict[str, tuple[Build, dict[str, int]]] = {
    "the root": (lambda s: s.asker("root"), {"root": 2}),
    "single_turn agents": (
        lambda s: s.talker("root", *delegate("a"), sub_agents=singles(s, "a")),
        {"root": 2, "a": 2},
    ),
    "an agent that was transferred to": (
        lambda s: s.hander("root", a := s.asker("a"), sub_agents=[a]),
        {"root": 1, "a": 2},
    ),
    "a sequence": (lambda s: sequence(s.asker("a"), s.asker("b")), {"seq": 3, "a": 2, "b": 2}),
    "parallel agents": (
        lambda s: parallel(s.asker("a"), s.talker("b")), {"par": 2, "a": 2, "b": 1}
    ),
    "an AgentTool": (
        lambda s: s.talker("root", *delegate("a"), tools=[AgentTool(s.asker("a"))]),
        {"root": 2, "a": 2},
    ),
    "a transfer to a sequence": (
        lambda s: s.hander("root", q := sequence(s.asker("a"), s.asker("b")), sub_agents=[q]),
        {"root": 1, "seq": 3, "a": 2, "b": 2},
    ),
    "a sequence as node of a Workflow": (
        lambda s: flow("wf", sequence(s.asker("a"), s.asker("b")), step("end")),
        {"seq": 3, "a": 2, "b": 2},
    ),
    "a class with its own order": (
        lambda s: in_order(s, s.talker("b")), {"own": 3, "first": 4, "b": 1}
    ),
}  # fmt: skip
"""Each way in which an agent goes on after an answer, and in how many turns each agent runs."""


def _agents(node: BaseNode) -> list[BaseAgent]:
    found = [node] if isinstance(node, BaseAgent) else []
    below = [*getattr(node, "sub_agents", ())]
    below += [each.agent for each in getattr(node, "tools", ()) if isinstance(each, AgentTool)]
    if (graph := getattr(node, "graph", None)) is not None:
        below += graph.nodes
    return found + [agent for each in below for agent in _agents(each)]


def _noting(root: BaseNode, log: Counter[str]) -> BaseNode:
    """A tree whose agents note the runs of their callbacks, and act if the state has no note."""

    def noted(kind: str, name: str) -> Callable[[CallbackContext], None]:
        def callback(callback_context: CallbackContext) -> None:
            log[f"{kind} {name}"] += 1
            key = f"{kind} {name} {callback_context.invocation_id}"
            if not callback_context.state.get(key):
                callback_context.state[key] = True
                log[f"{kind} {name} acts"] += 1

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


@pytest.mark.parametrize("kind", ["the root", "a sequence", "parallel agents"])
async def test_adk_runs_the_callbacks_of_an_agent_whenever_it_goes_on(kind: str) -> None:
    build, runs = KINDS[kind]
    log: Counter[str] = Counter()
    await _of_adk(_noting(build(Story()), log))
    assert {name: log[f"before {name}"] for name in runs} == runs
    assert {name: log[f"after {name}"] for name in runs} == runs


@pytest.mark.parametrize("kind", KINDS)
async def test_a_callback_runs_in_each_turn_of_its_agent_and_acts_once_by_a_note_in_the_state(
    open_engine: OpenEngine, kind: str
) -> None:
    build, runs = KINDS[kind]
    log: Counter[str] = Counter()
    story = Story(is_stateless=True)
    await with_restarts(open_engine, lambda: _noting(build(story), log), ["go"])
    assert {name: log[f"before {name}"] for name in runs} == runs
    assert {name: log[f"before {name} acts"] for name in runs} == dict.fromkeys(runs, 1)


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


async def test_a_callback_that_skips_an_agent_after_the_decision_ends_it(open_stage: Open) -> None:
    story, runs = Story(), Counter[str]()

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
    """Notes the runs that it sees, with their invocation."""

    def __init__(self) -> None:
        super().__init__(name="noting")
        self.seen: list[tuple[str, str]] = []

    async def on_user_message_callback(
        self, *, invocation_context: InvocationContext, user_message: types.Content
    ) -> None:
        [part] = user_message.parts or []
        kind = "message" if part.text else "answer"
        self.seen.append((kind, invocation_context.invocation_id))

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> None:
        self.seen.append(("before run", invocation_context.invocation_id))

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        self.seen.append(("after run", invocation_context.invocation_id))


async def test_a_plugin_sees_a_run_for_each_turn_in_one_invocation(open_stage: Open) -> None:
    plugin = _Noting()
    story = Story()
    target = App(name="app", root_agent=story.asker("root"), plugins=[plugin])
    talk = Talk(await open_stage(target))
    await talk.say("go")
    await approve_all(talk)
    kinds = [kind for kind, _ in plugin.seen]
    assert kinds == ["message", "before run", "after run", "answer", "before run", "after run"]
    assert len({invocation for _, invocation in plugin.seen}) == 1
