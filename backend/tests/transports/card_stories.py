"""A server with a hostile model, and one client for every transport."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.core.json_values import hash_arguments
from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.timeouts_and_intervals import EngineTimings
from sluicegate.replay import ScriptedModel
from sluicegate.replay.scenario import parse_scenarios
from sluicegate.server.app import build, engine_of
from sluicegate.server.settings import Settings
from sluicegate.wire.chunks import decode_chunk
from sluicegate.wire.reducer import reduce_chunks
from sluicegate.wire.ui_messages import is_tool_part
from tests.engine.stage import Responses
from tests.engine.talk import decide
from tests.patience import LEASE
from tests.server.exchange import chunks, over_socket, serving, user_message
from tests.stores.builders import PATIENT
from tests.transports.socket_client import SocketClient, opened
from tests.transports.socket_client import chunks as framed

if TYPE_CHECKING:
    from google.adk.models.base_llm_connection import BaseLlmConnection

Chunk: TypeAlias = dict[str, Any]
Message: TypeAlias = dict[str, Any]

TRANSPORTS = ["sse", "socket", "live"]
PATHS = {"socket": "/api/chat/ws", "live": "/api/live?chat=c1"}
HEADERS = {"x-ai-sdk": "7"}

Forge: TypeAlias = Callable[[types.Part], Sequence[types.Part]]


class HostileModel(ScriptedModel):
    """Plays a script, and replaces parts of its complete responses by what ``forge`` returns."""

    forge: Any = None

    def _forge(self, response: LlmResponse) -> None:
        content = response.content
        if self.forge is not None and content is not None and not response.partial:
            content.parts = [made for part in content.parts or () for made in self.forge(part)]

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT002 - the signature is ADK's
    ) -> AsyncGenerator[LlmResponse, None]:
        async for response in super().generate_content_async(llm_request, stream):
            self._forge(response)
            yield response

    @contextlib.asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncIterator[BaseLlmConnection]:
        async with super().connect(llm_request) as connection:
            receive = connection.receive

            async def forged() -> AsyncGenerator[LlmResponse, None]:
                async for response in receive():
                    self._forge(response)
                    yield response

            vars(connection)["receive"] = forged
            yield connection


@dataclass
class Tab:
    """One chat over one transport; sockets stay open."""

    address: tuple[str, int]
    engine: ChatEngine
    transport: str
    socket: SocketClient | None
    messages: list[Message] = field(default_factory=list)
    read: list[Chunk] = field(default_factory=list)
    """The chunks of the last response."""

    async def say(self, text: str = "go") -> None:
        """Send a new message and read the response."""
        count = len(self.messages)
        self.messages.append(user_message(text, message_id=f"u{count}"))
        await self.post()

    async def decide(self, *, approved: bool = True, **staged: Any) -> None:
        """Answer every pending approval and read the response."""
        for part in self.cards():
            decide(part, approved=approved)
        await self.post(**staged)

    async def post(self, **staged: Any) -> None:
        """Post all messages, as stock clients do."""
        last = self.messages[-1]
        body = {"id": "c1", "messages": self.messages, "trigger": "submit-message", **staged}
        if last["role"] == "assistant":
            body["messageId"] = last["id"]
        self.read = await self._exchange(body)
        continued: Any = last if last["role"] == "assistant" else None
        decoded = [decode_chunk(json.dumps(chunk)) for chunk in self.read]
        message: Any = reduce_chunks(decoded, continued)
        if continued is not None:
            self.messages.pop()
        self.messages.append(message)

    def parts(self, tool: str | None = None) -> list[Any]:
        """The tool parts of the last message, perhaps those of one tool."""
        return [
            part
            for part in self.messages[-1]["parts"]
            if is_tool_part(part) and tool in (None, part["type"].removeprefix("tool-"))
        ]

    def cards(self) -> list[Any]:
        """The parts that wait for an approval."""
        return [part for part in self.parts() if part["state"] == "approval-requested"]

    async def get(self, path: str) -> Any:
        """A resource of the server."""
        async with over_socket(self.address) as http:
            return (await http.get(path)).json()

    async def rows(self) -> list[Any]:
        """The chat's rows of the ledger."""
        resources = self.engine.resources
        return list(await resources.ledger.rows(ChatKey(resources.app, "local", "c1")))

    async def _exchange(self, body: dict[str, Any]) -> list[Chunk]:
        if self.socket is None:
            async with over_socket(self.address, headers=HEADERS, timeout=60) as http:
                response = await http.post("/api/chat", json=body)
                assert response.status_code == 200, response.text
                return chunks(response.text)
        frame = {"type": "send", "requestId": "r1", "body": body}
        return framed(await self.socket.exchange(frame))


@contextlib.asynccontextmanager
async def tab_on(target: Any, transport: str, folder: Path, **settings: Any) -> AsyncIterator[Tab]:
    """A tab on a running server with an agent."""
    url = f"sqlite+aiosqlite:///{folder}/sluicegate.db"
    stores = {"sessions": url, "artifacts": f"file:{folder}/files"}
    chosen = Settings(**{"port": 0, "lease_ttl": LEASE, **stores, **settings})
    open_engine = engine_of(target, chosen, timings=EngineTimings(database=PATIENT))
    application = build(open_engine, chosen)
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(application.app.router.lifespan_context(application.app))
        address = await stack.enter_async_context(serving(application, chosen))
        engine = await application.engine.get()
        assert isinstance(engine, ChatEngine)
        socket = None
        if transport in PATHS:
            socket = await stack.enter_async_context(opened(address, PATHS[transport]))
        yield Tab(address, engine, transport, socket)


class Bank:
    """Tools that record what they really got."""

    def __init__(self) -> None:
        self.paid: list[Any] = []
        self.noted: list[Any] = []

    def pay(self) -> FunctionTool:
        """Pay, after an approval."""

        def pay(what: Any, currency: str = "EUR", limit: int = 1000) -> dict[str, Any]:
            """Pay."""
            self.paid.append(what)
            return {"paid": True}

        return FunctionTool(pay, require_confirmation=True)

    def pay_on_request(self) -> FunctionTool:
        """Pay, after an approval that the tool itself requests."""

        def pay(what: Any, tool_context: ToolContext) -> dict[str, Any]:
            """Pay."""
            if tool_context.tool_confirmation is None:
                tool_context.request_confirmation(hint="Pay?")
                return {"status": "asked"}
            self.paid.append(what)
            return {"paid": True}

        return FunctionTool(pay)

    def note(self) -> FunctionTool:
        """Write something down, freely."""

        def note(what: Any) -> dict[str, Any]:
            """Note."""
            self.noted.append(what)
            return {"noted": what}

        return FunctionTool(note)


def agent(
    script: Responses, tools: Sequence[Any], *, forge: Forge | None = None, **more: Any
) -> LlmAgent:
    """An agent whose model plays a script, perhaps with forged parts."""
    scenarios = parse_scenarios({"scenarios": [{"match": "", "responses": list(script)}]})
    model = HostileModel(scenarios=scenarios, forge=forge)
    return LlmAgent(name="shop", model=model, tools=list(tools), **more)


async def ran(tab: Tab) -> None:
    """What is shown is what the digest in the ledger covers."""
    for row in await tab.rows():
        assert row.args_hash in (
            hash_arguments(row.arguments),
            hash_arguments(row.arguments, {"currency": "EUR", "limit": 1000}),
        )
