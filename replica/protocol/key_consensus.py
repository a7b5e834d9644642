"""What a replica answers about idempotency keys: its part in the consensus on one operation's entries. Pure.

Owns the promises for one key (DESIGN section 2, "Keys"): a promised ballot refuses lower ones, and what is held is replaced
only by what is accepted under a higher ballot. Must not know what becomes of the entries.
"""

from collections.abc import Iterator

from ...api_specs.limits import RESERVATIONS_MAX
from ...api_specs.messages import Held, Proposal, Refused, Reply, Reserve, Reserved
from ...timestamps.timestamp import ZERO
from .log import NOT_RESERVED, Effect, Log, PutReservation, Reservation

FULL = f"this replica remembers {RESERVATIONS_MAX} idempotency keys, which is all it has room for"


def reserve(request: Reserve, log: Log) -> tuple[Reply, list[Effect]]:
    """The answer, and what must be on disk before it is sent. All keys are refused where there is no room for those that are new."""
    before = [log.reservation(request.object, each.key) for each in request.proposals]
    new = before.count(NOT_RESERVED)
    if new and log.reservations() + new > RESERVATIONS_MAX:
        return Refused("too-many-keys", FULL), []
    after = [_after(request, *each) for each in zip(request.proposals, before, strict=True)]
    effects = [
        effect
        for proposal, old, held in zip(request.proposals, before, after, strict=True)
        for effect in written(request.object, proposal.key, old, held)
    ]
    return Reserved(tuple(_other(request, after))), effects


def is_refused(request: Reserve, held: Reservation) -> bool:
    """Whether a higher ballot is promised for the key."""
    return request.ballot < held.promised


def written(name: str, key: str, before: Reservation, after: Reservation) -> list[Effect]:
    """What must be on disk before the answer is sent."""
    return [] if after == before else [PutReservation(name, key, after)]


def _after(request: Reserve, proposal: Proposal, held: Reservation) -> Reservation:
    if is_refused(request, held):
        return held
    if request.accept:
        return Reservation(request.ballot, request.ballot, proposal.entries)
    return Reservation(request.ballot, held.ballot, held.entries or proposal.entries)


def _other(request: Reserve, after: list[Reservation]) -> Iterator[Held]:
    """Where something else is held, or promised, than was asked for."""
    ballot = request.ballot if request.accept else ZERO
    for proposal, held in zip(request.proposals, after, strict=True):
        if (held.promised, held.ballot, held.entries) != (request.ballot, ballot, proposal.entries):
            refused = is_refused(request, held)
            yield Held(proposal.key, held.ballot, held.entries, held.promised, refused)
