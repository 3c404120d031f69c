"""Uploaded files in the sessions' database, until a message refers to them (S4-R55)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import and_, delete, select

from sluicegate.core.keys import ChatKey
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
    """The upload time of each file, by the database's clock.

    Every method raises StoreError when the database fails.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, upload: Upload) -> None:
        """Record that a file is uploaded now; a repeated upload renews its time."""
        new = self._database.insert(UPLOADS).values(
            **upload.chat._asdict(), name=upload.name, uploaded_at=self._database.now()
        )
        await self._execute(
            new.on_conflict_do_update(
                index_elements=[_C.app, _C.user, _C.chat, _C.name],
                set_={"uploaded_at": new.excluded.uploaded_at},
            )
        )

    async def due(self, app: str, *, seconds: float, limit: int) -> list[Upload]:
        """Return up to ``limit`` files uploaded at least ``seconds`` ago, oldest first."""
        statement = (
            select(_C.user, _C.chat, _C.name)
            .where(_C.app == app, self._is_older(seconds))
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
