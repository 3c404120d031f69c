"""Results with files in a Runner of ADK, with the plugin and without it."""

from __future__ import annotations

import base64
import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.artifacts.file_artifact_service import FileArtifactService
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import Runner
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types
from pydantic_core import PydanticSerializationError

from sluicegate import ToolResult
from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.options import EngineOptions
from sluicegate.media import MediaPlugin
from tests.engine.stage import words
from tests.engine.talk import Talk
from tests.media import samples
from tests.media.conftest import close, connected
from tests.media.making import maker

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from google.adk.artifacts.base_artifact_service import BaseArtifactService
    from google.adk.models.base_llm import BaseLlm
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.sessions.base_session_service import BaseSessionService
    from google.adk.sessions.session import Session

    from tests.media.families import Family

NOTHING_WITHOUT_IT = (
    "A ToolResult is neither stored nor sent as it is: add sluicegate.media.MediaPlugin() to the "
    "plugins of the App or the Runner."
)
STORIES = [
    ("make green", "I see a green chart."),
    ("make green and red then blue", "I see a green chart; a red chart; a blue chart."),
    ("make webp and mcp", "I see image/webp; image/jpeg."),
]


class Conversation:
    """A session of one user in a Runner without the server."""

    def __init__(
        self,
        model: BaseLlm,
        plugins: Sequence[BasePlugin],
        sessions: BaseSessionService | None = None,
        artifacts: BaseArtifactService | None = None,
    ) -> None:
        agent = LlmAgent(name="maker", model=model, tools=[maker()])
        self._sessions = sessions or InMemorySessionService()
        self._runner = Runner(
            app=App(name="bare", root_agent=agent, plugins=[*plugins]),
            session_service=self._sessions,
            artifact_service=artifacts,
        )

    async def say(self, text: str) -> str:
        """Say something; the text of the last event."""
        if await self._stored() is None:
            await self._sessions.create_session(app_name="bare", user_id="ann", session_id="s1")
        said = types.UserContent(text)
        last = ""
        async for event in self._runner.run_async(user_id="ann", session_id="s1", new_message=said):
            last = "".join(p.text or "" for p in (event.content and event.content.parts) or [])
        return last

    async def session(self) -> str:
        """The stored session as JSON."""
        session = await self._stored()
        assert session is not None
        return session.model_dump_json()

    async def _stored(self) -> Session | None:
        return await self._sessions.get_session(app_name="bare", user_id="ann", session_id="s1")


def made(family: Family) -> BaseLlm:
    """A model of a family as an author makes it."""
    model = connected(family.make())
    if isinstance(model, LiteLlm):
        # LiteLLM: its gateway for MCP needs a newer `mcp` than is installed.
        return LiteLlm(
            **{**model._additional_args, "model": model.model, "_skip_mcp_handler": True}
        )
    return model


@pytest.mark.parametrize(("wish", "answer"), STORIES)
@pytest.mark.parametrize("name", ["gemini-3", "gemini-2", "vertex-3", "openai", "unknown"])
async def test_any_runner_sends_the_files_of_results_as_the_model_reads_them(
    families: dict[str, Family], name: str, wish: str, answer: str
) -> None:
    model = made(families[name])
    families[name].endpoint.refused.clear()

    assert await Conversation(model, [MediaPlugin()]).say(wish) == answer

    assert families[name].endpoint.refused == []
    assert "left out" not in json.dumps(families[name].endpoint.last)
    await close(model)


async def test_a_session_of_any_runner_keeps_references_and_no_bytes(
    families: dict[str, Family], folder: Path
) -> None:
    artifacts = FileArtifactService(str(folder / "files"))
    url = f"sqlite+aiosqlite:///{folder}/sessions.db"
    for wish, answer in (
        ("make green and jpeg", "I see a green chart; image/jpeg."),
        ("look", "In all I see a green chart; image/jpeg."),
    ):
        model = made(families["gemini-3"])
        sessions = DatabaseSessionService(url)
        talk = Conversation(model, [MediaPlugin()], sessions, artifacts)
        assert await talk.say(wish) == answer
        stored = await talk.session()
        await sessions.close()
        await close(model)
    assert "sluicegate:" in stored
    assert base64.b64encode(samples.chart("green"))[40:80].decode() not in stored
    assert base64.urlsafe_b64encode(samples.chart("green"))[40:80].decode() not in stored


@pytest.mark.parametrize("name", ["gemini-3", "gemini-2"])
async def test_a_model_call_without_the_plugin_fails_in_one_sentence(
    families: dict[str, Family], name: str
) -> None:
    model = made(families[name])
    with pytest.raises(PydanticSerializationError) as failure:
        await Conversation(model, []).say("make green")
    assert str(failure.value) == NOTHING_WITHOUT_IT
    await close(model)


async def test_a_store_without_the_plugin_fails_in_one_sentence(
    families: dict[str, Family], folder: Path
) -> None:
    model = made(families["gemini-3"])
    sessions = DatabaseSessionService(f"sqlite+aiosqlite:///{folder}/sessions.db")
    with pytest.raises(PydanticSerializationError) as failure:
        await Conversation(model, [], sessions).say("make green")
    assert str(failure.value) == NOTHING_WITHOUT_IT
    await sessions.close()
    await close(model)


@pytest.mark.parametrize("value", [ToolResult(["a"]), {"result": ToolResult(["a"])}])
def test_a_result_is_never_written_as_json_by_accident(value: Any) -> None:
    event = types.FunctionResponse(name="make", response={"result": value})
    with pytest.raises(PydanticSerializationError, match="MediaPlugin"):
        event.model_dump_json()


async def test_an_app_with_the_plugin_runs_on_the_server_as_without_it(
    families: dict[str, Family], folder: Path
) -> None:
    sent: list[Any] = []
    for number, plugins in enumerate([[], [MediaPlugin()]]):
        agent = LlmAgent(name="maker", model=connected(families["claude"].make()), tools=[maker()])
        options = EngineOptions(
            sessions=f"sqlite+aiosqlite:///{folder}/{number}.db",
            artifacts=f"file:{folder}/artifacts",
        )
        app = App(name="bare", root_agent=agent, plugins=[*plugins])
        engine = await ChatEngine.open(app, options)
        try:
            turn = await Talk(engine, "progressive").say("make green and mixed")
        finally:
            await engine.close()
            await close(agent.canonical_model)
        assert words(turn.message) == "I see a green chart; application/pdf."
        messages = families["claude"].endpoint.last["messages"]
        sent.append([block["type"] for block in messages[-1]["content"]])
    assert sent[0] == sent[1] == ["tool_result", "tool_result"]


def test_the_plugin_can_be_deployed() -> None:
    """Agent Engine pickles the App."""
    assert pickle.loads(pickle.dumps(MediaPlugin())).name == "sluicegate_media"
