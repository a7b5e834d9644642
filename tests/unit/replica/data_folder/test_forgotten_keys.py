"""Which keys a store that is made from others leaves out: those that were deleted, and forgotten by some of the others."""

from collections.abc import Iterable

import pytest

from quorate.adts.log import Entry, Summary, Value
from quorate.api_specs.cluster import ChoiceRule, ClusterDocument, ReplicaInfo, checked
from quorate.replica.data_folder.replacement import relevant, union
from quorate.replica.protocol.log import Effect, ObjectState, PutRows, PutState
from quorate.simulation.memory.store import MemoryStore
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.timestamp import make

KEY = "dictionary/d/k"
HELD = make(1, 0, "a")
DECIDED = PutState(
    ObjectState(KEY, accepted=make_ballot(HELD, 1), summary=Summary(HELD, Value("1")), horizon=HELD)
)
IN_THE_LOG = (PutState(ObjectState(KEY)), PutRows(KEY, (Entry(HELD, HELD, Value("1")),)))


def cluster(swapped_at: tuple[int, int]) -> ClusterDocument:
    replicas = tuple(ReplicaInfo(f"r{number}", f"http://r{number}:1") for number in range(1, 6))
    choice = {"Put/Ok": (2, 3), "Delete/Ok": (2, 3)}
    choice |= {"Cas/Ok": swapped_at, "PutIfAbsent/Ok": swapped_at}
    return checked(ClusterDocument("test", replicas, (ChoiceRule("dictionary/*", choice, "clock"),)))


def sources(held: Iterable[Effect]) -> dict[str, MemoryStore]:
    """r4 alone of four has the key; r5 is lost, and the floors of r1 to r3 are above all of it."""
    found = {f"r{number}": MemoryStore() for number in range(1, 5)}
    found["r4"].apply(*held)
    for each in ("r1", "r2", "r3"):
        found[each].forget("dictionary/d/other", make(2, 0, "a"))
    return found


@pytest.mark.parametrize(
    ("swapped_at", "held", "is_forgotten"),
    [((4, 2), [DECIDED], False), ((3, 3), [DECIDED], True), ((4, 2), IN_THE_LOG, True)],
    ids=["two of five may have set it by a swap", "it takes three", "a swap leaves nothing in the log"],
)
def test_a_key_that_may_have_been_set_where_nothing_was_forgotten_is_kept(
    swapped_at: tuple[int, int], held: Iterable[Effect], *, is_forgotten: bool
) -> None:
    found = sources(held)
    expected = [found[id] for id in ("r1", "r2", "r3")] if is_forgotten else list(found.values())
    assert relevant(KEY, found, cluster(swapped_at)) == expected


OWN = "cart/ann"
CALLED = PutState(
    ObjectState(OWN, accepted=make_ballot(HELD, 1), summary=Summary(HELD, Value("1")), horizon=HELD)
)
STORED = (PutState(ObjectState(OWN)), PutRows(OWN, (Entry(HELD, HELD, Value("[]")),)))


@pytest.mark.parametrize(
    ("held", "decided_at", "stored_at", "is_forgotten"),
    [
        ([CALLED], 3, 3, True),
        (STORED, 3, 3, True),
        ([CALLED], 3, 2, False),
        (STORED, 3, 2, False),
        ([CALLED], 2, 3, False),
        (STORED, 2, 3, True),
    ],
    ids=[
        "decided by three of five",
        "stored by three",
        "what two may store was decided",
        "two may have stored it",
        "two may have decided it",
        "a decision leaves nothing in the log",
    ],
)
def test_an_object_of_ones_own_type_that_was_forgotten_does_not_come_back(
    held: Iterable[Effect], decided_at: int, stored_at: int, *, is_forgotten: bool
) -> None:
    looked_at = 6 - min(stored_at, decided_at)
    choice = ChoiceRule("cart/*", {"Call/Ok": (looked_at, decided_at), "Blind/Ok": (0, stored_at)}, "clock")
    replicas = tuple(ReplicaInfo(f"r{number}", f"http://r{number}:1") for number in range(1, 6))
    document = checked(ClusterDocument("test", replicas, (choice,), types={"cart": "shop:Cart"}))
    found = sources(held)
    expected = [found[id] for id in ("r1", "r2", "r3")] if is_forgotten else list(found.values())
    assert relevant(OWN, found, document) == expected


def test_a_register_is_never_taken_for_forgotten() -> None:
    """It keeps its value for good, so that a floor says nothing of it."""
    held = DECIDED.state
    found = sources([PutState(ObjectState("register/r", accepted=held.accepted, summary=held.summary))])
    assert relevant("register/r", found, cluster((3, 3))) == list(found.values())


def test_what_was_asked_in_vain_since_a_key_was_forgotten_is_kept() -> None:
    """r2 has accepted that nothing was done, for an operation with an idempotency key, and none below that may be accepted."""
    found = sources([DECIDED])
    later = make_ballot(make(5, 0, "a"), 1)
    found["r2"].apply(PutState(ObjectState(KEY, promised=make(5, 0, "a"), accepted=later)))
    held = [source for source in relevant(KEY, found, cluster((3, 3))) if source.state(KEY) is not None]
    [made] = [effect.state for effect in union(KEY, held) if isinstance(effect, PutState)]
    assert (made.accepted, made.summary) == (later, Summary())


def test_what_a_store_of_now_holds_was_not_forgotten_whatever_a_backup_lacks() -> None:
    """A put that is fenced is decided by a recovery, above a floor that says nothing of it: r3's backup is of before."""
    found = sources([DECIDED])
    assert relevant(KEY, found, cluster((3, 3)), current=["r1", "r2", "r4"]) == list(found.values())
    assert len(relevant(KEY, found, cluster((3, 3)), current=["r1", "r2", "r3"])) == 3, "r4's is the backup"
