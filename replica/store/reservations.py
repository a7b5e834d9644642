"""What a store holds under idempotency keys: its table, and the changes of the transaction at hand.

Owns the digest that stands for an object's name and a key, and where the row of each digest is: rows stand in the order of their
numbers, so that new ones share pages, and the oldest go together. Must not know what a reservation means. One thread uses it.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from ..protocol.log import NOT_RESERVED, Reservation
from . import statements
from .database import Database
from .records import columns_of, held_of

DIGEST_BYTES: Final = 16


class Reservations:
    """The reservations of one store; the store says when a transaction ends."""

    def __init__(self, database: Database) -> None:
        self._database: Final = database
        self._numbers: Final[dict[bytes, int]] = dict(database.all(statements.NUMBERS_OF_RESERVATIONS))
        """The number of each digest's row."""
        self._before: Final[dict[bytes, int | None]] = {}
        """The numbers that the transaction at hand has changed, as they were."""
        self._new: Final[dict[int, tuple[bytes, Reservation]]] = {}
        self._outdated: Final[list[int]] = []
        """Rows, by number, that the database has not been told of."""

    @property
    def count(self) -> int:
        """How many keys something is held under."""
        return len(self._numbers)

    def digests(self) -> frozenset[bytes]:
        """All digests that something is held under."""
        return frozenset(self._numbers)

    def held_still(self, digests: frozenset[bytes]) -> frozenset[bytes]:
        """Those that something is held under. It takes as long as they are many, and not as all are."""
        return frozenset(filter(self._numbers.__contains__, digests))

    def at(self, digested: bytes) -> Reservation:
        """What is held under the digest."""
        if (number := self._numbers.get(digested)) is None:
            return NOT_RESERVED
        if (new := self._new.get(number)) is not None:
            return new[1]
        return held_of(self._database.one(statements.GET_RESERVATION, (number,)))

    def put(self, digested: bytes, held: Reservation, number: int) -> None:
        """Hold this under the digest; numbers rise."""
        before = self._numbers.get(digested)
        self._before.setdefault(digested, before)
        if before is not None and self._new.pop(before, None) is None:
            self._outdated.append(before)
        self._numbers[digested] = number
        self._new[number] = digested, held

    def flush(self) -> None:
        """Hand the changes to the database, as part of its transaction."""
        if self._outdated:
            self._database.write(statements.DELETE_RESERVATION, *((number,) for number in self._outdated))
            self._outdated.clear()
        if self._new:
            rows = (columns_of(number, *new) for number, new in self._new.items())
            self._database.write(statements.PUT_RESERVATION, *rows)
            self._new.clear()

    def commit(self) -> None:
        """The transaction is on disk."""
        self._before.clear()

    def rollback(self) -> None:
        """The transaction is undone."""
        for digested, number in self._before.items():
            if number is None:
                self._numbers.pop(digested, None)
            else:
                self._numbers[digested] = number
        for changes in (self._before, self._new, self._outdated):
            changes.clear()

    def forget(self, upto: int, limit: int) -> int:
        """Forget keys whose latest change has a number up to this one, at most `limit`, oldest first: how many."""
        self.flush()
        oldest = self._database.all(statements.OLDEST_RESERVATIONS, (upto, limit))
        for digested, number in oldest:
            self._before.setdefault(digested, number)
            self._numbers.pop(digested, None)
        if oldest:
            self._database.write(statements.DELETE_RESERVATIONS, (oldest[-1][1],))
        return len(oldest)

    def page(self, after: int, limit: int) -> Sequence[tuple[int, bytes, Reservation]]:
        """Rows with numbers above `after`, in order: number, digest, and what is held under it."""
        self.flush()
        found = self._database.all(statements.RESERVATIONS_PAGE, (after, limit))
        return [(columns[0], columns[1], held_of(columns)) for columns in found]


def digest(name: str, key: str) -> bytes:
    """What stands for the key of an operation on the object."""
    return blake2b(f"{name}\n{key}".encode(), digest_size=DIGEST_BYTES).digest()
