"""Front ends with the same knowledge choose the same host, and only the objects of one that goes move."""

from collections import Counter

from quorate.client_sdk.hosts import KNOWN_S, PAUSE_S, Hosts
from tests.client_sdk.scripted import document_of

DOCUMENT = document_of("r1", "r2", "r3")
NAMES = [f"queue/q{number}" for number in range(300)]


def test_objects_are_spread_over_all_replicas_and_every_front_end_spreads_them_alike() -> None:
    hosts = [Hosts(DOCUMENT, None).host_of(name, 0.0) for name in NAMES]
    assert hosts == [Hosts(DOCUMENT, None).host_of(name, 0.0) for name in NAMES]
    assert all(times > len(NAMES) / 6 for times in Counter(hosts).values())
    assert len(set(hosts)) == 3


def test_without_a_replica_only_its_objects_move_and_come_back_later() -> None:
    hosts = Hosts(DOCUMENT, None)
    before = {name: hosts.host_of(name, 0.0) for name in NAMES}
    hosts.failed("r1", 0.0)
    after = {name: hosts.host_of(name, 0.0) for name in NAMES}
    assert "r1" not in after.values()
    assert all(after[name] == host for name, host in before.items() if host != "r1")
    assert {name: hosts.host_of(name, PAUSE_S) for name in NAMES} == before


def test_the_own_replica_is_not_asked_nor_is_another_one_in_its_place() -> None:
    everybody, embedded = Hosts(DOCUMENT, None), Hosts(DOCUMENT, "r2")
    for name in NAMES:
        host = everybody.host_of(name, 0.0)
        assert embedded.host_of(name, 0.0) == (None if host == "r2" else host)


def test_nobody_is_asked_when_all_are_silent() -> None:
    hosts = Hosts(DOCUMENT, None)
    for replica in DOCUMENT.votes:
        hosts.failed(replica, 0.0)
    assert hosts.host_of("queue/q", 0.0) is None


def test_an_incarnation_is_known_for_a_while_after_it_was_heard() -> None:
    hosts = Hosts(DOCUMENT, None)
    assert hosts.incarnation_of("r1", 0.0) is None
    hosts.heard("r1", "i1", 0.0)
    assert hosts.incarnation_of("r1", KNOWN_S - 0.1) == "i1"
    assert hosts.incarnation_of("r1", KNOWN_S) is None
    hosts.heard("r1", "i2", 10.0)
    hosts.failed("r1", 10.0)
    assert hosts.incarnation_of("r1", 10.0) is None
