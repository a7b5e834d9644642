"""What is told of deleted keys that wait for other replicas."""

from quorate.gc.tombstones import Tombstones, Waiting
from quorate.timestamps.timestamp import make

OLD, NEW = make(1, 0, "a"), make(2, 0, "a")


def test_the_oldest_and_who_did_not_confirm_are_told_while_keys_wait() -> None:
    tombstones = Tombstones()
    tombstones.note("dictionary/d/new", NEW)
    tombstones.note("dictionary/d/old", OLD)
    tombstones.asked(frozenset({"r3", "r2"}))
    assert tombstones.waiting() == Waiting(2, OLD, NEW, ("r2", "r3"))
    tombstones.note("dictionary/d/old", None)
    assert tombstones.waiting() == Waiting(1, NEW, NEW, ("r2", "r3"))
    tombstones.asked(frozenset())
    assert tombstones.waiting() == Waiting(1, NEW, NEW, ())
    tombstones.asked(frozenset({"r2"}))
    tombstones.note("dictionary/d/new", None)
    assert tombstones.waiting() == Waiting(0, None, None, ())


def test_who_has_no_room_is_told_until_it_has_some_for_the_key_or_the_key_is_gone() -> None:
    tombstones = Tombstones()
    for name in ("a", "b"):
        tombstones.note(name, OLD)
        tombstones.offered(name, frozenset({"r2" if name == "a" else "r3"}))
    tombstones.offered("gone meanwhile", frozenset({"r1"}))
    tombstones.asked(frozenset())
    assert tombstones.waiting() == Waiting(2, OLD, OLD, ("r2", "r3"))
    tombstones.offered("a", frozenset())
    assert tombstones.waiting() == Waiting(2, OLD, OLD, ("r3",))
    tombstones.note("b", None)
    assert tombstones.waiting() == Waiting(1, OLD, OLD, ())


def test_those_looked_at_longest_ago_come_first() -> None:
    tombstones = Tombstones()
    for name in ("a", "b", "c"):
        tombstones.note(name, OLD)
    tombstones.note("a", OLD)
    assert tombstones.longest_unseen(2) == ["b", "c"]
