"""A clock that only a test moves."""


class Clock:
    """Seconds, as `time.monotonic()` returns them; a test sets `now`."""

    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
