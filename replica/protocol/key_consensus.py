"""What a replica answers about idempotency keys: its part in the consensus on one operation's entries. Pure.

Owns the promises for one key (DESIGN section 2, "Keys"): a promised ballot refuses lower ones, and what is held is replaced
only by what is accepted under a higher ballot. Must not know what becomes of the entries.
"""

from ...api_specs.limits import RESERVATIONS_MAX
from ...api_specs.messages import Refused, Reply, Reserve, Reserved
from .log import NOT_RESERVED, Effect, Log, PutReservation, Reservation

FULL = f"this replica remembers {RESERVATIONS_MAX} idempotency keys, which is all it has room for"


def reserve(request: Reserve, log: Log) -> tuple[Reply, list[Effect]]:
    """The answer, and what must be on disk before it is sent."""
    held = log.reservation(request.object, request.key)
    if held == NOT_RESERVED and log.reservations() >= RESERVATIONS_MAX:
        return Refused("too-many-keys", FULL), []
    if is_refused(request, held):
        return Reserved(held.ballot, held.entries, held.promised, refused=True), []
    after = _after(request, held)
    return Reserved(after.ballot, after.entries, after.promised), written(request, held, after)


def is_refused(request: Reserve, held: Reservation) -> bool:
    """Whether a higher ballot is promised for the key."""
    return request.ballot < held.promised


def written(request: Reserve, held: Reservation, after: Reservation) -> list[Effect]:
    """What must be on disk before the answer is sent."""
    return [] if after == held else [PutReservation(request.object, request.key, after)]


def _after(request: Reserve, held: Reservation) -> Reservation:
    if request.accept:
        return Reservation(request.ballot, request.ballot, request.entries)
    return Reservation(request.ballot, held.ballot, held.entries or request.entries)
