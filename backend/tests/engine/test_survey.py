from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from google.adk.agents.sequential_agent import SequentialAgent
from google.adk.apps.app import App
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool
from google.adk.workflow import BaseNode, Workflow, node

from sluicegate.core.tool_facts import ToolFacts, ToolKind, ToolLookup
from tests.engine.tool_samples import (
    Director,
    Failing,
    Hanging,
    Tools,
    agent,
    ask,
    gated,
    is_large,
    look,
    pay,
    request_in_the_code,
)


def _tool_node() -> Workflow:
    return Workflow(name="root", edges=[("START", gated())])


def _function_node() -> Workflow:
    return Workflow(name="root", edges=[("START", node(pay, require_confirmation=True))])


def _deciding_node() -> Workflow:
    return Workflow(name="root", edges=[("START", node(pay, require_confirmation=is_large))])


def _worker() -> Workflow:
    worker = agent("inner", gated(), parallel_worker=True)
    return Workflow(name="root", edges=[("START", worker)])


def _run_by_a_function(runnable: Any) -> Workflow:
    @node(rerun_on_resume=True)
    async def runs(ctx: Any, node_input: Any) -> Any:
        return await ctx.run_node(runnable, node_input=node_input)

    return Workflow(name="root", edges=[("START", runs)])


@pytest.mark.parametrize(
    ("root", "author", "kind"),
    [
        (agent("root", sub_agents=[agent("inner", gated())]), "inner", "gated"),
        (agent("root", AgentTool(agent("inner", gated()))), "inner", "gated"),
        (agent("root", sub_agents=[agent("inner", gated(), mode="task")]), "inner", "gated"),
        (
            SequentialAgent(name="root", sub_agents=[agent("inner", request_in_the_code)]),
            "inner",
            "conditional",
        ),
        (Workflow(name="root", edges=[("START", agent("inner", gated()))]), "inner", "gated"),
        (Workflow(name="root", edges=[("START", _tool_node())]), "root", "gated"),
        (_tool_node(), "root", "gated"),
        (_tool_node(), "pay", "gated"),
        (_function_node(), "root", "gated"),
        (_deciding_node(), "root", "conditional"),
        (_worker(), "inner", "gated"),
        (_run_by_a_function(agent("inner", gated())), "inner", "gated"),
        (_run_by_a_function(gated()), "root", "gated"),
        (
            Director(name="root", star=agent("inner", gated()), extras=[], sub_agents=[]),
            "inner",
            "gated",
        ),
        (
            Director(name="root", star=agent("star"), extras=[agent("inner", gated())]),
            "inner",
            "gated",
        ),
    ],
)
async def test_a_tool_that_requires_approval_is_found_anywhere_in_the_tree(
    root: BaseNode, author: str, kind: ToolKind
) -> None:
    found = await look(root)
    name = "request_in_the_code" if kind == "conditional" and author == "inner" else "pay"
    assert found.may_gate
    assert found.facts(author, name).kind == kind
    assert found.facts("renamed", name).kind == kind


async def test_a_workflow_used_as_a_tool_is_inspected_and_requires_no_approval_itself() -> None:
    flow = Workflow(name="flow", input_schema=str, edges=[("START", gated())])
    found = await look(agent("root", flow))
    assert found.facts("root", "flow").kind == "free"
    assert found.facts("flow", "pay").kind == "gated"


async def test_agents_with_mutual_delegation_are_listed_once_and_require_no_approval() -> None:
    inner = agent("inner", gated(), mode="single_turn")
    found = await look(agent("root", pay, sub_agents=[inner]))
    assert found.agents == ("root", "inner")
    assert [tool.name for tool in found.tools["root"]] == ["pay", "inner"]
    assert found.facts("root", "inner").kind == "free"
    assert found.facts("root", "pay").kind == "free"
    assert [(gate.agent, gate.tool) for gate in found.gated_tools] == [("inner", "pay")]


async def test_tools_of_a_toolset_have_its_prefix() -> None:
    found = await look(agent("root", Tools(gated(), FunctionTool(is_large), prefix="bank")))
    assert [tool.name for tool in found.tools["root"]] == ["bank_pay", "bank_is_large"]
    assert found.facts("root", "bank_pay").kind == "gated"
    assert found.facts("root", "bank_is_large").kind == "free"


async def test_listing_a_toolset_does_not_change_its_cache_or_its_tools() -> None:
    toolset = Tools(gated(), prefix="bank")
    before = dict(vars(toolset))
    await look(agent("root", toolset))
    assert vars(toolset) == before
    assert toolset.given[0].name == "pay"


@pytest.mark.parametrize(
    ("setting", "kind"), [(True, "gated"), (is_large, "conditional"), (False, "free")]
)
async def test_the_confirmation_setting_of_a_toolset_applies_to_its_tools(
    setting: Any, kind: ToolKind
) -> None:
    found = await look(agent("root", Tools(FunctionTool(pay), _require_confirmation=setting)))
    assert found.facts("root", "pay").kind == kind
    assert found.may_gate is (kind != "free")


@pytest.mark.parametrize("toolset", [Hanging(), Failing()])
async def test_a_toolset_that_cannot_be_listed_may_require_approval_as_may_its_tools(
    toolset: BaseToolset,
) -> None:
    found = await look(agent("root", toolset, pay, sub_agents=[agent("other")]), within=0.05)
    assert found.may_gate
    assert found.unlisted == {"root": (type(toolset).__name__,)}
    assert found.facts("root", "pay").kind == "free"
    assert found.facts("root", "anything").kind == "conditional"
    assert found.facts("other", "anything").kind == "free"
    (gate,) = found.gated_tools
    assert (gate.agent, gate.tool) == ("root", type(toolset).__name__)
    assert "within 0.05 s" in gate.why


async def test_all_toolsets_are_listed_concurrently() -> None:
    met = asyncio.Barrier(2)

    class Meeting(BaseToolset):
        async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
            await met.wait()
            return []

    assert not (await look(agent("root", Meeting(), Meeting()))).unlisted


async def test_agents_inside_a_toolset_are_inspected() -> None:
    found = await look(agent("root", Tools(AgentTool(agent("inner", Tools(gated()))))))
    assert found.facts("inner", "pay").kind == "gated"


class Guard(BasePlugin):
    async def before_tool_callback(self, *, tool_context: Any, **_: Any) -> None:
        ask(tool_context)


def _before(tool: Any, args: Any, tool_context: Any) -> None:
    ask(tool_context)


@pytest.mark.parametrize(
    "root",
    [
        agent("root", pay, before_tool_callback=_before),
        agent("root", pay, after_tool_callback=[_before]),
        App(name="app", root_agent=agent("root", pay), plugins=[Guard(name="guard")]),
    ],
)
async def test_a_callback_that_requests_approval_makes_every_tool_around_it_conditional(
    root: Any,
) -> None:
    found = await look(root)
    assert found.facts("root", "pay").kind == "conditional"
    assert "names request_confirmation in ask" in found.gated_tools[0].why


async def test_plugins_that_request_no_approval_change_nothing() -> None:
    plugin = BasePlugin(name="quiet")
    found = await look(App(name="app", root_agent=agent("root", pay), plugins=[plugin]))
    assert not found.may_gate


async def test_unknown_tools_require_no_approval_and_the_survey_is_a_tool_lookup() -> None:
    lookup: ToolLookup = await look(agent("root", pay))
    unknown = ToolFacts(rememberable=False)
    assert lookup.facts("root", "transfer_to_agent") == replace(unknown, agent="root")
    assert lookup.facts("nobody", "nothing") == replace(unknown, agent="root/…/nobody")


async def test_the_facts_of_a_tool_name_the_path_of_its_agent() -> None:
    inner = agent("inner", gated(), sub_agents=[agent("innermost", gated())])
    found = await look(agent("root", gated(), sub_agents=[inner]))
    for name, path in (
        ("root", "root"),
        ("inner", "root/inner"),
        ("innermost", "root/inner/innermost"),
    ):
        facts = found.facts(name, "pay")
        assert (facts.agent, facts.rememberable) == (path, True)


async def test_an_agent_whose_name_has_several_places_has_no_grants() -> None:
    twins = [
        agent(name, sub_agents=[agent("twin", gated(), sub_agents=[agent("below", gated())])])
        for name in ("one", "other")
    ]
    found = await look(agent("root", gated(), sub_agents=twins))
    for name in ("twin", "below"):
        facts = found.facts(name, "pay")
        assert (facts.agent, facts.rememberable) == (f"root/…/{name}", False)
    assert found.facts("root", "pay").rememberable
