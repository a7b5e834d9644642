"""How a trouble that lasts is logged: when it begins or changes, then once a minute with how often it was met, and its end.

A full disk fails every write and every round of the janitor. A line for each would fill the next disk with a log.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

AGAIN_S: Final = 60.0
"""A trouble that lasts, or comes back, is told again after so long at the earliest."""


class Troubles:
    """Logs to `log`, at `level`, what goes wrong for one part of a replica; used by one thread at a time."""

    def __init__(self, log: logging.Logger, level: int, now_s: Callable[[], float] = time.monotonic) -> None:
        self._log: Final = log
        self._level: Final = level
        self._now_s: Final = now_s
        self._words = ""
        self._told_s = 0.0
        self._untold = 0
        """How often it was met since it was told."""
        self._is_shown = False
        """Whether the log's last word on it is that it lasts."""

    def meet(self, words: str) -> None:
        """It went wrong (again), as `words` say."""
        now_s = self._now_s()
        passed_s = now_s - self._told_s
        is_new = words != self._words or not (self._is_shown or self._untold or passed_s < AGAIN_S)
        if is_new:
            self._log.log(self._level, "%s", words)
        elif passed_s >= AGAIN_S:
            self._log.log(
                self._level, "%s (met again in the last %.0f s: %d)", words, passed_s, self._untold + 1
            )
        else:  # Also where it comes and goes: what changes every moment is told once a minute, too.
            self._untold += 1
            return
        self._words, self._told_s, self._untold, self._is_shown = words, now_s, 0, True

    def end(self) -> None:
        """It went well."""
        if self._is_shown:
            more = f" (met again before: {self._untold})" if self._untold else ""
            self._log.log(self._level, "it is over%s: %s", more, self._words)
            self._is_shown = False
            self._untold = 0
