"""Records of uploaded files in the sessions' database: time, size, use in a message (S4-R55)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import and_, delete, func, select, update

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.stores.sql.schema import UPLOADS

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, UpdateBase

    from sluicegate.stores.sql.database import Database

_C = UPLOADS.c


class Upload(NamedTuple):
    """A file by its chat and its name."""

    chat: ChatKey
    name: str


class Uploads:
    """The upload time and size of each file, and whether a message refers to it.

    Every method raises StoreError when the database fails.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(
        self, upload: Upload, *, size: int | None = None, is_kept: bool | None = None
    ) -> None:
        """Record that a file is uploaded now; a repeated upload renews its time.

        ``size`` is in bytes. A file with ``is_kept`` is part of a message already.
        """
        new = self._database.insert(UPLOADS).values(
            **upload.chat._asdict(),
            name=upload.name,
            uploaded_at=self._database.now(),
            size=size,
            is_kept=is_kept,
        )
        # A file that a message refers to stays one, and its size is known.
        changed: dict[str, ColumnElement[Any]] = {
            "uploaded_at": new.excluded.uploaded_at,
            "size": func.coalesce(new.excluded.size, _C.size),
            "is_kept": func.coalesce(new.excluded.is_kept, _C.is_kept),
        }
        await self._execute(
            new.on_conflict_do_update(
                index_elements=[_C.app, _C.user, _C.chat, _C.name], set_=changed
            )
        )

    async def keep(self, upload: Upload) -> None:
        """Record that a message refers to a file; it is not due again and counts for its chat."""
        await self._execute(
            update(UPLOADS).where(_of(upload.chat), _C.name == upload.name).values(is_kept=True)
        )

    async def total(self, chat: ChatKey) -> int:
        """Return the bytes of a chat's files."""
        statement = select(func.coalesce(func.sum(_C.size), 0)).where(_of(chat))
        return await self._database.read(lambda connection: int(connection.scalar(statement) or 0))

    async def due(self, app: str, *, seconds: float, limit: int) -> list[Upload]:
        """Return up to ``limit`` files uploaded at least ``seconds`` ago, oldest first."""
        statement = (
            select(_C.user, _C.chat, _C.name)
            .where(_C.app == app, _C.is_kept.is_(None), self._is_older(seconds))
            .order_by(_C.uploaded_at)
            .limit(limit)
        )

        def read(connection: Connection) -> list[Upload]:
            return [
                Upload(ChatKey(app, row.user, row.chat), row.name)
                for row in connection.execute(statement)
            ]

        return await self._database.read(read)

    async def claim(self, upload: Upload, *, seconds: float) -> bool:
        """Delete the record of a due file, for the one caller that removes the file.

        False when the file was uploaded again or another caller has claimed it.
        """
        return await self._execute(
            delete(UPLOADS).where(_of(upload.chat), _C.name == upload.name, self._is_older(seconds))
        )

    async def delete_all(self, chat: ChatKey) -> None:
        """Delete the records of a deleted chat."""
        await self._execute(delete(UPLOADS).where(_of(chat)))

    async def _execute(self, statement: UpdateBase) -> bool:
        return bool(
            await self._database.write(lambda connection: connection.execute(statement).rowcount)
        )

    def _is_older(self, seconds: float) -> ColumnElement[bool]:
        return _C.uploaded_at <= self._database.now() - seconds


def _of(chat: ChatKey) -> ColumnElement[bool]:
    return and_(_C.app == chat.app, _C.user == chat.user, _C.chat == chat.chat)
