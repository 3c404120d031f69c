"""An engine on a fresh SQLite file, playing the conformance scenarios."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.hooks import EngineHooks
from sluicegate.engine.options import EngineOptions
from sluicegate.engine.timeouts_and_intervals import EngineTimings
from sluicegate.server.approval_span_id_generator import ApprovalIds
from tests.agents.conformance_agent import root_agent
from tests.engine.loop_time import LoopTime
from tests.engine.stage import Counted, Prompts
from tests.engine.stores import EMBEDDED
from tests.engine.talk import Talk
from tests.new_database import new_database
from tests.patience import LEASE
from tests.real_stores.databases import flush, fresh_database
from tests.real_stores.postgres import Postgres
from tests.real_stores.valkey import Valkey
from tests.stores.builders import LIMIT, PATIENT, PATIENT_STREAMS, Clock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from contextlib import AbstractAsyncContextManager

    from sluicegate.engine.hooks import ToolsFor
    from sluicegate.tools import Policy
    from tests.engine.stage import Open, OpenReplicas


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """The spans that a test exports."""
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        trace.set_tracer_provider(TracerProvider(id_generator=ApprovalIds()))
    provider = trace.get_tracer_provider()
    assert isinstance(provider, TracerProvider)
    assert isinstance(provider.id_generator, ApprovalIds), "a test has set another provider"
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield exporter
    exporter.shutdown()


@pytest.fixture
async def loop_time() -> AsyncIterator[LoopTime]:
    """The clock of the test's event loop, which the test can advance."""
    with LoopTime.of_running_loop() as advanced:
        yield advanced


@pytest.fixture
def clock() -> Clock:
    """The clock of the database, which the test can advance."""
    return Clock()


@pytest.fixture
def counted() -> Counted:
    """A tool that counts its runs."""
    return Counted()


@pytest.fixture
def prompts() -> Prompts:
    """What the model of a test was asked."""
    return Prompts()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where the database lies: in memory where the system has such a place."""
    memory = Path("/dev/shm")
    if not memory.is_dir():
        yield tmp_path
        return
    made = Path(tempfile.mkdtemp(dir=memory))
    yield made
    shutil.rmtree(made)


@pytest.fixture
async def stores(folder: Path, request: pytest.FixtureRequest) -> AsyncIterator[dict[str, str]]:
    """Where chats and streams are kept; `on_every_store` has a test run on servers too."""
    if getattr(request, "param", EMBEDDED) == EMBEDDED:
        yield {"sessions": new_database(folder / "sluicegate.db")}
        return
    postgres: Postgres = request.getfixturevalue("postgres")
    valkey: Valkey = request.getfixturevalue("valkey")
    await flush(valkey)
    async with fresh_database(postgres) as url:
        yield {"sessions": url, "streams": valkey.url()}


@pytest.fixture
def open_engine(
    folder: Path, effects: Path, stores: dict[str, str]
) -> Callable[..., AbstractAsyncContextManager[ChatEngine]]:
    """Open engines on the test's own database, one after the other."""

    @asynccontextmanager
    async def opened(
        target: Any = root_agent,
        *,
        clock: Callable[[], float] = lambda: 0.0,
        policy: Policy | None = None,
        tools_for: ToolsFor | None = None,
        timings: dict[str, float] | None = None,
        **options: Any,
    ) -> AsyncIterator[ChatEngine]:
        # A machine that stands still for a while loses no lease, unless the test is about that.
        found = {**stores, "artifacts": f"file:{folder}/artifacts", "lease_ttl": LEASE, **options}
        made = EngineOptions(**found)
        # Nor does a decision return before its turn has started.
        waits = EngineTimings(
            clock_offset=clock,
            database=PATIENT,
            streams=PATIENT_STREAMS,
            **{"decision": LIMIT, "worker_listing": LIMIT, **(timings or {})},
        )
        engine = await ChatEngine.open(
            target, made, timings=waits, hooks=EngineHooks(policy, tools_for)
        )
        try:
            yield engine
        finally:
            await engine.close()

    return opened


@pytest.fixture
async def open_stage(
    open_engine: Callable[..., AbstractAsyncContextManager[ChatEngine]],
) -> AsyncIterator[Open]:
    """Open an engine for the rest of the test."""
    async with AsyncExitStack() as stack:

        async def opened(target: Any = root_agent, **options: Any) -> ChatEngine:
            return await stack.enter_async_context(open_engine(target, **options))

        yield opened


@pytest.fixture(params=["shared streams", "streams of their own"])
def streams_url(request: pytest.FixtureRequest) -> str:
    if request.param != "shared streams":
        return "memory"
    valkey: Valkey = request.getfixturevalue("valkey")
    return valkey.url()


@pytest.fixture
async def open_replicas(
    postgres: Postgres, streams_url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[OpenReplicas]:
    """Opens two engines that might as well be two processes."""
    if streams_url != "memory":
        await flush(request.getfixturevalue("valkey"))
    async with AsyncExitStack() as stack:
        sessions = await stack.enter_async_context(fresh_database(postgres))

        async def opened(
            target: Any, *, timings: dict[str, float] | None = None, **options: Any
        ) -> tuple[ChatEngine, ChatEngine]:
            found = {"artifacts": f"file:{tmp_path}/artifacts", "lease_ttl": LEASE, **options}
            made = EngineOptions(sessions=sessions, streams=streams_url, **found)
            # A request does not give up on a replica that a busy machine holds up.
            limits = {"lease_poll": 0.02, "lease": LIMIT, "stream": LIMIT, "decision": LIMIT}
            waits = EngineTimings(
                database=PATIENT,
                streams=PATIENT_STREAMS,
                **{**limits, **(timings or {})},  # type: ignore[arg-type]
            )
            engines = [await ChatEngine.open(target, made, timings=waits) for _ in range(2)]
            for engine in engines:
                stack.push_async_callback(engine.close)
            return engines[0], engines[1]

        yield opened


@pytest.fixture
async def engine(
    open_engine: Callable[..., AbstractAsyncContextManager[ChatEngine]],
) -> AsyncIterator[ChatEngine]:
    """One engine with the defaults."""
    async with open_engine() as opened:
        yield opened


@pytest.fixture
def talk(engine: ChatEngine) -> Talk:
    """A chat with it."""
    return Talk(engine)
