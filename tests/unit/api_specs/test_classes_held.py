"""Which quorums the replicas that vote hold while the cluster changes."""

from quorate.api_specs.classes_held import classes_held
from quorate.api_specs.cluster import ChoiceRule, ClusterDocument, ReplicaInfo
from quorate.client_sdk.protocol.configurations import joint


def test_one_that_is_to_become_a_member_has_no_vote_in_the_configuration_before() -> None:
    infos = tuple(ReplicaInfo(f"r{n}", f"http://127.0.0.1:{n}") for n in (1, 2, 3, 4))
    old = ClusterDocument("c", infos[:3], (ChoiceRule("queue/*", {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1)}),))
    changing = joint(old, ClusterDocument("c", infos))
    lacks = {
        each.event_class: each.lacks for each in classes_held(changing, {"r2", "r3", "r4"}) if each.lacks
    }
    assert lacks["Deq/Ok"] == "2 of 3 needed replicas answer"


def test_who_stands_in_for_the_dead_holds_the_quorums_of_the_configuration_before() -> None:
    infos = tuple(ReplicaInfo(f"r{n}", f"http://127.0.0.1:{n}") for n in (1, 2, 3, 4))
    old = ClusterDocument("c", infos[:3], (ChoiceRule("queue/*", {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1)}),))
    changing = joint(old, ClusterDocument("c", (infos[0], infos[1], infos[3])), ["r3"])
    assert all(each.is_held for each in classes_held(changing, {"r1", "r2", "r4"}))
    assert not all(each.is_held for each in classes_held(changing, {"r1", "r4"}))
