"""MCP servers in the toolsets of an agent: what they declare is bounded, in a running server."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import google.auth
import httpx
import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams
from google.adk.tools.tool_context import ToolContext
from google.auth.exceptions import DefaultCredentialsError

from sluicegate.demo.png_bar_chart import bar_chart
from sluicegate.server.cli import main
from tests.engine.stage import Responses, calls, says, scripted
from tests.server.page import Page, served
from tests.server.test_worker_limits import LEFT_OUT, worker
from tests.tools.hostile_worker import Answer, Raw, definition, hostile_worker
from tests.tools.worker_process import WorkerProcess

__all__ = ["worker"]

AGENT = """
from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams

server = McpToolset(connection_params=StreamableHTTPConnectionParams(url="{url}"))
root_agent = LlmAgent(name="clerk", model="gemini-3.5-flash", tools=[server])
"""


@pytest.fixture(autouse=True)
def no_client_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    """ADK would look for Google's credentials on the network while a server must answer."""
    monkeypatch.setenv("GOOGLE_API_USE_CLIENT_CERTIFICATE", "false")


def agent_of(url: str, script: Responses) -> LlmAgent:
    """An agent with the tools of an MCP server."""
    agent = scripted(script)
    agent.tools = [McpToolset(connection_params=StreamableHTTPConnectionParams(url=url))]
    return agent


def outputs(read: list[dict[str, Any]]) -> list[Any]:
    return [chunk["output"] for chunk in read if chunk["type"] == "tool-output-available"]


async def test_a_tool_of_an_mcp_server_with_a_pattern_that_cannot_run_is_left_out(
    tmp_path: Path, worker: WorkerProcess, caplog: pytest.LogCaptureFixture
) -> None:
    script = [calls(("pay", {"n": 7})), says("done")]
    async with served(agent_of(worker.url, script), tmp_path) as http:
        read = await Page(http).say("pay")
    assert [each["structuredContent"] for each in outputs(read)] == [{"result": 7}]
    lines = {each.getMessage() for each in caplog.records if "left out" in each.getMessage()}
    assert len(lines) == 1
    assert min(lines).startswith(f"the tool look of an MCP toolset is left out: {LEFT_OUT}")


def test_check_names_the_left_out_tools_of_an_mcp_server(
    tmp_path: Path, worker: WorkerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "agent.py").write_text(AGENT.format(url=worker.url))
    assert main(["check", str(tmp_path / "agent.py")]) == 0
    assert f"left out: look of a toolset of clerk; {LEFT_OUT}" in capsys.readouterr().out


@pytest.mark.parametrize("prefix", ["", "bank"])
async def test_tools_of_an_mcp_server_ask_if_the_setting_says_so(
    tmp_path: Path, worker: WorkerProcess, prefix: str
) -> None:
    name = f"{prefix}_pay" if prefix else "pay"
    agent = agent_of(worker.url, [calls((name, {"n": 7})), says("done")])
    [toolset] = agent.tools
    assert isinstance(toolset, McpToolset)
    toolset.tool_name_prefix = prefix or None
    for settings in ({"gate_mcp": True}, {"gate_mcp": True, "ungated_mcp_tools": (name,)}):
        async with served(agent, tmp_path, **settings) as http:
            page = Page(http)
            read = await page.say("pay")
            if "ungated_mcp_tools" not in settings:
                assert outputs(read) == []
                assert len(page.asks()) == 1
                read = await page.answer()
            assert [each["structuredContent"] for each in outputs(read)] == [{"result": 7}]
            assert page.asks() == []


def is_large(n: int) -> bool:
    return n > 5


def is_large_in(n: int, tool_context: ToolContext) -> bool:
    return n > 5 and tool_context.function_call_id is not None


async def is_large_later(n: int) -> bool:
    return n > 5


async def is_large_later_in(n: int, tool_context: ToolContext) -> bool:
    return n > 5 and tool_context.function_call_id is not None


def is_pay(tool_context: ToolContext, **arguments: Any) -> bool:
    return bool(arguments["n"] > 5)


@pytest.mark.parametrize(
    "setting",
    [True, is_large, is_large_in, is_large_later, is_large_later_in, is_pay],
    ids=lambda setting: getattr(setting, "__name__", "always"),
)
async def test_the_confirmation_setting_of_an_mcp_toolset_asks_in_each_of_its_forms(
    tmp_path: Path, worker: WorkerProcess, setting: Any
) -> None:
    script = [calls(("pay", {"n": 3})), calls(("pay", {"n": 7})), says("done")]
    agent = scripted(script)
    params = StreamableHTTPConnectionParams(url=worker.url)
    agent.tools = [McpToolset(connection_params=params, require_confirmation=setting)]
    async with served(agent, tmp_path) as http:
        page = Page(http)
        read = await page.say("pay")
        asked = []
        while page.pending():
            assert outputs(read) == []
            asked += [part["input"]["n"] for part in page.pending()]
            read = await page.answer()
        assert asked == ([3, 7] if setting is True else [7])
        paid = [each["structuredContent"] for each in outputs(read)]
        assert paid == [{"result": 3}, {"result": 7}]


async def test_a_denied_call_of_an_mcp_toolset_is_not_made(
    tmp_path: Path, worker: WorkerProcess
) -> None:
    agent = scripted([calls(("pay", {"n": 7})), says("done")])
    params = StreamableHTTPConnectionParams(url=worker.url)
    agent.tools = [McpToolset(connection_params=params, require_confirmation=is_large)]
    async with served(agent, tmp_path) as http:
        page = Page(http)
        await page.say("pay")
        read = await page.answer(approved=False)
    assert outputs(read) == []
    assert "tool-output-denied" in [chunk["type"] for chunk in read]


@pytest.mark.parametrize("uses_certificates", ["true", "false"])
def test_adk_looks_for_credentials_of_google_before_it_connects_to_an_mcp_server(
    tmp_path: Path, worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch, uses_certificates: str
) -> None:
    searches: list[object] = []

    def search(**options: object) -> None:
        searches.append(options)
        raise DefaultCredentialsError

    monkeypatch.setattr(google.auth, "default", search)
    monkeypatch.setenv("GOOGLE_API_USE_CLIENT_CERTIFICATE", uses_certificates)
    (tmp_path / "agent.py").write_text(AGENT.format(url=worker.url))
    assert main(["check", str(tmp_path / "agent.py")]) == 0
    assert bool(searches) == (uses_certificates == "true")


def test_check_names_the_tools_of_an_mcp_server_that_run_without_approval(
    tmp_path: Path, worker: WorkerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "agent.py").write_text(AGENT.format(url=worker.url))
    assert main(["check", str(tmp_path / "agent.py")]) == 0
    free = "runs without approval, and belongs to an MCP server"
    note = "note: tools of MCP servers run without approval; gate_mcp makes them ask\n"
    said = capsys.readouterr().out
    assert f"  pay of clerk: {free}\n" in said
    assert note in said
    options = ["--gate-mcp", "--ungated-mcp-tool", "hours", "--ungated-mcp-tool", "typo"]
    assert main(["check", str(tmp_path / "agent.py"), *options]) == 0
    said = capsys.readouterr().out
    asks = "asks each time. It belongs to an MCP server, and the setting gate_mcp is on."
    assert f"  pay of clerk: {asks}\n" in said
    assert f"  hours of clerk: {free}\n" in said
    assert note not in said
    assert "note: ungated_mcp_tools names typo, but no tool that can be listed has" in said


def test_an_mcp_server_with_too_many_tools_on_one_page_offers_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with hostile_worker(list=lambda _: {"tools": [definition(f"t{n}") for n in range(201)]}) as it:
        (tmp_path / "agent.py").write_text(AGENT.format(url=it.url))
        assert main(["check", str(tmp_path / "agent.py")]) == 0
    said = capsys.readouterr().out
    assert "left out: * of a toolset of clerk; it offers more than 200 tools;" in said


async def test_the_result_of_an_mcp_server_is_checked_in_linear_time(tmp_path: Path) -> None:
    answer = {"a": "a" * 60 + "!"}
    schema = {"type": "object", "properties": {"a": {"pattern": "^(a+)+$"}}}
    tools = [{**definition("hours"), "outputSchema": schema}, definition("free")]
    result = {"content": [{"type": "text", "text": "x"}], "structuredContent": answer}
    with hostile_worker(list=lambda _: {"tools": tools}, call=lambda _: result) as server:
        script = [calls(("free", {})), calls(("hours", {})), says("oh")]
        async with served(agent_of(server.url, script), tmp_path) as http:
            free, hours = outputs(await Page(http).say("go"))
    assert free["structuredContent"] == answer
    assert "Invalid structured content returned by tool hours: a: 'aaaa" in hours["error"]


def test_a_redirect_of_an_mcp_server_is_not_followed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with hostile_worker(initialize=lambda _: Raw(307, {"location": "/elsewhere"})) as server:
        (tmp_path / "agent.py").write_text(AGENT.format(url=server.url))
        assert main(["check", str(tmp_path / "agent.py")]) == 0
    assert set(server.paths) == {"/mcp"}
    lines = [each.getMessage() for each in caplog.records if "redirect" in each.getMessage()]
    assert lines[0].startswith(f"the MCP server 127.0.0.1:{server.port} answers with a redirect")


BOMB = gzip.compress(b" " * 10_000_000)


@pytest.mark.parametrize(
    ("listed", "sentence"),
    [
        (lambda _: {"tools": [], "_meta": {"x": "x" * 1_100_000}}, "more than 1,048,576 bytes"),
        (lambda _: Raw(200, {"content-encoding": "gzip"}, BOMB), "compresses its answers"),
        (lambda _: Raw(200, {"content-type": "text/event-stream"}, b":" * 1_100_000), "1,048,576"),
    ],
    ids=["large", "compressed", "large stream"],
)
async def test_the_bytes_of_a_listing_of_an_mcp_server_are_bounded(
    tmp_path: Path, listed: Answer, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    with hostile_worker(list=listed) as server:
        agent = agent_of(server.url, [says("hi")])
        async with served(agent, tmp_path) as http:
            read = await Page(http).say("go")
    assert [chunk["delta"] for chunk in read if chunk["type"] == "text-delta"] == ["hi"]
    assert any(sentence in each.getMessage() for each in caplog.records)


async def test_an_error_of_an_mcp_server_is_an_error_part(tmp_path: Path) -> None:
    result = {"content": [{"type": "text", "text": "No\nsuch  file."}], "isError": True}
    tools = {"tools": [definition("read")]}
    with hostile_worker(list=lambda _: tools, call=lambda _: result) as server:
        agent = agent_of(server.url, [calls(("read", {})), says("done")])
        async with served(agent, tmp_path) as http:
            read = await Page(http).say("go")
    errors = [chunk["errorText"] for chunk in read if chunk["type"] == "tool-output-error"]
    assert (errors, outputs(read)) == (["No such file."], [])


async def test_an_mcp_server_may_answer_a_call_with_more_than_a_listing(tmp_path: Path) -> None:
    result = {"content": [{"type": "text", "text": "x" * 2_000_000}]}
    tools = {"tools": [definition("read")]}
    with hostile_worker(list=lambda _: tools, call=lambda _: result) as server:
        agent = agent_of(server.url, [calls(("read", {})), says("done")])
        async with served(agent, tmp_path) as http:
            assert len(outputs(await Page(http).say("go"))) == 1


async def test_files_of_an_mcp_server_are_attached_wherever_it_puts_them(tmp_path: Path) -> None:
    """The filesystem server answers with the same file in content and in structured content."""
    picture = bar_chart([1, 2, 3], "green")
    encoded = base64.b64encode(picture).decode()
    image = {"type": "image", "data": encoded, "mimeType": "image/png"}
    result = {"content": [image], "structuredContent": {"content": [image]}}
    tools = {"tools": [definition("read_media_file")]}
    with hostile_worker(list=lambda _: tools, call=lambda _: result) as server:
        agent = agent_of(server.url, [calls(("read_media_file", {})), says("done")])
        async with served(agent, tmp_path) as http:
            read = await Page(http).say("go")
            [file] = [chunk for chunk in read if chunk["type"] == "file"]
            assert (await http.get(file["url"])).content == picture
    assert file["mediaType"] == "image/png"
    assert encoded[40:80] not in json.dumps(read)
    assert encoded[40:80].encode() not in stored(tmp_path)


def stored(folder: Path) -> bytes:
    """Everything in the databases."""
    return b"".join(path.read_bytes() for path in folder.rglob("*.db*"))


async def test_base64_in_a_plain_result_becomes_a_file_with_a_notice(tmp_path: Path) -> None:
    picture = bar_chart([1, 2, 3], "green")
    encoded = base64.b64encode(picture).decode()

    def draw() -> dict[str, str]:
        """Draw."""
        return {"title": "Sales", "image": encoded}

    agent = scripted([calls(("draw", {})), says("done")])
    agent.tools = [draw]
    async with served(agent, tmp_path) as http:
        read = await Page(http).say("go")
        [file] = [chunk for chunk in read if chunk["type"] == "file"]
        assert (await http.get(file["url"])).content == picture
    assert outputs(read) == [
        {
            "title": "Sales",
            "image": "[attached: image/png]",
            "note": "Base64 of files was replaced: they are attached.",
        }
    ]


async def test_a_toolset_keeps_the_client_of_its_author(tmp_path: Path) -> None:
    made: list[httpx.AsyncClient] = []

    def client(headers: Any = None, timeout: Any = None, auth: Any = None) -> httpx.AsyncClient:
        made.append(httpx.AsyncClient(headers=headers, timeout=timeout, auth=auth))
        return made[-1]

    tools = {"tools": [definition("free")], "_meta": {"x": "x" * 1_100_000}}
    done = {"content": [{"type": "text", "text": "x"}]}
    with hostile_worker(list=lambda _: tools, call=lambda _: done) as server:
        agent = agent_of(server.url, [calls(("free", {})), says("done")])
        params = StreamableHTTPConnectionParams(url=server.url, httpx_client_factory=client)
        agent.tools = [McpToolset(connection_params=params)]
        async with served(agent, tmp_path) as http:
            assert len(outputs(await Page(http).say("go"))) == 1
    assert made
