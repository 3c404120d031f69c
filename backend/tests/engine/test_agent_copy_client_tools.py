from __future__ import annotations

from typing import Any

import pytest
from google.adk.agents.llm_agent import LlmAgent

from sluicegate.engine.agents.agent_copy import CopyChanges
from sluicegate.engine.agents.app_copy import build_app
from sluicegate.engine.agents.approval_requirements import ToolNames
from sluicegate.tools import ClientTool
from sluicegate.tools.client_tools import GatedClientTool
from tests.engine.tool_samples import Tools, agent, ask, gated, pay


@pytest.mark.parametrize(
    ("tool", "kind"), [(pay, ClientTool), (gated(), GatedClientTool), (Tools(gated()), None)]
)
async def test_a_named_tool_becomes_a_client_side_tool_with_the_same_declaration(
    tool: Any, kind: type[ClientTool] | None
) -> None:
    root = agent("root", tool, ask)
    fresh = build_app(
        root, [], changes=CopyChanges(names=ToolNames(client_tools=["pay"]))
    ).root_agent
    assert isinstance(fresh, LlmAgent)
    ours, other = await fresh.canonical_tools()
    (theirs, _) = await root.canonical_tools()
    assert isinstance(ours, kind or GatedClientTool)
    assert ours.is_long_running
    declared, wanted = ours._get_declaration(), theirs._get_declaration()
    assert declared is not None
    assert wanted is not None
    assert (declared.name, declared.description) == (wanted.name, wanted.description)
    assert declared.parameters_json_schema == wanted.parameters_json_schema
    assert other.name == "ask"
    assert not other.is_long_running


async def test_a_toolset_keeps_its_class_and_its_prefix_is_applied() -> None:
    toolset = Tools(gated(), prefix="bank")
    named = build_app(
        agent("root", toolset), [], changes=CopyChanges(names=ToolNames(client_tools=["bank_pay"]))
    ).root_agent
    bare = build_app(
        agent("root", toolset), [], changes=CopyChanges(names=ToolNames(client_tools=["pay"]))
    ).root_agent
    assert isinstance(named, LlmAgent)
    assert isinstance(bare, LlmAgent)
    assert isinstance(named.tools[0], Tools)
    (client,) = await named.canonical_tools()
    (server,) = await bare.canonical_tools()
    assert (client.name, isinstance(client, ClientTool)) == ("bank_pay", True)
    assert (server.name, isinstance(server, ClientTool)) == ("bank_pay", False)


def test_a_title_is_copied_to_the_client_side_tool() -> None:
    tool = gated()
    tool.custom_metadata = {"title": "Pay"}
    fresh = build_app(
        agent("root", tool), [], changes=CopyChanges(names=ToolNames(client_tools=["pay"]))
    ).root_agent
    assert isinstance(fresh, LlmAgent)
    assert isinstance(fresh.tools[0], ClientTool)
    assert fresh.tools[0].custom_metadata == {"title": "Pay"}
