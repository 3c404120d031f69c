"""Files that were uploaded and that a message may name, or not (S4-R55)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import and_, delete, select

from sluicegate.core.keys import ChatKey
from sluicegate.stores.sql.schema import UPLOADS

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

    from sluicegate.stores.sql.database import Database

_C = UPLOADS.c


class Upload(NamedTuple):
    """A file by its name in its chat."""

    chat: ChatKey
    name: str


class DatabaseUploads:
    """When each file was uploaded, by the database's clock, until it is looked after."""

    def __init__(self, database: Database) -> None:
        """Take the database whose tables are there."""
        self._database = database

    async def note(self, upload: Upload) -> None:
        """A file is uploaded now, perhaps again."""
        new = self._database.insert(UPLOADS).values(
            **upload.chat._asdict(), name=upload.name, uploaded_at=self._database.now()
        )
        again = new.on_conflict_do_update(
            index_elements=[_C.app, _C.user, _C.chat, _C.name],
            set_={"uploaded_at": new.excluded.uploaded_at},
        )
        await self._database.write(lambda connection: connection.execute(again).rowcount)

    async def due(self, app: str, *, seconds: float, limit: int) -> list[Upload]:
        """Return some files that were uploaded so many seconds ago, the oldest first."""
        statement = (
            select(_C.user, _C.chat, _C.name)
            .where(_C.app == app, self._is_older(seconds))
            .order_by(_C.uploaded_at)
            .limit(limit)
        )

        def find(connection: Connection) -> list[Upload]:
            return [
                Upload(ChatKey(app, row.user, row.chat), row.name)
                for row in connection.execute(statement)
            ]

        return await self._database.read(find)

    async def take(self, upload: Upload, *, seconds: float) -> bool:
        """Forget a file that is due; False where somebody has uploaded it again, or was first."""
        statement = delete(UPLOADS).where(
            _of(upload.chat), _C.name == upload.name, self._is_older(seconds)
        )
        return bool(
            await self._database.write(lambda connection: connection.execute(statement).rowcount)
        )

    async def forget(self, chat: ChatKey) -> None:
        """Forget all files of a chat that is deleted."""
        statement = delete(UPLOADS).where(_of(chat))
        await self._database.write(lambda connection: connection.execute(statement).rowcount)

    def _is_older(self, seconds: float) -> ColumnElement[bool]:
        return _C.uploaded_at <= self._database.now() - seconds


def _of(chat: ChatKey) -> ColumnElement[bool]:
    return and_(_C.app == chat.app, _C.user == chat.user, _C.chat == chat.chat)
