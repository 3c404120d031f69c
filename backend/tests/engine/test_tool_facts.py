from __future__ import annotations

from typing import Any

import pytest
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.bash_tool import ExecuteBashTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.genai import types

from sluicegate.core.tool_facts import ToolKind
from tests.engine.tool_samples import (
    BySchema,
    Checking,
    Plain,
    RequestingTool,
    agent,
    gated,
    is_large,
    look,
    page_tool,
    pay,
    request_in_the_code,
)


@pytest.mark.parametrize(
    ("tool", "kind", "why"),
    [
        (pay, "free", None),
        (FunctionTool(pay), "free", None),
        (LongRunningFunctionTool(pay), "free", None),
        (Plain(name="pay", description="d"), "free", None),
        (gated(), "gated", "declares require_confirmation=True"),
        (FunctionTool(pay, require_confirmation=is_large), "conditional", "by is_large"),
        (request_in_the_code, "conditional", "request_confirmation in ask"),
        (FunctionTool(request_in_the_code), "conditional", "request_confirmation in ask"),
        (Checking(name="pay", description="d"), "conditional", "Checking overrides"),
        (RequestingTool(name="pay", description="d"), "conditional", "in RequestingTool._answer"),
        (ExecuteBashTool(), "conditional", "in ExecuteBashTool.run_async"),
        (page_tool(), "client", None),
        (page_tool(require_confirmation=True), "gated-client", "declares require_confirmation"),
    ],
)
async def test_the_kind_of_a_tool_is_read_from_its_declaration_class_and_code(
    tool: Any, kind: ToolKind, why: str | None
) -> None:
    found = await look(agent("root", tool))
    (judged,) = found.tools["root"]
    assert judged.kind == kind
    assert found.facts("root", judged.name).kind == kind
    assert found.may_gate is (kind not in ("free", "client"))
    assert [gate.why for gate in found.gated_tools] == ([judged.requirement.why] if why else [])
    assert why is None or why in judged.requirement.why


@pytest.mark.parametrize(
    ("tool", "settings", "kind", "asks"),
    [
        (pay, {"dynamic": ("pay",)}, "conditional", "sometimes"),
        (gated(), {"dynamic": ("pay",)}, "gated", "always"),
        (request_in_the_code, {"never": ("request_in_the_code",)}, "free", "sometimes"),
        (gated(), {"never": ("pay",)}, "free", "always"),
        (pay, {"dynamic": ("pay",), "never": ("pay",)}, "free", "sometimes"),
        (pay, {"client": ("pay",)}, "client", "never"),
        (gated(), {"client": ("pay",)}, "gated-client", "always"),
        (pay, {"dynamic": ("other",)}, "free", "never"),
    ],
)
async def test_the_settings_override_the_detection(
    tool: Any, settings: dict[str, Any], kind: ToolKind, asks: str
) -> None:
    (judged,) = (await look(agent("root", tool), **settings)).tools["root"]
    assert (judged.kind, judged.requirement.when) == (kind, asks)


async def test_title_metadata_and_permissions_are_read_from_custom_metadata() -> None:
    tool = gated()
    tool.custom_metadata = {
        "title": "Pay money",
        "toolMetadata": {"icon": "coins"},
        "editable": False,
        "rememberable": False,
    }
    facts = (await look(agent("root", tool))).facts("root", "pay")
    assert (facts.title, facts.metadata) == ("Pay money", {"icon": "coins"})
    assert (facts.editable, facts.rememberable) == (False, False)


async def test_by_default_a_tool_has_no_title_and_allows_edits_and_grants() -> None:
    facts = (await look(agent("root", gated()))).facts("root", "pay")
    assert (facts.title, facts.metadata, facts.editable, facts.rememberable) == (
        None,
        None,
        True,
        True,
    )


@pytest.mark.parametrize(
    ("tool", "properties"),
    [
        (pay, {"amount": {"title": "Amount", "type": "number"}}),
        (BySchema(name="pay", description="d"), {"n": {"type": "integer"}}),
        (page_tool(), {}),
    ],
)
async def test_the_schema_is_json_schema_however_the_tool_declares_it(
    tool: Any, properties: dict[str, Any]
) -> None:
    schema = (await look(agent("root", tool))).facts("root", "pay").schema
    assert schema is not None
    assert (schema["type"], schema["properties"]) == ("object", properties)


async def test_a_tool_without_declaration_or_with_a_broken_one_has_no_schema() -> None:
    class Broken(BaseTool):
        def _get_declaration(self) -> types.FunctionDeclaration:
            raise TypeError("no such annotation")

    found = await look(
        agent("root", Broken(name="a", description="d"), Plain(name="b", description="d"))
    )
    assert [tool.facts.schema for tool in found.tools["root"]] == [None, None]
