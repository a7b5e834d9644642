"""Decisions of which nobody told that they are made: when they are given out to be finished."""

from itertools import chain

import pytest
from msgspec.structs import replace

from quorate.adts.types.catalogue import adt_of
from quorate.replica.protocol import undecided
from quorate.replica.protocol.log import ObjectState
from quorate.replica.protocol.undecided import AFTER_S, SameQuorums, Undecided
from tests.unit.replica.protocol.test_acceptor import ballot

NAME = "register/x"


def alike(name: str) -> SameQuorums:
    """All objects of a type have the same quorums."""
    return "*", adt_of(name)


class OfOne:
    """A store with one object, which was accepted and not committed."""

    def __init__(self) -> None:
        self.held: ObjectState | None = ObjectState(NAME, accepted=ballot(5))
        self.undecided: dict[str, None] = {NAME: None}

    def state(self, name: str) -> ObjectState | None:
        """See Store."""
        assert name == NAME
        return self.held

    def accept(self, us: int) -> None:
        """Something else is accepted."""
        assert self.held is not None
        self.held, self.undecided = replace(self.held, accepted=ballot(us)), {NAME: None}

    def commit(self) -> None:
        """Somebody tells that it is decided."""
        assert self.held is not None
        self.held = replace(self.held, committed=self.held.accepted)


def test_it_is_given_out_once_it_has_waited_for_long() -> None:
    store, waiting = OfOne(), Undecided(alike)
    assert waiting.due(store, 0.0, 9) == []
    assert store.undecided == {}, "it is noted"
    assert waiting.due(store, AFTER_S - 0.1, 9) == []
    assert waiting.due(store, AFTER_S, 9) == [NAME]


def test_an_object_that_is_always_being_decided_is_left_alone_until_nobody_goes_on() -> None:
    """It has an accept without its commit whenever one looks, and who finishes it would take the term from its steady owner."""
    store, waiting = OfOne(), Undecided(alike)
    for second in range(10 * int(AFTER_S)):
        store.accept(5 + second)
        assert waiting.due(store, float(second), 9) == []
    vanished_s = 10 * AFTER_S - 1
    found = [second for second in range(100) if waiting.due(store, vanished_s + second, 9)]
    assert AFTER_S <= found[0] <= 2 * AFTER_S


def test_what_is_decided_or_forgotten_by_then_is_not_given_out() -> None:
    for is_forgotten in (False, True):
        store, waiting = OfOne(), Undecided(alike)
        waiting.due(store, 0.0, 9)
        store.commit()
        store.held = None if is_forgotten else store.held
        assert waiting.due(store, AFTER_S, 9) == []


def test_what_could_not_be_finished_is_given_out_again_less_and_less_often() -> None:
    store, waiting = OfOne(), Undecided(alike)
    found = [second for second in range(1200) if waiting.due(store, float(second), 9)]
    assert found == [5, 15, 35, 75, 155, 315, 635, 955]
    store.commit()
    assert not any(waiting.due(store, 1200.0 + second, 9) for second in range(1000))


def test_tries_that_leave_another_accept_each_time_become_rarer_too() -> None:
    """As where replicas that accept are up, and too few to decide."""
    store, waiting, found = OfOne(), Undecided(alike), list[int]()
    for second in range(1200):
        if waiting.due(store, float(second), 9):
            found.append(second)
            store.accept(100 + second)
    assert found == [5, 25, 65, 145, 305, 625]


def test_a_round_looks_at_some_of_many_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undecided, "LOOKS_MAX", 2)
    store, waiting = OfOne(), Undecided(alike)
    names = [f"register/{number}" for number in range(5)]
    monkeypatch.setattr(store, "state", lambda name: ObjectState(name, accepted=ballot(5)))
    store.undecided = dict.fromkeys(names)
    assert waiting.due(store, 0.0, 9) == []
    found = [waiting.due(store, AFTER_S, 9) for _ in range(3)]
    assert [len(each) for each in found] == [2, 2, 1]
    assert sorted(chain.from_iterable(found)) == names


def test_of_more_objects_than_may_wait_some_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undecided, "WAITING_MAX", 0)
    store, waiting = OfOne(), Undecided(alike)
    assert not any(waiting.due(store, float(second), 9) for second in range(100))


def test_a_round_gives_out_no_more_than_it_was_asked_for() -> None:
    store, waiting = OfOne(), Undecided(alike)
    waiting.due(store, 0.0, 9)
    assert waiting.due(store, AFTER_S, 0) == []
    assert waiting.due(store, AFTER_S, 1) == [NAME]


def test_those_that_nobody_can_decide_hold_up_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 that came at once held up the first try of objects with other quorums for a minute."""
    store, waiting = OfOne(), Undecided(alike)
    monkeypatch.setattr(store, "state", lambda name: ObjectState(name, accepted=ballot(5)))
    many = [f"register/{number}" for number in range(100)]
    store.undecided = dict.fromkeys(many)
    waiting.due(store, 0.0, 4)
    store.undecided = {"queue/q": None}
    waiting.due(store, 1.0, 4)
    assert "queue/q" in waiting.due(store, 1.0 + AFTER_S, 4)
    found = [name for second in range(25) for name in waiting.due(store, 7.0 + second / 10, 4)]
    assert len(set(found)) == len(found) == 97, "all others are given out before any is again"
    store.undecided = {"register/new": None}
    waiting.due(store, 100.0, 0)
    assert "register/new" in waiting.due(store, 100.0 + AFTER_S, 4), "those that were tried go behind"
