"""The steps of a change, answered by hand."""

from collections.abc import Generator
from typing import Any

import msgspec
import pytest
from msgspec import UNSET
from msgspec.structs import replace

from quorate.adts.log import Value
from quorate.adts.types.catalogue import CONFIGURATION
from quorate.api_specs.cluster import BadCluster, ChoiceRule, ClusterDocument, ReplicaInfo
from quorate.client_sdk.protocol.configurations import joint, moved, redirected, settled, taken_back, without
from quorate.client_sdk.protocol.core.values import LONG, Carry, CompareAndSet, Done, Failed
from quorate.client_sdk.protocol.reconfiguration import (
    TOGETHER,
    Ask,
    CarryAll,
    Holding,
    Look,
    Looked,
    Perform,
    Tell,
    Todo,
    Wait,
    can_begin,
    change,
    followed,
    is_like,
    move,
    needs,
    take_back,
)
from tests.unit.client_sdk.scripted import document_of

OLD, NEW = document_of("r1", "r2", "r3"), document_of("r1", "r4", "r5")
BOTH = joint(OLD, NEW)
AFTER = settled(BOTH)
SWAPPED, NOT_SWAPPED = (Done(is_done, "Cas", frozenset()) for is_done in (True, False))
CARRIED = Done(0, "Carry/Ok", frozenset())
LATE = Failed("unavailable", "no quorum", definite=True)


def text(document: ClusterDocument) -> Value | None:
    found = msgspec.json.encode(document, order="deterministic").decode()
    return Value(found) if document.number else None


class Change:
    """One operator, and what he wants done next."""

    def __init__(
        self,
        at: ClusterDocument = OLD,
        wanted: ClusterDocument = NEW,
        steps: Generator[Todo, Any, Any] | None = None,
    ) -> None:
        self._steps: Generator[Todo, Any, Any] = steps or change(at, lambda _: wanted)
        self._at = at
        self.todo: Todo | None = next(self._steps)
        self.result: Any = None

    def answer(self, answer: Any) -> Todo | None:
        """What came of it, and what is next."""
        try:
            self.todo = self._steps.send(answer)
        except StopIteration as stop:
            self.todo, self.result = None, stop.value
        return self.todo

    def read(self, document: ClusterDocument, here: ClusterDocument | None = None) -> Todo | None:
        """The register holds this, and the front end goes by the configuration it went by at first, or `here`."""
        assert self.todo == Look()
        return self.answer(Looked(Done(text(document), "Read/Ok", frozenset()), here or self._at))

    def begin(self) -> None:
        """Both are in force, and the three replicas that block the old one hold these."""
        assert self.read(OLD) == Ask(NEW, names=False)
        self.answer(dict.fromkeys(NEW.votes, here()))
        self.answer(AT_OLD)
        self.answer(SWAPPED)
        assert self.read(BOTH) == Tell(BOTH)


def beside(name: str) -> Carry:
    return Carry(name, beside_others=True)


def holding(*objects: str, keys: int = 0, epoch: int = 1) -> Holding:
    return Holding(epoch, objects, keys)


AT_OLD = {"r1": 0, "r2": 0, "r3": 0}


def here(at: ClusterDocument = OLD, **options: Any) -> Holding:
    """Of a replica that has joined, or is a member."""
    return Holding(at.number, (), 0, cluster=at.hash, **options)


def test_a_change_chooses_both_tells_carries_and_chooses_the_new_alone() -> None:
    operator = Change()
    assert operator.read(OLD) == Ask(NEW, names=False)
    assert operator.answer({"r4": here(), "r5": here()}) == Tell(OLD, OLD)
    chosen = operator.answer(AT_OLD)
    assert chosen == Perform(CompareAndSet(CONFIGURATION, None, text(BOTH)))
    assert operator.answer(SWAPPED) == Look()
    assert operator.read(BOTH) == Tell(BOTH)
    assert operator.answer({"r1": 1, "r3": 1}) == Ask(BOTH)
    assert operator.answer({"r1": holding("queue/b"), "r3": holding("queue/a")}) == CarryAll(
        (beside("queue/a"), beside("queue/b"))
    )
    assert operator.answer([CARRIED, CARRIED]) == Ask(BOTH, names=False)
    told = operator.answer({"r1": holding(), "r2": holding()})
    assert told == Perform(CompareAndSet(CONFIGURATION, text(BOTH), text(AFTER)))
    operator.answer(SWAPPED)
    assert operator.read(AFTER) == Tell(AFTER)
    assert isinstance(operator.answer({}), Wait), "nobody heard"
    assert operator.answer(None) == Tell(AFTER)
    assert isinstance(operator.answer({"r2": 2}), Wait), "it tells nobody: it is no member any more"
    operator.answer(None)
    assert operator.answer({"r4": 2}) == Tell(AFTER, BOTH), "those that have left are told, too"
    assert operator.answer({}) is None
    assert operator.result == AFTER


def test_nothing_is_carried_while_an_operation_may_still_end_under_the_old_one() -> None:
    operator = Change()
    operator.begin()
    assert isinstance(operator.answer({"r1": 1, "r4": 1, "r5": 1, "r2": 0}), Wait)
    assert operator.answer(None) == Tell(BOTH)
    assert operator.answer({"r2": 1, "r3": 1}) == Ask(BOTH)


def test_objects_are_asked_of_replicas_whom_each_old_quorum_meets() -> None:
    operator = Change()
    operator.begin()
    operator.answer({"r1": 1, "r2": 1})
    assert isinstance(operator.answer({"r1": holding("queue/a"), "r2": holding("queue/b", epoch=0)}), Wait)
    assert operator.answer(None) == Ask(BOTH)
    assert operator.answer({"r1": holding("queue/a"), "r2": holding()}) == CarryAll((beside("queue/a"),))


def test_long_logs_are_carried_one_at_a_time_after_all_others() -> None:
    operator = Change()
    operator.begin()
    operator.answer({"r1": 1, "r2": 1})
    names = [f"queue/{n:02}" for n in range(TOGETHER + 1)]
    operator.answer({"r1": holding(*names), "r2": holding()})
    long = Done(0, LONG, frozenset())
    assert operator.answer([long, long, *[CARRIED] * (TOGETHER - 2)]) == CarryAll((beside(names[-1]),))
    assert operator.answer([CARRIED]) == CarryAll((Carry(names[0]),))
    assert operator.answer([CARRIED]) == CarryAll((Carry(names[1]),))
    assert isinstance(operator.answer([LATE]), Wait)
    assert operator.answer(None) == CarryAll((Carry(names[1]),))
    assert operator.answer([CARRIED]) == Ask(BOTH, names=False)


def test_what_could_not_be_carried_is_tried_again_behind_the_others() -> None:
    operator = Change()
    operator.begin()
    operator.answer({"r1": 1, "r2": 1})
    names = [f"queue/{n:02}" for n in range(TOGETHER + 2)]
    first = operator.answer({"r1": holding(*names), "r2": holding()})
    assert first == CarryAll(tuple(map(beside, names[:TOGETHER])))
    waits = operator.answer([CARRIED, LATE, *[CARRIED] * (TOGETHER - 2)])
    assert isinstance(waits, Wait)
    assert operator.answer(None) == CarryAll(tuple(map(beside, [*names[TOGETHER:], names[1]])))
    longer = operator.answer([CARRIED, CARRIED, LATE])
    assert isinstance(longer, Wait)
    assert longer.seconds > waits.seconds
    assert operator.answer(None) == CarryAll((beside(names[1]),))
    assert operator.answer([CARRIED]) == Ask(BOTH, names=False)


def test_the_new_one_waits_until_keys_of_before_are_forgotten() -> None:
    operator = Change()
    operator.begin()
    operator.answer({"r1": 1, "r2": 1})
    assert operator.answer({"r1": holding(), "r2": holding()}) == Ask(BOTH, names=False)
    assert isinstance(operator.answer({"r1": holding(keys=1), "r2": holding()}), Wait)
    assert operator.answer(None) == Ask(BOTH, names=False)
    following = operator.answer({"r1": holding(), "r2": holding()})
    assert following == Perform(CompareAndSet(CONFIGURATION, text(BOTH), text(AFTER)))


LEARNING = replace(OLD, replicas=(*OLD.replicas, ReplicaInfo("r4", "http://r4:1", votes=0)))


def both_in_force(old: ClusterDocument, new: ClusterDocument) -> Change:
    """Of a change whose configurations are both in force, and nothing can end under the old one alone any more."""
    operator, both = Change(at=old, wanted=new), joint(old, new)
    assert operator.read(both) == Tell(both)
    operator.answer({"r1": 1, "r2": 1})
    return operator


def test_where_a_member_without_votes_comes_nothing_is_carried_and_keys_of_before_are_waited_for() -> None:
    both = joint(OLD, LEARNING)
    operator = both_in_force(OLD, LEARNING)
    assert operator.todo == Ask(both, names=False)
    assert isinstance(operator.answer({"r1": holding(keys=1), "r2": holding()}), Wait)
    operator.answer(None)
    following = operator.answer({"r1": holding(), "r2": holding()})
    assert following == Perform(CompareAndSet(CONFIGURATION, text(both), text(settled(both))))


def test_nothing_ends_under_the_old_one_before_it_is_over_though_quorums_stay() -> None:
    operator, both = Change(wanted=LEARNING), joint(OLD, LEARNING)
    operator.read(both)
    assert isinstance(operator.answer({"r1": 1, "r4": 1}), Wait)
    assert operator.answer(None) == Tell(both)


def test_where_a_member_without_votes_leaves_repeats_of_dequeues_are_looked_at_alone() -> None:
    both = joint(LEARNING, OLD)
    operator = both_in_force(LEARNING, OLD)
    assert operator.todo == Ask(both)
    held = {"r1": holding("queue/a", "register/b"), "r2": holding("dictionary/c/d")}
    assert operator.answer(held) == CarryAll((beside("queue/a"),))
    repeatable = Done(1, "Carry/Ok", frozenset())
    assert operator.answer([repeatable]) == Wait(both.memory_s)


def test_a_vote_is_not_given_before_all_is_carried() -> None:
    voting = replace(OLD, replicas=(*OLD.replicas, ReplicaInfo("r4", "http://r4:1")))
    both = joint(LEARNING, voting)
    operator = both_in_force(LEARNING, voting)
    assert operator.todo == Ask(both)
    held = {"r1": holding("queue/a"), "r2": holding("dictionary/c/d")}
    assert operator.answer(held) == CarryAll((beside("dictionary/c/d"), beside("queue/a")))


def test_who_comes_after_one_that_vanished_does_the_rest() -> None:
    operator = Change()
    assert operator.read(BOTH) == Tell(BOTH)
    assert operator.answer({"r1": 1, "r2": 1}) == Ask(BOTH)


def test_who_was_overtaken_looks_again_how_far_it_is() -> None:
    operator = Change()
    operator.begin()
    operator.answer({"r1": 1, "r2": 1})
    operator.answer({"r1": holding(epoch=2), "r2": holding()})
    assert operator.todo == Perform(CompareAndSet(CONFIGURATION, text(BOTH), text(AFTER)))
    operator.answer(NOT_SWAPPED)
    assert operator.read(AFTER) == Tell(AFTER)
    operator.answer({"r1": 2})
    operator.answer({})
    assert operator.result == AFTER


def test_what_is_there_already_is_not_changed() -> None:
    operator = Change(wanted=OLD)
    assert operator.read(OLD) is None
    assert operator.result == OLD


def test_a_register_that_cannot_be_read_is_read_again() -> None:
    operator = Change()
    assert isinstance(operator.answer(Looked(LATE, OLD)), Wait)
    assert operator.answer(None) == Look()


def test_a_change_of_others_is_brought_to_its_end_before_ones_own() -> None:
    wanted = document_of("r4")
    operator = Change(wanted=wanted)
    operator.read(BOTH)
    operator.answer({"r1": 1, "r2": 1})
    operator.answer({"r1": holding(), "r2": holding()})
    operator.answer({"r1": holding(), "r2": holding()})
    operator.answer(SWAPPED)
    assert operator.read(AFTER) == Tell(AFTER)
    assert operator.answer({"r1": 2}) == Tell(AFTER, BOTH)
    assert operator.answer({}) == Ask(wanted, names=False)
    assert operator.answer({"r4": here(AFTER)}) == Tell(AFTER, AFTER)
    chosen = operator.answer({"r1": 2, "r4": 2})
    assert chosen == Perform(CompareAndSet(CONFIGURATION, text(AFTER), text(joint(AFTER, wanted))))


def test_nothing_is_begun_while_too_few_of_the_new_members_answer() -> None:
    """With both in force, nobody could go on or back without them."""
    operator = Change()
    operator.read(OLD)
    assert operator.answer({"r1": holding(epoch=0)}) == Tell(OLD, OLD)
    assert isinstance(operator.answer(AT_OLD), Wait)
    assert operator.answer(None) == Ask(NEW, names=False)


def test_a_configuration_that_the_register_does_not_take_is_refused() -> None:
    operator = Change()
    operator.read(OLD)
    operator.answer(dict.fromkeys(NEW.votes, here()))
    operator.answer(AT_OLD)
    with pytest.raises(BadCluster, match="too large"):
        operator.answer(Failed("refused", "the value is too large", definite=True))


def test_who_goes_by_a_configuration_that_no_replica_was_told_of_tells_them() -> None:
    operator = Change(at=AFTER, wanted=NEW)
    assert operator.answer(Looked(LATE, AFTER)) == Tell(AFTER)
    assert isinstance(operator.answer({}), Wait)
    assert operator.answer(None) == Look()


def test_a_change_that_has_begun_is_taken_back() -> None:
    operator = Change(steps=take_back(OLD))
    back = taken_back(BOTH)
    assert operator.read(BOTH) == Perform(CompareAndSet(CONFIGURATION, text(BOTH), text(back)))
    operator.answer(SWAPPED)
    assert operator.read(back) == Tell(back)
    assert operator.answer({"r2": 2}) == Tell(back, BOTH), "those that were to come are told, too"
    operator.answer({})
    assert operator.result == (back, back)


def test_who_came_too_late_to_take_a_change_back_says_so() -> None:
    operator = Change(steps=take_back(OLD))
    operator.read(BOTH)
    operator.answer(NOT_SWAPPED)
    operator.read(AFTER)
    operator.answer({"r1": 2})
    operator.answer({})
    assert operator.result == (AFTER, None)


def test_what_has_come_to_its_end_is_not_taken_back() -> None:
    operator = Change(steps=take_back(OLD))
    assert operator.read(AFTER) == Tell(AFTER)
    operator.answer({"r1": 2})
    assert operator.result == (AFTER, None)


def test_where_the_register_was_lost_a_change_begins_with_what_replicas_are_in() -> None:
    """He began with an old cluster file, and was told the later configuration while he read."""
    operator = Change(wanted=OLD)
    assert operator.read(OLD, here=AFTER) == Tell(AFTER)
    assert isinstance(operator.answer({"r1": 4, "r5": 2}), Wait), "one is in a later one still"
    assert operator.answer(None) == Look()
    later = replace(AFTER, epoch=4)
    assert operator.read(OLD, here=later) == Tell(later)
    with pytest.raises(BadCluster, match="r2 was a member before"):
        operator.answer({"r1": 4})


def test_what_cannot_follow_is_refused_before_anything_is_done() -> None:
    operator = Change(wanted=replace(NEW, name="other"))
    with pytest.raises(BadCluster, match="name"):
        operator.read(OLD)


def test_places_in_the_chain_make_no_difference() -> None:
    assert is_like(AFTER, NEW)
    assert not is_like(BOTH, OLD)
    dead = joint(OLD, document_of("r1", "r2", "r4"), ["r3"])
    assert is_like(dead, document_of("r1", "r2", "r4"))
    assert is_like(redirected(dead, document_of("r1", "r2"), ["r4"]), document_of("r1", "r2"))


def test_what_a_replica_is_in_goes_before_what_the_register_has_lost() -> None:
    """As with stores that were made from others: the chain goes on from where replicas are, and the register is changed from what it holds."""
    third = replace(NEW, choices=(ChoiceRule("queue/a", collect=False),))
    operator = Change(at=AFTER, wanted=third)
    assert operator.read(BOTH) == Tell(AFTER)
    assert operator.answer({"r4": 2}) == Ask(third, names=False)
    assert operator.answer(dict.fromkeys(third.votes, holding(epoch=2))) == Tell(AFTER, AFTER)
    chosen = operator.answer(dict.fromkeys(AFTER.votes, 2))
    assert chosen == Perform(CompareAndSet(CONFIGURATION, text(BOTH), text(joint(AFTER, third))))


def test_keys_are_forgotten_once_those_who_hold_none_block_the_old_one() -> None:
    """One that restarts again and again takes all that it holds for keys of before."""
    operator = Change()
    operator.begin()
    operator.answer({"r1": 1, "r2": 1, "r3": 1})
    operator.answer({"r1": holding(), "r2": holding(), "r3": holding()})
    assert isinstance(operator.answer({"r1": holding(), "r2": holding(keys=1), "r3": holding(keys=9)}), Wait)
    assert operator.answer(None) == Ask(BOTH, names=False)
    following = operator.answer({"r1": holding(), "r2": holding(), "r3": holding(keys=9)})
    assert following == Perform(CompareAndSet(CONFIGURATION, text(BOTH), text(AFTER)))


def test_who_wants_one_thing_more_wants_it_of_what_is_in_force_by_then() -> None:
    """Two operators change different rules: neither takes the other one's back."""
    mine, other = ChoiceRule("queue/a", collect=False), ChoiceRule("queue/b", collect=False)
    with_other = replace(AFTER, choices=(other,))

    def wanted(at: ClusterDocument) -> ClusterDocument:
        return replace(at, old=UNSET, choices=(mine, *(each for each in at.choices if each != mine)))

    operator = Change(steps=change(OLD, wanted))
    assert operator.read(with_other) == Tell(with_other)
    assert operator.answer({"r4": 2}) == Ask(wanted(with_other), names=False)
    operator.answer(dict.fromkeys(with_other.votes, holding(epoch=2)))
    chosen = operator.answer(dict.fromkeys(with_other.votes, 2))
    both = joint(with_other, wanted(with_other))
    assert [each.objects for each in both.choices] == ["queue/a", "queue/b"]
    assert chosen == Perform(CompareAndSet(CONFIGURATION, text(with_other), text(both)))


def test_who_finds_his_change_taken_back_begins_it_no_second_time() -> None:
    operator = Change()
    operator.begin()
    operator.answer({"r1": 1, "r2": 1})
    operator.answer({"r1": holding(), "r2": holding()})
    operator.answer({"r1": holding(), "r2": holding()})
    back = taken_back(BOTH)
    operator.answer(NOT_SWAPPED)
    assert operator.read(back) == Tell(back)
    operator.answer({"r1": 2})
    with pytest.raises(BadCluster, match="another operator has taken the change back"):
        operator.answer({})


def test_new_members_count_once_they_have_joined_and_all_who_stay_have_noted_their_stores() -> None:
    """A replica of another cluster of that name, or with another store, would never come, and nobody could go back."""
    stores = tuple(replace(each, store=f"s{each.id}") for each in NEW.replicas)
    wanted = replace(NEW, replicas=(replace(stores[0], store=""), *stores[1:]))
    operator = Change(wanted=wanted)
    assert operator.read(OLD) == Ask(wanted, names=False)
    r1, r4, r5 = here(), here(store="sr4"), here(store="sr5")
    for told in (
        {"r1": r1, "r4": r4},
        {"r1": r1, "r4": r4, "r5": replace(r5, store="another")},
        {"r1": r1, "r4": r4, "r5": replace(r5, cluster="another")},
        {"r1": r1, "r4": r4, "r5": replace(r5, awaits=("r1",))},
        {"r1": r1, "r4": r4, "r5": replace(r5, has_voted=True)},
    ):
        assert operator.answer(told) == Tell(OLD, OLD)
        assert isinstance(operator.answer(AT_OLD), Wait)
        assert operator.answer(None) == Ask(wanted, names=False)
    operator.answer({"r1": r1, "r4": r4, "r5": replace(r5, awaits=("r2", "r3"))})
    assert isinstance(operator.answer(AT_OLD), Perform), "r2 and r3 leave"


def test_a_new_member_that_slept_is_told_what_is_in_force() -> None:
    wanted = document_of("r1", "r4", "r6")
    operator = Change(at=AFTER, wanted=wanted)
    operator.read(AFTER)
    assert operator.answer({"r1": 2}) == Ask(wanted, names=False)
    found = {"r1": here(AFTER), "r4": here(AFTER), "r6": here(OLD)}
    assert operator.answer(found) == Tell(AFTER, AFTER)
    assert operator.answer({"r1": 2, "r4": 2, "r5": 2}) == Tell(AFTER, wanted)
    assert isinstance(operator.answer({}), Wait)
    operator.answer(None)
    operator.answer(found | {"r6": here(AFTER)})
    assert isinstance(operator.answer({"r1": 2, "r4": 2, "r5": 2}), Perform)


def test_where_another_operator_was_first_nobody_is_waited_for() -> None:
    operator = Change()
    operator.read(OLD)
    assert operator.answer({"r1": here(AFTER), "r4": here(AFTER)}) == Tell(OLD, OLD)
    assert isinstance(operator.answer({"r2": 2, "r3": 0}), Perform)


def test_nothing_is_begun_while_too_few_answer_who_could_end_it() -> None:
    """An item may be at r2 alone: until it answers, nothing could be copied, and all would wait for quorums of both."""
    old = replace(OLD, choices=(ChoiceRule("queue/*", {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1)}),))
    operator = Change(old, OLD)
    operator.read(old)
    told = dict.fromkeys(("r1", "r3"), here(old))
    assert operator.answer(told) == Tell(old, old)
    assert isinstance(operator.answer({"r1": 0, "r3": 0}), Wait)
    operator.answer(None)
    operator.answer(told)
    assert isinstance(operator.answer(AT_OLD), Perform)


def test_one_of_another_cluster_says_nothing_of_this_one() -> None:
    operator = Change()
    operator.read(OLD)
    assert operator.answer({"r4": replace(here(AFTER), cluster="another")}) == Tell(OLD, OLD)
    assert isinstance(operator.answer(AT_OLD), Wait), "nobody could go back"


@pytest.mark.parametrize(("wanted", "waits"), [(NEW, True), (document_of("r1", "r2", "r3", "r4"), False)])
def test_where_members_leave_dequeues_that_may_be_repeated_are_waited_for(
    wanted: ClusterDocument, waits: bool
) -> None:
    """What they took is not carried: it may be at those alone that leave."""
    both = joint(OLD, wanted)
    operator = Change(wanted=wanted)
    operator.read(both)
    operator.answer({"r1": 1, "r2": 1})
    operator.answer({"r1": holding("queue/a"), "r2": holding()})
    asked = operator.answer([Done(2, "Carry/Ok", frozenset())])
    if waits:
        assert asked == Wait(both.memory_s)
        asked = operator.answer(None)
    assert asked == Ask(both, names=False)


def test_a_change_that_others_begin_after_the_one_that_is_taken_back_goes_on() -> None:
    operator = Change(steps=take_back(OLD))
    operator.read(BOTH)
    operator.answer(NOT_SWAPPED)
    later = joint(AFTER, document_of("r1", "r4", "r6"))
    operator.read(later)
    assert operator.result == (later, None)


@pytest.mark.parametrize("swapped", [SWAPPED, Failed("unknown", "no answer", definite=False)])
def test_a_change_was_taken_back_though_others_began_one_at_once(swapped: Done | Failed) -> None:
    operator = Change(steps=take_back(OLD))
    operator.read(BOTH)
    operator.answer(swapped)
    back = taken_back(BOTH)
    later = joint(back, document_of("r1", "r2"))
    operator.read(later)
    assert operator.result == (later, back)


def test_it_was_taken_back_though_all_is_over_that_others_began_after_it() -> None:
    operator = Change(steps=take_back(OLD))
    operator.read(BOTH)
    operator.answer(SWAPPED)
    back = taken_back(BOTH)
    later = settled(joint(back, document_of("r1", "r2")))
    operator.read(later)
    operator.answer({"r1": 4})
    operator.answer({})
    assert operator.result == (later, back)


def test_nobody_is_waited_for_where_another_operator_has_taken_the_change_back() -> None:
    operator = Change()
    operator.begin()
    chosen = operator.answer({"r1": 2})
    assert chosen == Perform(CompareAndSet(CONFIGURATION, text(BOTH), text(AFTER)))
    operator.answer(NOT_SWAPPED)
    back = taken_back(BOTH)
    assert operator.read(back) == Tell(back)
    operator.answer({"r1": 2})
    with pytest.raises(BadCluster, match="another operator has taken the change back"):
        operator.answer({})


def test_a_change_that_came_to_its_end_and_was_undone_by_another_operator_was_not_taken_back() -> None:
    operator = Change()
    operator.begin()
    operator.answer({"r1": 1, "r2": 1})
    operator.answer({"r1": holding(), "r2": holding()})
    operator.answer({"r1": holding(), "r2": holding()})
    undone = replace(OLD, epoch=4)
    operator.answer(NOT_SWAPPED)
    assert operator.read(undone) == Tell(undone)
    operator.answer({"r1": 4})
    assert operator.answer({}) == Ask(NEW, names=False), "he is the last one to want something"


OF_FOUR = document_of("r1", "r2", "r4")


def test_a_change_does_not_wait_for_one_that_is_dead() -> None:
    operator = Change(steps=change(OLD, lambda _: OF_FOUR, {"r3"}))
    both = joint(OLD, OF_FOUR, ["r3"])
    assert operator.read(OLD) == Ask(OF_FOUR, names=False)
    operator.answer(dict.fromkeys(OF_FOUR.votes, here()))
    chosen = operator.answer({"r1": 0, "r2": 0})
    assert chosen == Perform(CompareAndSet(CONFIGURATION, None, text(both)))
    operator.answer(SWAPPED)
    assert operator.read(both) == Tell(both)
    assert operator.answer({"r1": 1, "r2": 1}) == Ask(both)


def test_a_change_under_way_that_waits_for_one_that_is_dead_goes_on_without_it() -> None:
    """Whoever began it did not know; nothing is taken back, so that the new replica keeps its id."""
    both = joint(OLD, OF_FOUR)
    operator = Change(at=both, steps=change(both, lambda _: OF_FOUR, {"r3"}))
    later = without(both, ["r3"])
    assert operator.read(both) == Perform(CompareAndSet(CONFIGURATION, text(both), text(later)))
    operator.answer(SWAPPED)
    assert operator.read(later) == Tell(later)
    operator.answer({"r1": 2, "r2": 2})
    operator.answer({"r1": holding(epoch=2), "r2": holding(epoch=2)})
    following = operator.answer({"r1": holding(epoch=2), "r2": holding(epoch=2)})
    assert following == Perform(CompareAndSet(CONFIGURATION, text(later), text(settled(later))))


def test_whoever_goes_on_with_a_change_need_not_say_again_who_is_dead() -> None:
    both = joint(OLD, OF_FOUR, ["r3"])
    operator = Change(at=both, wanted=OF_FOUR)
    assert operator.read(both) == Tell(both)
    assert operator.answer({"r1": 1, "r2": 1}) == Ask(both)


def test_where_others_stand_in_for_the_dead_a_change_is_not_taken_back() -> None:
    """What they hold is no quorum of the configuration before, and the dead might come back with it."""
    written = (ChoiceRule("register/*", {"Write/Ok": (0, 3), "Cas/Ok": (1, 3)}),)
    both = joint(document_of("r1", "r2", "r3", choices=written), OF_FOUR, ["r3"])
    operator = Change(at=both, steps=take_back(both))
    with pytest.raises(BadCluster, match="cannot be taken back, since r3 was declared dead: repeat it"):
        operator.read(both)


def test_where_a_quorum_can_be_had_without_the_dead_a_change_is_taken_back() -> None:
    both = joint(OLD, OF_FOUR, ["r3"])
    operator = Change(at=both, steps=take_back(both))
    back = taken_back(both)
    assert operator.read(both) == Perform(CompareAndSet(CONFIGURATION, text(both), text(back)))


def test_a_change_is_taken_back_also_where_it_goes_on_without_the_dead_meanwhile() -> None:
    both = joint(OLD, OF_FOUR)
    later = without(both, ["r3"])
    operator = Change(at=both, steps=take_back(both))
    operator.read(both)
    operator.answer(NOT_SWAPPED)
    back = taken_back(later)
    assert operator.read(later) == Perform(CompareAndSet(CONFIGURATION, text(later), text(back)))


@pytest.mark.parametrize(
    ("answering", "expected"),
    [({"r1", "r2", "r4"}, True), ({"r1", "r2"}, False), ({"r1", "r4", "r5"}, False)],
    ids=["quorums of both", "none of the new one", "none of the old one"],
)
def test_a_change_begins_with_quorums_of_both(answering: set[str], expected: bool) -> None:
    assert can_begin(BOTH, answering) is expected


def test_steps_that_are_followed_are_the_same() -> None:
    def steps() -> Generator[Todo, Any, ClusterDocument]:
        told = yield Look()
        yield Wait(told)
        return AFTER

    heard: list[Any] = []
    going = followed(steps(), lambda *done: heard.append(done), heard.append)
    assert next(going) == Look()
    assert going.send(3.0) == Wait(3.0), "they hear what came of theirs"
    with pytest.raises(StopIteration) as stop:
        going.send(None)
    assert stop.value.value == AFTER
    assert heard == [Look(), (Look(), 3.0), Wait(3.0), (Wait(3.0), None)]


def test_where_one_dies_that_was_to_stay_the_change_goes_elsewhere_once_it_can_end_there() -> None:
    old, to_come, elsewhere = (
        document_of("r1", "r2", "r3", "r4", "r5"),
        document_of("r1", "r3", "r4", "r5"),
        document_of("r1", "r4", "r5", "r6"),
    )
    both = joint(old, to_come, ["r2"])
    dead = frozenset({"r2", "r3"})
    operator = Change(at=both, steps=change(both, lambda _: elsewhere, dead))
    assert operator.read(both) == Ask(elsewhere, names=False)
    told = {"r1": here(both), "r4": here(both), "r5": here(both), "r6": here(both)}
    assert operator.answer(told) == Tell(both, both)
    later = redirected(both, elsewhere, dead)
    chosen = operator.answer({"r1": 1, "r4": 1, "r5": 1})
    assert chosen == Perform(CompareAndSet(CONFIGURATION, text(both), text(later)))
    operator.answer(SWAPPED)
    assert operator.read(later) == Tell(later)
    assert operator.answer({"r1": 2, "r4": 2, "r5": 2}) == Ask(later)


ELSEWHERE = {"r3": "http://elsewhere:3"}


def test_a_member_moves_in_one_step_and_nothing_is_carried() -> None:
    operator = Change(steps=move(OLD, ELSEWHERE))
    after = moved(OLD, ELSEWHERE)
    assert operator.read(OLD) == Perform(CompareAndSet(CONFIGURATION, None, text(after)))
    operator.answer(SWAPPED)
    assert operator.read(after) == Tell(after)
    assert operator.answer({"r1": 1}) == Tell(after)
    operator.answer({"r1": 1, "r3": 1})
    assert operator.result == after


def test_a_member_moves_in_the_middle_of_a_change_which_is_left_to_others() -> None:
    operator = Change(at=BOTH, steps=move(BOTH, ELSEWHERE))
    after = moved(BOTH, ELSEWHERE)
    assert operator.read(BOTH) == Perform(CompareAndSet(CONFIGURATION, text(BOTH), text(after)))
    operator.answer(SWAPPED)
    assert operator.read(after) == Tell(after)
    operator.answer({"r3": 2})
    assert operator.result == after


def test_one_that_was_moved_elsewhere_since_it_was_seen_stays_there() -> None:
    """By another operator: where it was seen by this one, nobody may be any more."""
    operator = Change(steps=move(OLD, ELSEWHERE))
    later = moved(moved(OLD, ELSEWHERE), {"r3": "http://later:3"})
    operator.read(later)
    with pytest.raises(BadCluster, match="r3 was moved to http://later:3 meanwhile"):
        operator.answer({"r3": later.number})


def test_one_that_has_left_does_not_move() -> None:
    operator = Change(steps=move(OLD, ELSEWHERE))
    operator.read(AFTER)
    with pytest.raises(BadCluster, match="r3 is no member: the members are r1, r4, r5"):
        operator.answer({"r1": 2})


def test_members_move_before_anything_else_changes() -> None:
    there = replace(OLD.replicas[2], url=ELSEWHERE["r3"])
    wanted = replace(
        OLD, replicas=(*OLD.replicas[:2], there), choices=(ChoiceRule("queue/a", collect=False),)
    )
    operator = Change(wanted=wanted)
    after = moved(OLD, ELSEWHERE)
    assert operator.read(OLD) == Perform(CompareAndSet(CONFIGURATION, None, text(after)))
    operator.answer(SWAPPED)
    operator.read(after)
    in_its_place = replace(wanted, replicas=after.replicas)
    assert operator.answer({"r1": 1}) == Ask(in_its_place, names=False)
    operator.answer(dict.fromkeys(after.votes, here(after)))
    both = joint(after, in_its_place)
    assert operator.answer(dict.fromkeys(after.votes, 1)) == Perform(
        CompareAndSet(CONFIGURATION, text(after), text(both))
    )


EAGER = replace(OLD, choices=(ChoiceRule("queue/*", {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1)}),))


@pytest.mark.parametrize(
    ("todo", "names", "expected"),
    [
        (Tell(BOTH), {"r3"}, False),
        (Tell(BOTH), {"r2", "r3"}, True),
        (Ask(BOTH), {"r2", "r3"}, True),
        (Ask(NEW, names=False), {"r1"}, False),
        (Ask(NEW, names=False), {"r4"}, True),
        (Ask(document_of("r1", "r2"), names=False), {"r2"}, True),
        (Tell(OLD, OLD), {"r3"}, False),
        (Tell(EAGER, EAGER), {"r3"}, True),
        (Tell(OLD), {"r2", "r3"}, False),
        (Tell(OLD, NEW), {"r4", "r5"}, False),
    ],
)
def test_a_change_goes_on_without_those_whom_it_does_not_need(
    todo: Tell | Ask, names: set[str], expected: bool
) -> None:
    """New members must all come. Of others as many are needed as block each old quorum, and hold each new one."""
    assert needs(todo, names, OLD) is expected
