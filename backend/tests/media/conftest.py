"""Providers, and an agent whose single tool returns every kind of file."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import certifi
import pytest
import pytest_asyncio
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.anthropic_llm import AnthropicLlm
from google.adk.models.google_llm import Gemini

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.models.explain_model_errors import missing_key
from sluicegate.engine.options import EngineOptions
from tests.media.families import Family, every_family
from tests.media.making import maker

if TYPE_CHECKING:
    from google.adk.models.base_llm import BaseLlm

Open = Callable[..., AbstractAsyncContextManager[ChatEngine]]


@pytest.fixture(scope="session")
def families(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Family]]:
    """The endpoints of all families.

    LiteLLM fetches no prices, and leaves no sessions of aiohttp open that belong to past loops.
    Each client reads all certificates that the system trusts, and needs none of them here: one is
    read in a twentieth of the time.
    """
    trusted = Path(certifi.where()).read_text("utf-8")
    end = "-----END CERTIFICATE-----\n"
    one = tmp_path_factory.mktemp("certificates") / "one.pem"
    one.write_text(trusted.partition(end)[0] + end)
    with pytest.MonkeyPatch.context() as patch, every_family() as found:
        patch.setenv("SSL_CERT_FILE", str(one))
        patch.delenv("SSL_CERT_DIR", raising=False)
        patch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        patch.setenv("DISABLE_AIOHTTP_TRANSPORT", "True")
        yield found


@pytest.fixture(autouse=True)
def nothing_refused(request: pytest.FixtureRequest) -> None:
    """No test sees what an endpoint refused in an earlier one."""
    if "families" in request.fixturenames:
        for family in request.getfixturevalue("families").values():
            family.endpoint.refused.clear()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def models(families: dict[str, Family]) -> AsyncIterator[dict[str, BaseLlm]]:
    """A model of each family, for the tests of a module that share an event loop."""
    made = {name: connected(family.make()) for name, family in families.items()}
    yield made
    await close(*made.values())


def connected(model: BaseLlm) -> BaseLlm:
    """A model whose client its copies share, so that it can be closed."""
    if isinstance(model, Gemini):
        _ = model.api_client
    return model


async def close(*models: BaseLlm) -> None:
    """Close connections: clients keep them for the event loop, which ends before the process."""
    for model in models:
        if isinstance(model, Gemini):
            await model.api_client.aio.aclose()
        elif isinstance(model, AnthropicLlm) and model.client is not None:
            await model.client.close()
    if "litellm" in sys.modules:
        sys.modules["litellm"].in_memory_llm_clients_cache.flush_cache()


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where the database and the files lie: in memory where the system has such a place."""
    made = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    yield made
    shutil.rmtree(made)


@pytest.fixture
def open_with(folder: Path) -> Open:
    """Open an engine with a model on the test's own database, one after the other."""

    @asynccontextmanager
    async def opened(
        model: BaseLlm, *, gated: bool = False, tools: Sequence[Any] = (), **options: Any
    ) -> AsyncIterator[ChatEngine]:
        made = EngineOptions(
            sessions=f"sqlite+aiosqlite:///{folder}/sluicegate.db",
            artifacts=f"file:{folder}/artifacts",
            **options,
        )
        agent = LlmAgent(
            name="maker", model="gemini-2.5-flash", tools=[*tools] or [maker(gated=gated)]
        )
        # Without a key there is no client to keep.
        kept = model if missing_key(model) else connected(model)
        engine = await ChatEngine.open(agent, made, model=kept)
        try:
            yield engine
        finally:
            await engine.close()
            if not missing_key(model):
                await close(model)

    return opened
