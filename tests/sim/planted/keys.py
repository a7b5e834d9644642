"""Mistakes in agreeing on the entries of an operation under an idempotency key (DESIGN section 2, "Keys")."""

from collections.abc import Collection, Generator

from quorate.adts.specification import Kind
from quorate.api_specs.messages import Reserve
from quorate.client_sdk.protocol.core.log_cache import LogCache
from quorate.client_sdk.protocol.core.rounds import Event, Task
from quorate.client_sdk.protocol.operations import enqueue_round, reservation
from quorate.quorums.choices.choice import QuorumChoice
from quorate.replica.protocol import key_consensus as replica_reserving
from quorate.timestamps.timestamp import ZERO, Timestamp
from tests.sim.planted.plant import Planting, patched


def promise_no_ballot() -> Planting:
    """A replica refuses no ballot for a key: it holds what comes last, under whatever ballot."""
    return patched(replica_reserving, is_refused=lambda *_: False)


def agree_with_the_first_few() -> Planting:
    """What came first counts as agreed where a quorum holds it, not all replicas: two front ends with one key may split."""

    def is_agreed(ballot: Timestamp, where: Collection[str], choice: QuorumChoice) -> bool:
        del ballot
        return choice.final_of_kind(Kind.DECIDE).is_met_by(where)

    return patched(reservation, _is_agreed=is_agreed)


def propose_ones_own() -> Planting:
    """A front end proposes its own entries, whatever replicas hold under the key."""
    return patched(reservation, proposal_from=lambda shown, entries, choice: entries)


def propose_the_lowest() -> Planting:
    """Of what replicas hold under the key, that of the lowest ballot is proposed again, not that of the highest."""

    def proposal_from(
        shown: reservation.Shown, entries: reservation.Entries, choice: QuorumChoice
    ) -> reservation.Entries:
        del choice
        held = [each for each in shown.values() if each.entries and each.ballot > ZERO]
        return min(held, key=lambda each: each.ballot).entries if held else entries

    return patched(reservation, proposal_from=proposal_from)


def forget_what_is_held() -> Planting:
    """A replica answers about a key, and writes nothing of it down."""
    return patched(replica_reserving, written=lambda *_: [])


def keep_what_another_began() -> Planting:
    """Where enqueues are agreed together, one stores its own entries, though others are agreed under its key."""
    return patched(enqueue_round.EnqueueRound, _kept=lambda self, each, found: [each])


def store_what_was_refused() -> Planting:
    """Where enqueues are agreed together, entries are stored though a replica has promised a higher ballot for the key."""

    def accept(
        request: Reserve, choice: QuorumChoice, task: Task, cache: LogCache
    ) -> Generator[float, Event, list[bool]]:
        accepted = yield from real(request, choice, task, cache)
        return [True for _ in accepted]

    real = reservation.accept
    return patched(enqueue_round, is_refused=lambda shown: False, accept=accept)
