from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents.context_cache_config import ContextCacheConfig
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.sequential_agent import SequentialAgent
from google.adk.apps.app import App, EventsCompactionConfig
from google.adk.apps.llm_event_summarizer import LlmEventSummarizer
from google.adk.events.event import Event
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.workflow import BaseNode, JoinNode, Workflow, node
from google.genai import types
from pydantic import BaseModel

from sluicegate.engine.agents.agent_copy import CopyChanges
from sluicegate.engine.agents.agent_tree import children_of
from sluicegate.engine.agents.app_copy import build_app
from sluicegate.engine.agents.approval_requirements import ToolNames
from sluicegate.engine.agents.text_and_live_models import ModelSettings
from sluicegate.errors import ConfigurationError
from tests.engine.adk_story import Story, call
from tests.engine.stage import says, scripted
from tests.engine.tool_samples import Director, agent, gated, pay

pytestmark = pytest.mark.filterwarnings(
    r"ignore:\[EXPERIMENTAL\] (ContextCacheConfig|EventsCompactionConfig)"
)


class AgentWithCallback(LlmAgent):
    """An agent whose callback is its own method."""

    seen: list[str] = []  # noqa: RUF012 - a pydantic field

    def note(self, callback_context: Any) -> None:
        self.seen.append(self.name)


def coordinator() -> LlmAgent:
    return agent(
        "root",
        pay,
        gated(),
        AgentTool(agent("wrapped")),
        sub_agents=[
            agent("talks"),
            agent("helps", mode="single_turn"),
            agent("works", mode="task"),
        ],
    )


def pipeline() -> SequentialAgent:
    return SequentialAgent(name="root", sub_agents=[agent("one", pay), agent("two")])


def graph() -> Workflow:
    inner = Workflow(name="inner", edges=[("START", agent("deep"))])
    worker = agent("worker", parallel_worker=True)
    last = node(pay, name="last", parameter_binding="node_input")
    return Workflow(
        name="root",
        edges=[("START", agent("first"), (inner, gated()), JoinNode(name="join"), worker, last)],
    )


def film() -> Director:
    star = agent("star")
    return Director(name="root", star=star, extras=[agent("extra")], sub_agents=[star])


def agent_with_callback() -> AgentWithCallback:
    made = AgentWithCallback(name="root", model="none")
    made.before_agent_callback = [made.note]
    return made


def with_flow_as_tool() -> LlmAgent:
    return agent("root", Workflow(name="flow", input_schema=str, edges=[("START", agent("deep"))]))


TREES = [coordinator, pipeline, graph, film, agent_with_callback, with_flow_as_tool]


def nodes_of(root: BaseNode) -> list[BaseNode]:
    """Every node of a tree, agents inside tools too, each once."""
    found, waiting = dict[int, BaseNode](), [root]
    while waiting:
        each = waiting.pop()
        if id(each) in found:
            continue
        found[id(each)] = each
        waiting += children_of(each)
        for tool in getattr(each, "tools", ()):
            inner = getattr(tool, "agent", None) or getattr(tool, "node", None)
            waiting += [inner] if isinstance(inner, BaseNode) else []
    return list(found.values())


def said(event: Event) -> list[types.Part]:
    return list(event.content.parts or []) if event.content else []


def photograph(value: Any, seen: dict[int, Any]) -> Any:
    """Identity and state of everything that can be reached from a value."""
    if id(value) in seen:
        return id(value)
    seen[id(value)] = value
    if isinstance(value, dict):
        return (id(value), [(key, photograph(each, seen)) for key, each in value.items()])
    if isinstance(value, list | tuple | set):
        return (id(value), [photograph(each, seen) for each in value])
    if isinstance(value, BaseModel | BaseTool | BaseToolset | BasePlugin):
        private = getattr(value, "__pydantic_private__", None)
        return (id(value), photograph(vars(value), seen), photograph(private, seen))
    return id(value)


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("model", [None, "other"])
def test_the_objects_of_the_user_are_not_changed(
    tree: Callable[[], BaseNode], model: str | None
) -> None:
    root = tree()
    target = App(name="app", root_agent=root, plugins=[BasePlugin(name="theirs")])
    keep: dict[int, Any] = {}
    before = photograph(target, keep)
    names = ToolNames(client_tools=["pay"])
    build_app(
        target,
        [BasePlugin(name="ours")],
        changes=CopyChanges(models=ModelSettings(model), names=names),
    )
    build_app(root, [], changes=CopyChanges(models=ModelSettings(model)))
    assert photograph(target, {}) == before


@pytest.mark.parametrize("tree", TREES)
def test_every_node_is_copied_once_and_the_structure_is_the_same(
    tree: Callable[[], BaseNode],
) -> None:
    root = tree()
    fresh = build_app(root, []).root_agent
    assert fresh is not None
    theirs, ours = nodes_of(root), nodes_of(fresh)
    assert [(type(each), each.name) for each in ours] == [
        (type(each), each.name) for each in theirs
    ]
    assert not {id(each) for each in ours} & {id(each) for each in theirs}


@pytest.mark.parametrize("tree", TREES)
def test_parents_and_children_of_the_copy_belong_to_the_copy(tree: Callable[[], BaseNode]) -> None:
    fresh = build_app(tree(), []).root_agent
    assert fresh is not None
    ours = nodes_of(fresh)
    for each in ours:
        for child in getattr(each, "sub_agents", ()):
            assert child.parent_agent is each
        parent = getattr(each, "parent_agent", None)
        assert parent is None or any(parent is one for one in ours)
        if isinstance(each, Workflow):
            assert each.graph is not None
            ends = [end for edge in each.graph.edges for end in (edge.from_node, edge.to_node)]
            assert {id(end) for end in ends} == {id(one) for one in each.graph.nodes}


@pytest.mark.parametrize("tree", [coordinator, pipeline, graph, film, with_flow_as_tool])
def test_a_given_model_replaces_every_model_of_the_tree(tree: Callable[[], BaseNode]) -> None:
    root, model = tree(), Story().model("hello")
    fresh = build_app(root, [], changes=CopyChanges(models=ModelSettings(model))).root_agent
    assert fresh is not None
    ours = [each.model for each in nodes_of(fresh) if isinstance(each, LlmAgent)]
    assert {id(each) for each in ours} == {id(model)}
    kept = [each.model for each in nodes_of(root) if isinstance(each, LlmAgent)]
    assert set(kept) == {"gemini-2.5-flash"}


def test_without_a_given_model_the_agents_keep_their_model_objects() -> None:
    model = Story().model("hello")
    root = LlmAgent(name="root", model=model, tools=[gated()])
    fresh = build_app(root, []).root_agent
    assert isinstance(fresh, LlmAgent)
    assert fresh.model is model
    assert fresh.tools[0] is root.tools[0]


def test_delegation_tools_run_the_copies_not_the_originals() -> None:
    fresh = build_app(
        coordinator(), [], changes=CopyChanges(models=ModelSettings("other"))
    ).root_agent
    assert isinstance(fresh, LlmAgent)
    run = {tool.agent.name: tool.agent for tool in fresh.tools if isinstance(tool, AgentTool)}
    assert set(run) == {"wrapped", "helps", "works"}
    assert run["helps"] is fresh.sub_agents[1]
    assert run["works"] is fresh.sub_agents[2]
    assert isinstance(run["wrapped"], LlmAgent)
    assert run["wrapped"].model == "other"


def test_an_agent_in_a_field_of_its_own_class_is_the_same_copy_as_the_sub_agent() -> None:
    fresh = build_app(film(), []).root_agent
    assert isinstance(fresh, Director)
    assert fresh.star is fresh.sub_agents[0]


def test_a_callback_that_is_a_method_of_its_agent_acts_on_the_copy() -> None:
    fresh = build_app(agent_with_callback(), []).root_agent
    assert isinstance(fresh, AgentWithCallback)
    (callback,) = fresh.canonical_before_agent_callbacks
    assert getattr(callback, "__self__", None) is fresh


def test_a_root_that_is_a_sub_agent_is_detached_and_keeps_the_inherited_model() -> None:
    child = LlmAgent(name="child")
    LlmAgent(name="parent", model="theirs", sub_agents=[child])
    fresh = build_app(child, []).root_agent
    assert isinstance(fresh, LlmAgent)
    assert (fresh.parent_agent, fresh.model) == (None, "theirs")
    assert child.parent_agent is not None


def test_our_plugins_come_first_and_the_plugins_of_the_user_are_the_same_objects() -> None:
    ours, theirs = BasePlugin(name="ours"), BasePlugin(name="theirs")
    app = build_app(App(name="app", root_agent=agent(), plugins=[theirs]), [ours])
    assert app.plugins == [ours, theirs]
    assert app.plugins[1] is theirs


def test_the_users_settings_are_kept_and_the_app_becomes_resumable() -> None:
    cache = ContextCacheConfig()
    compaction = EventsCompactionConfig(compaction_interval=3, overlap_size=1)
    target = App(
        name="their-app",
        root_agent=agent(),
        context_cache_config=cache,
        events_compaction_config=compaction,
    )
    app = build_app(target, [], changes=CopyChanges(models=ModelSettings("other")))
    assert app.name == "their-app"
    assert app.context_cache_config is cache
    assert app.events_compaction_config is compaction
    assert app.resumability_config is not None
    assert app.resumability_config.is_resumable
    assert target.resumability_config is None


def test_a_given_model_is_also_used_for_summaries() -> None:
    theirs, ours = Story().model("theirs"), Story().model("ours")
    summarizer = LlmEventSummarizer(theirs, "Sum up: {conversation_history}")
    compaction = EventsCompactionConfig(
        summarizer=summarizer, compaction_interval=3, overlap_size=1
    )
    target = App(name="app", root_agent=agent(), events_compaction_config=compaction)
    config = build_app(
        target, [], changes=CopyChanges(models=ModelSettings(ours))
    ).events_compaction_config
    assert config is not None
    assert isinstance(config.summarizer, LlmEventSummarizer)
    assert vars(config.summarizer) == {**vars(summarizer), "_llm": ours}
    assert compaction.summarizer is summarizer


@pytest.mark.parametrize("root", [agent("chat_bot"), Workflow(name="chat_bot")])
def test_without_an_app_the_name_is_that_of_the_root_agent(root: BaseNode) -> None:
    assert build_app(root, []).name == "chat_bot"


@pytest.mark.parametrize("name", ["_private", "größe"])
def test_a_root_name_that_is_invalid_for_an_app_is_refused_with_the_remedy(name: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"{name}.*wrap it as App\(name=") as caught:
        build_app(agent(name), [])
    assert str(caught.value).count("\n") == 0


def test_two_plugins_of_the_same_name_are_refused() -> None:
    target = App(name="app", root_agent=agent(), plugins=[BasePlugin(name="sluicegate")])
    with pytest.raises(ConfigurationError, match="Two plugins have the name 'sluicegate'"):
        build_app(target, [BasePlugin(name="sluicegate")])


async def test_every_agent_of_a_copy_runs_on_the_given_model(tmp_path: Path) -> None:
    story = Story()
    inner = LlmAgent(name="inner", model="none", mode="single_turn", description="Helps.")
    root = LlmAgent(name="root", model="none", sub_agents=[inner])
    before = copy.copy(vars(root))
    model = story.model(call("inner", request="please"), "inner done", "root done")
    app = build_app(root, [], changes=CopyChanges(models=ModelSettings(model)))
    runner = Runner(app=app, session_service=InMemorySessionService(), auto_create_session=True)
    message = types.Content(role="user", parts=[types.Part(text="go")])
    stream = runner.run_async(user_id="u", session_id="s", new_message=message)
    events = [event async for event in stream]
    await runner.close()
    assert story.is_told
    texts = [part.text for event in events for part in said(event) if part.text]
    assert texts == ["inner done", "root done"]
    assert vars(root) == before


async def test_the_loaded_modules_of_the_process_are_not_changed() -> None:
    before = dict(sys.modules)

    app = build_app(scripted([says("Done.")]), [])
    async with Runner(
        app=app, session_service=InMemorySessionService(), auto_create_session=True
    ) as runner:
        message = types.Content(role="user", parts=[types.Part(text="go")])
        events = [
            e async for e in runner.run_async(user_id="u", session_id="s", new_message=message)
        ]

    assert events
    assert {name: sys.modules.get(name) for name in before} == before
    assert None not in [sys.modules[name] for name in sys.modules.keys() - before.keys()]
