"""What a store holds under idempotency keys: its table, and the changes of the transaction at hand.

Owns the digest that stands for an object's name and a key. Must not know what a reservation means. One thread uses it.
"""

from collections.abc import Iterable
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
        self._changed: dict[str, tuple[int, Reservation]] = {}
        self.load()

    def load(self) -> None:
        """Forget what was changed since the last commit."""
        self._changed = {}
        (self._count,) = self._database.one(statements.COUNT_RESERVATIONS)

    @property
    def count(self) -> int:
        """How many keys something is held under."""
        return int(self._count)

    def of(self, name: str, key: str) -> Reservation:
        """What is held under the key of an operation on the object."""
        return self.at(digest(name, key))

    def at(self, digested: str) -> Reservation:
        """What is held under the digest."""
        if (changed := self._changed.get(digested)) is not None:
            return changed[1]
        found = self._database.one(statements.GET_RESERVATION, (digested,))
        return NOT_RESERVED if found is None else held_of(found)

    def put(self, digested: str, held: Reservation, number: int) -> None:
        """Hold this under the digest; numbers rise."""
        if self.at(digested) == NOT_RESERVED:
            self._count += 1
        self._changed[digested] = number, held

    def flush(self) -> None:
        """Hand the changes to the database, as part of its transaction."""
        if self._changed:
            rows = (columns_of(key, number, held) for key, (number, held) in self._changed.items())
            self._database.write(statements.PUT_RESERVATION, *rows)
            self._changed = {}

    def forget(self, upto: int, limit: int) -> int:
        """Forget keys whose latest change has a number up to this one, at most `limit`, oldest first: how many."""
        self.flush()
        forgotten = self._database.write(statements.DELETE_RESERVATIONS, (upto, limit))
        self._count -= forgotten
        return forgotten

    def page(self, after: str, limit: int) -> Iterable[tuple[str, Reservation]]:
        """Digests above `after`, in order, each with what is held under it."""
        self.flush()
        found = self._database.all(statements.RESERVATIONS_PAGE, (after, limit))
        return [(columns[0], held_of(columns)) for columns in found]


class HoldsKeys:
    """The part of a store that holds something under idempotency keys."""

    held: Reservations

    def reservation(self, name: str, key: str) -> Reservation:
        """See `Log`."""
        return self.held.of(name, key)

    def reservations(self) -> int:
        """See `Log`."""
        return self.held.count

    def forget_reservations(self, upto: int, limit: int) -> int:
        """See `Reservations.forget`."""
        return self.held.forget(upto, limit)


def digest(name: str, key: str) -> str:
    """What stands for the key of an operation on the object."""
    return blake2b(f"{name}\n{key}".encode(), digest_size=DIGEST_BYTES).hexdigest()
