"""Previews that change after their approval, at two engines: no effect on the old yes."""

from __future__ import annotations

import asyncio
import random
import secrets
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.tool_context import ToolContext

from sluicegate.core.approval_previews import RENEWALS
from sluicegate.core.approvals import ApprovalRow
from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.errors import Changed
from sluicegate.tools import Approvers, GatedCall, Preview, Role, gated
from tests.engine.stage import calls, says, scripted
from tests.engine.talk import Talk
from tests.faults.promises import DoubleEffect, LostDecision
from tests.faults.soak.portions import play_portions
from tests.faults.soak.stores import Databases, opened
from tests.faults.soak.tally import Tally, failure

TITLE: Final = "drifting previews"
PATIENCE: Final = 120.0
PORTION: Final = 100
AT_ONCE: Final = 6
POLL: Final = 0.02

REQUESTER: Final = "ann"
_TWO: Final = "-two"
"""The end of the id of a chat whose calls two people approve."""

_ARCHIVE: Final = calls(("archive", {"days": 30}))
_SCRIPT: Final = {"archive": [*[_ARCHIVE] * (RENEWALS + 2), says("Done.")]}
Rows = list[list[Any]]


@dataclass
class Archive:
    """The documents of each chat: name and age in days, with a version of them."""

    documents: dict[str, dict[str, int]] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    runs: dict[str, list[Rows]] = field(default_factory=lambda: defaultdict(list))
    """What was archived, in each run of the tool."""
    due: dict[str, Callable[[], None]] = field(default_factory=dict)
    """What changes a chat's documents at the beginning of the next preview, or fails."""

    def agent(self) -> LlmAgent:
        """The agent that archives; in some chats two of finance approve it."""

        def archive(days: int, tool_context: ToolContext) -> dict[str, int]:
            """Archive the documents that are older than so many days."""
            chat = tool_context.session.id
            self.runs[chat].append(self.rows(chat, days))
            return {"archived": days}

        def approvers(call: GatedCall) -> Approvers | None:
            return Approvers(Role("finance"), quorum=2) if call.chat.endswith(_TWO) else None

        return scripted(_SCRIPT, [gated(archive, approvers=approvers, preview=self.preview)])

    def rows(self, chat: str, days: int) -> Rows:
        """The documents that are older than so many days."""
        return [[name, age] for name, age in self.documents[chat].items() if age > days]

    async def preview(self, call: GatedCall) -> Preview:
        """What a call would archive."""
        self.due.pop(call.chat, lambda: None)()
        rows = self.rows(call.chat, call.arguments["days"])
        shown = [dict(zip(("name", "age"), row, strict=True)) for row in rows]
        return Preview(shown, version=str(self.versions[call.chat]))

    def drift(self, chat: str, chance: random.Random) -> None:
        """Change what a call of the chat would do: now, or when it is computed for the claim."""
        documents = self.documents[chat]

        def add() -> None:
            documents[f"{len(documents)}-{secrets.token_hex(2)}.pdf"] = chance.randint(100, 200)

        def remove() -> None:
            del documents[max(documents, key=documents.__getitem__)]

        def grow() -> None:
            documents[max(documents, key=documents.__getitem__)] += 1

        def turn() -> None:
            self.versions[chat] += 1

        def fail() -> None:
            raise RuntimeError("the archive is not available")

        of_a_document = [remove, grow] if documents else []
        change = chance.choice([add, *of_a_document, turn, fail])
        if change is fail or chance.random() < 0.5:
            self.due[chat] = change
        else:
            change()


def drift(databases: Databases, first: int, count: int, processes: int) -> Tally:
    """Play that many seeds from the first on."""
    return play_portions(
        Tally(f"{TITLE}, {databases.kind}"),
        lambda seeds: _play(databases, seeds),
        range(first, first + count),
        portion=PORTION,
        processes=processes,
    )


async def _play(databases: Databases, seeds: range) -> list[tuple[str, str]]:
    archive, places = Archive(), asyncio.Semaphore(AT_ONCE)
    url, agent = databases.url(f"previews-{seeds.start}"), archive.agent()
    async with (
        opened(url, agent, databases.folder, shared=True) as one,
        opened(url, agent, databases.folder, shared=True) as two,
    ):
        engines = [one, two]
        for engine in engines:
            engine.ask_roles(lambda user: () if user == REQUESTER else ("finance",))

        async def play(seed: int) -> list[tuple[str, str]]:
            async with places:
                try:
                    await _Story(seed, engines, archive).play()
                except Exception as error:  # noqa: BLE001 - whatever it is, it is counted
                    return [failure(error, f"seed {seed}")]
                return []

        played = await asyncio.gather(*map(play, seeds))
    return [failed for failures in played for failed in failures]


class _Story:
    """One chat: a yes, a change before its effect, and perhaps the same again for the next card."""

    def __init__(self, seed: int, engines: list[ChatEngine], archive: Archive) -> None:
        self.chance = random.Random(f"previews {seed}")
        self.is_quorum = self.chance.random() < 0.4
        self.engines = engines
        self.archive = archive
        chat = f"chat-{seed}-{secrets.token_hex(4)}{_TWO if self.is_quorum else ''}"
        self.talk = Talk(self.chance.choice(engines), "progressive", user=REQUESTER, chat_id=chat)

    async def play(self) -> None:
        """Play it, and check every row and every effect."""
        chat = self.talk.chat_id
        names = (f"{number}.pdf" for number in range(self.chance.randint(2, 6)))
        self.archive.documents[chat] = {name: self.chance.randint(61, 99) for name in names}
        await self.talk.say("archive")
        is_edited = self.chance.random() < 0.3
        if is_edited:
            await self.edit()
        drifts = self.chance.choice([1, 1, 1, 2, RENEWALS + 1])
        for number in range(1, drifts + 1):
            row = await self.waiting(number)
            self.archive.drift(chat, self.chance)
            await self.approve(row)
            row = (await self.settled(number))[number - 1]
            if self.archive.runs[chat]:
                raise DoubleEffect(f"{self.archive.runs[chat]} ran on the yes for {row.preview}")
            if row.state != "refused" or not row.has_drifted:
                raise LostDecision(f"the row is {row.state}")
        if drifts > RENEWALS:
            if len(await self.settled(drifts)) > drifts:
                raise DoubleEffect("it was asked for again")
            return
        row = await self.waiting(drifts + 1)
        await self.approve(row)
        # The model of the script calls again, which waits for another yes.
        row = (await self.settled(drifts + 1))[drifts]
        shown = None if row.preview is None else row.preview["rows"]
        if row.state != "executed" or self.archive.runs[chat] != [shown]:
            runs = self.archive.runs[chat]
            raise LostDecision(f"the row is {row.state}, {runs} ran, and {shown} was approved")

    async def rows(self) -> list[ApprovalRow]:
        """The rows of the chat, oldest first."""
        rows = await self.talk.engine.resources.ledger.rows(self.talk.key)
        return sorted(rows, key=lambda row: row.requested_at)

    async def waiting(self, number: int) -> ApprovalRow:
        """The request with that number from 1 on, once the chat waits for it."""
        rows = await self.settled(number)
        if len(rows) != number or rows[-1].state != "requested":
            raise LostDecision(f"request {number} is missing: {[row.state for row in rows]}")
        return rows[-1]

    async def settled(self, number: int) -> list[ApprovalRow]:
        """The rows once there are so many and the chat does not run."""
        async with asyncio.timeout(PATIENCE):
            while True:
                chat = await self.talk.engine.get_chat(self.talk.chat_id, user=REQUESTER)
                rows = await self.rows()
                is_running = any(row.state in ("approved", "executing") for row in rows)
                if chat["status"] != "running" and len(rows) >= number and not is_running:
                    return rows
                # No event says what the other engine does.
                await asyncio.sleep(POLL)

    async def edit(self) -> None:
        """Change the call: what the card shows then is to be approved."""
        row = await self.waiting(1)
        days = self.chance.choice([40, 60])
        body: dict[str, Any] = {"approved": True, "edits": {"days": days}, "digest": row.digest}
        by = "bob" if self.is_quorum else REQUESTER
        engine = self.chance.choice(self.engines)
        try:
            await engine.approvals.decide(row.approval_id, body, user=by, via="http")
        except Changed:
            return
        raise DoubleEffect("an edit was approved before it was shown")

    async def approve(self, row: ApprovalRow) -> None:
        """Say yes to a card, in the name of each person whom it needs."""
        [row] = [each for each in await self.rows() if each.key == row.key]
        body: dict[str, Any] = {"approved": True, "digest": row.digest}
        people = self.chance.sample(["bob", "cat", "dan"], 2) if self.is_quorum else [REQUESTER]
        decided = (
            self.chance.choice(self.engines).approvals.decide(
                row.approval_id, body, user=user, via="http"
            )
            for user in people
        )
        await asyncio.gather(*decided)
