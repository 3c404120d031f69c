"""Files reach models of every class and origin."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models._fallback_model import FallbackModel
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import Workflow, node
from google.genai import errors, types
from pydantic import PrivateAttr

from sluicegate import ToolResult
from sluicegate.media.model_client_libraries import route_of
from sluicegate.media.model_wrapper import ModelFiles, is_wrapped
from tests.engine.stage import part_of, words
from tests.engine.talk import Talk
from tests.media import samples
from tests.media.history import Server
from tests.media.making import maker

if TYPE_CHECKING:
    from tests.engine.stage import Open

PICTURE = types.Part(inline_data=types.Blob(data=samples.PNG, mime_type="image/png"))


class Watching(BaseLlm):
    """Calls a tool once and records its requests."""

    model: str = "gemini-2.5-house"
    tool: str = "make"
    fails: bool = False
    _seen: list[list[types.Content]] = PrivateAttr(default_factory=list)

    @property
    def seen(self) -> list[list[types.Content]]:
        return self._seen

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT002 - the signature is ADK's
    ) -> AsyncGenerator[LlmResponse, None]:
        self._seen.append(list(llm_request.contents))
        if self.fails:
            raise errors.ServerError(503, {"error": {"message": "busy", "code": 503}})
        answers = [p for c in llm_request.contents for p in c.parts or [] if p.function_response]
        part = types.Part(text="Done.")
        if not answers:
            call = types.FunctionCall(name=self.tool, args={"kind": "green"})
            part = types.Part(function_call=call)
        yield LlmResponse(content=types.Content(role="model", parts=[part]))

    @property
    def blobs(self) -> list[int]:
        """Pictures in each request, as siblings and inside responses."""
        return [
            sum(part.inline_data is not None for c in contents for part in c.parts or [])
            + sum(
                len(part.function_response.parts or [])
                for c in contents
                for part in c.parts or []
                if part.function_response is not None
            )
            for contents in self._seen
        ]


async def test_the_model_of_the_user_is_not_changed(open_stage: Open) -> None:
    model = Watching()
    talk = Talk(await open_stage(LlmAgent(name="a", model=model, tools=[maker()])))
    assert words((await talk.say("go")).message) == "Done."
    assert model.blobs == [0, 1]
    assert not is_wrapped(model)
    assert "generate_content_async" not in vars(model)


async def test_each_model_of_a_fallback_is_wrapped_for_its_own_family(open_stage: Open) -> None:
    first = Watching(model="gemini-3-house", fails=True)
    second = Watching(model="gemini-2.5-house")
    model = FallbackModel(models=[first, second])
    talk = Talk(await open_stage(LlmAgent(name="a", model=model, tools=[maker()])))
    assert words((await talk.say("go")).message) == "Done."
    nested = [c.parts or [] for c in first.seen[-1]][-1]
    beside = [c.parts or [] for c in second.seen[-1]][-1]
    assert [len(nested), len(beside)] == [1, 2]
    assert nested[0].function_response is not None
    assert nested[0].function_response.parts


async def test_a_model_created_by_a_function_is_wrapped(open_stage: Open) -> None:
    model = Watching()

    @node(rerun_on_resume=True)
    async def build(ctx: Any, node_input: Any) -> str:
        agent = LlmAgent(name="made", model=model, tools=[maker()])
        return str(await ctx.run_node(agent, node_input="go", use_sub_branch=True))

    flow = Workflow(name="flow", edges=[("START", build)])
    await Talk(await open_stage(flow)).say("go")
    assert model.blobs == [0, 1]


async def test_callbacks_see_references_and_no_bytes(open_stage: Open) -> None:
    requests: list[str] = []

    def look(callback_context: Any, llm_request: LlmRequest) -> None:
        requests.extend(c.model_dump_json(exclude_none=True) for c in llm_request.contents)

    model = Watching()
    agent = LlmAgent(name="a", model=model, tools=[maker()], before_model_callback=look)
    await Talk(await open_stage(agent)).say("go")
    assert model.blobs == [0, 1]
    assert "sluicegate:" in requests[-1]
    assert not any("inline_data" in request for request in requests)


class After(BasePlugin):
    """A user's plugin that looks at results."""

    def __init__(self) -> None:
        super().__init__("after")
        self.results: list[Any] = []

    async def after_tool_callback(
        self,
        *,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
        result: dict[str, Any],
    ) -> dict[str, Any] | None:
        self.results.append(result)
        return None


def draw(kind: str) -> dict[str, Any]:
    """Draw."""
    return {"title": kind, "chart": PICTURE}


async def test_callbacks_of_the_user_receive_the_same_request_as_under_adk(
    open_stage: Open,
) -> None:
    heard: list[Any] = []

    def hear(tool: BaseTool, args: dict[str, Any], tool_context: ToolContext, tool_response: Any):  # type: ignore[no-untyped-def]
        heard.append(tool_response)
        return {**tool_response, "more": ToolResult(["words", PICTURE])}

    model = Watching(tool="draw")
    agent = LlmAgent(name="a", model=model, tools=[FunctionTool(draw)], after_tool_callback=hear)
    talk = Talk(await open_stage(agent))
    turn = await talk.say("go")
    assert heard == [{"title": "green", "chart": PICTURE}]
    output = part_of(turn.message, "draw")["output"]
    assert output == {
        "title": "green",
        "more": {"status": "success", "text_result": "words"},
    }
    assert turn.types.count("file") == 2
    assert model.blobs == [0, 2]


@pytest.mark.parametrize(
    ("name", "route"),
    [("LiteLlm", "litellm"), ("AnthropicLlm", "anthropic"), ("Gemini", "genai"), ("Own", "other")],
)
def test_a_model_is_prepared_according_to_its_class(name: str, route: str) -> None:
    base = type(name, (Watching,), {})
    inherited = type("Mine", (base,), {})
    assert route_of(inherited()) == route


class Backend:
    name = "VERTEX_AI"


def test_models_of_vertex_and_the_developer_api_are_distinguished() -> None:
    on_vertex = type("Gemini", (Watching,), {"_api_backend": property(lambda _: Backend())})
    broken = type("Gemini", (Watching,), {"_api_backend": property(lambda _: 1 / 0)})
    assert route_of(on_vertex()) == "vertex"
    assert route_of(broken()) == "genai"


async def test_a_method_of_the_instance_takes_precedence_over_that_of_the_class() -> None:
    model = Watching()
    called: list[LlmRequest] = []

    async def own(request: LlmRequest, stream: bool) -> AsyncGenerator[LlmResponse, None]:
        called.append(request)
        yield LlmResponse()

    object.__setattr__(model, "generate_content_async", own)
    server = Server()
    await server.ask(model, [types.Content(role="user", parts=[types.Part(text="go")])])
    assert len(called) == 1
    assert model.seen == []


async def test_a_failing_store_does_not_lose_the_text_of_the_turn(
    open_stage: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(*_: Any, **__: Any) -> Any:
        raise OSError("disk-is-gone")

    model = Watching()
    talk = Talk(await open_stage(LlmAgent(name="a", model=model, tools=[maker()])))
    monkeypatch.setattr("sluicegate.media.chat_files.ChatFiles.read", fails)
    turn = await talk.say("go")
    assert words(turn.message) == "Done."
    assert model.blobs == [0, 0]
    assert "it can no longer be read" in model.seen[-1][-1].model_dump_json()
    assert "disk-is-gone" not in caplog.text


def test_a_wrapped_model_has_the_same_class() -> None:
    server = Server()
    assert isinstance(server.models, ModelFiles)
    served = server.models.wrap(Watching())
    assert type(served) is Watching
    assert is_wrapped(served)
