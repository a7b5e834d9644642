"""The process that `tests.support.forked` forks from: `python -m tests.support.forking FD`."""

import json
import os
import socket
import sys
from typing import Any, Final

from quorate.cli import app, main
from quorate.replica.server import server  # noqa: F401 - so that the forked find it

ORDER_BYTES_MAX: Final = 200_000
STREAMS: Final = 3
FREQUENT: Final = ("serve", "status", "token", "queue")
"""Commands whose modules most processes need."""


def _next_child(channel: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Returns in each child, with its order and streams; None when nobody wants any more."""
    while True:
        order, streams, _, _ = socket.recv_fds(channel, ORDER_BYTES_MAX, STREAMS)
        if not order:
            return None
        reading, writing = os.pipe()
        if (between := os.fork()) == 0:
            # Forked twice, and not our child: its parent is the next above us that takes in orphans.
            if (pid := os.fork()) == 0:
                os.close(reading)
                os.close(writing)
                channel.close()
                return json.loads(order), streams
            os.write(writing, str(pid).encode())
            os._exit(0)
        os.close(writing)
        os.waitpid(between, 0)
        channel.send(os.read(reading, 20))
        for fd in (reading, *streams):
            os.close(fd)


def _become(order: dict[str, Any], streams: list[int]) -> None:
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for stream in streams:
        os.close(stream)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv[1:] = order["words"]


if __name__ == "__main__":
    for word in FREQUENT:
        app.app_of(word)
    child = _next_child(socket.socket(fileno=int(sys.argv[1])))
    if child is not None:
        _become(*child)
        main.main()
