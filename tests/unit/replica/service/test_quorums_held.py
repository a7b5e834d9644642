"""The health of quorums: what the service asks for each event class, and who counts as voting."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorate.adts.types.queue import Queue
from quorate.api_specs.classes_held import ClassHeld, classes_held, needed_by, rules_in_force
from quorate.api_specs.cluster import ChoiceRule, ClusterDocument, ReplicaInfo
from quorate.quorums.choices.choice import QuorumChoice
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.service import quorums_held
from quorate.replica.service.member import Member, Peer
from quorate.replica.service.quorums_held import FRESH_S, PLACES_TOLD_MAX, Held, held_now, voting_of

REPLICAS = tuple(ReplicaInfo(f"r{n}", f"http://127.0.0.1:700{n}") for n in (1, 2, 3))
VOTES = {"r1": 1, "r2": 1, "r3": 1}


def held(choice: QuorumChoice, *up: str) -> set[str]:
    return {name for name in choice.classes if all(each.is_met_by(up) for each in needed_by(choice, name))}


def test_a_class_is_held_when_the_service_finds_all_that_it_asks_for() -> None:
    choice = QuorumChoice(Queue(), VOTES, {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1)})
    assert held(choice) == set()
    assert held(choice, "r1", "r2", "r3") == set(choice.classes)
    assert held(choice, "r2") == {"Enq/Ok"}


def test_a_peek_needs_what_a_dequeue_needs_for_it_settles_the_front() -> None:
    choice = QuorumChoice(
        Queue(), VOTES, {"Enq/Ok": (0, 3), "Deq/Ok": (1, 3), "Peek/Ok": (1, 0), "Peek/Empty": (1, 0)}
    )
    assert {"Peek/Ok", "Deq/Ok", "Enq/Ok"}.isdisjoint(held(choice, "r1", "r2"))
    assert "Size/Ok" in held(choice, "r1", "r2")


def test_only_who_bore_witness_lately_counts() -> None:
    now_s = 1000.0
    peers = {
        "voting": Peer(True, votes=True, met_s=now_s - FRESH_S),
        "old": Peer(True, votes=True, met_s=now_s - FRESH_S - 0.1),
        "lost-its-store": Peer(True, votes=False, met_s=now_s),
        "down": Peer(False, votes=False, met_s=now_s),
    }
    assert voting_of("r1", peers, now_s) == {"r1", "voting"}
    assert voting_of(None, peers, now_s) == {"voting"}


def test_rules_are_told_by_number_and_not_by_the_names_of_objects() -> None:
    classes = tuple(ClassHeld(rule, "queue/secret-*", "queue", "Deq/Ok", rule == 1) for rule in (1, 2, 0))
    sentence = Held(classes, frozenset(), 0.0).lacking()
    assert sentence == "rule 2, queue: Deq/Ok; without a rule, queue: Deq/Ok"
    many = tuple(ClassHeld(rule, "*", "queue", "Deq/Ok", False) for rule in range(1, PLACES_TOLD_MAX + 6))
    assert Held(many, frozenset(), 0.0).lacking().endswith("; 5 more rules")


def test_the_default_is_in_force_for_types_that_no_rule_covers_wholly() -> None:
    document = ClusterDocument("test", REPLICAS, (ChoiceRule("queue/*"), ChoiceRule("queue/late-*")))
    assert [(rule.objects, adt) for rule, adt in rules_in_force(document)] == [
        ("queue/*", "queue"),
        ("*", "register"),
        ("*", "dictionary"),
    ]


def test_with_eventual_consistency_a_peek_settles_nothing() -> None:
    assert "Peek/Ok" not in held(QuorumChoice(Queue(), VOTES), "r1")
    assert "Peek/Ok" in held(QuorumChoice(Queue(), VOTES, consistency="eventual"), "r1")


def test_what_is_held_is_reckoned_once_until_a_voter_or_the_configuration_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asked, without a token, had it reckoned each time: callers waited ten times as long."""
    reckoned: list[frozenset[str]] = []

    def counting(document: ClusterDocument, voting: frozenset[str]) -> Iterator[ClassHeld]:
        reckoned.append(voting)
        return classes_held(document, voting)

    monkeypatch.setattr(quorums_held, "classes_held", counting)
    document = ClusterDocument("test", REPLICAS)
    member = Member(open_folder(tmp_path / "data", document, "r1"))
    try:
        own = frozenset() if member.trouble is not None else frozenset({"r1"})
        for names in ((), ("r2",), ("r2", "r3"), ("r3",)):
            member.peers.clear()
            member.peers.update((each, Peer(True, votes=True, met_s=time.monotonic())) for each in names)
            voting = own.union(names)
            for _ in range(3):
                assert held_now(member).classes == tuple(classes_held(document, voting))
            assert reckoned.pop() == voting
            assert reckoned == []
        other = ClusterDocument("test", REPLICAS, (ChoiceRule("queue/*"),))
        monkeypatch.setattr(member.configured, "document", other)
        assert held_now(member).classes == tuple(classes_held(other, own | {"r3"}))
    finally:
        member.close()
