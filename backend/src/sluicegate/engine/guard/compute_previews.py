"""Computes the previews of calls: before a person is asked, after an edit, and before the claim."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from sluicegate.core.approval_previews import failed_preview
from sluicegate.errors import StoreError, ToolError, TooManyRequests
from sluicegate.tools.preview_content import PreviewNotShowable, shown_preview

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluicegate.engine.rate_limits import RateLimit
    from sluicegate.media.chat_files import ChatFiles
    from sluicegate.tools.approval_terms import GatedCall
    from sluicegate.tools.preview_content import Image, PreviewOf

    Report = Callable[[BaseException], str]
    """Writes an error to the log and returns its id."""

THREADS: Final = 8
"""Functions that are not async run beside the event loop, so many at once."""

PREVIEWS_SETTING: Final = "max_previews_per_minute"

TOO_MANY_PREVIEWS: Final = (
    "You have asked for too many previews in a minute; wait a moment and ask again."
)


@dataclass(frozen=True, slots=True)
class Previews:
    """Computes previews within ``timeout`` seconds; ``rate`` counts those that a person causes."""

    files: ChatFiles
    timeout: float
    rate: RateLimit
    _threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(THREADS, thread_name_prefix="preview")
    )

    async def of_request(
        self, preview_of: PreviewOf, call: GatedCall, report: Report
    ) -> dict[str, Any]:
        """Return the preview for the card of a request, or why there is none."""
        try:
            self.rate.take(call.user)
        except TooManyRequests:
            return failed_preview("Too many previews were asked for in a minute.")
        return await self._shown(preview_of, call, report, is_stored=True)

    async def of_edit(
        self, preview_of: PreviewOf, call: GatedCall, report: Report, *, by: str
    ) -> dict[str, Any]:
        """Return the preview of a call that a person changes.

        Raises:
            TooManyRequests: the person has changed too many calls.
        """
        self.rate.take(by)
        shown = await self._shown(preview_of, call, report, is_stored=True)
        return {**shown, "editedBy": by}

    async def of_claim(
        self, preview_of: PreviewOf, call: GatedCall, report: Report
    ) -> dict[str, Any]:
        """Return the preview as it is now, to compare it with the one that was approved."""
        return await self._shown(preview_of, call, report, is_stored=False)

    def close(self) -> None:
        """Shut down without waiting for functions that still run."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _shown(
        self, preview_of: PreviewOf, call: GatedCall, report: Report, *, is_stored: bool
    ) -> dict[str, Any]:
        within = asyncio.timeout(self.timeout)
        try:
            async with within:
                returned = await self._compute(preview_of, call)
            shown, image = shown_preview(returned)
            return shown if image is None else await self._with(image, shown, call, is_stored)
        except ToolError as error:
            return failed_preview(str(error))
        except PreviewNotShowable as reason:
            return failed_preview(f"The preview cannot be shown, since {reason}.")
        except Exception as error:  # noqa: BLE001 - it is the user's and may raise anything
            if within.expired():
                return failed_preview(f"The preview took longer than {self.timeout:g} seconds.")
            return failed_preview(f"The preview failed (error {report(error)}).")

    async def _compute(self, preview_of: PreviewOf, call: GatedCall) -> object:
        code = preview_of if inspect.isroutine(preview_of) else type(preview_of).__call__
        if inspect.iscoroutinefunction(code):
            returned: Any = preview_of(call)
        else:
            run = functools.partial(contextvars.copy_context().run, preview_of, call)
            returned = await asyncio.get_running_loop().run_in_executor(self._threads, run)
        return await returned if inspect.isawaitable(returned) else returned

    async def _with(
        self,
        image: Image,
        shown: dict[str, Any],
        call: GatedCall,
        is_stored: bool,  # noqa: FBT001 - the fourth of what a picture needs
    ) -> dict[str, Any]:
        digest = sha256(image.data).hexdigest()
        if not is_stored:
            return {**shown, "sha256": digest}
        try:
            file = await self.files.store(call.chat_key, image.data, shown["mediaType"])
        except StoreError:
            return failed_preview("The picture of the preview could not be stored.")
        return {**shown, "sha256": digest, "file": file.name}
