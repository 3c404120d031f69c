"""How many files, and how much, a user may upload in an hour, and a chat may hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluicegate.engine.rate_limits import RateLimit
from sluicegate.errors import StoreError, TooLarge, Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.engine.options import EngineOptions
    from sluicegate.stores.upload_records import Uploads

_HOUR: Final = 3600.0
_TOO_MANY: Final = "You have attached too many files in an hour; wait and attach them again."
_TOO_MUCH: Final = "You have attached too many megabytes in an hour; wait and attach them again."


class UploadQuotas:
    """The hourly limits of each user, and the quota of each chat.

    Files count whether they are uploaded or attached to a message. The quota is the sum of what
    the database has recorded, so replicas share it.
    """

    def __init__(self, options: EngineOptions, uploads: Uploads) -> None:
        self._files = RateLimit(
            options.max_uploads_per_hour, _TOO_MANY, window=_HOUR, name="max_uploads_per_hour"
        )
        self._bytes = RateLimit(
            options.max_upload_bytes_per_hour,
            _TOO_MUCH,
            window=_HOUR,
            name="max_upload_bytes_per_hour",
        )
        self.rates = (self._files, self._bytes)
        """The limits that processes count together."""
        self._quota = options.max_chat_file_bytes
        self._uploads = uploads

    async def take(self, chat: ChatKey, sizes: Sequence[int]) -> None:
        """Count files of these sizes.

        Raises:
            TooManyRequests: The user has attached too many, or too much.
            TooLarge: The chat would hold too much.
            Unavailable: The database failed.
        """
        if not sizes:
            return
        self._files.take(chat.user, len(sizes))
        self._bytes.take(chat.user, sum(sizes))
        try:
            held = await self._uploads.total(chat)
        except StoreError as error:
            raise Unavailable("The file could not be stored; attach it again.") from error
        if held + sum(sizes) > self._quota:
            raise TooLarge(
                f"The files of a chat may have {self._quota:,} bytes; attach it in a new chat."
            )
