"""What waits to be sent to callers who do not read it, over all connections, and who is cut off when it is too much.

Owns the sum and the order: the connection that has taken nothing for longest goes first.
"""

import asyncio
import fcntl
import struct
import termios
from typing import Final, Generic, Protocol, TypeVar

STALL_BYTES: Final = 65_536
"""Who takes fewer bytes takes nothing."""


class Unread(Protocol):
    """A connection on which nothing more should be written for now."""

    def unsent_bytes(self) -> int:
        """What waits to be sent on it."""


def unconfirmed_bytes(transport: asyncio.BaseTransport) -> int:
    """What the system holds for the other end; 0 where it does not say."""
    room = bytearray(struct.calcsize("i"))
    try:
        fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, room)
    except (OSError, ValueError):  # It is closed.
        return 0
    return int(struct.unpack("i", room)[0])


_Connection = TypeVar("_Connection", bound=Unread)


class UnsentAnswers(Generic[_Connection]):
    """The paused connections of one server, on which `bytes_max` may wait together."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max: Final = bytes_max
        self._paused: Final[dict[_Connection, int]] = {}
        """What waited when it was paused, or last taken from; those first that have taken nothing for longest."""

    def pause(self, connection: _Connection) -> list[_Connection]:
        """One more is paused. Which others are to be cut off: a single larger answer still goes."""
        unsent = sum(self._looked_at(each) for each in list(self._paused))
        self._paused[connection] = connection.unsent_bytes()
        unsent += self._paused[connection]
        cut_off: list[_Connection] = []
        while unsent > self._bytes_max and (first := next(iter(self._paused))) is not connection:
            unsent -= first.unsent_bytes()
            del self._paused[first]
            cut_off.append(first)
        return cut_off

    def resume(self, connection: _Connection) -> None:
        """Nearly all was sent on it, or it is closed."""
        self._paused.pop(connection, None)

    def _looked_at(self, connection: _Connection) -> int:
        unsent = connection.unsent_bytes()
        if unsent <= self._paused[connection] - STALL_BYTES:
            del self._paused[connection]
            self._paused[connection] = unsent
        return unsent
