"""A choice of systems answers the protocol's questions as the systems do, and refuses what can miss."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.specification import Kind
from quorate.adts.types.catalogue import SPECIFICATIONS
from quorate.adts.types.dictionary import Dictionary
from quorate.adts.types.queue import Queue
from quorate.adts.types.register import Register
from quorate.quorums.choices.choice import BadChoice, Ordering, QuorumChoice
from quorate.quorums.choices.choices import constraints_of
from quorate.quorums.choices.system_choice import choice_of_events, choice_of_pair
from quorate.quorums.systems.tally import Quorum, VoteCount

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


@pytest.mark.parametrize("ordering", ["clock", "quorum"])
@pytest.mark.parametrize("adt", SPECIFICATIONS)
def test_whoever_reads_depends_on_every_change(adt: str, ordering: Ordering) -> None:
    """On this rests that kinds of operations may share quorums although their classes have different ones."""
    constraints = constraints_of(SPECIFICATIONS[adt], ordering=ordering)
    for operation, kind in SPECIFICATIONS[adt].kinds.items():
        reads = kind is not Kind.BLIND or ordering == "quorum"
        assert constraints.meets[operation] == (constraints.changes if reads else frozenset())


def test_finals_left_out_meet_the_initials_given_and_initials_the_finals() -> None:
    choice = choice_of_events(Register(), VOTES, {"Read": "r1*r2 + r3*r4"}, {"Cas": "r1*r2*r3"})
    assert quorums(choice.final_of("Write/Ok")) == {"13", "14", "23", "24"}
    assert quorums(choice.initial_of("Cas")) == {"12", "34"}
    assert quorums(choice.initial_of("Write")) == quorums(choice.final_of("Cas/Fail")) == {""}
    assert choice.classes["Cas/Ok"] == (2, 3)


def test_finals_that_no_initial_speaks_of_are_a_majority_of_the_votes() -> None:
    votes = {"r1": 3, "r2": 1, "r3": 1, "r4": 0}
    choice = choice_of_events(Queue(), votes, {}, {"Deq": "r1*r2*r3"})
    assert quorums(choice.final_of("Enq/Ok")) == {"1"}
    assert quorums(choice.initial_of("Deq")) == {"1"}
    with pytest.raises(BadChoice, match="no votes at all: give at least one of them a vote, or every final"):
        choice_of_events(Queue(), dict.fromkeys(VOTES, 0), {}, {"Deq": "r1"})


def test_with_order_by_quorum_enqueues_meet_each_other() -> None:
    choice = choice_of_events(Queue(), VOTES, {}, {"Enq": "r1 + r2", "Deq": "r3"}, ordering="quorum")
    assert quorums(choice.initial_of_kind(Kind.BLIND)) == {"123"}


def test_kinds_ask_for_what_holds_a_quorum_of_each_class() -> None:
    finals = {"Put": "r1 + r2", "Delete": "r3 + r2", "Cas": "r4", "PutIfAbsent": "r1"}
    choice = choice_of_events(Dictionary(), VOTES, {}, finals)
    assert quorums(choice.final_of_kind(Kind.BLIND)) == {"2", "13"}
    assert quorums(choice.final_of_kind(Kind.DECIDE)) == {"14"}
    assert quorums(choice.final_of("Put/Ok")) == {"1", "2"}


SETS = st.frozensets(st.sampled_from(list(VOTES)), min_size=1)
TEXTS = st.lists(SETS, min_size=1, max_size=3).map(
    lambda quorums: " + ".join("*".join(sorted(each)) for each in quorums)
)


@given(
    st.one_of(
        st.tuples(
            st.dictionaries(st.sampled_from(["Get", "Items", "PutIfAbsent", "Cas"]), TEXTS), st.just({})
        ),
        st.tuples(
            st.just({}), st.dictionaries(st.sampled_from(["Put", "Delete", "PutIfAbsent", "Cas"]), TEXTS)
        ),
    )
)
def test_what_is_filled_in_meets_in_every_pair_that_the_protocol_asks_for(
    words: tuple[dict[str, str], dict[str, str]],
) -> None:
    choice = choice_of_events(Dictionary(), VOTES, *words)
    readers = [choice.initial_of(name) for name in ("Get", "Items")] + [choice.initial_of_kind(Kind.DECIDE)]
    for reader in map(quorums, readers):
        for stored in map(quorums, (choice.final_of_kind(Kind.BLIND), choice.final_of_kind(Kind.DECIDE))):
            assert all(set(one) & set(other) for one in reader for other in stored)


def test_a_replica_without_votes_may_stand_in_a_system() -> None:
    choice = choice_of_events(Queue(), dict.fromkeys(VOTES, 0), {"Deq": "r1*r2"}, {})
    assert VoteCount(choice.votes, 1).is_met_by({"r4"})
    assert choice.final_of("Enq/Ok").is_met_by({"r2"})


def test_systems_that_can_miss_or_name_a_stranger_are_refused() -> None:
    with pytest.raises(BadChoice, match=r"can miss it: \{r1, r2\} and \{r3, r4\} share no replica"):
        choice_of_pair(Queue(), VOTES, GRID, GRID)
    with pytest.raises(BadChoice, match="unknown replica 'r5'; known are r1, r2, r3, r4"):
        choice_of_pair(Queue(), VOTES, "r1 + r5")


def test_a_system_that_can_never_be_met_is_refused() -> None:
    with pytest.raises(BadChoice, match="can never find its quorum"):
        choice_of_pair(Queue(), VOTES, "choose(0; r1, r2)")


def test_with_eventual_consistency_what_observes_reads_anyone() -> None:
    anyone = {"1", "2", "3", "4"}
    choice = choice_of_pair(Queue(), VOTES, GRID, consistency="eventual")
    assert quorums(choice.initial_of("Peek")) == quorums(choice.initial_of("Size")) == anyone
    assert quorums(choice.initial_of("Deq")) == {"12", "34"}
    choice = choice_of_events(Register(), VOTES, {"Cas": GRID}, {}, consistency="eventual")
    assert quorums(choice.initial_of("Read")) == anyone
    assert quorums(choice.final_of("Write/Ok")) == {"13", "14", "23", "24"}
    given = choice_of_events(Register(), VOTES, {"Read": "r1"}, {}, consistency="eventual")
    assert quorums(given.initial_of("Read")) == {"1"}


def test_with_eventual_consistency_somebody_is_read() -> None:
    with pytest.raises(BadChoice, match=r"Read reads nobody by 'choose\(0; r1\)': name somebody"):
        choice_of_events(Register(), VOTES, {"Read": "choose(0; r1)"}, {}, consistency="eventual")


def test_who_stands_in_a_final_quorum_alone_votes_too() -> None:
    """What r1 and r2 stored may be at r2 alone later, where r1 is gone for good. r3 has a vote, and stands nowhere."""
    finals = dict.fromkeys(("Enq/Ok", "Deq/Ok"), "r1*r2")
    choice = choice_of_events(Queue(), VOTES, {"Deq": "r1", "Peek": "r1", "Size": "r1"}, finals)
    assert choice.voters == {"r1", "r2"}
