"""The choice of two configurations at once: whatever meets one of the two meets it."""

from itertools import chain, combinations

import pytest

from quorate.adts.specification import Kind
from quorate.adts.types.catalogue import kept_type
from quorate.quorums.choices.choice import Ordering, QuorumChoice
from quorate.quorums.choices.joint_choice import JointChoice

QUEUE = kept_type("queue")
OLD = QuorumChoice(QUEUE, dict.fromkeys(("r1", "r2", "r3"), 1), {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1)})
NEW = QuorumChoice(QUEUE, {"r3": 2, "r4": 1, "r5": 1}, {"Enq/Ok": (0, 3), "Deq/Ok": (2, 3)})
JOINT = JointChoice(OLD, NEW)
EVERYONE = ("r1", "r2", "r3", "r4", "r5")
SETS = [frozenset(each) for each in chain.from_iterable(combinations(EVERYONE, size) for size in range(6))]


def test_a_quorum_holds_one_of_each() -> None:
    for replicas in SETS:
        for name in OLD.classes:
            both = OLD.final_of(name).is_met_by(replicas) and NEW.final_of(name).is_met_by(replicas)
            assert JOINT.final_of(name).is_met_by(replicas) is both
        for operation in QUEUE.kinds:
            sides = (each.initial_of(operation).is_met_by(replicas) for each in (OLD, NEW))
            assert JOINT.initial_of(operation).is_met_by(replicas) is all(sides)


def test_its_quorums_meet_those_of_either_that_they_must_meet() -> None:
    for side in (OLD, NEW, JOINT):
        for name, met in QUEUE.depends.items():
            operation = name.partition("/")[0]
            for other in met:
                for initial in (each for each in SETS if JOINT.initial_of(operation).is_met_by(each)):
                    assert all(initial & final for final in SETS if side.final_of(other).is_met_by(final))


def test_all_are_asked_and_each_has_the_vote_of_the_newer() -> None:
    assert JOINT.votes == {"r1": 1, "r2": 1, "r3": 2, "r4": 1, "r5": 1}
    assert JOINT.anyone.is_met_by({"r3"})
    assert not JOINT.anyone.is_met_by({"r1"})


def test_what_meets_the_final_quorums_meets_those_of_both() -> None:
    meeting = JOINT.meeting_final_of_kind(Kind.BLIND)
    assert not meeting.is_met_by({"r3", "r4"}), "r1 alone may store an item of before"
    assert meeting.is_met_by({"r1", "r2", "r3"})


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [("clock", "clock", "clock"), ("clock", "quorum", "quorum"), ("quorum", "clock", "quorum")],
)
def test_it_is_ordered_by_quorum_where_either_is(old: Ordering, new: Ordering, expected: Ordering) -> None:
    votes = dict.fromkeys(("r1", "r2", "r3"), 1)
    joined = JointChoice(QuorumChoice(QUEUE, votes, ordering=old), QuorumChoice(QUEUE, votes, ordering=new))
    assert joined.ordering == expected


def test_it_is_weak_where_either_is() -> None:
    """A weak read of one old replica need not meet what the old choice stored, whoever of the new answers, too."""
    votes = dict.fromkeys(("r1", "r2", "r3"), 1)
    strong, weak = QuorumChoice(QUEUE, votes), QuorumChoice(QUEUE, votes, consistency="eventual")
    assert JointChoice(weak, strong).is_weak
    assert JointChoice(strong, weak).is_weak
    assert not JointChoice(strong, strong).is_weak


def test_all_others_stand_in_for_an_old_quorum_where_some_are_gone_for_good() -> None:
    """They meet whatever an old quorum stored that was not gone as a whole; where an old quorum can be had without the others, it does, too."""
    gone, survivors = frozenset({"r2"}), frozenset({"r1", "r3"})
    joined = JointChoice(OLD, NEW, survivors)
    for replicas in SETS:
        has_old = OLD.initial_of("Deq").is_met_by(replicas) or survivors <= replicas
        met = has_old and NEW.initial_of("Deq").is_met_by(replicas)
        assert joined.initial_of("Deq").is_met_by(replicas) is met
        if met:
            stored = (each for each in SETS if OLD.final_of("Enq/Ok").is_met_by(each) and not each <= gone)
            assert all(replicas & each or not each & survivors for each in stored)
    assert not JOINT.initial_of("Deq").is_met_by(survivors | {"r4"})
    meeting = joined.meeting_final_of_kind(Kind.BLIND)
    assert (meeting.is_met_by({"r3", "r4"}), meeting.is_met_by({"r1", "r3"})) == (False, True)
    everywhere = QuorumChoice(QUEUE, OLD.votes, {"Enq/Ok": (0, 3), "Deq/Ok": (1, 3)})
    final = JointChoice(everywhere, NEW, survivors).final_of("Enq/Ok")
    assert (final.is_met_by({"r1", "r3", "r4"}), final.is_met_by({"r3", "r4"})) == (True, False)
