"""The commands ``sluicegate prune`` and ``sluicegate user``: what is stored of chats and people."""

from __future__ import annotations

import asyncio
import json
import re
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO

from sqlalchemy import delete, select, text, update

from sluicegate.core.approvals import TRANSITIONS
from sluicegate.core.approvers import user_subject
from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.engine.agents.load_target import load_target
from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.errors import ConfigurationError, HeldByAnotherOwner, TurnRunning, Unknown
from sluicegate.media.chat_files import artifact_scope
from sluicegate.stores.approvals.audit_erasure import Erased, erase_before, erase_person
from sluicegate.stores.approvals.audit_reading import AuditFilter, read_audit
from sluicegate.stores.approvals.audit_verification import read_checkpoint
from sluicegate.stores.private_files import private_folder
from sluicegate.stores.sql.schema import (
    APPROVALS,
    COOKIE_SESSIONS,
    DECISIONS,
    ENTITLEMENTS,
    OUTBOX,
    USER_ROLES,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sqlalchemy import Connection

    from sluicegate.server.settings import Settings

_DAY: Final = 86_400.0
_PAGE: Final = 100
_IS_OVER: Final = APPROVALS.c.state.in_(
    [state for state, next_ in TRANSITIONS.items() if not next_]
)


class Deleted(NamedTuple):
    """How many chats were deleted, and how many are being answered and stay."""

    chats: int
    busy: int


def run(arguments: Any, settings: Settings, out: TextIO) -> int:
    """Run the command that the arguments name; returns its exit code.

    Raises:
        ConfigurationError: The target, a folder or a store cannot be used.
    """
    target = arguments.target
    if arguments.command == "prune":
        file = arguments.audit_checkpoint
        signed = None if file is None else Path(file)
        return prune(target, settings, arguments.older_than, signed, out)
    if arguments.action == "delete":
        return delete_user(target, settings, arguments.name, out)
    return export_user(target, settings, arguments.name, arguments.folder, out)


def prune(
    target: str, settings: Settings, older_than: float, checkpoint: Path | None, out: TextIO
) -> int:
    """Delete the chats that have not been used for so many days, of every user, and recordings.

    Args:
        target: The agent that is served.
        settings: The stores.
        older_than: The number of days.
        checkpoint: A new file for the checkpoint of the audit trail; its lines that are as old are
            then erased too.
        out: The stream to which the numbers are written.

    Returns:
        0, or 1 if some are being answered; run the command again.

    Raises:
        ConfigurationError: The target, a file or a store cannot be used.
    """
    if checkpoint is not None:
        _write_checkpoint(settings.sessions, checkpoint)

    async def work(engine: ChatEngine) -> Deleted:
        resources = engine.resources
        before = resources.database.now() - older_than * _DAY
        chats = await resources.chats.unused_since(resources.app, before)
        deleted = await _delete(engine, chats)
        if checkpoint is not None:
            erased = await resources.database.write(
                lambda connection: erase_before(connection, resources.app, before)
            )
            _report_erased(erased, out)
        return deleted

    deleted = asyncio.run(_with_engine(target, settings, work))
    if settings.record is not None:
        before = time.time() - older_than * _DAY
        out.write(f"{_delete_recordings(Path(settings.record), before):,} recordings deleted\n")
    return _report(deleted, out)


def _write_checkpoint(url: str, file: Path) -> None:
    """Write the end of the chain before lines are erased, which it covers by their commitments."""
    text = f"{asyncio.run(read_checkpoint(url))}\n"
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(text)
    except OSError as error:
        raise ConfigurationError(
            f"The checkpoint {file} cannot be written: {error.strerror}."
        ) from None


def _delete_recordings(folder: Path, before: float) -> int:
    old = [file for file in folder.glob("*.jsonl") if file.stat().st_mtime < before]
    for file in old:
        file.unlink(missing_ok=True)
    return len(old)


def delete_user(target: str, settings: Settings, user: str, out: TextIO) -> int:
    """Delete the chats, files, decisions, state and signed-in browsers of a user.

    Returns:
        0, or 1 if chats are being answered; run the command again.

    Raises:
        ConfigurationError: The target or a store cannot be used.
    """

    async def work(engine: ChatEngine) -> Deleted:
        chats = await _chats_of(engine, user)
        deleted = await _delete(engine, chats)
        if deleted.busy:
            return deleted
        await _delete_files_of_all_chats(engine, user)
        _report_erased(await _forget(engine, user), out)
        return deleted

    return _report(asyncio.run(_with_engine(target, settings, work)), out)


def export_user(target: str, settings: Settings, user: str, folder: str, out: TextIO) -> int:
    """Write what is stored of a user into a new folder: ``user.json`` and the files.

    Raises:
        ConfigurationError: The folder exists, or the target or a store cannot be used.
    """
    made = Path(folder)
    if made.exists():
        raise ConfigurationError(f"The folder {folder} exists already; name a new one.")

    async def work(engine: ChatEngine) -> int:
        private_folder(made, lambda _: True)
        chats = []
        for key in await _chats_of(engine, user):
            chats.append(await engine.get_chat(key.chat, user=user))
            await _export_files(engine, key, made)
        selection = AuditFilter(user=user)
        trail = [asdict(entry) async for entry in read_audit(settings.sessions, selection)]
        document = {"user": user, "app": engine.resources.app, "chats": chats, "decisions": trail}
        written = json.dumps(document, ensure_ascii=False, indent=2, default=_as_json)
        (made / "user.json").write_text(f"{written}\n", "utf-8")
        return len(chats)

    number = asyncio.run(_with_engine(target, settings, work))
    out.write(f"{_chats(number)} exported to {folder}\n")
    return 0


async def _with_engine(
    target: str, settings: Settings, work: Callable[[ChatEngine], Awaitable[Any]]
) -> Any:
    engine = await ChatEngine.open(load_target(target), settings.engine)
    try:
        return await work(engine)
    finally:
        await engine.close()


async def _delete(engine: ChatEngine, chats: list[ChatKey]) -> Deleted:
    deleted = busy = 0
    for chat in chats:
        try:
            await engine.delete_chat(chat.chat, user=chat.user)
            deleted += 1
        except (TurnRunning, HeldByAnotherOwner):
            busy += 1
        except Unknown:
            # Its user has deleted it meanwhile.
            continue
    return Deleted(deleted, busy)


async def _chats_of(engine: ChatEngine, user: str) -> list[ChatKey]:
    chats: list[ChatKey] = []
    after: str | None = None
    while True:
        page = await engine.list_chats(user=user, limit=_PAGE, after=after, query=None)
        chats += [ChatKey(engine.resources.app, user, each["id"]) for each in page["chats"]]
        after = page["next"]
        if after is None:
            return chats


async def _export_files(engine: ChatEngine, chat: ChatKey, folder: Path) -> None:
    service, scope = engine.resources.files.service, artifact_scope(chat)
    for number, name in enumerate(sorted(await service.list_artifact_keys(**scope))):
        part = await service.load_artifact(**scope, filename=name)
        data = None if part is None or part.inline_data is None else part.inline_data.data
        if data is not None:
            # Names of chats and files may have any characters, so they are no paths.
            below = folder / "files" / _path_of(chat.chat)
            below.mkdir(parents=True, exist_ok=True)
            (below / f"{number}-{_path_of(name)}").write_bytes(data)


def _path_of(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)[:100]


async def _delete_files_of_all_chats(engine: ChatEngine, user: str) -> None:
    """Delete what the agent's own tools saved for the user beyond one chat."""
    service = engine.resources.files.service
    scope = artifact_scope(ChatKey(engine.resources.app, user, "none"))
    for name in await service.list_artifact_keys(**scope):
        await service.delete_artifact(**scope, filename=name)


async def _forget(engine: ChatEngine, user: str) -> Erased:
    """Delete what is stored of a user beside the chats, and erase the lines of the audit trail."""
    app = engine.resources.app
    state = text("DELETE FROM user_states WHERE app_name = :app AND user_id = :user")
    statements = [
        delete(COOKIE_SESSIONS).where(COOKIE_SESSIONS.c.user == user),
        delete(USER_ROLES).where(USER_ROLES.c.user == user),
        *(
            delete(table).where(table.c.app == app, table.c.user == user)
            for table in (APPROVALS, DECISIONS, ENTITLEMENTS, OUTBOX)
        ),
        delete(ENTITLEMENTS).where(
            ENTITLEMENTS.c.app == app, ENTITLEMENTS.c.subject == user_subject(user)
        ),
        # An approval of another user that is still open needs the people who have decided.
        update(APPROVALS)
        .where(APPROVALS.c.app == app, APPROVALS.c.decided_by == user, _IS_OVER)
        .values(decided_by=None, reason=None),
        delete(DECISIONS).where(
            DECISIONS.c.app == app,
            DECISIONS.c.by == user,
            DECISIONS.c.approval_id.in_(select(APPROVALS.c.approval_id).where(_IS_OVER)),
        ),
    ]

    def forget(connection: Connection) -> Erased:
        connection.execute(state, {"app": app, "user": user})
        for statement in statements:
            connection.execute(statement)
        return erase_person(connection, app, user)

    return await engine.resources.database.write(forget)


def _report_erased(erased: Erased, out: TextIO) -> None:
    if erased.lines:
        out.write(f"{erased.lines:,} lines of the audit trail erased\n")
    if erased.kept:
        out.write(f"{erased.kept:,} lines from before schema 15 cannot be erased and stay\n")


def _report(deleted: Deleted, out: TextIO) -> int:
    out.write(f"{_chats(deleted.chats)} deleted\n")
    if deleted.busy:
        out.write(f"{_chats(deleted.busy)} in use; run this again when they are answered\n")
    return 1 if deleted.busy else 0


def _chats(number: int) -> str:
    return f"{number:,} chat{'' if number == 1 else 's'}"


def _as_json(value: Any) -> Any:
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)
