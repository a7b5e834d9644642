"""A change of configuration: its steps, and when the old one is over."""

from typing import Any, Final

import msgspec
import pytest
from msgspec import UNSET
from msgspec.structs import replace

from quorate.adts.specification import Kind
from quorate.api_specs.cluster import (
    EPOCH_MAX,
    BadCluster,
    ChoiceRule,
    ClusterDocument,
    ReplicaInfo,
    checked,
    from_json,
    parse,
)
from quorate.client_sdk.protocol.configurations import (
    is_over,
    is_served,
    joint,
    keeps_quorums,
    moved,
    redirected,
    settled,
    taken_back,
    without,
)


def document(*members: str, **parts: Any) -> ClusterDocument:
    replicas = tuple(ReplicaInfo(name, f"http://{name}:1") for name in members)
    return checked(ClusterDocument("c", replicas, **parts))


OLD, NEW = document("r1", "r2", "r3"), document("r1", "r4", "r5")
BOTH = joint(OLD, NEW)
ENQ_ANYWHERE = ChoiceRule("queue/*", {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1)})


def test_each_step_is_a_configuration_of_its_own_with_the_next_epoch() -> None:
    after = settled(BOTH)
    assert [each.number for each in (OLD, BOTH, after)] == [0, 1, 2]
    assert len({each.hash for each in (OLD, NEW, BOTH, after)}) == 4
    assert (BOTH.former, after.former) == (OLD, None)
    assert joint(after, document("r1", "r6")).number == 3


def test_while_both_are_in_force_all_members_are_asked_and_each_quorum_has_one_of_both() -> None:
    assert BOTH.votes == dict.fromkeys(("r1", "r2", "r3", "r4", "r5"), 1)
    assert BOTH.urls["r4"] == "http://r4:1"
    initial = BOTH.choice_of("queue/q").initial_of("Deq")
    assert not initial.is_met_by({"r1", "r2", "r3"})
    assert not initial.is_met_by({"r1", "r4", "r5"})
    assert initial.is_met_by({"r1", "r2", "r4"})


LEARNER: Final = ReplicaInfo("r4", "http://r4:1", votes=0)


def test_members_without_votes_come_and_leave_with_the_same_quorums() -> None:
    learning = checked(replace(OLD, replicas=(*OLD.replicas, LEARNER)))
    assert keeps_quorums(joint(OLD, learning))
    assert keeps_quorums(joint(learning, OLD))
    both = joint(OLD, learning)
    for adt in OLD.specifications:
        old, new = both.choice_of(f"{adt}/a").sides
        assert old.initial_of_kind(Kind.DECIDE).is_met_by({"r1", "r2"})
        assert new.initial_of_kind(Kind.DECIDE).is_met_by({"r1", "r2"})
        assert not new.initial_of_kind(Kind.DECIDE).is_met_by({"r1", "r4"})


@pytest.mark.parametrize(
    ("replicas", "choices"),
    [
        ((*OLD.replicas, replace(LEARNER, votes=1)), ()),
        ((*OLD.replicas[:2], replace(OLD.replicas[2], votes=2)), ()),
        ((*OLD.replicas[:2], replace(OLD.replicas[2], votes=0)), ()),
        ((*OLD.replicas[:2], replace(LEARNER, votes=1)), ()),
        ((*OLD.replicas, LEARNER), (ENQ_ANYWHERE,)),
        (OLD.replicas, (ENQ_ANYWHERE,)),
    ],
)
def test_other_votes_or_rules_are_other_quorums(
    replicas: tuple[ReplicaInfo, ...], choices: tuple[ChoiceRule, ...]
) -> None:
    assert not keeps_quorums(joint(OLD, checked(replace(OLD, replicas=replicas, choices=choices))))


def test_a_change_that_went_elsewhere_keeps_no_quorums() -> None:
    """Others may stand in for those of its first way."""
    first = joint(OLD, checked(replace(OLD, replicas=(*OLD.replicas, replace(LEARNER, votes=1)))))
    assert redirected(first, OLD, {"r4"}).own_votes == OLD.own_votes
    assert not keeps_quorums(redirected(first, OLD, {"r4"}))


def test_one_without_votes_in_a_system_does_not_leave_with_the_same_quorums() -> None:
    """Its name stands in the rule, which has to be another one before it can leave."""
    rule = ChoiceRule("register/*", reads="r1*r4", writes="r1 + r4")
    named = checked(replace(OLD, replicas=(*OLD.replicas, LEARNER), choices=(rule,)))
    with pytest.raises(BadCluster, match="unknown replica 'r4'"):
        checked(replace(named, replicas=OLD.replicas))
    assert not keeps_quorums(joint(named, OLD))


def test_taken_back_it_is_the_old_one_under_a_later_epoch() -> None:
    back = taken_back(BOTH)
    assert (back.number, back.former, back.replicas) == (2, None, OLD.replicas)
    assert back.former_members == ("r4", "r5")


def test_an_id_is_a_member_once() -> None:
    """Another store under it has forgotten what it promised; its own holds what was forgotten meanwhile."""
    after = settled(BOTH)
    assert after.former_members == ("r2", "r3")
    assert joint(after, document("r1", "r6")).former_members == ("r2", "r3")
    with pytest.raises(BadCluster, match="r3 was a member before"):
        joint(after, document("r1", "r3"))
    moved = ReplicaInfo("r2", "http://elsewhere:1")
    with pytest.raises(BadCluster, match="r2: its url and its store stay"):
        joint(OLD, checked(replace(OLD, replicas=(*OLD.replicas[:1], moved))))


def test_a_new_replica_is_not_where_another_member_is() -> None:
    """Also where that one leaves: front ends of both configurations would take one for the other."""
    r4 = ReplicaInfo("r4", "http://r2:1")
    with pytest.raises(BadCluster, match="replica r4: at http://r2:1 is r2: start a new one elsewhere"):
        joint(OLD, checked(replace(OLD, replicas=(OLD.replicas[0], r4, OLD.replicas[2]))))
    elsewhere = replace(r4, url="http://r4:1")
    assert "r4" in joint(OLD, checked(replace(OLD, replicas=(*OLD.replicas, elsewhere)))).votes


@pytest.mark.parametrize(("by", "expected"), [({"r1"}, False), ({"r1", "r5"}, True)])
def test_it_is_served_by_those_who_hold_every_quorum(by: set[str], expected: bool) -> None:
    assert is_served(NEW, by) is expected


def test_who_may_miss_changes_anyway_keeps_nobody_from_leaving() -> None:
    old = document("r1", "r2", "r3", choices=(ChoiceRule("queue/*", consistency="eventual"),))
    assert is_over(joint(old, NEW), {"r1", "r2"})


def test_the_json_form_comes_back_and_the_first_configuration_has_the_form_that_it_always_had() -> None:
    assert from_json(msgspec.json.decode(msgspec.json.encode(BOTH))) == BOTH
    assert not {"epoch", "old"} & msgspec.to_builtins(OLD).keys()


@pytest.mark.parametrize(
    ("rules", "left", "expected"),
    [
        ((), {"r1"}, False),
        ((), {"r1", "r3"}, True),
        ((ENQ_ANYWHERE,), {"r1", "r3"}, False),
        ((ENQ_ANYWHERE,), {"r1", "r2", "r3"}, True),
    ],
)
def test_it_is_over_once_those_who_left_block_every_quorum_that_somebody_asks(
    rules: tuple[ChoiceRule, ...], left: set[str], expected: bool
) -> None:
    assert is_over(joint(document("r1", "r2", "r3", choices=rules), NEW), left) is expected


def test_a_read_of_one_replica_is_a_quorum_too() -> None:
    """All that dequeues meet is stored everywhere; who reads one replica alone must not read it any more."""
    read_one = ChoiceRule("register/*", {"Write/Ok": (0, 3), "Cas/Ok": (1, 3)})
    old = document("r1", "r2", "r3", choices=(read_one,))
    assert not is_over(joint(old, NEW), {"r1", "r2"})
    assert is_over(joint(old, NEW), {"r1", "r2", "r3"})


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        (BOTH, NEW, "changing already"),
        (OLD, replace(NEW, name="other"), "name"),
        (OLD, replace(NEW, limits=replace(NEW.limits, retry_window_s=9.0)), "limits"),
        (OLD, replace(NEW, clock=replace(NEW.clock, offset_max_s=1.0)), "clock"),
        (OLD, replace(NEW, types={"cart": "shop:Cart"}), "types"),
        (OLD, replace(NEW, choices=(ChoiceRule("queue/*", outbox=True),)), "outboxes"),
    ],
)
def test_what_cannot_change_while_it_runs_is_named(
    old: ClusterDocument, new: ClusterDocument, place: str
) -> None:
    with pytest.raises(BadCluster, match=place):
        joint(old, new)


def test_a_cluster_file_does_not_say_where_in_the_chain_it_stands() -> None:
    text = 'name = "c"\nretired = ["r9"]\n[[replicas]]\nid = "r1"\nurl = "http://r1:1"\n'
    with pytest.raises(BadCluster, match="retired"):
        parse(text)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (replace(BOTH, epoch=3, old=replace(OLD, epoch=3)), "old: it must be a configuration of before"),
        (replace(BOTH, epoch=2, old=BOTH), "old: it must be a configuration of before"),
        (replace(BOTH, epoch=-1), "counted from 0"),
        (replace(BOTH, epoch=EPOCH_MAX + 1), "counted from 0"),
        (replace(BOTH, old=replace(OLD, choices=(ChoiceRule("queue/*", {"Enq/Ok": (9, 9)}),))), "queue/*"),
    ],
)
def test_what_is_told_is_checked_with_what_it_changes_from(told: ClusterDocument, words: str) -> None:
    with pytest.raises(BadCluster) as refused:
        from_json(msgspec.json.decode(msgspec.json.encode(told)))
    assert words in str(refused.value)


OF_FOUR = document("r1", "r2", "r4")


def test_where_a_member_was_declared_dead_the_old_one_is_over_once_all_others_have_left() -> None:
    both = joint(document("r1", "r2", "r3", choices=(ENQ_ANYWHERE,)), OF_FOUR, ["r3"])
    assert both.survivors == {"r1", "r2"}
    assert not is_over(both, {"r1", "r3", "r4"}), "r2 may acknowledge an enqueue by itself"
    assert is_over(both, {"r1", "r2"})
    assert not is_over(without(replace(both, dead=UNSET), ["r3"]), {"r1"})


def test_those_declared_dead_are_of_the_change_alone() -> None:
    both = joint(OLD, OF_FOUR, ["r3"])
    for after in (settled(both), taken_back(both)):
        assert (after.declared_dead, after.survivors) == ((), frozenset())
    assert settled(both).former_members == ("r3",)
    assert from_json(msgspec.json.decode(msgspec.json.encode(both))) == both
    assert "dead" not in msgspec.to_builtins(joint(OLD, NEW))


HEAVY: Final = replace(OLD.replicas[0], votes=2)
"""With a majority of its own beside a learner and one that is dead."""


def test_a_learner_stands_in_for_nobody() -> None:
    learner = replace(OLD.replicas[1], votes=0)
    old = checked(replace(OLD, replicas=(HEAVY, learner, OLD.replicas[2])))
    assert joint(old, document("r1", "r4"), ["r3"]).survivors == {"r1"}


@pytest.mark.parametrize(
    ("dead", "words"),
    [
        (["r9"], "r9 cannot be declared dead: the members are r1, r2, r3"),
        (["r1"], "r1 is declared dead, and would still be a member: remove or replace it"),
    ],
)
def test_who_cannot_be_declared_dead_is_named(dead: list[str], words: str) -> None:
    with pytest.raises(BadCluster, match=words):
        joint(OLD, OF_FOUR, dead)


def test_a_majority_is_left_that_is_not_dead() -> None:
    with pytest.raises(BadCluster, match="without r1, r2, 1 of 3 votes are left, and a majority is needed"):
        joint(OLD, document("r3"), ["r1", "r2"])
    with pytest.raises(BadCluster, match="without r1, r2, 2 of 4 votes are left, and a majority is needed"):
        joint(document("r1", "r2", "r3", "r4"), document("r3", "r4"), ["r1", "r2"])
    with pytest.raises(BadCluster, match="while the cluster changes, and never else"):
        checked(replace(OLD, dead=("r3",)))


def test_a_change_under_way_goes_on_without_the_dead() -> None:
    both = joint(OLD, OF_FOUR)
    later = without(both, ["r3"])
    assert (later.number, later.former, later.declared_dead) == (2, OLD, ("r3",))
    assert without(later, ["r3"]).declared_dead == ("r3",)
    five = joint(document("r1", "r2", "r3", "r4", "r5"), document("r1", "r2", "r3"), ["r4"])
    assert without(five, ["r5"]).declared_dead == ("r4", "r5")


def test_whoever_stands_in_a_quorum_system_stands_in_for_the_dead_whatever_its_votes() -> None:
    """It may have stored an enqueue alone, and goes on doing so until it has left."""
    learner = replace(OLD.replicas[1], votes=0)
    anyone = ChoiceRule("queue/*", finals={"Enq": "r1 + r2 + r3"})
    old = checked(replace(OLD, replicas=(HEAVY, learner, OLD.replicas[2]), choices=(anyone,)))
    both = joint(old, document("r1", "r4"), ["r3"])
    assert both.survivors == {"r1", "r2"}
    assert not is_over(both, {"r1"})
    assert not both.choice_of("queue/q").initial_of("Deq").is_met_by({"r1", "r4"})


def test_who_is_read_only_because_any_replica_is_stands_in_for_nobody() -> None:
    learner = replace(OLD.replicas[1], votes=0)
    weak = ChoiceRule("register/*", reads="r1*r3", consistency="eventual")
    old = checked(replace(OLD, replicas=(HEAVY, learner, OLD.replicas[2]), choices=(weak,)))
    assert joint(old, document("r1", "r4"), ["r3"]).survivors == {"r1"}


def test_who_is_asked_in_a_quorum_system_alone_stands_in_for_the_dead_too() -> None:
    learner = replace(OLD.replicas[1], votes=0)
    read_there = ChoiceRule("register/*", reads="r1*r2", writes="r1*r3")
    old = checked(replace(OLD, replicas=(HEAVY, learner, OLD.replicas[2]), choices=(read_there,)))
    assert joint(old, document("r1", "r4"), ["r3"]).survivors == {"r1", "r2"}


FIVE = document(
    "r1", "r2", "r3", "r4", "r5", choices=(ChoiceRule("queue/*", {"Enq/Ok": (0, 1), "Deq/Ok": (5, 1)}),)
)
TO_COME = document("r1", "r3", "r4", "r5", "r6")
UNDER_WAY = joint(FIVE, TO_COME, ["r2"])
ELSEWHERE = redirected(UNDER_WAY, document("r1", "r4", "r5", "r6", "r7"), ["r3"])


def test_where_a_member_dies_that_was_to_stay_the_change_goes_on_to_another_configuration() -> None:
    assert (ELSEWHERE.number, ELSEWHERE.former) == (2, FIVE)
    assert ELSEWHERE.declared_dead == ("r2", "r3")
    assert settled(ELSEWHERE).former_members == ("r2", "r3")
    assert from_json(msgspec.json.decode(msgspec.json.encode(ELSEWHERE))) == ELSEWHERE
    for after in (settled(ELSEWHERE), taken_back(ELSEWHERE)):
        assert not {"dead", "given_up", "old"} & msgspec.to_builtins(after).keys()


def test_new_members_of_what_was_to_come_stand_in_too() -> None:
    """While it was to come, r3 and r6 may have stored what nobody else holds."""
    assert ELSEWHERE.survivors == {"r1", "r4", "r5", "r6"}
    initial = ELSEWHERE.choice_of("queue/q").initial_of("Deq")
    assert not initial.is_met_by({"r1", "r4", "r5", "r7"})
    assert initial.is_met_by({"r1", "r4", "r5", "r6"})
    assert not is_over(ELSEWHERE, {"r1", "r4", "r5"})
    assert is_over(ELSEWHERE, {"r1", "r4", "r5", "r6"})
    later = redirected(ELSEWHERE, document("r1", "r4", "r5", "r7"), ["r6"])
    assert later.survivors == {"r1", "r4", "r5", "r7"}
    assert later.former_members == ("r6",)
    with pytest.raises(BadCluster, match="r6 was a member before"):
        redirected(later, document("r1", "r4", "r5", "r6"), ["r7"])


def test_who_stands_in_goes_on_to_do_so_when_it_loses_its_vote() -> None:
    learner = ReplicaInfo("r6", "http://r6:1", votes=0)
    lighter = checked(
        replace(
            document("r1", "r4", "r5", "r7"), replicas=(*document("r1", "r4", "r5", "r7").replicas, learner)
        )
    )
    first = redirected(UNDER_WAY, lighter, ["r3"])
    last = checked(replace(lighter, replicas=tuple(each for each in lighter.replicas if each.id != "r7")))
    assert redirected(first, last, ["r7"]).survivors == {"r1", "r4", "r5", "r6"}


def test_the_dead_alone_do_not_end_what_others_stand_in_for() -> None:
    """Each quorum needs r2, which was declared dead by mistake, and has left; but the cluster's own register has majorities."""
    needed = ChoiceRule("*", reads="r2*r1 + r2*r3 + r2*r4", writes="r2")
    both = joint(document("r1", "r2", "r3", "r4", choices=(needed,)), document("r1", "r3", "r4"), ["r2"])
    assert not is_over(both, {"r2"})


def test_a_new_member_that_dies_leaves_the_change_without_a_vote_of_before() -> None:
    assert redirected(UNDER_WAY, document("r1", "r3", "r4", "r5"), ["r6"]).declared_dead == ("r2",)


@pytest.mark.parametrize(
    ("members", "dead", "words"),
    [
        (("r1", "r4", "r5"), ["r3"], "r6 cannot leave before the change under way has come to its end"),
        (("r1", "r3", "r4", "r5", "r6"), ["r6"], "r6 is declared dead, and would still be a member"),
        (("r1", "r6"), ["r3", "r4", "r5"], "without r3, r4, r5, 2 of the 5 votes to come are left"),
        (("r1", "r5", "r6"), ["r3", "r4"], "without r2, r3, r4, 2 of 5 votes are left, and a majority"),
    ],
)
def test_a_change_does_not_go_just_anywhere(members: tuple[str, ...], dead: list[str], words: str) -> None:
    with pytest.raises(BadCluster, match=words):
        redirected(UNDER_WAY, document(*members), dead)


def test_half_of_the_votes_to_come_are_no_majority() -> None:
    of_four = joint(FIVE, document("r1", "r3", "r4", "r6"), ["r2"])
    with pytest.raises(BadCluster, match="without r3, r6, 2 of the 4 votes to come are left"):
        redirected(of_four, document("r1", "r4", "r7"), ["r3", "r6"])


def test_a_new_member_comes_to_no_place_of_one_that_was_to_come() -> None:
    r7 = ReplicaInfo("r7", "http://r6:1")
    new = checked(replace(TO_COME, replicas=(*TO_COME.replicas[:-1], r7)))
    with pytest.raises(BadCluster, match="replica r7: at http://r6:1 is r6"):
        redirected(UNDER_WAY, new, ["r6"])


def test_who_is_said_to_stand_in_is_a_member() -> None:
    with pytest.raises(BadCluster, match="given_up: r9 is no member"):
        checked(replace(ELSEWHERE, given_up=("r9",)))


def test_where_a_member_moves_nothing_else_changes() -> None:
    for before in (OLD, BOTH):
        after = moved(before, {"r1": "http://r9:9"})
        assert (after.number, after.urls["r1"]) == (before.number + 1, "http://r9:9")
        assert after.votes == before.votes
        for each in (after, *([] if after.former is None else [after.former])):
            assert [member.placed_in for member in each.replicas] == [after.number, 0, 0]
        assert moved(after, {"r1": "http://r1:1"}).urls == before.urls
        assert from_json(msgspec.json.decode(msgspec.json.encode(after))) == after
    assert taken_back(moved(BOTH, {"r2": "http://r9:9"})).urls["r2"] == "http://r9:9"
    swapped = moved(OLD, {"r1": "http://r2:1", "r2": "http://r1:1"})
    assert swapped.urls == {"r1": "http://r2:1", "r2": "http://r1:1", "r3": "http://r3:1"}


@pytest.mark.parametrize(
    ("at", "place", "words"),
    [
        (OLD, "http://r2:1", "replica r2: at http://r2:1 is r1: give it a place of its own"),
        (BOTH, "http://r4:1", "replica r4: at http://r4:1 is r1"),
        (
            checked(replace(OLD, replicas=(ReplicaInfo("r1", "https://r1:1"),))),
            "http://r9:9",
            "r1 has an https:// URL",
        ),
    ],
)
def test_a_member_does_not_move_just_anywhere(at: ClusterDocument, place: str, words: str) -> None:
    with pytest.raises(BadCluster, match=words):
        moved(at, {"r1": place})


def test_in_which_configuration_a_member_moved_is_a_number_of_one() -> None:
    for number in (0, EPOCH_MAX + 1):
        with pytest.raises(BadCluster, match="the cluster writes this itself"):
            checked(replace(OLD, replicas=(replace(OLD.replicas[0], moved=number),)))
