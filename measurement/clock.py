"""A run's clock: seconds since 1970 that never jump."""

import time
from typing import Final


class RunClock:
    """Reads the wall clock once, and counts on from there by the monotonic clock."""

    def __init__(self) -> None:
        self._began_s: Final = time.time() - time.monotonic()

    def now_s(self) -> float:
        """Seconds since 1970."""
        return self._began_s + time.monotonic()
