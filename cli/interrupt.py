"""What ends a long command early: the first signal has it end cleanly, the second ends it at once."""

import asyncio
import signal
from typing import Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def set_at_signal() -> asyncio.Event:
    """An event of the running loop, which the first signal sets; the second does what it does without us."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def end() -> None:
        stop.set()
        for number in _SIGNALS:
            loop.remove_signal_handler(number)

    for number in _SIGNALS:
        loop.add_signal_handler(number, end)
    return stop
