"""What is told of deleted keys that wait for other replicas."""

from quorate.gc.tombstones import Tombstones, Waiting
from quorate.timestamps.timestamp import make

OLD, NEW = make(1, 0, "a"), make(2, 0, "a")


def test_the_oldest_and_who_did_not_confirm_are_told_while_keys_wait() -> None:
    tombstones = Tombstones()
    tombstones.note("dictionary/d/new", NEW)
    tombstones.note("dictionary/d/old", OLD)
    tombstones.tried("dictionary/d/new", frozenset({"r3"}))
    tombstones.tried("dictionary/d/old", frozenset({"r3", "r2"}))
    tombstones.tried("dictionary/d/gone meanwhile", frozenset({"r1"}))
    assert tombstones.waiting() == Waiting(2, OLD, ("r2", "r3"))
    tombstones.note("dictionary/d/old", None)
    assert tombstones.waiting() == Waiting(1, NEW, ("r3",))
    tombstones.tried("dictionary/d/new", frozenset())
    assert tombstones.waiting() == Waiting(1, NEW, ())
    tombstones.tried("dictionary/d/new", frozenset({"r3"}))
    tombstones.note("dictionary/d/new", None)
    assert tombstones.waiting() == Waiting(0, None, ())


def test_those_looked_at_longest_ago_come_first() -> None:
    tombstones = Tombstones()
    for name in ("a", "b", "c"):
        tombstones.note(name, OLD)
    tombstones.note("a", OLD)
    assert tombstones.longest_unseen(2) == ["b", "c"]
