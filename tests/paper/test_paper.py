"""What the papers say, checked on this code.

* Herlihy, "A Quorum-Consensus Replication Method for Abstract Data Types", ACM TOCS 4(1), 1986.
* Gifford, "Weighted Voting for Replicated Data", SOSP 1979.

Deviations, all in DESIGN and not in the papers: operations are not parts of transactions; concurrent ones are ordered by
fences and ballots instead; front ends send entries that are new, not whole views; logs are collected below horizons.
"""

from collections.abc import Iterator
from itertools import combinations, permutations, product

import pytest

from quorate.adts.log import NOTHING, Entry, Seen, Value
from quorate.adts.types import queue
from quorate.adts.types.queue import Queue
from quorate.adts.types.register import Register
from quorate.quorums.choices.choice import BadChoice, QuorumChoice
from quorate.quorums.systems.failures import Independent, availability
from quorate.quorums.systems.systems import votes as votes_system
from quorate.timestamps.clock import HybridClock
from quorate.timestamps.timestamp import make
from tests.unit.adts.brute_force import found_dependencies

REPLICAS = ("r1", "r2", "r3")
EQUAL = dict.fromkeys(REPLICAS, 1)


def is_allowed(enq: int, deq: tuple[int, int], empty: int) -> bool:
    """Whether the choice can be built."""
    try:
        QuorumChoice(Queue(), EQUAL, {"Enq/Ok": (0, enq), "Deq/Ok": deq, "Deq/Empty": (empty, 0)})
    except BadChoice:
        return False
    return True


def test_herlihy_a_view_is_the_logs_merged_in_timestamp_order_without_duplicates() -> None:
    """Herlihy 1986: the front end merges the logs of an initial quorum in timestamp order, discarding duplicates."""
    entries = [Entry(t, t, Value(str(us))) for us in (1, 2, 3) for t in [make(us, 0, "f")]]
    logs = {"r1": entries[:2], "r2": entries[1:], "r3": [entries[0], entries[2]]}
    for order in permutations(REPLICAS):
        seen: dict[str, Seen] = {}
        for replica in order:
            for entry in logs[replica]:
                seen.setdefault(entry.id, Seen(entry)).holders |= {replica}
        assert [found.entry for found in queue.view(NOTHING, seen)] == entries


def sequential_runs(enq: int, deq: tuple[int, int]) -> Iterator[tuple[bool, bool]]:
    """Enq(x), then two dequeues one after the other, with any quorums of these sizes, whole views written as in the paper:
    whether each dequeue saw the item waiting."""
    initial, final = deq
    sets = {size: [frozenset(some) for some in combinations(REPLICAS, size)] for size in range(4)}
    for stored, read, written, read_again in product(sets[enq], sets[initial], sets[final], sets[initial]):
        has_item, has_taken = set(stored), set[str]()
        first = bool(read & has_item)
        if first:
            has_item |= written
            has_taken |= written
        second = bool(read_again & has_item) and not read_again & has_taken
        yield first, second


@pytest.mark.parametrize("enq", [1, 2, 3])
@pytest.mark.parametrize("initial", [1, 2, 3])
@pytest.mark.parametrize("final", [1, 2, 3])
def test_herlihy_quorum_intersection_is_enough_and_needed(enq: int, initial: int, final: int) -> None:
    """Herlihy 1986: each initial quorum of an operation meets each final quorum of the events that it depends on. For one
    operation after another this is exactly what makes every answer right; nothing less is allowed here, nor more asked.
    """
    is_right = all(run == (True, False) for run in sequential_runs(enq, (initial, final)))
    assert is_right == is_allowed(enq, (initial, final), initial)


def test_herlihy_enqueues_need_not_meet_each_other() -> None:
    """Herlihy 1986: quorums follow from the dependency relation of the type; Enq depends on nothing, so that one replica
    may be enough for it. Where every write reads a version first, as with files, it cannot be (as in the lecture)."""
    assert not any(p == "Enq/Ok" for p, _ in found_dependencies("queue"))
    assert is_allowed(1, (3, 1), 3)
    with pytest.raises(BadChoice, match="Enq/Ok does not meet"):
        QuorumChoice(Queue(), EQUAL, {"Enq/Ok": (1, 1), "Deq/Ok": (3, 1)}, ordering="quorum")


def test_herlihy_normal_and_abnormal_outcomes_have_quorums_of_their_own() -> None:
    """Herlihy 1986: Deq/Ok and Deq/Empty are different event classes. An Empty writes nothing, and it need not see the
    dequeues. Deviation (DESIGN section 8): both outcomes read the larger of the two initial quorums."""
    assert ("Deq/Empty", "Deq/Ok") not in found_dependencies("queue")
    choice = QuorumChoice(Queue(), EQUAL, {"Enq/Ok": (0, 3), "Deq/Ok": (2, 2), "Deq/Empty": (1, 0)})
    assert choice.sizes("Deq/Empty") == (1, 0)
    assert choice.initial_of("Deq").is_met_by(REPLICAS[:2])
    assert not choice.initial_of("Deq").is_met_by(REPLICAS[:1])


def test_herlihy_timestamps_order_events_as_their_causes() -> None:
    """Herlihy 1986 orders entries by logical timestamps: what a front end has seen is before what it then stamps.
    Deviation (DESIGN section 3): they are hybrid, so that they also follow the time of day."""
    slow, fast = HybridClock("slow"), HybridClock("fast")
    cause = fast.next(1_000)
    slow.witness(cause)
    assert slow.next(1) > cause


def test_gifford_reads_meet_writes_and_writes_meet_writes() -> None:
    """Gifford 1979: r + w > N, and 2w > N, for a write reads the version number that it counts up from."""
    for read, write in product(range(1, 6), repeat=2):
        classes = {"Read/Ok": (read, 0), "Write/Ok": (6 - write, write), "Cas/Ok": (6 - write, write)}
        votes = {f"r{number}": 1 for number in range(5)}
        if read + write > 5:
            choice = QuorumChoice(Register(), votes, classes, ordering="quorum")
            assert sum(choice.sizes("Write/Ok")) > 5
        else:
            with pytest.raises(BadChoice, match="Read/Ok does not meet"):
                QuorumChoice(Register(), votes, classes, ordering="quorum")


@pytest.mark.parametrize(
    ("weights", "read", "write", "read_blocked", "write_blocked"),
    [
        ((1, 0, 0), 1, 1, 1.0e-2, 1.0e-2),
        ((2, 1, 1), 2, 3, 2.0e-4, 1.0e-2),
        ((1, 1, 1), 1, 3, 1.0e-6, 3.0e-2),
    ],
)
def test_gifford_blocking_probabilities_of_his_three_examples(
    weights: tuple[int, int, int], read: int, write: int, read_blocked: float, write_blocked: float
) -> None:
    """Gifford 1979, the table of three example files: each representative is up with 0.99; two digits are given there."""
    votes = dict(zip(REPLICAS, weights, strict=True))
    up = dict.fromkeys(REPLICAS, 0.99)
    assert 1 - availability(votes_system(votes, read), Independent(up)) == pytest.approx(
        read_blocked, rel=0.02
    )
    assert 1 - availability(votes_system(votes, write), Independent(up)) == pytest.approx(
        write_blocked, rel=0.02
    )


def test_gifford_representatives_without_votes_never_count() -> None:
    """Gifford 1979: a weak representative has no votes; it may serve as a cache, and no quorum needs it."""
    votes = {"r1": 1, "r2": 1, "r3": 1, "weak": 0}
    assert QuorumChoice(Queue(), votes).classes == QuorumChoice(Queue(), EQUAL).classes
    up = {"r1": 1.0, "r2": 1.0, "r3": 0.0, "weak": 1.0}
    assert availability(votes_system(votes, 2), Independent(up)) == 1.0
    assert availability(votes_system(votes, 3), Independent(up)) == 0.0
