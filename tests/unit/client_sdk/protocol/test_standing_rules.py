"""When standing rules are switched, and by whom: looks, one after another, by a clock of the test's."""

from collections.abc import Collection
from typing import Final

import msgspec
import pytest
from msgspec.structs import replace

from quorate.adts.log import Value
from quorate.adts.types.catalogue import CONFIGURATION
from quorate.api_specs.cluster import (
    ChoiceRule,
    ClusterDocument,
    Fallback,
    ReplicaInfo,
    checked,
    with_states,
)
from quorate.client_sdk.protocol.configurations import joint, settled, taken_back
from quorate.client_sdk.protocol.core.values import CompareAndSet, Done
from quorate.client_sdk.protocol.reconfiguration import Ask, Look, Looked, Perform
from quorate.client_sdk.protocol.standing_rules import (
    GAP_S_MAX,
    STAND_IN_S,
    STUCK_S_MAX,
    Move,
    StandingRules,
    Waits,
    states_of,
)

MEMBERS: Final = ("r1", "r2", "r3", "r4")
ALL: Final = frozenset(MEMBERS)
LEFT: Final = ALL - {"r4"}
RULE: Final = ChoiceRule(
    "queue/jobs",
    fallback=Fallback(down=("r4",), after_s=10.0, reads="votes(2; r1:1, r2:1, r3:1)"),
)
OTHER: Final = ChoiceRule("register/*", fallback=Fallback(live_below=4, after_s=20.0))


def document(*rules: ChoiceRule) -> ClusterDocument:
    return checked(
        ClusterDocument("c", tuple(ReplicaInfo(name, f"http://{name}:1") for name in MEMBERS), rules)
    )


FIRST: Final = document(RULE)
SECOND: Final = with_states(FIRST, {"queue/jobs": True})
BOTH: Final = joint(FIRST, SECOND)
FALLEN: Final = settled(BOTH)
SECOND_AGAIN: Final = settled(joint(FALLEN, SECOND))
BACK: Final = joint(FALLEN, with_states(FALLEN, {"queue/jobs": False}))


class Looking:
    """One member's looks, each second."""

    def __init__(self, at: ClusterDocument = FIRST, own: str = "r1", now_s: float = 1000.0) -> None:
        self.rules = StandingRules(own)
        self.at = at
        self.now_s = now_s
        self.found: Move | Waits | None = self.rules.look(at, ALL, now_s)

    def look(self, live: Collection[str], seconds: int = 1) -> Move | Waits | None:
        """So many seconds of it: what is found at last."""
        for _ in range(seconds):
            self.now_s += 1
            self.found = self.rules.look(self.at, live, self.now_s)
        return self.found

    def move(self) -> Move:
        assert isinstance(self.found, Move)
        return self.found


def test_a_condition_must_hold_without_a_break_before_it_is_switched() -> None:
    looking = Looking()
    assert looking.look(LEFT, 10) is None
    assert looking.look(ALL) is None, "it was back for a moment"
    assert looking.look(LEFT, 10) is None
    looking.look(LEFT)
    move = looking.move()
    assert (move.states, move.takes_back, move.is_ours) == ((("queue/jobs", True),), False, True)
    assert move.reason == "queue/jobs falls back: r4 is down"


def test_it_goes_back_once_the_condition_has_not_held_for_as_long_and_not_right_after_a_switch() -> None:
    looking = Looking(FALLEN)
    assert looking.look(ALL, 9) is None
    looking.look(ALL)
    assert looking.move().states == (("queue/jobs", False),)
    assert looking.move().reason == "queue/jobs goes back: it is no longer true that r4 is down"
    looking = Looking()
    assert looking.look(LEFT, 5) is None
    looking.at = FALLEN
    assert looking.look(LEFT, 8) is None
    assert looking.look(ALL, 10) is None, "10 s by then, of which the first look begins the count"
    assert looking.look(ALL) is not None
    looking.at = settled(BACK)
    assert looking.look(LEFT, 10) is None, "however short r4 was there: not before 10 s after the switch"
    assert looking.look(LEFT) is not None


def test_who_has_not_looked_for_long_counts_anew() -> None:
    looking = Looking()
    looking.look(LEFT, 9)
    looking.now_s += GAP_S_MAX + 0.5
    assert looking.look(LEFT, 10) is None
    assert looking.look(LEFT) is not None
    looking.now_s += GAP_S_MAX - 1.5
    assert looking.look(LEFT) is not None


@pytest.mark.parametrize(
    ("own", "live", "patience_s"),
    [("r2", LEFT, STAND_IN_S), ("r3", LEFT, 2 * STAND_IN_S), ("r2", LEFT - {"r1"}, None)],
)
def test_others_act_only_after_those_before_them_have_not(
    own: str, live: Collection[str], patience_s: float | None
) -> None:
    looking = Looking(own=own)
    looking.look(LEFT, 11)
    if patience_s is None:
        assert isinstance(looking.look(live), Waits), "nobody could switch"
        return
    for _ in range(int(patience_s)):
        assert not looking.move().is_ours
        looking.look(live)
    assert looking.move().is_ours


def test_who_comes_next_acts_at_once_where_those_before_are_down() -> None:
    five = tuple(ReplicaInfo(f"r{number}", f"http://r{number}:1") for number in range(1, 6))
    rule = replace(RULE, fallback=Fallback(down=("r5",), reads="votes(2; r2:1, r3:1, r4:1)"))
    looking = Looking(checked(ClusterDocument("c", five, (rule,))), own="r2")
    looking.look({"r2", "r3", "r4"}, 11)
    assert looking.move().is_ours


def test_a_switch_that_could_not_end_waits_and_says_why() -> None:
    looking = Looking()
    found = looking.look({"r1", "r2"}, 11)
    assert found == Waits(
        "queue/jobs falls back: r4 is down; it cannot be switched now: live members do not hold all quorums of queue/jobs by the choice in force, "
        "and could not copy its objects"
    )
    assert isinstance(looking.look(LEFT), Move)


def test_rules_that_are_due_together_are_switched_together_and_others_when_they_are() -> None:
    looking = Looking(document(RULE, OTHER))
    looking.look(LEFT, 11)
    assert looking.move().states == (("queue/jobs", True), ("register/*", False))
    looking.look(LEFT, 10)
    assert looking.move().states == (("queue/jobs", True), ("register/*", True))
    assert (
        looking.move().reason
        == "queue/jobs falls back: r4 is down; register/* falls back: fewer than 4 members are live"
    )


def test_another_change_comes_first() -> None:
    more = replace(FIRST, choices=(*FIRST.choices, ChoiceRule("queue/more", collect=False)))
    looking = Looking(joint(FIRST, more))
    assert looking.look(ALL, 30) is None, "it is its operator's to end"
    assert looking.look(LEFT, 11) == Waits(
        "queue/jobs falls back: r4 is down; another change of the configuration is under way, which comes first"
    )


def test_a_switch_under_way_goes_on_by_the_first_at_once_and_by_others_later() -> None:
    looking, second = Looking(BOTH), Looking(BOTH, own="r2")
    looking.look(LEFT)
    second.look(LEFT)
    assert looking.move() == Move(BOTH, states_of(SECOND), False, True, "the switch under way goes on")
    assert looking.move().goal == second.move().goal
    patience_s = int(STAND_IN_S + BOTH.memory_s)
    second.look(LEFT, patience_s - 2)
    assert not second.move().is_ours
    second.look(LEFT, 3)
    assert second.move().is_ours


def test_a_switch_that_is_not_wanted_any_more_is_taken_back() -> None:
    looking = Looking(BOTH)
    looking.look(ALL, 9)
    assert not looking.move().takes_back
    looking.look(ALL)
    move = looking.move()
    assert (move.states, move.takes_back, move.is_ours) == (states_of(FIRST), True, True)
    assert move.reason == "queue/jobs goes back: it is no longer true that r4 is down"


def test_a_switch_that_cannot_end_is_taken_back_but_not_for_a_moment_alone() -> None:
    looking = Looking(BOTH)
    looking.look({"r1", "r2"}, 9)
    looking.look(LEFT)
    looking.look({"r1", "r2"}, 10)
    assert not looking.move().takes_back
    looking.look({"r1", "r2"})
    move = looking.move()
    assert (move.states, move.takes_back, move.is_ours) == (states_of(FIRST), True, True)
    assert move.reason.startswith("the switch under way cannot end and is taken back: live members do not")
    looking.look(LEFT)
    assert not looking.move().takes_back


def test_a_switch_that_cannot_end_is_taken_back_soon_however_long_its_condition_must_hold() -> None:
    patient = document(replace(RULE, fallback=Fallback(down=("r4",), after_s=3600.0, reads="r1")))
    looking = Looking(joint(patient, with_states(patient, {"queue/jobs": True})))
    looking.look(ALL - {"r1", "r4"}, int(STUCK_S_MAX))
    assert not looking.move().takes_back
    looking.look(ALL - {"r1", "r4"})
    assert looking.move().takes_back


def test_where_rules_switch_together_the_most_patient_one_says_how_long_they_may_be_stuck() -> None:
    hasty, patient = (
        ChoiceRule(objects, fallback=Fallback(down=("r4",), after_s=after_s, reads="r1"))
        for objects, after_s in (("queue/*", 2.0), ("register/*", 7.0))
    )
    two = document(hasty, patient)
    looking = Looking(joint(two, with_states(two, {"queue/*": True, "register/*": True})))
    looking.look(ALL - {"r1", "r4"}, 7)
    assert not looking.move().takes_back
    looking.look(ALL - {"r1", "r4"})
    assert looking.move().takes_back


def test_a_part_of_a_switch_that_is_not_wanted_any_more_waits_for_its_end() -> None:
    two = document(RULE, OTHER)
    both = joint(two, with_states(two, {"queue/jobs": True, "register/*": True}))
    looking = Looking(both)
    looking.look(ALL - {"r3"}, 30)
    assert not looking.move().takes_back, "the other condition holds still"
    assert looking.move().states == states_of(both)
    looking.look(ALL, 21)
    assert looking.move().takes_back


def test_the_steps_are_those_of_an_operator_and_leave_other_rules_as_they_are_by_then() -> None:
    looking = Looking()
    looking.look(LEFT, 11)
    steps = looking.move().steps()
    assert next(steps) == Look()
    more = replace(FIRST, choices=(*FIRST.choices, ChoiceRule("queue/more")), epoch=2)
    steps.send(Looked(Done(None, "Read/Ok", frozenset()), more))
    asked = steps.send({"r1": 2})
    assert isinstance(asked, Ask)
    assert asked.document == with_states(more, {"queue/jobs": True})


def to_and_fro(looking: Looking, cycles: int, away_s: int) -> list[int]:
    """How many seconds each time pass before r1, to whom all are live, would go back, where another member falls back so long after each time."""
    paused = []
    for _ in range(cycles):
        looking.at = settled(joint(looking.at, with_states(looking.at, {"queue/jobs": True})))
        looking.look(ALL)
        begun_s = looking.now_s
        while not isinstance(looking.found, Move):
            looking.look(ALL)
        assert looking.move().states == states_of(FIRST)
        paused.append(int(looking.now_s - begun_s))
        looking.at = joint(looking.at, with_states(looking.at, {"queue/jobs": False}))
        looking.look(ALL, 70)  # It waits until keys are forgotten.
        looking.at = settled(looking.at)
        looking.look(ALL, away_s)
    return paused


def test_who_differ_about_who_is_live_do_not_switch_to_and_fro_for_ever() -> None:
    soon_s = int(2 * 10 + 4 * STAND_IN_S) - 1
    looking = Looking()
    assert to_and_fro(looking, 10, soon_s) == [10, 20, 40, 80, 160, 320, 640, 900, 900, 900]
    looking.look(ALL)
    assert to_and_fro(looking, 2, soon_s) == [10, 20], "it stood for a while"
    assert to_and_fro(looking, 3, soon_s + 1) == [40, 10, 10]


def test_what_waits_longer_before_it_goes_back_says_so_and_falls_back_as_soon_as_ever() -> None:
    looking = Looking()
    to_and_fro(looking, 2, 10)
    looking.at = SECOND_AGAIN
    assert looking.look(ALL, 10) is None
    looking.look(ALL)
    assert looking.found == Waits(
        "queue/jobs fell back soon after it had gone back, so it goes back only once it has not been true for 40 s that r4 is down: "
        "see whether all members reach each other"
    )
    looking.at = FIRST
    assert looking.look(LEFT, 10) is None
    assert looking.look(LEFT) is not None


def test_a_switch_that_is_taken_back_again_and_again_is_left_for_longer() -> None:
    looking, paused = Looking(), []
    for _ in range(3):
        looking.at = joint(FIRST, SECOND)
        looking.look(ALL)
        begun_s = looking.now_s
        while not looking.move().takes_back:
            looking.look(ALL)
        paused.append(int(looking.now_s - begun_s))
        looking.at = taken_back(looking.at)
        looking.look(ALL, 20)
    assert paused == [10, 20, 40]


def test_a_long_time_of_its_own_is_not_made_shorter() -> None:
    patient = document(replace(RULE, fallback=Fallback(down=("r4",), after_s=3600.0, reads="r1")))
    assert to_and_fro(Looking(patient), 2, 10) == [3600, 3600]


def text(at: ClusterDocument) -> Value:
    return Value(msgspec.json.encode(at, order="deterministic").decode())


def test_only_the_switch_that_was_looked_at_is_taken_back() -> None:
    looking = Looking(BOTH)
    looking.look(ALL, 11)
    steps = looking.move().steps()
    assert next(steps) == Look()
    back = taken_back(BOTH)
    todo = steps.send(Looked(Done(text(BOTH), "Read/Ok", frozenset()), BOTH))
    assert todo == Perform(CompareAndSet(CONFIGURATION, text(BOTH), text(back)))
    steps = looking.move().steps()
    next(steps)
    with pytest.raises(StopIteration) as stop:  # Another operator has begun his own since.
        steps.send(Looked(Done(text(BACK), "Read/Ok", frozenset()), BACK))
    assert stop.value.value == BACK
