"""Lines of the log about callers who were refused: for what, from where, and the public tag of the token that they sent.

Who tries tokens could fill a disk with such lines, so they are bounded: `LINES_PER_S` on average, and the next one says how
many went untold; the metrics count them all. A line never holds a secret, for of a token only what stands where the tag
of our own form does is looked at.
"""

import logging
import re
import time
from collections.abc import Callable, Mapping
from typing import Final

from .rate import Bucket

LINES_PER_S: Final = 1.0
_LOGINS: Final = frozenset({"unauthorized", "forbidden"})
_TAGGED: Final = re.compile(rb"(?i:bearer) +qt_([a-z0-9]{6})_")

_log = logging.getLogger(__name__)


class RefusedCallers:
    """Logs them for one replica."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s: Final = now_s
        self._bucket: Final = Bucket(LINES_PER_S)
        self._untold = 0

    def meet(self, problem: str, headers: Mapping[bytes, bytes], address: str) -> None:
        """A request from `address` with these headers was refused as `problem`; what says nothing of its caller is left out."""
        if problem not in _LOGINS:
            return
        if not self._bucket.takes(self._now_s()):
            self._untold += 1
            return
        more = f" ({self._untold} more were refused since the last such line)" if self._untold else ""
        _log.warning(
            "refused as %s: %s, from %s%s", problem, _shown(headers.get(b"authorization")), address, more
        )
        self._untold = 0


def _shown(header: bytes | None) -> str:
    if header is None:
        return "no token"
    tagged = _TAGGED.match(header)
    return f"a token with the tag {tagged[1].decode()}" if tagged else "a token without a tag"
