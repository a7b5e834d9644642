"""Mistakes of the front end in answers that rest on nothing having happened yet."""

from typing import Final

from quorate.client_sdk.protocol.operations import queue_looks
from quorate.quorums.choices.choice import QuorumChoice
from tests.sim.planted import schedules
from tests.sim.planted.plant import AnyOne, Plant, Planting, patched
from tests.sim.planted.worlds import HISTORY


def empty_from_one() -> Planting:
    """A Peek answers "empty" when one replica shows that nothing has happened to the queue."""
    right = queue_looks.needed_of

    def needed_of(choice: QuorumChoice) -> AnyOne:
        return AnyOne(right(choice))

    return patched(queue_looks, needed_of=needed_of)


def empty_over_a_summary() -> Planting:
    """A Peek answers "empty" when an initial quorum shows logs without entries, whatever summary they have accepted."""
    return patched(queue_looks, shows_nothing=lambda reply: not reply.rows)


PLANTED: Final = (
    Plant("empty-from-one", empty_from_one, HISTORY, schedule=schedules.peek_at_the_replica_that_missed_it),
    Plant(
        "empty-over-a-summary",
        empty_over_a_summary,
        HISTORY,
        schedule=schedules.peek_at_what_a_decision_adopted,
    ),
)
