"""A choice of systems answers the protocol's questions as the systems do, and refuses what can miss."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.queue import Queue
from quorate.adts.register import Register
from quorate.adts.specification import Kind
from quorate.quorums.choice import BadChoice, Ordering, QuorumChoice
from quorate.quorums.system_choice import choice_of_pair
from quorate.quorums.tally import Quorum

VOTES = dict.fromkeys(("r1", "r2", "r3", "r4"), 1)
GRID = "r1*r2 + r3*r4"


def quorums(quorum: Quorum) -> set[str]:
    """The minimal sets that meet it, of four replicas, by trying all."""
    sets = [{f"r{n + 1}" for n in range(4) if mask >> n & 1} for mask in range(16)]
    met = [each for each in sets if quorum.is_met_by(each)]
    return {"".join(sorted(name[1] for name in each)) for each in met if not any(less < each for less in met)}


def test_decisions_read_a_row_and_changes_are_stored_in_every_row() -> None:
    choice = choice_of_pair(Queue(), VOTES, GRID)
    crossing = {"13", "14", "23", "24"}
    assert quorums(choice.initial_of_kind(Kind.DECIDE)) == quorums(choice.initial_of("Peek")) == {"12", "34"}
    assert quorums(choice.final_of_kind(Kind.DECIDE)) == quorums(choice.final_of("Enq/Ok")) == crossing
    assert quorums(choice.initial_of_kind(Kind.BLIND)) == quorums(choice.final_of("Deq/Empty")) == {""}
    assert quorums(choice.final_of_kind(Kind.OBSERVE)) == {""}
    assert choice.classes["Deq/Ok"] == (2, 2)


def test_with_order_by_quorum_an_enqueue_reads_too() -> None:
    choice = choice_of_pair(Queue(), VOTES, GRID, ordering="quorum")
    assert quorums(choice.initial_of_kind(Kind.BLIND)) == {"12", "34"}


@given(st.integers(1, 4), st.sampled_from(["clock", "quorum"]))
def test_votes_as_a_system_are_the_choice_of_votes(reads: int, ordering: Ordering) -> None:
    writes = 5 - reads
    names = ", ".join(VOTES)
    by_system = choice_of_pair(
        Register(), VOTES, f"choose({reads}; {names})", f"choose({writes}; {names})", ordering=ordering
    )
    write = (reads if ordering == "quorum" else 0, writes)
    classes = {"Read/Ok": (reads, 0), "Write/Ok": write, "Cas/Ok": (reads, writes), "Cas/Fail": (reads, 0)}
    by_votes = QuorumChoice(Register(), VOTES, classes, ordering=ordering)
    assert by_system.classes == by_votes.classes
    for kind in Kind:
        assert quorums(by_system.initial_of_kind(kind)) == quorums(by_votes.initial_of_kind(kind))
        assert quorums(by_system.final_of_kind(kind)) == quorums(by_votes.final_of_kind(kind))


def test_systems_that_can_miss_or_name_a_stranger_are_refused() -> None:
    with pytest.raises(BadChoice, match=r"can miss it: \{r1, r2\} and \{r3, r4\} share no replica"):
        choice_of_pair(Queue(), VOTES, GRID, GRID)
    with pytest.raises(BadChoice, match="unknown replica 'r5'; known are r1, r2, r3, r4"):
        choice_of_pair(Queue(), VOTES, "r1 + r5")


def test_a_system_that_can_never_be_met_is_refused() -> None:
    with pytest.raises(BadChoice, match="can never find its quorum"):
        choice_of_pair(Queue(), VOTES, "choose(0; r1, r2)")
