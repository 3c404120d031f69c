"""Tools of real worker processes in a turn (S1-R24 to S1-R28, S1-R32 to S1-R42)."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from sluicegate.errors import ConfigurationError, Malformed
from sluicegate.testing.message_comparison import comparable
from sluicegate.tools import mcp_package
from sluicegate.wire.chunks import ToolOutputAvailableChunk
from sluicegate.wire.ui_messages import is_tool_part
from tests.engine.loop_time import EVENT_TIMEOUT, LoopTime
from tests.engine.stage import (
    Open,
    OpenReplicas,
    Prompts,
    Responses,
    calls,
    part_of,
    says,
    scripted,
    words,
)
from tests.engine.talk import Talk, Turn
from tests.tools.worker_process import WorkerForkServer, WorkerProcess

Start = Callable[..., Awaitable[WorkerProcess]]
FREE = ("shop_slow", "shop_ordered", "shop_broken", "shop_refuses", "shop_counting", "shop_whoami")
TOKEN = "a-token-of-some-length"
FEWER = '''"""Another version of the tools."""


def pay(n: str) -> str:
    """Pay in words."""
    return n
'''


@pytest.fixture(scope="module")
def shared_effects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("workers") / "effects"
    path.touch()
    return path


@pytest.fixture(scope="module")
def worker(nursery: WorkerForkServer, shared_effects: Path) -> WorkerProcess:
    """A worker for the tests that leave it as it is."""
    return nursery.start(effects=shared_effects)


@pytest.fixture
def start(nursery: WorkerForkServer, effects: Path) -> Start:
    """Start workers that the test may do anything to."""

    async def begun(*options: str, **more: Any) -> WorkerProcess:
        return await asyncio.to_thread(nursery.start, *options, effects=effects, **more)

    return begun


async def talk_with(
    open_stage: Open, url: str, script: Responses, prompts: Prompts | None = None, **options: Any
) -> Talk:
    agent = scripted(script, before_model_callback=prompts)
    options = {"ungated_worker_tools": FREE, **options}
    return Talk(await open_stage(agent, workers=(f"shop={url}",), **options))


def tool_parts(turn: Turn) -> list[dict[str, Any]]:
    return [part for part in turn.message["parts"] if is_tool_part(part)]


def lines(effects: Path) -> list[str]:
    return effects.read_text().split("\n")[:-1]


async def line_in(effects: Path, wanted: str) -> None:
    """Wait until the tools have noted a line; they write to a pipe after each one."""
    path, noted = effects.with_suffix(".pipe"), asyncio.Event()
    os.mkfifo(path)
    # Open for writing too: without a writer, the end of the file would be read all the time.
    pipe = os.open(path, os.O_RDWR)
    loop = asyncio.get_running_loop()

    def read() -> None:
        os.read(pipe, 4096)
        noted.set()

    loop.add_reader(pipe, read)
    try:
        async with asyncio.timeout(EVENT_TIMEOUT):
            while wanted not in lines(effects):
                await noted.wait()
                noted.clear()
    finally:
        loop.remove_reader(pipe)
        os.close(pipe)
        path.unlink()


async def test_a_remote_tool_requests_approval_and_runs_after_it(
    open_stage: Open, worker: WorkerProcess, shared_effects: Path
) -> None:
    prompts = Prompts()
    script = [calls(("shop_pay", {"n": 41})), says("done")]
    talk = await talk_with(open_stage, worker.url, script, prompts)
    await talk.say("pay")
    assert "pay 41" not in lines(shared_effects)
    turn = await talk.approve()
    assert lines(shared_effects).count("pay 41") == 1
    part = part_of(turn.message, "shop_pay")
    assert (part["state"], part["output"]) == ("output-available", {"paid": 41, "to": "nobody"})
    assert prompts.results == {"shop_pay": {"paid": 41, "to": "nobody"}}
    assert part["toolMetadata"] == {"worker": "shop", "description": "Pay an amount."}
    assert comparable(await talk.history()) == comparable(turn.message)


@pytest.mark.parametrize("named", [(), ("shop_pay",)])
async def test_approvals_of_a_worker_are_not_rememberable_by_default(
    open_stage: Open, worker: WorkerProcess, named: tuple[str, ...]
) -> None:
    script = [calls(("shop_pay", {"n": 43})), calls(("shop_pay", {"n": 44})), says("done")]
    talk = await talk_with(open_stage, worker.url, script, rememberable_tools=named)
    await talk.say("pay")
    [asked] = talk.asks()
    assert talk.pending()[0]["approval"]["descriptor"]["rememberable"] is bool(named)
    if named:
        assert (await talk.approve(remember={asked: "chat"})).finish_reason == "stop"
        return
    with pytest.raises(Malformed, match="cannot be remembered"):
        await talk.approve(remember={asked: "chat"})
    assert (await talk.post_last()).finish_reason == "tool-calls"


async def test_a_denied_remote_tool_does_not_run(
    open_stage: Open, worker: WorkerProcess, shared_effects: Path
) -> None:
    script = [calls(("shop_pay", {"n": 42})), says("as you like")]
    talk = await talk_with(open_stage, worker.url, script)
    await talk.say("pay")
    turn = await talk.answer(approved=False, reason="too much")
    assert part_of(turn.message, "shop_pay")["state"] == "output-denied"
    assert "pay 42" not in lines(shared_effects)


@pytest.mark.parametrize(
    ("tool", "args", "sentence"),
    [
        ("shop_pay", {"n": "much"}, "Not run: the arguments do not fit: n: 'much' is not of type"),
        ("shop_pay", {}, "Not run: the arguments do not fit: arguments: 'n' is a required"),
        ("shop_pay", {"n": 1, "m": 2}, "Not run: the arguments do not fit: arguments: Additional"),
        ("shop_refuses", {}, "The shop is closed on Sundays."),
        ("shop_broken", {}, "The tool failed: ValueError (error "),
    ],
)
async def test_a_call_that_fails_ends_in_one_safe_sentence(
    open_stage: Open, worker: WorkerProcess, tool: str, args: dict[str, Any], sentence: str
) -> None:
    prompts = Prompts()
    talk = await talk_with(open_stage, worker.url, [calls((tool, args)), says("oh")], prompts)
    turn = await talk.say("go")
    part = part_of(turn.message, tool)
    assert part["state"] == "output-error"
    assert part["errorText"].startswith(sentence)
    assert words(turn.message) == "oh"
    assert "hunter2" not in str(turn.chunks)
    if tool == "shop_broken":
        error = part["errorText"].partition("(error ")[2].removesuffix(").")
        log = worker.log.read_text()
        assert f"error={error}" in log
        assert "worker_tools.py" in log


async def test_parallel_calls_of_one_tool_keep_their_order_and_ids(
    open_stage: Open, worker: WorkerProcess
) -> None:
    prompts = Prompts()
    asked = [("shop_ordered", {"n": n}) for n in (1, 2, 3)]
    talk = await talk_with(open_stage, worker.url, [calls(*asked), says("done")], prompts)
    turn = await talk.say("go")
    found = [(part["input"]["n"], part["output"]["result"]) for part in tool_parts(turn)]
    assert found == [(n, f"number {n}") for n in (1, 2, 3)]
    answers = [p.function_response for c in prompts.contents[-1] for p in c.parts or []]
    said = [each.response for each in answers if each is not None]
    assert said == [{"result": f"number {n}"} for n in (1, 2, 3)]


async def test_a_call_contains_the_user_the_key_and_the_approver(
    open_stage: Open, worker: WorkerProcess
) -> None:
    script = [calls(("shop_whoami", {}), ("shop_whoami", {})), says("done")]
    talk = await talk_with(open_stage, worker.url, script, ungated_worker_tools=())
    await talk.say("who?")
    turn = await talk.approve()
    one, two = (part["output"] for part in tool_parts(turn))
    assert (one["user"], one["decided_by"], one["chat"]) == ("ann", "ann", talk.chat_id)
    assert (len(one["key"]), one["key"] != two["key"], one["id"] != two["id"]) == (64, True, True)
    assert (one["seconds"], one["is_repeated"]) == (30.0, False)


async def test_files_of_a_worker_are_stored_and_shown_as_files(
    open_stage: Open, worker: WorkerProcess
) -> None:
    prompts = Prompts()
    talk = await talk_with(
        open_stage, worker.url, [calls(("shop_picture", {})), says("nice")], prompts
    )
    await talk.say("draw")
    turn = await talk.approve()
    files = [part for part in turn.message["parts"] if part["type"] == "file"]
    assert [part["mediaType"] for part in files] == ["image/png", "application/pdf"]
    assert "iVBOR" not in str(turn.chunks)
    assert "iVBOR" not in str(prompts.results)
    assert comparable(await talk.history()) == comparable(turn.message)


async def test_intermediate_outputs_of_a_generator_are_preliminary(
    open_stage: Open, worker: WorkerProcess
) -> None:
    script = [calls(("shop_counting", {"n": 3})), says("done")]
    talk = await talk_with(open_stage, worker.url, script)
    talk.release = "progressive"
    turn = await talk.say("count")
    outputs = [c for c in turn.chunks if isinstance(c, ToolOutputAvailableChunk)]
    shown = [chunk.output for chunk in outputs if chunk.preliminary]
    assert shown == ["at 0", "at 1", "at 2"]
    assert outputs[-1].output == {"result": '{"at": true}'}


async def test_a_killed_worker_ends_its_call_and_no_other(
    open_stage: Open, worker: WorkerProcess, start: Start, effects: Path
) -> None:
    other = await start()
    script = [calls(("shop_ordered", {"n": 0}), ("late_slow", {"n": 1})), says("so be it")]
    engine = await open_stage(
        scripted(script),
        workers=(f"shop={worker.url}", f"late={other.url}"),
        ungated_worker_tools=("late_slow", "shop_ordered"),
    )
    talk = Talk(engine)
    saying = asyncio.create_task(talk.say("go"))
    await line_in(effects, "slow 1")
    other.kill()
    async with asyncio.timeout(EVENT_TIMEOUT):
        turn = await saying
    assert part_of(turn.message, "shop_ordered")["output"] == {"result": "number 0"}
    lost = part_of(turn.message, "late_slow")
    assert lost["errorText"] == (
        "The connection to the worker late broke in the call; whether it took effect is not known."
    )
    assert words(turn.message) == "so be it"


async def test_a_tool_that_disappeared_during_its_approval_is_not_run(
    open_stage: Open, start: Start, effects: Path
) -> None:
    worker = await start()
    talk = await talk_with(
        open_stage, worker.url, [calls(("shop_pay", {"n": 1})), says("pity")] * 2
    )
    await talk.say("pay")
    worker.kill()
    turn = await talk.approve()
    assert part_of(turn.message, "shop_pay")["errorText"] == (
        "Not run: the tool shop_pay is no longer there."
    )
    assert words(turn.message) == "pity"
    assert (lines(effects), turn.failed) == ([], False)


async def test_without_a_placeholder_adk_ends_the_run_when_a_tool_has_disappeared(
    open_stage: Open, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = await start()
    talk = await talk_with(open_stage, worker.url, [calls(("shop_pay", {"n": 1})), says("pity")])
    await talk.say("pay")
    worker.kill()
    assert talk.engine.resources.workers is not None
    monkeypatch.setattr(talk.engine.resources.workers, "may_be_removed", lambda name: False)
    assert (await talk.approve()).failed


async def test_a_tool_that_returned_before_the_approval_runs(
    open_stage: Open, start: Start, effects: Path
) -> None:
    worker = await start()
    talk = await talk_with(open_stage, worker.url, [calls(("shop_pay", {"n": 1})), says("done")])
    await talk.say("pay")
    worker.kill()
    await start(port=worker.port)
    turn = await talk.approve()
    assert part_of(turn.message, "shop_pay")["state"] == "output-available"
    assert lines(effects) == ["pay 1"]


async def test_a_tool_that_changed_during_its_approval_is_not_run(
    open_stage: Open, start: Start, effects: Path, tmp_path: Path
) -> None:
    worker = await start()
    talk = await talk_with(open_stage, worker.url, [calls(("shop_pay", {"n": 1})), says("pity")])
    await talk.say("pay")
    worker.kill()
    (tmp_path / "fewer.py").write_text(FEWER)
    await start(port=worker.port, file=tmp_path / "fewer.py")
    turn = await talk.approve()
    assert part_of(turn.message, "shop_pay")["errorText"] == (
        "Not run: the tool has changed since its approval was requested. Call it again; the user "
        "is asked anew."
    )
    assert (words(turn.message), lines(effects), turn.failed) == ("pity", [], False)


async def test_a_call_that_takes_too_long_is_cancelled_at_the_worker(
    open_stage: Open, start: Start, effects: Path, loop_time: LoopTime
) -> None:
    worker = await start()
    script = [calls(("shop_slow", {"n": 1})), says("oh")]
    talk = await talk_with(open_stage, worker.url, script, worker_timeout=20.0)
    saying = asyncio.create_task(talk.say("go"))
    await line_in(effects, "slow 1")
    loop_time.advance(20.0)
    turn = await saying
    assert part_of(turn.message, "shop_slow")["errorText"] == (
        "The worker shop did not answer within 20 s; whether it took effect is not known."
    )
    await line_in(effects, "cancelled 1")


async def test_a_stop_is_forwarded_to_the_worker(
    open_stage: Open, worker: WorkerProcess, shared_effects: Path
) -> None:
    talk = await talk_with(open_stage, worker.url, [calls(("shop_slow", {"n": 2})), says("oh")])
    saying = asyncio.create_task(talk.say("go"))
    await line_in(shared_effects, "slow 2")
    await talk.engine.stop(talk.chat_id, user=talk.user)
    async with asyncio.timeout(EVENT_TIMEOUT):
        await saying
    await line_in(shared_effects, "cancelled 2")


async def test_a_worker_unavailable_at_startup_is_added_later(
    open_stage: Open, start: Start, effects: Path
) -> None:
    gone = await start()
    gone.kill()
    prompts = Prompts()
    script = [says("nothing yet"), calls(("shop_pay", {"n": 3})), says("done")]
    talk = await talk_with(open_stage, gone.url, script, prompts)
    assert talk.engine.survey.may_gate
    await talk.say("hello")
    await start(port=gone.port)
    agent = talk.engine.resources.runner.app.root_agent
    [toolset] = getattr(agent, "tools")  # noqa: B009
    assert "shop_pay" in {tool.name for tool in await toolset.get_tools(None)}
    await talk.say("pay")
    assert ["shop_pay" in declared for declared in prompts.declared] == [False, True]


async def test_a_declaration_of_a_worker_reaches_the_model_complete(
    open_stage: Open, worker: WorkerProcess
) -> None:
    prompts = Prompts()
    talk = await talk_with(open_stage, worker.url, [says("hi")], prompts)
    await talk.say("hello")
    declared = prompts.declared[0]["shop_pay"]
    for schema in (declared, *declared["parameters_json_schema"]["properties"].values()):
        # The texts of a worker are marked as its own.
        [schema["description"]] = schema["description"].splitlines()[1:-1]
    assert declared == {
        "name": "shop_pay",
        "description": "Pay an amount.",
        "parameters_json_schema": {
            "type": "object",
            "properties": {
                "n": {"type": "integer", "description": "How much."},
                "to": {
                    "type": "string",
                    "description": "Who gets it, by name.",
                    "default": "nobody",
                },
            },
            "required": ["n"],
            "additionalProperties": False,
        },
    }


@pytest.mark.parametrize(
    ("tokens", "offered"),
    [(f"shop {TOKEN}\n", True), ("shop another-token-of-some-length\n", False), (None, False)],
)
async def test_requests_to_a_worker_use_its_own_credential(
    open_stage: Open, start: Start, tmp_path: Path, tokens: str | None, offered: bool
) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    worker = await start("--token", str(tmp_path / "token"))
    options: dict[str, Any] = {}
    if tokens is not None:
        (tmp_path / "tokens").write_text(f"# workers\n{tokens}")
        options["worker_tokens"] = str(tmp_path / "tokens")
    talk = await talk_with(open_stage, worker.url, [says("hello")], **options)
    assert talk.engine.resources.workers is not None
    assert bool(talk.engine.resources.workers.tools()) is offered


async def test_only_tools_configured_on_the_server_are_offered(
    open_stage: Open, worker: WorkerProcess
) -> None:
    talk = await talk_with(open_stage, worker.url, [says("hi")], worker_tools=("shop_pay",))
    assert talk.engine.resources.workers is not None
    assert [tool.name for tool in talk.engine.resources.workers.tools()] == ["shop_pay"]


async def test_a_worker_cannot_use_the_name_of_a_tool_of_the_agent(
    open_stage: Open, worker: WorkerProcess
) -> None:
    def shop_pay(n: int) -> str:
        """The agent's own."""
        return f"own {n}"

    script = [calls(("shop_pay", {"n": 1})), says("done")]
    engine = await open_stage(scripted(script, [shop_pay]), workers=(f"shop={worker.url}",))
    turn = await Talk(engine).say("pay")
    assert part_of(turn.message, "shop_pay")["output"] == {"result": "own 1"}
    workers = engine.resources.workers
    assert workers is not None
    assert (workers.find("shop_pay"), workers.find("shop_slow") is None) == (None, False)


async def test_a_worker_cannot_use_the_name_of_a_tool_of_the_page(
    open_stage: Open, worker: WorkerProcess
) -> None:
    engine = await open_stage(
        scripted([says("done")]), workers=(f"shop={worker.url}",), page_tools=("shop_pay",)
    )
    workers = engine.resources.workers
    assert workers is not None
    assert (workers.find("shop_pay"), workers.find("shop_slow") is None) == (None, False)


async def test_a_worker_continues_the_trace_of_its_call(
    open_stage: Open, worker: WorkerProcess, spans: InMemorySpanExporter
) -> None:
    script = [calls(("shop_traced", {})), says("done")]
    talk = await talk_with(open_stage, worker.url, script, ungated_worker_tools=("shop_traced",))
    turn = await talk.say("go")
    made = {span.context.trace_id for span in spans.get_finished_spans() if span.context}
    told = part_of(turn.message, "shop_traced")["output"]["result"]
    assert int(told, 16) in made


async def test_without_the_package_an_error_names_the_package_to_install(
    open_stage: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_package, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"pip install 'mcp>=2\.3'"):
        await open_stage(scripted([says("hi")]), workers=("http://a/mcp",))


async def test_two_workers_of_the_same_name_are_refused_at_startup(open_stage: Open) -> None:
    with pytest.raises(ConfigurationError, match="Two workers are named 'worker'"):
        await open_stage(scripted([says("hi")]), workers=("http://a/mcp", "http://b/mcp"))


@pytest.mark.parametrize("streams_url", ["streams of their own"], indirect=True)
async def test_a_worker_registered_with_one_server_is_called_by_another(
    open_replicas: OpenReplicas, nursery: WorkerForkServer, effects: Path, tmp_path: Path
) -> None:
    files = {name: tmp_path / name for name in ("token", "tokens.txt", "workers.txt")}
    files["token"].write_text(TOKEN)
    files["tokens.txt"].write_text(f"shop {TOKEN}\n")
    files["workers.txt"].write_text(f"sha256:{hashlib.sha256(TOKEN.encode()).hexdigest()} shop\n")
    one, two = await open_replicas(
        scripted([calls(("shop_pay", {"n": 7})), says("done")]),
        worker_registrations=str(files["workers.txt"]),
        worker_tokens=str(files["tokens.txt"]),
    )
    worker = await asyncio.to_thread(nursery.start, "--token", str(files["token"]), effects=effects)
    assert one.resources.workers is not None
    assert two.resources.workers is not None
    await one.resources.workers.register("shop", worker.url, TOKEN, peer="127.0.0.1")
    talk = Talk(one)
    asked = await talk.say("pay")
    talk.engine = two
    assert comparable(await talk.history()) == comparable(asked.message)
    turn = await talk.approve()
    assert part_of(turn.message, "shop_pay")["output"] == {"paid": 7, "to": "nobody"}
    assert lines(effects) == ["pay 7"]
    assert await two.resources.workers.remove("shop")
    await one.resources.workers.refresh()
    assert one.resources.workers.tools() == []
    worker.kill()
