"""An agent's own tools with patterns that no linear-time engine can run, in a running server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest
from google.adk.tools.function_tool import FunctionTool
from pydantic import Field

from sluicegate import client_tool
from sluicegate.server.cli import main
from tests.engine.stage import calls, says, scripted
from tests.server.page import Page, served

LEFT_OUT = "its schema cannot be used: the pattern '{}' is not valid, or has look-around"
AGENT = r'''
from typing import Annotated

from google.adk.agents.llm_agent import LlmAgent
from pydantic import Field


def behind(text: Annotated[str, Field(json_schema_extra={"pattern": "(?<=a)b"})]) -> str:
    """Look behind."""
    return text


def pay(n: int, to: Annotated[str, Field(json_schema_extra={"pattern": "^[a-z]+$"})]) -> int:
    """Pay."""
    return n


root_agent = LlmAgent(name="clerk", model="gemini-3.5-flash", tools=[behind, pay])
'''


def behind(text: Annotated[str, Field(json_schema_extra={"pattern": "(?<=a)b"})]) -> str:
    """Look behind."""
    return text


def again(text: Annotated[str, Field(json_schema_extra={"pattern": r"^(a|b)\1$"})]) -> str:
    """Repeat."""
    return text


def pay(n: int) -> int:
    """Pay."""
    return n


async def test_an_own_tool_with_a_pattern_that_cannot_run_is_left_out_and_the_others_stay(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    declared: list[list[str]] = []

    async def before_model(callback_context: Any, llm_request: Any) -> None:
        declared.append(sorted(llm_request.tools_dict))

    nested = {"type": "object", "properties": {"a": {"patternProperties": {"^(?!x)": {}}}}}
    tools: list[Any] = [
        FunctionTool(behind, require_confirmation=True),
        again,
        client_tool("show", "Show.", nested),
        FunctionTool(pay),
    ]
    agent = scripted([calls(("pay", {"n": 7})), says("done")], tools)
    agent.before_model_callback = before_model
    async with served(agent, tmp_path) as http:
        read = await Page(http).say("pay")
    assert [c["output"] for c in read if c["type"] == "tool-output-available"] == [{"result": 7}]
    assert declared == [["pay"], ["pay"]]
    lines = [each.getMessage() for each in caplog.records if "left out" in each.getMessage()]
    assert [line.partition(" is left")[0] for line in lines] == [
        "the tool behind",
        "the tool again",
        "the tool show",
    ]
    assert LEFT_OUT.format("(?<=a)b") in lines[0]


def test_check_names_an_own_tool_with_a_pattern_that_cannot_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    assert main(["check", str(tmp_path / "agent.py")]) == 0
    said = capsys.readouterr().out
    assert f"left out: behind of clerk; {LEFT_OUT.format('(?<=a)b')}" in said
    assert said.count("left out") == 1
