"""The event loop of a blocking client's thread: uvloop's where that is installed, else asyncio's own.

Owns the choice, and how its thread begins. With uvloop a blocking call costs a fifth less of the caller's processor time
(`docs/internals/performance.md`). An asyncio client runs on the loop that its application has chosen.
"""

import asyncio
import signal
from collections.abc import Callable
from typing import Final

_Make = Callable[[], asyncio.AbstractEventLoop]


def _maker() -> _Make:
    try:
        import uvloop  # noqa: PLC0415 - optional, and there is none for every system
    except ImportError:
        return asyncio.SelectorEventLoop
    return uvloop.new_event_loop


new_loop: _Make = _maker()
"""Makes one."""


_FAULTS: Final = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT}
"""Of the thread itself: where they are blocked, `faulthandler` cannot say where a process crashed."""


def enter(loop: asyncio.AbstractEventLoop) -> None:
    """Have this thread run the loop, and leave signals to the application's own threads.

    Else one that the main thread blocks for a moment would end the process all the same: so Celery's pool was locked for good,
    whose processes keep SIGTERM off while they say that they end.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - _FAULTS)
    asyncio.set_event_loop(loop)
