"""Ports of this machine that are held from the moment they are chosen until their owner is done with them.

A held port is bound by a socket that does not listen. So the system gives it neither to an outgoing connection nor to a
program that asks for any port, and whoever connects to it is refused, as by a dead server. The server that it is meant for
binds it all the same: it sets SO_REUSEADDR, as servers do (uvicorn, asyncio, Go), and Linux then minds only who listens. A
listening socket handed down to the server would hold the port too, but would take connections while the server is dead.

Other systems let no two sockets bind one port: there it is let go at once, and somebody may take it before its server does.
"""

import errno
import random
import socket
import sys
import weakref
from collections.abc import Iterable
from typing import Final, Self

LOCAL: Final = "127.0.0.1"
_RANGE: Final = range(20_000, 32_000)
"""Below the ports that systems deliver to outgoing connections, for a cluster is started again on those that it had."""
_TRIES: Final = 100


class HeldPort:
    """A port that nobody else is given until `release`, or until nobody refers to this any more."""

    def __init__(self, bound: socket.socket) -> None:
        self.number: Final[int] = bound.getsockname()[1]
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # From now on its server may bind it.
        self.release: Final = weakref.finalize(self, bound.close)
        """Let go of the port. What listens there goes on."""
        if sys.platform != "linux":
            self.release()

    @classmethod
    def named(cls, number: int) -> Self:
        """This very port, which others may hold too. Raises OSError where somebody listens."""
        return cls(_bound(number, LOCAL, is_shared=True))

    @classmethod
    def chosen(cls, numbers: Iterable[int] | None = None, host: str = LOCAL) -> Self:
        """The first of `numbers` that nobody has in any way, or else any such port. Raises OSError where there is none."""
        for number in random.sample(_RANGE, _TRIES) if numbers is None else numbers:
            try:
                return cls(_bound(number, host, is_shared=False))
            except OSError:
                continue
        raise OSError(errno.EADDRINUSE, f"None of many ports tried on {host} is free")


def is_free(number: int) -> bool:
    """Whether a server could listen there now."""
    try:
        HeldPort.named(number).release()
    except OSError:
        return False
    return True


def _bound(number: int, host: str, *, is_shared: bool) -> socket.socket:
    bound = socket.socket()
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, is_shared)
        bound.bind((host, number))
    except BaseException:
        bound.close()
        raise
    return bound
