"""Workers that declare or answer what holds a server up: each in a running server."""

from __future__ import annotations

import gzip
import json
import socket
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from sluicegate.core import linear_patterns, schema_validation
from sluicegate.server.cli import main
from sluicegate.tools.remote_tool_limits import MAX_RESULT_BYTES, MAX_RESULT_VALUES
from tests.agents.worker_tools import PNG
from tests.engine.stage import Prompts, calls, says, scripted
from tests.server.page import Page, served
from tests.server.test_workers import AGENT, TOKEN, bearer, known
from tests.tools.hostile_worker import Answer, Fault, Raw, definition, hostile_worker
from tests.tools.worker_process import WorkerForkServer, WorkerProcess

PATTERNS = '''
from typing import Annotated

from pydantic import Field


def hours(text: Annotated[str, Field(json_schema_extra={"pattern": "^(a+)+$"})]) -> str:
    """A pattern that keeps a backtracking engine busy for hours."""
    return text


def look(text: Annotated[str, Field(json_schema_extra={"pattern": "^(?!x)y"})]) -> str:
    """A pattern that no linear engine can run."""
    return text


def pay(n: int) -> int:
    """Pay."""
    return n
'''
LEFT_OUT = "its schema cannot be used: the pattern '^(?!x)y' is not valid, or has look-around"


@pytest.fixture(scope="module")
def worker(nursery: WorkerForkServer) -> WorkerProcess:
    """A real worker with patterns in its schemas."""
    file, effects = nursery.folder / "patterns.py", nursery.folder / "effects"
    file.write_text(PATTERNS)
    effects.touch()
    return nursery.start(file=file, effects=effects)


async def test_a_catastrophic_pattern_and_a_long_text_do_not_hold_the_server(
    tmp_path: Path, worker: WorkerProcess
) -> None:
    long = {"text": "a" * 50_000 + "!"}
    agent = scripted([calls(("shop_hours", long)), calls(("shop_pay", {"n": 7})), says("done")])
    async with served(agent, tmp_path, workers=(f"shop={worker.url}",)) as http:
        page = Page(http)
        await page.say("go")
        read = await page.answer()
        [error] = [chunk["errorText"] for chunk in read if chunk["type"] == "tool-output-error"]
        assert error.startswith("Not run: the arguments do not fit: text: 'aaaa")
        assert [c["output"] for c in read if c["type"] == "tool-output-available"] == [
            {"result": 7}
        ]


async def test_edits_with_a_long_text_for_a_catastrophic_pattern_do_not_hold_the_server(
    tmp_path: Path, worker: WorkerProcess
) -> None:
    agent = scripted([calls(("shop_hours", {"text": "aa"})), says("done")])
    async with served(agent, tmp_path, workers=(f"shop={worker.url}",)) as http:
        page = Page(http)
        await page.say("go")
        [asked] = page.asks()
        answer = {"approved": True, "edits": {"text": "a" * 50_000 + "!"}}
        refused = await http.post(f"/api/approvals/{asked}", json=answer)
        assert (refused.status_code, "do not fit: text: 'aaa" in refused.text) == (400, True)
        read = await page.answer()
        assert [c["output"] for c in read if c["type"] == "tool-output-available"] == [
            {"result": "aa"}
        ]


async def test_a_tool_with_a_pattern_that_cannot_run_is_left_out_of_the_server_and_named_in_its_log(
    tmp_path: Path, worker: WorkerProcess, caplog: pytest.LogCaptureFixture
) -> None:
    agent = scripted([says("hi"), says("hi")])
    async with served(agent, tmp_path, workers=(f"shop={worker.url}",)) as http:
        for _ in range(2):
            await Page(http).say("hello")
    lines = [each.getMessage() for each in caplog.records if "left out" in each.getMessage()]
    assert len(lines) == 1
    assert lines[0].startswith(f"the tool shop_look is left out: {LEFT_OUT}")


def test_check_names_a_tool_with_a_pattern_that_cannot_run(
    tmp_path: Path, worker: WorkerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    assert main(["check", str(tmp_path / "agent.py"), "--worker", f"shop={worker.url}"]) == 0
    said = capsys.readouterr().out
    assert f"    shop_look: left out; {LEFT_OUT}" in said
    assert "    shop_pay: requires approval\n" in said
    assert "    shop_hours: requires approval\n" in said


async def test_nothing_is_compiled_for_a_model_call(
    tmp_path: Path, worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[str] = []

    class Counted(schema_validation.ArgumentSchema):
        def __init__(self, schema: Any) -> None:
            compiled.append("schema")
            super().__init__(schema)

    class CountedPattern(linear_patterns.LinearPattern):
        def __init__(self, pattern: str) -> None:
            compiled.append(pattern)
            super().__init__(pattern)

    agent = scripted([*[calls(("shop_hours", {"text": "a"}))] * 4, says("done")])
    options = {"workers": (f"shop={worker.url}",), "ungated_worker_tools": ("shop_hours",)}
    async with served(agent, tmp_path, **options) as http:
        page = Page(http)
        monkeypatch.setattr(schema_validation, "ArgumentSchema", Counted)
        monkeypatch.setattr(
            "sluicegate.core.bounded_schema_structure.LinearPattern", CountedPattern
        )
        read = await page.say("go")
        assert len([c for c in read if c["type"] == "tool-output-available"]) == 4
    assert compiled == []


def endless(count: int) -> Answer:
    return lambda _: {
        "tools": [definition(f"t{n}") for n in range(count)],
        "nextCursor": "more",
    }


LARGE = [definition(f"t{n}", a={"description": "x" * 60_000}) for n in range(20)]
BOMB = gzip.compress(b" " * 10_000_000)


@pytest.mark.parametrize(
    ("listed", "sentence"),
    [
        (
            lambda _: {"tools": [definition(f"t{n}") for n in range(201)]},
            "The worker shop offers more than 200 tools.",
        ),
        (endless(0), "The worker shop lists pages without tools."),
        (lambda _: {"tools": LARGE}, "The worker shop answers with more than 1,048,576 bytes"),
        (
            lambda _: Raw(307, {"location": "/elsewhere"}),
            "The worker shop answers with a redirect, which is not followed;",
        ),
        (
            lambda _: Raw(302, {"location": "http://169.254.169.254/latest/meta-data"}),
            "The worker shop answers with a redirect, which is not followed;",
        ),
        (
            lambda _: Raw(
                200, {"content-type": "application/json", "content-encoding": "gzip"}, BOMB
            ),
            "The worker shop compresses its answers; turn that off.",
        ),
    ],
    ids=["one page", "endless pages", "bytes", "redirect", "redirect elsewhere", "compressed"],
)
def test_a_listing_without_bounds_offers_nothing_and_check_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], listed: Answer, sentence: str
) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    with hostile_worker(list=listed) as worker:
        assert main(["check", str(tmp_path / "agent.py"), "--worker", f"shop={worker.url}"]) == 0
    said = capsys.readouterr().out
    assert f"  shop at {worker.url}: offers nothing now\n    {sentence}" in said
    assert set(worker.paths) == {"/mcp"}
    assert worker.methods.count("tools/list") == 1


def test_tools_on_many_pages_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = iter(range(1_000))
    (tmp_path / "agent.py").write_text(AGENT)
    with hostile_worker(
        list=lambda _: {"tools": [definition(f"t{next(pages)}")], "nextCursor": "more"}
    ) as worker:
        assert main(["check", str(tmp_path / "agent.py"), "--worker", f"shop={worker.url}"]) == 0
    assert "The worker shop lists its tools on more than 20 pages." in capsys.readouterr().out
    assert worker.methods.count("tools/list") == 20


@pytest.mark.parametrize(
    "result",
    [
        {"content": [{"type": "text", "text": "x" * MAX_RESULT_BYTES}]},
        {"content": [], "structuredContent": {"a": [1] * (MAX_RESULT_VALUES + 1)}},
    ],
    ids=["bytes", "values"],
)
async def test_a_call_that_is_answered_with_too_much_ends_in_one_sentence(
    tmp_path: Path, result: dict[str, Any]
) -> None:
    agent = scripted([calls(("shop_pay", {})), says("pity")])
    with hostile_worker(
        list=lambda _: {"tools": [definition("pay")]}, call=lambda _: result
    ) as worker:
        options = {"workers": (f"shop={worker.url}",), "ungated_worker_tools": ("shop_pay",)}
        async with served(agent, tmp_path, **options) as http:
            read = await Page(http).say("go")
    [error] = [chunk["errorText"] for chunk in read if chunk["type"] == "tool-output-error"]
    assert error.startswith("The worker shop answers with more than ")
    assert f"{MAX_RESULT_VALUES:,} values" in error
    assert error.endswith("; whether a call took effect is not known.")


async def test_a_call_that_is_answered_with_a_redirect_ends_in_one_sentence(tmp_path: Path) -> None:
    agent = scripted([calls(("shop_pay", {})), says("pity")])
    with hostile_worker(
        list=lambda _: {"tools": [definition("pay")]},
        call=lambda _: Raw(308, {"location": "/elsewhere"}),
    ) as worker:
        options = {"workers": (f"shop={worker.url}",), "ungated_worker_tools": ("shop_pay",)}
        async with served(agent, tmp_path, **options) as http:
            read = await Page(http).say("go")
        assert set(worker.paths) == {"/mcp"}
    [error] = [chunk["errorText"] for chunk in read if chunk["type"] == "tool-output-error"]
    assert error == (
        "The worker shop answers with a redirect, which is not followed; configure its final URL."
    )


class Resolver:
    """Resolves one name to the addresses of a test, one after another."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
        self.addresses = [*addresses]
        self.asked = 0
        self._original = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self)

    def __call__(self, host: Any, port: Any, *args: Any, **options: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name != "tools.example":
            return self._original(host, port, *args, **options)
        self.asked += 1
        address = self.addresses[min(self.asked, len(self.addresses)) - 1]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]


@pytest.mark.parametrize(
    ("hosts", "refused"),
    [
        ((), "is neither the address from which it registers nor in the setting worker_hosts"),
        (
            ("tools.example",),
            "tools.example has the address 127.0.0.1, which is not public and not",
        ),
        (("tools.example", "127.0.0.1/32"), None),
    ],
)
async def test_a_name_that_resolves_into_a_private_range_needs_the_range_to_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hosts: tuple[str, ...], refused: str | None
) -> None:
    Resolver(monkeypatch, "127.0.0.1")
    settings = {"worker_registrations": known(tmp_path), "worker_hosts": hosts}
    with hostile_worker(list=lambda _: {"tools": [definition("pay")]}) as worker:
        body = {"name": "shop", "url": worker.url.replace("127.0.0.1", "tools.example")}
        async with served(scripted([says("hi")]), tmp_path, **settings) as http:
            answer = await http.post("/api/workers", json=body, headers=bearer(TOKEN))
    assert bool(worker.methods) is (refused is None)
    assert answer.status_code == (200 if refused is None else 400), answer.text
    if refused is not None:
        assert refused in answer.text
        assert "(--worker-host)" in answer.text


async def test_the_checked_address_is_the_one_that_is_connected_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hostile_worker(list=lambda _: {"tools": [definition("pay")]}) as worker:
        # A name that is resolved a second time for the connection would lead to the other address.
        requests_of_a_listing = 4
        addresses = ["127.0.0.1"] * requests_of_a_listing + ["10.255.255.1"]
        resolver = Resolver(monkeypatch, *addresses)
        url = worker.url.replace("127.0.0.1", "tools.example")
        settings = {"workers": (f"shop={url}",), "worker_hosts": ("127.0.0.1/32",)}
        agent = scripted([calls(("shop_pay", {})), says("pity")])
        async with served(agent, tmp_path, ungated_worker_tools=("shop_pay",), **settings) as http:
            assert worker.methods[-1] == "tools/list"
            assert resolver.asked == requests_of_a_listing
            await Page(http).say("go")
    assert "tools/call" not in worker.methods
    assert worker.methods.count("tools/list") == 1


SSE = {"content-type": "text/event-stream"}
UNKNOWN = (
    "The connection to the worker shop broke in the call; whether it took effect is not known."
)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            Fault(-32602, "Unknown tool: pay"),
            "The worker shop did not run the call; it reports: Unknown tool: pay.",
        ),
        (
            Fault(-32603, "Internal\nerror."),
            "The worker shop failed in the call; it reports: Internal error.",
        ),
        (
            Fault(-32000, "out of paper"),
            "The worker shop failed in the call; it reports: out of paper.",
        ),
        (Raw(404), "The worker shop did not run the call: it answered with HTTP 404 Not Found."),
        (
            Raw(429, {"content-type": "text/html"}, b"<p>slow down"),
            "The worker shop did not run the call: it answered with HTTP 429 Too Many Requests.",
        ),
        (
            Raw(503),
            "The worker shop did not run the call: it answered with HTTP 503 Service Unavailable.",
        ),
        (
            Raw(500),
            "The worker shop failed in the call: it answered with HTTP 500 Internal Server Error.",
        ),
        (Raw(403), "The worker shop refuses this server's credential; nothing ran."),
        (Raw(502), UNKNOWN),
        (Raw(504), UNKNOWN),
        (Raw(200, SSE, b": a comment\n\n"), UNKNOWN),
        (
            {"content": "no list"},
            "The worker shop answered the call with something that is no result of MCP.",
        ),
        (
            Raw(200, {"content-type": "application/json"}, b"[1]"),
            "The worker shop answered the call with something that is no result of MCP.",
        ),
    ],
    ids=lambda value: str(value)[:40] if not isinstance(value, str) else "",
)
async def test_a_failed_call_is_reported_as_what_it_is(
    tmp_path: Path, answer: dict[str, Any] | Raw | Fault, sentence: str
) -> None:
    agent = scripted([calls(("shop_pay", {})), says("pity")])
    with hostile_worker(
        list=lambda _: {"tools": [definition("pay")]}, call=lambda _: answer
    ) as worker:
        options = {"workers": (f"shop={worker.url}",), "ungated_worker_tools": ("shop_pay",)}
        async with served(agent, tmp_path, **options) as http:
            read = await Page(http).say("go")
    [error] = [chunk["errorText"] for chunk in read if chunk["type"] == "tool-output-error"]
    assert error == sentence
    assert worker.methods.count("tools/call") == 1


@pytest.mark.parametrize(
    ("listed", "sentence"),
    [
        (Fault(-32603, "no database"), "offers nothing; it reports: no database."),
        (Raw(500), "offers nothing: it answered with HTTP 500 Internal Server Error."),
        ({"tools": 3}, "answered with something that is no result of MCP."),
    ],
    ids=["error", "status", "malformed"],
)
def test_check_names_what_a_worker_answered_instead_of_its_tools(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    listed: dict[str, Any] | Raw | Fault,
    sentence: str,
) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    with hostile_worker(list=lambda _: listed) as worker:
        assert main(["check", str(tmp_path / "agent.py"), "--worker", f"shop={worker.url}"]) == 0
    assert f"    The worker shop {sentence}\n" in capsys.readouterr().out


ODD = [
    {
        **definition("files.read"),
        "title": "Read a\u202e file",
        "annotations": {"destructiveHint": True},
    },
    {"name": "bare", "inputSchema": {"type": "object"}},
    {"name": "no-schema"},
    definition("a b"),
    {**definition("later"), "execution": {"taskSupport": "required"}},
    definition("pay"),
]


def test_check_names_each_odd_tool_and_the_others_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    with hostile_worker(list=lambda _: {"tools": ODD}) as worker:
        assert main(["check", str(tmp_path / "agent.py"), "--worker", f"shop={worker.url}"]) == 0
    lines = capsys.readouterr().out.partition(": 3 tools\n")[2].splitlines()[:6]
    assert [line.strip() for line in lines] == [
        "shop_bare: requires approval",
        "shop_files_read: requires approval",
        "shop_pay: requires approval",
        "a b: left out; its name is not letters, digits, _, -, . and /",
        "no-schema: left out; it is no definition of a tool: inputSchema is missing or not valid",
        "shop_later: left out; it runs only as a task (taskSupport: required), which this server "
        "does not support",
    ]


async def test_an_odd_tool_is_called_by_its_own_name_and_its_card_warns(tmp_path: Path) -> None:
    called: list[dict[str, Any]] = []

    def call(params: dict[str, Any]) -> dict[str, Any]:
        called.append(params)
        return {"content": [{"type": "text", "text": "read"}]}

    prompts = Prompts()
    script = [calls(("shop_files_read", {}), ("shop_bare", {})), says("done")]
    agent = scripted(script, before_model_callback=prompts)
    with hostile_worker(list=lambda _: {"tools": ODD}, call=call) as worker:
        async with served(agent, tmp_path, workers=(f"shop={worker.url}",)) as http:
            page = Page(http)
            await page.say("go")
            [part, bare] = page.pending()
            await page.answer()
    assert sorted(each["name"] for each in called) == ["bare", "files.read"]
    assert part["title"] == "Read a file"
    assert part["toolMetadata"] == {
        "worker": "shop",
        "tool": "files.read",
        "description": "The tool files.read.",
        "destructive": True,
    }
    assert bare["toolMetadata"] == {"worker": "shop"}
    assert "The tool bare of the worker shop." in prompts.descriptions["shop_bare"]


async def test_everything_in_a_result_is_kept(tmp_path: Path) -> None:
    link = {"type": "resource_link", "name": "report", "uri": "https://[files.example/report"}
    image = {"type": "image", "mimeType": "image/png", "data": b64encode(PNG).decode()}
    result = {
        "content": [{"type": "text", "text": "Two files."}, link, image],
        "structuredContent": {"files": ["a.txt"], "count": 1},
    }
    agent = scripted([calls(("shop_pay", {})), says("done")])
    tools = {"tools": [definition("pay")]}
    with hostile_worker(list=lambda _: tools, call=lambda _: result) as worker:
        options = {"workers": (f"shop={worker.url}",), "ungated_worker_tools": ("shop_pay",)}
        async with served(agent, tmp_path, **options) as http:
            read = await Page(http).say("go")
    [output] = [chunk["output"] for chunk in read if chunk["type"] == "tool-output-available"]
    assert [chunk["mediaType"] for chunk in read if chunk["type"] == "file"] == ["image/png"]
    assert output == {
        "files": ["a.txt"],
        "count": 1,
        "text": "Two files.",
        "links": [{"uri": "https://[files.example/report", "name": "report"}],
    }


async def test_progress_without_a_message_shows_its_fraction(tmp_path: Path) -> None:
    def call(params: dict[str, Any]) -> Raw:
        token = params["_meta"]["progressToken"]
        messages: list[dict[str, Any]] = [
            {"method": "notifications/progress", "params": {"progressToken": token, **progress}}
            for progress in ({"progress": 1, "total": 4}, {"progress": 2.5})
        ]
        # The client of MCP uses the id of the request as the token.
        messages.append({"id": token, "result": {"content": []}})
        lines = [f"data: {json.dumps({'jsonrpc': '2.0', **each})}\n\n" for each in messages]
        return Raw(200, SSE, "".join(lines).encode())

    agent = scripted([calls(("shop_pay", {})), says("done")])
    tools = {"tools": [definition("pay")]}
    with hostile_worker(list=lambda _: tools, call=call) as worker:
        options = {"workers": (f"shop={worker.url}",), "ungated_worker_tools": ("shop_pay",)}
        async with served(agent, tmp_path, release="progressive", **options) as http:
            read = await Page(http).say("go")
    shown = [chunk["output"] for chunk in read if chunk.get("preliminary")]
    assert shown == ["1 of 4", "2.5"]
