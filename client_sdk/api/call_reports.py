"""Tells a client's history and its observers how one call ended. Must not keep the result from the caller."""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from ..errors import Closed
from ..protocol.core.values import Failed, Operation, Outcome
from .calls import Call
from .history import Recording

_log = logging.getLogger(__name__)

Observer = Callable[[Operation, float, float, Outcome], None]
"""Hears of each operation: what it was, when it began (seconds since 1970), how long it took in seconds, how it ended."""


class Telling:
    """Of one call, which begins now."""

    def __init__(self, call: Call[Any], recording: Recording | None, observers: Sequence[Observer]) -> None:
        self._call: Final = call
        self._recording: Final = recording
        self._observers: Final = observers
        self._wall_s: Final = time.time()
        self._began_s: Final = time.monotonic()

    def ended(self, end: Outcome | BaseException) -> None:
        """It came to an outcome, or raised: cancelled, closed, or a broken invariant. Raises what writing the history raises."""
        took_s = time.monotonic() - self._began_s
        if self._recording is not None:
            if isinstance(end, BaseException):
                self._recording.failed(definite=isinstance(end, Closed) and end.definite)
            elif isinstance(end, Failed):
                self._recording.failed(definite=end.definite)
            else:
                self._recording.ended(self._call.results(end.result), is_weak=end.is_weak)
        if isinstance(end, BaseException):
            return
        for observer in self._observers:
            try:
                observer(self._call.operation, self._wall_s, took_s, end)
            except Exception:  # noqa: BLE001 - the border to the application's code: the caller's result must not go with it
                _log.exception("an observer of %s raised", self._call.operation.object)
