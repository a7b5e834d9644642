"""What a store remembers of other replicas' stores: how many that are no members, and what is forgotten when members change."""

import pytest

from quorate.replica.protocol.witness import Witness
from quorate.replica.store.peer_records import CANDIDATES_MAX, AboutOthers
from quorate.replica.store.store import Store
from quorate.timestamps.timestamp import make

MEMBERS = ("r1", "r2", "r3")


def witness(store: str) -> Witness:
    return Witness(store, make(1_000_000, 0, "site"), f"born-{store}")


@pytest.fixture
def others(store: Store) -> AboutOthers:
    """What r1 remembers of the other two members."""
    for name in ("r2", "r3"):
        store.others.put_witness(name, witness(name))
    return store.others


def test_so_many_that_are_no_members_have_room_beside_the_members(others: AboutOthers) -> None:
    for number in range(CANDIDATES_MAX):
        assert others.has_room(f"c{number}", MEMBERS)
        others.put_witness(f"c{number}", witness("a"))
    assert not others.has_room("one-more", MEMBERS)
    assert others.has_room("c0", MEMBERS), "it is noted already, and may be made anew"
    assert others.has_room("one-more", (*MEMBERS, "c0")), "who becomes a member leaves its place"


def test_members_alone_are_remembered_and_of_new_ones_the_store_that_is_named(others: AboutOthers) -> None:
    for name in ("r4", "r5", "r6"):
        others.put_witness(name, witness(name))
    others.keep(("r1", "r2", "r4", "r5"), {"r4": "r4", "r5": "another"})
    remembered = {name: others.witness(name) for name in ("r2", "r3", "r4", "r5", "r6")}
    assert remembered == {"r2": witness("r2"), "r3": None, "r4": witness("r4"), "r5": None, "r6": None}


def test_of_who_was_a_member_before_any_store_stays(others: AboutOthers) -> None:
    others.keep(MEMBERS, {})
    assert (others.witness("r2"), others.witness("r3")) == (witness("r2"), witness("r3"))


def test_what_was_forgotten_is_so_after_the_transaction_alone(others: AboutOthers, store: Store) -> None:
    store.commit()
    others.keep(("r1", "r2"), {})
    store.rollback()
    assert others.witness("r3") == witness("r3")
    others.keep(("r1", "r2"), {})
    store.commit()
    store.rollback()
    assert others.witness("r3") is None
