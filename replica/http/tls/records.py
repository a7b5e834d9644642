"""What TLS reads of one connection: a record at a time, so many at once, and few empty ones.

A client may change its keys whenever it likes (RFC 8446, section 4.6.3), and each time costs the other side what a short request does.
Such records are empty to all behind TLS, and OpenSSL reads all that it finds of them in one call: ten thousand on
sixty connections each, without a token, held the event loop for four seconds; as many records of one byte each, on a thousand
connections, for longer. Owns how much TLS is given, and when a connection has sent too many empty records. Must not know what is said
by TLS, nor who takes turns.
"""

import ssl
from collections.abc import Callable
from typing import Any, Final

RECORDS_AT_ONCE: Final = 64
"""Of one connection, before others have their turn: a megabyte in records as long as they may be, a tenth of a millisecond in records of one byte."""
EMPTY_RECORDS_MAX: Final = 32
"""In all, on one connection, after its handshake. OpenSSL allows as many empty ones in a row; clients that change their keys do so after
gigabytes."""
HEADER_BYTES: Final = 5
PLAIN_BYTES_MAX: Final = 16_384
"""RFC 8446, section 5.1, as of all versions: in front of a record stand its type, version and length; so much it brings at most."""


class TooManyEmptyRecords(ssl.SSLError):
    """The connection is ended, as with any other error of TLS."""


class RecordByRecord(ssl.SSLObject):
    """A side of TLS that finds no more than one record when it reads."""

    _arrived: ssl.MemoryBIO
    """Where records come."""
    _given: ssl.MemoryBIO
    """Where TLS finds them."""
    _header = b""
    """What has come of it, where it is not whole."""
    _missing = 0
    """Bytes of the record that TLS has been given in part."""
    _at_once = 0
    """Records that were read, with others behind them, since the last turn."""
    _is_held = False
    """Whether there will be another one."""
    _empty = 0

    def fed(self, arrived: ssl.MemoryBIO, given: ssl.MemoryBIO) -> None:
        """Before all else."""
        self._arrived, self._given = arrived, given
        self.may_go_on: Callable[[Callable[[], None]], bool] = lambda _: True
        """Whether further records may be read now, though many were. Where not, it calls what it is given later, and reads again."""

    def do_handshake(self) -> None:
        """See ssl.SSLObject. What has come behind the handshake stays where it is."""
        while True:
            is_given = self._give_record()
            try:
                return super().do_handshake()
            except ssl.SSLWantReadError:
                if not is_given:
                    raise

    def read(self, len: int = 1024, buffer: Any = None) -> Any:
        """See ssl.SSLObject. Raises TooManyEmptyRecords."""
        is_given = not self.pending() and self._give_next()
        count = min(len, PLAIN_BYTES_MAX)  # Room for `len` bytes is made each time: callers ask for 256 KiB.
        while True:
            try:
                return super().read(count, buffer)
            except ssl.SSLWantReadError:
                if not is_given:
                    raise
                self._count_empty()
                is_given = self._give_next()

    def _count_empty(self) -> None:
        self._empty += 1
        if self._empty > EMPTY_RECORDS_MAX:
            raise TooManyEmptyRecords(f"more than {EMPTY_RECORDS_MAX} empty records")

    def _give_next(self) -> bool:
        """As `_give_record`, unless others have their turn first."""
        if self._at_once == RECORDS_AT_ONCE and not self._is_held:
            self._is_held = not self.may_go_on(self._go_on)
            self._at_once = 0
        if self._is_held:
            return False
        is_whole = self._give_record()
        self._at_once = self._at_once + 1 if self._arrived.pending else 0
        return is_whole

    def _go_on(self) -> None:
        self._is_held = False

    def _give_record(self) -> bool:
        """Give TLS what has come of the next record; whether it is whole."""
        if not self._missing:
            self._header += self._arrived.read(HEADER_BYTES - len(self._header))
            if len(self._header) < HEADER_BYTES:
                return False
            self._given.write(self._header)
            self._missing, self._header = int.from_bytes(self._header[3:]), b""
        piece = self._arrived.read(self._missing)
        self._given.write(piece)
        self._missing -= len(piece)
        return not self._missing


class RecordContext(ssl.SSLContext):
    """A context whose connections that are not sockets of their own are read record by record."""

    sslobject_class = RecordByRecord

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> RecordByRecord:
        """See ssl.SSLContext."""
        given = ssl.MemoryBIO()
        made = super().wrap_bio(given, outgoing, server_side, server_hostname, session)
        assert isinstance(made, RecordByRecord), "sslobject_class"
        made.fed(incoming, given)
        return made
