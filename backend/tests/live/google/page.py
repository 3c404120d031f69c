"""A page at ``/api/live`` of a server whose agent talks to the double of the Live API."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.models.google_llm import Gemini

from sluicegate.engine.timeouts_and_intervals import EngineTimings
from sluicegate.server.app import Application, build, engine_of
from sluicegate.server.settings import Settings
from sluicegate.wire.chunks import decode_chunk
from sluicegate.wire.live_frames import SUBPROTOCOL
from sluicegate.wire.reducer import reduce_chunks
from sluicegate.wire.ui_messages import UIMessage
from tests.engine.stage import Tool
from tests.engine.talk import decide
from tests.live.google.live_api import LIMIT, SOUND, LiveApi, speech
from tests.live.settled import running_parts
from tests.new_database import new_database
from tests.patience import LEASE
from tests.server.exchange import over_socket, serving, user_message
from tests.stores.builders import PATIENT
from tests.transports.live_client import LiveClient, opened_live
from tests.transports.socket_client import chunks, opened

CHAT = "c1"


class StillRunning(Exception):
    """The chat is being answered."""


@dataclass
class Page:
    """One chat that is open live."""

    client: LiveClient
    http: httpx.AsyncClient
    api: LiveApi
    chat: str
    was_ready: bool = True
    """Whether the model was connected when the page was opened."""
    _count: int = 0

    async def say(self, text: str, *files: dict[str, Any]) -> UIMessage:
        """Type a message; returns the answer at the end of its turn."""
        message = user_message(text, message_id=f"user-{secrets.token_hex(6)}")
        message["parts"].extend(files)
        return await self._send(message)

    async def speak(self, words: str) -> None:
        """Say an utterance."""
        await self.client.connection.send(speech(words))

    async def approve(self, message: UIMessage, *, approved: bool = True) -> UIMessage:
        """Decide what waits in a message; returns the message at the end of the next turn."""
        for part in message["parts"]:
            if part.get("state") == "approval-requested":
                decide(part, approved=approved)
        return await self._send(message, messageId=message["id"])

    async def decide(self, message: UIMessage, *, approved: bool = True) -> httpx.Response:
        """Decide over HTTP the one approval that waits in a message."""
        [approval] = [p["approval"] for p in message["parts"] if "approval" in p]
        path = f"/api/approvals/{approval['id']}"
        return await self.http.post(path, json={"approved": approved})

    async def try_to_say(self, text: str) -> None:
        """Type a message, which may be refused because the chat is being answered."""
        self._count += 1
        message = user_message(text, message_id=f"user-{secrets.token_hex(6)}")
        body = {"id": self.chat, "messages": [message], "trigger": "submit-message"}
        await self.client.send({"type": "send", "requestId": f"r{self._count}", **body})
        frame = await self.client.next(f"r{self._count}")
        assert frame["type"] != "error" or frame["code"] == "turn_running", frame

    async def say_when_settled(self, text: str) -> UIMessage:
        """Type a message once nothing runs; an answer that begins by itself goes first."""
        async with asyncio.timeout(LIMIT):
            while True:
                await self.is_settled()
                with contextlib.suppress(StillRunning):
                    return await self.say(text)

    async def resumed(self, message_id: str) -> UIMessage:
        """A message as it is sent once more."""
        self._count += 1
        more = {"id": self.chat, "headers": {}, "body": {"messageId": message_id}}
        frames = await self.client.exchange(
            {"type": "resume", "requestId": f"r{self._count}", **more}
        )
        assert frames[-1]["type"] == "end", frames[-1]
        parsed = [decode_chunk(json.dumps(chunk)) for chunk in chunks(frames)]
        return reduce_chunks(parsed, None)

    async def is_ready(self) -> None:
        """Wait until the model is connected."""
        if not self.was_ready:
            await self.client.live("ready")
            self.was_ready = True

    async def is_decided(self) -> None:
        """Approve what waits, until nothing runs or waits."""
        async with asyncio.timeout(LIMIT):
            for _ in itertools.count():
                await self.is_settled()
                chat = await self.stored()
                if chat["status"] == "waiting":
                    await self.decide(chat["messages"][-1])
                elif chat["status"] == "ready":
                    return

    async def interrupt(self) -> None:
        """Interrupt the model."""
        await self.client.send({"type": "interrupt", "requestId": "live"})

    async def heard(self, *spoken: str) -> None:
        """Wait until the audio of so many words has come since the page was opened."""
        await self.client.audio_of(len(spoken) * len(SOUND))

    async def stored(self) -> dict[str, Any]:
        """The stored chat."""
        response = await self.http.get(f"/api/chats/{self.chat}")
        if response.status_code == 404:
            return {"messages": [], "status": "ready"}
        return dict(response.raise_for_status().json())

    async def texts(self) -> list[str]:
        """The texts of the stored messages."""
        return [words(message) for message in (await self.stored())["messages"]]

    async def until_texts(self, *texts: str) -> None:
        """Wait until the stored messages are these."""
        seen: list[str] = []
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LIMIT):
                for _ in itertools.count():
                    seen = await self.texts()
                    if seen == [*texts]:
                        break
        assert seen == [*texts], seen

    async def until_state(self, tool: str, state: str) -> UIMessage:
        """Wait until the stored call of a tool has a state; returns its message."""
        async with asyncio.timeout(LIMIT):
            while True:
                for message in (await self.stored())["messages"]:
                    for part in message["parts"]:
                        if part["type"] == f"tool-{tool}" and part["state"] == state:
                            found: UIMessage = message
                            return found

    async def is_settled(self) -> None:
        """Wait until the chat no longer runs."""
        async with asyncio.timeout(LIMIT):
            for _ in itertools.count():
                if (await self.stored())["status"] != "running":
                    return

    async def _send(self, message: Any, **more: Any) -> UIMessage:
        self._count += 1
        body = {"id": self.chat, "messages": [message], "trigger": "submit-message", **more}
        request = {"type": "send", "requestId": f"r{self._count}", **body}
        async with asyncio.timeout(LIMIT):
            frames = await self.client.exchange(request)
        if frames[-1].get("code") == "turn_running":
            raise StillRunning
        assert frames[-1]["type"] == "end", frames[-1]
        earlier = message if message["role"] == "assistant" else None
        parsed = [decode_chunk(json.dumps(chunk)) for chunk in chunks(frames)]
        return reduce_chunks(parsed, earlier)


@contextlib.asynccontextmanager
async def opened_page(site: Site, *, ready: bool = True) -> AsyncIterator[Page]:
    """Open a chat live; ``ready``: wait until the model is connected."""
    options = {"subprotocols": [SUBPROTOCOL]}
    async with (
        over_socket(site.address) as http,
        opened(site.address, f"/api/live?chat={CHAT}", **options) as plain,
    ):
        page = Page(LiveClient(plain.connection), http, site.api, CHAT, was_ready=False)
        if ready:
            await page.is_ready()
        yield page


@dataclass
class Site:
    """A server whose agent talks to the double."""

    api: LiveApi
    address: tuple[str, int]
    application: Application

    @contextlib.asynccontextmanager
    async def page(self, chat: str = CHAT) -> AsyncIterator[Page]:
        """Open the chat live; when the block ends, it must not run any more."""
        async with over_socket(self.address) as http:
            async with opened_live(self.address, chat) as client:
                page = Page(client, http, self.api, chat)
                yield page
                await page.is_settled()
            await page.is_settled()
            assert running_parts(await page.stored()) == []


@contextlib.asynccontextmanager
async def serving_agent(
    api: LiveApi,
    tools: Sequence[Tool],
    folder: Any,
    live: RunConfig | None = None,
    **options: Any,
) -> AsyncIterator[Site]:
    """Serve an agent on Google's own client."""
    model = Gemini(
        model=api.family.model, base_url=api.url, client_kwargs={"api_key": "of-the-test"}
    )
    agent = LlmAgent(name="assistant", model=model, tools=[*tools])
    settings = Settings(
        port=0,
        sessions=new_database(Path(folder) / "chats.db"),
        artifacts=f"file:{folder}/artifacts",
        # A test looks at the chat as often as the machine answers.
        **{"max_requests_per_minute": 1_000_000, "lease_ttl": LEASE, **options},
    )
    open_engine = engine_of(agent, settings, live=live, timings=EngineTimings(database=PATIENT))
    application = build(open_engine, settings)
    async with (
        application.app.router.lifespan_context(application.app),
        serving(application, settings) as address,
    ):
        yield Site(api, address, application)


def words(message: Any) -> str:
    """The texts of a message."""
    return "".join(part["text"] for part in message["parts"] if part["type"] == "text")


def state_of(message: Any, tool: str) -> str:
    """The state of the call of a tool."""
    [part] = [part for part in message["parts"] if part["type"] == f"tool-{tool}"]
    return str(part["state"])
