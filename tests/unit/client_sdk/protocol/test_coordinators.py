"""Front ends with the same knowledge choose the same host, and only the objects of one that goes move."""

from collections import Counter

from quorate.client_sdk.protocol.coordinators import KNOWN_S, PAUSE_S, Hosts
from tests.unit.client_sdk.scripted import document_of

DOCUMENT = document_of("r1", "r2", "r3")
NAMES = [f"queue/q{number}" for number in range(300)]


def hosts_of(own: str | None = None, at_s: float = 0.0) -> Hosts:
    """A front end that has just heard of all replicas."""
    hosts = Hosts(DOCUMENT, own)
    hear_all(hosts, at_s)
    return hosts


def hear_all(hosts: Hosts, at_s: float) -> None:
    for replica in DOCUMENT.votes:
        hosts.heard(replica, "i", at_s)


def test_objects_are_spread_over_all_replicas_and_every_front_end_spreads_them_alike() -> None:
    hosts = [hosts_of().host_of(name, 0.0) for name in NAMES]
    assert hosts == [hosts_of().host_of(name, 0.0) for name in NAMES]
    assert all(times > len(NAMES) / 6 for times in Counter(hosts).values())
    assert len(set(hosts)) == 3


def test_without_a_replica_only_its_objects_move_and_come_back_later() -> None:
    hosts = hosts_of()
    before = {name: hosts.host_of(name, 0.0) for name in NAMES}
    hosts.failed("r1", 0.0)
    after = {name: hosts.host_of(name, 0.0) for name in NAMES}
    assert "r1" not in after.values()
    assert all(after[name] == host for name, host in before.items() if host != "r1")
    hear_all(hosts, PAUSE_S)
    assert {name: hosts.host_of(name, PAUSE_S) for name in NAMES} == before


def test_the_own_replica_is_not_asked_nor_is_another_one_in_its_place() -> None:
    everybody, embedded = hosts_of(), hosts_of("r2")
    for name in NAMES:
        host = everybody.host_of(name, 0.0)
        assert embedded.host_of(name, 0.0) == (None if host == "r2" else host)


def test_nobody_is_asked_when_all_are_silent() -> None:
    hosts = hosts_of()
    for replica in DOCUMENT.votes:
        hosts.failed(replica, 0.0)
    assert hosts.host_of("queue/q", 0.0) is None
    assert hosts.to_greet("queue/q", 0.0) == []


def test_those_not_heard_of_lately_are_greeted_once_in_a_while_and_the_next_one_serves_meanwhile() -> None:
    hosts = hosts_of(at_s=0.0)
    first, second, third = hosts.ranked("queue/q")
    assert hosts.to_greet("queue/q", 0.0) == [], "the first is known"
    hosts.heard(second, "i", KNOWN_S)
    assert hosts.host_of("queue/q", KNOWN_S) == second
    assert hosts.to_greet("queue/q", KNOWN_S) == [first], "and not the third, which would not be asked anyway"
    assert hosts.to_greet("queue/q", KNOWN_S) == [], "it is being greeted"
    assert hosts.to_greet("queue/q", KNOWN_S + PAUSE_S) == [first, second, third], "an answer may be lost"
    hosts.heard(first, "i", KNOWN_S + PAUSE_S)
    assert hosts.host_of("queue/q", KNOWN_S + PAUSE_S) == first


def test_one_whose_clock_is_far_off_is_neither_asked_nor_greeted_until_it_is_right() -> None:
    hosts = hosts_of()
    first, second, _ = hosts.ranked("queue/q")
    hosts.note_clock(first, is_near=False)
    assert hosts.host_of("queue/q", 0.0) == second
    assert first not in hosts.to_greet("queue/q", KNOWN_S)
    hosts.note_clock(first, is_near=True)
    assert hosts.host_of("queue/q", 0.0) == first


def test_an_incarnation_is_known_for_a_while_after_it_was_heard() -> None:
    hosts = Hosts(DOCUMENT, None)
    assert hosts.incarnation_of("r1", 0.0) is None
    hosts.heard("r1", "i1", 0.0)
    assert hosts.incarnation_of("r1", KNOWN_S - 0.1) == "i1"
    assert hosts.incarnation_of("r1", KNOWN_S) is None
    hosts.heard("r1", "i2", 10.0)
    hosts.failed("r1", 10.0)
    assert hosts.incarnation_of("r1", 10.0) is None
