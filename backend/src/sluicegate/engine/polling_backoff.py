"""The pauses of a wait that polls."""

from __future__ import annotations

import asyncio
from typing import Final

_FIRST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 0.25


class Backoff:
    """Pauses that grow, for ``seconds`` in all."""

    def __init__(self, seconds: float) -> None:
        self._deadline = asyncio.get_running_loop().time() + seconds
        self._pause = _FIRST_PAUSE

    async def __call__(self) -> bool:
        """Pause; False, without a pause, when the time is over."""
        if asyncio.get_running_loop().time() >= self._deadline:
            return False
        await asyncio.sleep(self._pause)
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        return True
