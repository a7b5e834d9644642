"""Front ends with the same knowledge choose the same host, and only the objects of one that goes move."""

from collections import Counter

from msgspec.structs import replace

from quorate.client_sdk.protocol.configurations import joint
from quorate.client_sdk.protocol.coordinators import KNOWN_S, PAUSE_S, Coordinators
from tests.unit.client_sdk.scripted import document_of

DOCUMENT = document_of("r1", "r2", "r3")
NAMES = [f"queue/q{number}" for number in range(300)]


def coordinators_of(own: str | None = None, at_s: float = 0.0) -> Coordinators:
    """A front end that has just heard of all replicas."""
    coordinators = Coordinators(DOCUMENT, own)
    hear_all(coordinators, at_s)
    return coordinators


def hear_all(coordinators: Coordinators, at_s: float) -> None:
    for replica in DOCUMENT.votes:
        coordinators.heard(replica, "i", at_s)


def test_objects_are_spread_over_all_replicas_and_every_front_end_spreads_them_alike() -> None:
    coordinators = [coordinators_of().coordinator_of(name, 0.0) for name in NAMES]
    assert coordinators == [coordinators_of().coordinator_of(name, 0.0) for name in NAMES]
    assert all(times > len(NAMES) / 6 for times in Counter(coordinators).values())
    assert len(set(coordinators)) == 3


def test_without_a_replica_only_its_objects_move_and_come_back_later() -> None:
    coordinators = coordinators_of()
    before = {name: coordinators.coordinator_of(name, 0.0) for name in NAMES}
    coordinators.failed("r1", 0.0)
    after = {name: coordinators.coordinator_of(name, 0.0) for name in NAMES}
    assert "r1" not in after.values()
    assert all(after[name] == coordinator for name, coordinator in before.items() if coordinator != "r1")
    hear_all(coordinators, PAUSE_S)
    assert {name: coordinators.coordinator_of(name, PAUSE_S) for name in NAMES} == before


def test_the_own_replica_is_not_asked_nor_is_another_one_in_its_place() -> None:
    everybody, embedded = coordinators_of(), coordinators_of("r2")
    for name in NAMES:
        coordinator = everybody.coordinator_of(name, 0.0)
        assert embedded.coordinator_of(name, 0.0) == (None if coordinator == "r2" else coordinator)


def test_nobody_is_asked_when_all_are_silent() -> None:
    coordinators = coordinators_of()
    for replica in DOCUMENT.votes:
        coordinators.failed(replica, 0.0)
    assert coordinators.coordinator_of("queue/q", 0.0) is None
    assert coordinators.to_greet("queue/q", 0.0) == []


def test_those_not_heard_of_lately_are_greeted_once_in_a_while_and_the_next_one_serves_meanwhile() -> None:
    coordinators = coordinators_of(at_s=0.0)
    first, second, third = coordinators.ranked("queue/q")
    assert coordinators.to_greet("queue/q", 0.0) == [], "the first is known"
    coordinators.heard(second, "i", KNOWN_S)
    assert coordinators.coordinator_of("queue/q", KNOWN_S) == second
    assert coordinators.to_greet("queue/q", KNOWN_S) == [first], (
        "and not the third, which would not be asked anyway"
    )
    assert coordinators.to_greet("queue/q", KNOWN_S) == [], "it is being greeted"
    assert coordinators.to_greet("queue/q", KNOWN_S + PAUSE_S) == [first, second, third], (
        "an answer may be lost"
    )
    coordinators.heard(first, "i", KNOWN_S + PAUSE_S)
    assert coordinators.coordinator_of("queue/q", KNOWN_S + PAUSE_S) == first


def test_one_whose_clock_is_far_off_is_neither_asked_nor_greeted_until_it_is_right() -> None:
    coordinators = coordinators_of()
    first, second, _ = coordinators.ranked("queue/q")
    coordinators.note_clock(first, is_near=False)
    assert coordinators.coordinator_of("queue/q", 0.0) == second
    assert first not in coordinators.to_greet("queue/q", KNOWN_S)
    coordinators.note_clock(first, is_near=True)
    assert coordinators.coordinator_of("queue/q", 0.0) == first


def test_an_incarnation_is_known_for_a_while_after_it_was_heard() -> None:
    coordinators = Coordinators(DOCUMENT, None)
    assert coordinators.incarnation_of("r1", 0.0) is None
    coordinators.heard("r1", "i1", 0.0)
    assert coordinators.incarnation_of("r1", KNOWN_S - 0.1) == "i1"
    assert coordinators.incarnation_of("r1", KNOWN_S) is None
    coordinators.heard("r1", "i2", 10.0)
    coordinators.failed("r1", 10.0)
    assert coordinators.incarnation_of("r1", 10.0) is None


def test_members_of_now_decide_and_those_of_before_do_not() -> None:
    coordinators = coordinators_of()
    assert set(coordinators.ranked("queue/q")) == {"r1", "r2", "r3"}
    coordinators.follow(document_of("r1", "r4"))
    assert set(coordinators.ranked("queue/q")) == {"r1", "r4"}


def test_who_has_logs_to_take_in_first_is_not_asked() -> None:
    """A learner, and one that comes with the change under way: what it is asked may not be answered in time."""
    old, new = document_of("r1", "r2", "r3"), document_of("r2", "r3", "r4")
    coordinators = Coordinators(joint(old, new), None)
    assert set(coordinators.ranked("queue/q")) == {"r2", "r3"}
    coordinators.follow(new)
    assert set(coordinators.ranked("queue/q")) == {"r2", "r3", "r4"}
    learner = replace(new, replicas=(*new.replicas[:2], replace(new.replicas[2], votes=0)))
    coordinators.follow(learner)
    assert set(coordinators.ranked("queue/q")) == {"r2", "r3"}
    coordinators.follow(joint(new, learner))
    assert set(coordinators.ranked("queue/q")) == {"r2", "r3"}, "it is to have no vote any more"
    coordinators.follow(joint(old, document_of("r4", "r5")))
    assert set(coordinators.ranked("queue/q")) == {"r1", "r2", "r3", "r4", "r5"}
