"""The event loop of a blocking client's thread: uvloop's where that is installed, else asyncio's own.

Owns the choice. With uvloop a blocking call costs a fifth less of the caller's processor time (`docs/performance.md`). An
asyncio client runs on the loop that its application has chosen.
"""

import asyncio
from collections.abc import Callable

_Make = Callable[[], asyncio.AbstractEventLoop]


def _maker() -> _Make:
    try:
        import uvloop  # noqa: PLC0415 - optional, and there is none for every system
    except ImportError:
        return asyncio.SelectorEventLoop
    return uvloop.new_event_loop


new_loop: _Make = _maker()
"""Makes one."""
