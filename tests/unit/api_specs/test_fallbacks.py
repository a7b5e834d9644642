"""Standing rules: two choices, the condition for the second one, and which of them is in force."""

from typing import Any, Final

import msgspec
import pytest
from msgspec.structs import replace

from quorate.api_specs import cluster
from quorate.api_specs.cluster import (
    STANDING_MAX,
    BadCluster,
    ChoiceRule,
    ClusterDocument,
    Fallback,
    ReplicaInfo,
    checked,
    from_json,
    parse,
    switch_problem,
    with_states,
)
from quorate.api_specs.configuration import configuration_of, difference, keeping_states, with_members

MEMBERS: Final = ("r1", "r2", "r3", "r4")
FILE: Final = 'name = "c"\n' + "".join(
    f'[[replicas]]\nid = "{name}"\nurl = "http://{name}:1"\n' for name in MEMBERS
)
OF_THREE: Final = "votes(2; r1:1, r2:1, r3:1)"
RULE: Final = ChoiceRule("queue/jobs", fallback=Fallback(down=("r4",), reads=OF_THREE))


def document(*rules: ChoiceRule, **votes: int) -> ClusterDocument:
    given = votes or dict.fromkeys(MEMBERS, 1)
    members = tuple(ReplicaInfo(name, f"http://{name}:1", each) for name, each in given.items())
    return checked(ClusterDocument("c", members, rules))


def with_fallback(words: str, more: str = "") -> str:
    return f'{FILE}[[choices]]\nobjects = "queue/jobs"\n{more}[choices.fallback]\n{words}\n'


def test_a_file_names_two_choices_and_the_first_is_in_force_at_first() -> None:
    found = parse(
        with_fallback(
            'down = ["r4"]\nafter_s = 5\nreads = "r1*r2 + r1*r3 + r2*r3"',
            '[choices.classes]\n"Enq/Ok" = [0, 3]\n"Deq/Ok" = [2, 3]\n',
        )
    )
    (rule,) = found.standing_rules
    assert rule.fallback == Fallback(down=("r4",), after_s=5.0, reads="r1*r2 + r1*r3 + r2*r3")
    assert not rule.has_fallen_back
    assert not found.choice_of("queue/jobs").final_of("Deq/Ok").is_met_by({"r1", "r2"})
    second = with_states(found, {"queue/jobs": True})
    assert second.choice_of("queue/jobs").final_of("Deq/Ok").is_met_by({"r1", "r2"})
    assert not second.choice_of("queue/jobs").final_of("Deq/Ok").is_met_by({"r1", "r4"})
    assert second.choice_of("queue/other").sizes("Deq/Ok") == (2, 3), "objects of no standing rule"
    assert with_states(second, {"queue/jobs": False}) == found


def test_which_choice_is_in_force_is_part_of_the_configuration_and_of_its_hash() -> None:
    first, second = document(RULE), document(RULE.in_state(True))
    assert first.hash != second.hash
    assert "Deq/Ok is" in difference(configuration_of(first), configuration_of(second))
    assert from_json(msgspec.json.decode(msgspec.json.encode(second))) == second


def test_a_rule_without_a_fallback_has_the_form_that_it_had_before_there_were_any() -> None:
    assert not {"fallback", "fallen_back"} & msgspec.to_builtins(ChoiceRule("queue/jobs")).keys()


@pytest.mark.parametrize(
    ("fallback", "live", "expected"),
    [
        (Fallback(down=("r4",)), "r1 r2 r3", True),
        (Fallback(down=("r4",)), "r1 r4", False),
        (Fallback(down=("r3", "r4")), "r1 r2 r3", False),
        (Fallback(down=("r3", "r4")), "r1 r2", True),
        (Fallback(live_below=4), "r1 r2 r3", True),
        (Fallback(live_below=4), "r1 r2 r3 r4", False),
        (Fallback(live_below=3), "r1 r2 r3 stranger", False),
    ],
)
def test_the_condition(fallback: Fallback, live: str, expected: bool) -> None:
    assert fallback.holds(MEMBERS, set(live.split())) is expected


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("after_s = 5", r'\(queue/jobs\): fallback: give either down = \["r4"\] or live_below = 4'),
        ('down = ["r4"]\nlive_below = 4', "give either down"),
        ('down = ["r5"]', "down names r5, which is no member: name members, or remove the fallback"),
        ('down = ["r4", "r4"]', "down names a member twice"),
        ("live_below = 1", "live_below is 1: use 2 to 4, the number of members"),
        ("live_below = 5", "live_below is 5: use 2 to 4"),
        ("live_below = -1", "live_below is -1: use 2 to 4"),
        ("live_below = 3", "live_below is 3: fewer members than that hold no majority of votes"),
        ('down = ["r4"]\nafter_s = 1.9', "after_s is 1.9: use 2 to 86400 seconds"),
        ('down = ["r4"]\nafter_s = 86401', "after_s is 86401: use 2 to"),
        ('down = ["r4"]\nafter_s = nan', "after_s is nan: use 2 to"),
        ('down = ["r4"]\nsoon = true', "there is no setting `soon`"),
        ('down = ["r4"]\nreads = "r1"\nwrites = "r2"', r"\(queue/jobs\): fallback: .*r1"),
        ('down = ["r4"]\nclasses = { "Deq/Ok" = [1, 1] }', r"\(queue/jobs\): fallback: "),
        ('down = ["r4"]\nreads = "r1*r9"', r"\(queue/jobs\): fallback: .*r9"),
    ],
)
def test_a_fallback_that_cannot_be_is_refused_with_the_place(words: str, sentence: str) -> None:
    with pytest.raises(BadCluster, match=sentence):
        parse(with_fallback(words))


def test_a_file_never_says_which_choice_is_in_force() -> None:
    with pytest.raises(BadCluster, match="fallen_back: the cluster writes this itself"):
        parse(with_fallback('down = ["r4"]', "fallen_back = true\n"))
    with pytest.raises(BadCluster, match="fallen_back is true for a rule with a fallback"):
        document(replace(RULE, fallen_back=False))
    with pytest.raises(BadCluster, match="fallen_back is true for a rule with a fallback"):
        document(ChoiceRule("queue/jobs", fallen_back=True))


ALL_STORE: Final = ChoiceRule("queue/other", {"Enq/Ok": (0, 4), "Deq/Ok": (1, 4)})
FEWER: Final = ChoiceRule("queue/jobs", fallback=Fallback(live_below=4))
ANY_STORES: Final = ChoiceRule("queue/other", {"Enq/Ok": (0, 1), "Deq/Ok": (4, 1), "Deq/Empty": (4, 0)})


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        (
            (RULE, ALL_STORE),
            r"\(queue/jobs\): while r4 is down no fallback could be put in force: live members do not hold all quorums of queue/other by the choice in force",
        ),
        (
            (RULE, ANY_STORES),
            "r4 could still do something alone by the choice in force for queue/other",
        ),
        (
            (RULE, ChoiceRule("register/one", reads="r4 + r1*r2*r3", writes="r1*r4 + r2*r4 + r3*r4")),
            "live members do not hold all quorums of register/one",
        ),
        (
            (replace(RULE, fallback=Fallback(down=("r4",), reads="r4", writes="r4")),),
            "live members do not hold all quorums of queue/jobs by the choice to come",
        ),
        (
            (ChoiceRule("queue/jobs", fallback=Fallback(down=("r3", "r4"), reads="r1")),),
            "while r3 and r4 are down no fallback could be put in force: live members do not hold all quorums of queue/jobs",
        ),
        (
            (RULE, ChoiceRule("queue/other", {}, fallback=Fallback(down=("r4",), reads="r4", writes="r4"))),
            "quorums of queue/other by the choice to come",
        ),
        (
            (FEWER, ANY_STORES),
            r"\(queue/jobs\): while fewer than 4 members are live no fallback could be put in force: r4 could still do something alone",
        ),
        (
            (replace(FEWER, fallback=Fallback(live_below=4, reads="r1*r2*r3*r4")),),
            "live members do not hold all quorums of queue/jobs by the choice to come",
        ),
    ],
)
def test_a_fallback_that_could_not_be_put_in_force_is_refused(
    rules: tuple[ChoiceRule, ...], sentence: str
) -> None:
    with pytest.raises(BadCluster, match=sentence):
        document(*rules)


def test_a_fallback_for_any_members_is_taken_where_it_could_be_put_in_force_for_some() -> None:
    document(replace(FEWER, fallback=Fallback(live_below=4, reads="r1")))
    document(ChoiceRule("queue/jobs", reads="r1*r2 + r1*r3", fallback=Fallback(live_below=4, reads="r1*r2")))


def of_five(*rules: ChoiceRule) -> ClusterDocument:
    return checked(
        ClusterDocument("c", tuple(ReplicaInfo(f"r{n}", f"http://r{n}:1") for n in range(1, 6)), rules)
    )


def test_a_fallback_for_two_failures_is_taken_where_another_one_is_in_force_after_the_first() -> None:
    four = {"Enq/Ok": (0, 2), "Deq/Ok": (4, 2), "Deq/Empty": (4, 0)}
    second = ChoiceRule("queue/b", fallback=Fallback(live_below=4, reads="votes(2; r1:1, r2:1, r3:1)"))
    with pytest.raises(BadCluster, match="fewer than 4 members are live no fallback could be"):
        of_five(ChoiceRule("queue/a", four), second)
    of_five(ChoiceRule("queue/a", four, fallback=Fallback(live_below=5)), second)


def test_sets_of_live_members_are_not_tried_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "LIVE_SETS_MAX", 3)
    document(FEWER, ANY_STORES)


def test_what_a_switch_needs_of_live_members() -> None:
    first = document(RULE)
    second = with_states(first, {"queue/jobs": True})
    assert switch_problem(first, second, {"r1", "r2", "r3"}) == ""
    assert switch_problem(second, first, MEMBERS) == ""
    assert "quorums of queue/jobs by the choice in force" in switch_problem(first, second, {"r1", "r2"})
    assert "objects without a rule by the choice in force" in switch_problem(second, first, {"r1", "r2"})
    assert "quorums of queue/jobs by the choice in force" in switch_problem(second, first, {"r3", "r4"})
    eager = document(ANY_STORES)
    assert switch_problem(eager, first, MEMBERS) == ""


def test_bounds_of_standing_rules_and_outboxes_beside_them() -> None:
    many = [replace(RULE, objects=f"queue/q{number}") for number in range(STANDING_MAX + 1)]
    document(*many[1:])
    with pytest.raises(BadCluster, match="at most 20 of them with a fallback"):
        document(*many)
    with pytest.raises(BadCluster, match="a cluster whose queues have outboxes cannot change: remove one"):
        document(RULE, ChoiceRule("queue/other", outbox=True))


@pytest.mark.parametrize(
    ("rule", "before", "expected"),
    [
        (RULE, RULE.in_state(True), True),
        (RULE, RULE, False),
        (replace(RULE, fallback=Fallback(down=("r4",), after_s=60.0)), RULE.in_state(True), True),
        (replace(RULE, fallback=Fallback(down=("r3",))), RULE.in_state(True), False),
        (replace(RULE, fallback=Fallback(live_below=4)), RULE.in_state(True), False),
        (ChoiceRule("queue/jobs"), RULE.in_state(True), False),
        (RULE, ChoiceRule("queue/jobs"), False),
        (replace(RULE, objects="queue/more"), RULE.in_state(True), False),
    ],
)
def test_a_new_file_keeps_the_states_of_rules_whose_condition_stays(
    rule: ChoiceRule, before: ChoiceRule, expected: bool
) -> None:
    kept = keeping_states(document(rule), document(before))
    assert [each.has_fallen_back for each in kept.choices] == [expected]
    assert with_states(kept, {rule.objects: False}) == document(rule)


def members(**votes: int) -> list[ReplicaInfo]:
    return [ReplicaInfo(name, f"http://{name}:1", each) for name, each in votes.items()]


def test_members_that_a_fallback_names_stay() -> None:
    with pytest.raises(BadCluster, match="down names r4, which is no member: name members, or remove the"):
        with_members(document(RULE), members(r1=1, r2=1, r3=1))
    grown = with_members(document(RULE.in_state(True)), members(r1=1, r2=1, r3=1, r4=1, r5=1))
    assert grown.choices == (RULE.in_state(True),)


def test_majorities_in_numbers_go_with_the_members_in_both_choices() -> None:
    majority: Any = {"Enq/Ok": (0, 3), "Deq/Ok": (2, 3), "Deq/Empty": (2, 0)}
    both = ChoiceRule("queue/jobs", majority, fallback=Fallback(majority, live_below=4))
    for state in (False, True):
        grown = with_members(document(both.in_state(state)), members(r1=1, r2=1, r3=1, r4=1, r5=1))
        plain = ChoiceRule("queue/jobs", fallback=Fallback(live_below=4)).in_state(state)
        assert grown.choices == (plain,)
    other: Any = {"Enq/Ok": (0, 2), "Deq/Ok": (3, 2), "Deq/Empty": (3, 0)}
    kept = ChoiceRule("queue/jobs", majority, fallback=Fallback(other, live_below=4))
    with pytest.raises(BadCluster, match=r"fallback: .*Deq"):
        with_members(document(kept), members(r1=1, r2=1, r3=1, r4=1, r5=1))
