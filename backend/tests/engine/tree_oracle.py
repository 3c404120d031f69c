"""Compares a conversation in which a person decides with that of plain ADK without the gates."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final

from google.adk.apps.app import App
from google.adk.artifacts.base_artifact_service import BaseArtifactService
from google.adk.runners import InMemoryRunner
from google.adk.workflow import BaseNode
from google.genai import types

from sluicegate.engine.agents.survey import survey
from sluicegate.engine.agents.unsupported_agents import refusals
from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.testing.message_comparison import comparable
from sluicegate.wire.ui_messages import is_tool_part, tool_name
from tests.engine.random_trees import RandomTree
from tests.engine.talk import Talk, decide
from tests.engine.tree_world import (
    INPUT,
    PAGE_OUTPUT,
    REQUEST_INPUT,
    World,
    normal_form,
)

OpenEngine = Callable[..., AbstractAsyncContextManager[ChatEngine]]

_MODES: Final = (
    "all decisions at once",
    "one decision in each request",
    "a restart before each request",
    "a restart before each decision",
)
_NO_LIMITS: Final = {
    "max_requests_per_turn": 1000,
    "max_requests_per_exchange": 1000,
    "max_turns_per_minute": 100_000,
    "max_messages_per_minute": 100_000,
    "max_pending_per_chat": 1000,
}
_STILL_WAITING: Final = "Your answer is noted; still waiting for"
_SENTENCE: Final = re.compile(r"(\w+) (?:says|done) \d+\.")


@dataclass(frozen=True)
class Outcome:
    """What a conversation leaves behind."""

    history: list[Any]
    """Effects, callbacks and requests of models."""
    texts: list[str]
    state: dict[str, Any]
    artifacts: dict[str, list[str]]
    """The content of each version, by name."""


async def play(open_engine: OpenEngine, seed: int) -> None:
    """Compare a conversation in which everything is decided with that of plain ADK.

    Raises:
        AssertionError: Effects, requests of models, texts, state, artifacts or the stored message
            differ.
    """
    await compare(open_engine, lambda world: RandomTree(world, seed).root, seed)


async def compare(open_engine: OpenEngine, build: Callable[[World], BaseNode], seed: int) -> None:
    """As `play`, with a tree; the seed chooses how its calls are decided."""
    free, world = World(has_gates=False), World(has_gates=True)
    expected = await plain(build(free), free)
    found = await converse(open_engine, lambda: build(world), world, seed)
    assert found.history == expected.history
    assert found.texts == expected.texts
    assert found.state == expected.state
    assert found.artifacts == expected.artifacts


async def plain(root: BaseNode, world: World) -> Outcome:
    """The conversation of plain ADK."""
    texts: list[str] = []
    runner = InMemoryRunner(app=App(name="plain", root_agent=root))
    place: dict[str, Any] = {"app_name": "plain", "user_id": "u", "session_id": "s"}
    await runner.session_service.create_session(**place)
    message = types.Content(role="user", parts=[types.Part(text="go")])
    async for event in runner.run_async(user_id="u", session_id="s", new_message=message):
        texts += [p.text for p in (event.content and event.content.parts) or () if p.text]
    session = await runner.session_service.get_session(**place)
    assert session is not None
    assert runner.artifact_service is not None
    files = await _files(runner.artifact_service, place)
    await runner.close()
    return Outcome(world.history(), _spoken(texts, world), session.state, files)


async def converse(
    open_engine: OpenEngine, build: Callable[[], BaseNode], world: World, seed: int
) -> Outcome:
    """Say one thing, and decide until nothing waits."""
    order = random.Random(f"order {seed}")
    mode = order.choice(_MODES)
    talk: Talk | None = None
    outcome: Outcome | None = None
    root = build()
    refused = refusals(root, await survey(root))
    assert not refused, refused
    while outcome is None:
        async with open_engine(build(), **_NO_LIMITS) as engine:
            if talk is None:
                talk = Talk(engine, order.choice(["deferred", "preview", "progressive"]))
                turn = await talk.say("go")
                assert not turn.failed, turn.chunks[-1]
            talk.engine = engine
            while waiting := _waiting(talk):
                await _decide(talk, waiting, world, order, one_by_one="decision" in mode[:15])
                if "restart" in mode:
                    break
            if not waiting:
                outcome = await _outcome(talk, world)
    return outcome


def _waiting(talk: Talk) -> list[Any]:
    """The parts that wait for the person or the page."""
    return [
        part
        for part in talk.messages[-1]["parts"]
        if is_tool_part(part) and (part["state"] == "approval-requested" or _is_for_the_page(part))
    ]


def _is_for_the_page(part: Any) -> bool:
    """Whether the page answers; it runs a gated tool after the approval."""
    name = tool_name(part)
    if name != REQUEST_INPUT and not name.startswith("page_"):
        return False
    if part["state"] == "approval-responded":
        return bool(part["approval"]["approved"])
    return bool(part["state"] == "input-available")


async def _decide(
    talk: Talk, waiting: list[Any], world: World, order: random.Random, *, one_by_one: bool
) -> None:
    """Decide what waits, or one of it, as the chat page or without it."""
    if one_by_one:
        waiting = [order.choice(waiting)]
        [part] = waiting
        if part["state"] == "approval-requested" and order.random() < 0.5:
            said = {"approved": _may_run(part, world)}
            asked = part["approval"]["id"]
            await talk.engine.approvals.decide(asked, said, user=talk.user, via="test")
            for running in talk.engine.resources.turns.running_turns():
                await running.done.wait()
            has_answers = await _reload(talk)
            if not has_answers or _waiting(talk):
                return
            waiting = []
    for part in waiting:
        if part["state"] == "approval-requested":
            decide(part, approved=_may_run(part, world))
        else:
            part["state"] = "output-available"
            part["output"] = INPUT if tool_name(part) == REQUEST_INPUT else PAGE_OUTPUT
    turn = await talk.post_last()
    # Decisions of the others are still missing: the client shows this sentence.
    if turn.failed and _STILL_WAITING in str(turn.chunks[-1]):
        return
    assert not turn.failed, turn.chunks[-1]


async def _reload(talk: Talk) -> bool:
    """Load the message; returns whether the page keeps answers, which it sends with the last."""
    answered = {
        part["toolCallId"]: part
        for part in talk.messages[-1]["parts"]
        if is_tool_part(part) and part["state"] == "output-available"
    }
    message = await talk.history()
    kept = [
        part["toolCallId"]
        for part in message["parts"]
        if is_tool_part(part) and _is_for_the_page(part) and part["toolCallId"] in answered
    ]
    message["parts"] = [
        answered[part["toolCallId"]] if part.get("toolCallId") in kept else part
        for part in message["parts"]
    ]
    talk.messages[-1] = message
    return bool(kept)


def _may_run(part: Any, world: World) -> bool:
    return (tool_name(part), part["input"].get("n")) not in world.denied


async def _outcome(talk: Talk, world: World) -> Outcome:
    resources = talk.engine.resources
    session = await resources.session_log.load(talk.key)
    assert session is not None
    place: dict[str, Any] = {
        "app_name": session.app_name,
        "user_id": session.user_id,
        "session_id": session.id,
    }
    texts = [part["text"] for part in talk.messages[-1]["parts"] if part["type"] == "text"]
    assert comparable(await talk.history()) == comparable(talk.messages[-1])
    assert resources.runner.artifact_service is not None
    files = await _files(resources.runner.artifact_service, place)
    return Outcome(world.history(), _spoken(texts, world), session.state, files)


def _spoken(texts: list[str], world: World) -> list[str]:
    """The sentences, in an order that does not depend on what is said at once."""
    joined = "".join(texts)
    assert not _SENTENCE.sub("", joined), joined
    spoken = _SENTENCE.finditer(joined)
    return normal_form([(world.lanes[each[1]], each[0]) for each in spoken])


async def _files(service: BaseArtifactService, place: dict[str, Any]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in await service.list_artifact_keys(**place):
        for version in await service.list_versions(**place, filename=name):
            part = await service.load_artifact(**place, filename=name, version=version)
            found.setdefault(name, []).append(f"{version}: {part and part.text}")
    return found
