"""Which replicas are asked first."""

from collections import Counter

from quorate.client_sdk.protocol.core.answer_times import AnswerTimes
from quorate.client_sdk.protocol.core.preference import AGAIN_S, SILENT_S, IsEnough, Preference
from quorate.quorums.systems.tally import VoteCount

REPLICAS = ("r1", "r2", "r3")
TWO = VoteCount(dict.fromkeys(REPLICAS, 1), 2).is_met_by


def preference(own: str | None = None, **took_s: float) -> Preference:
    times = AnswerTimes()
    for replica in 20 * REPLICAS:
        times.note(replica, took_s.get(replica, 0.001))
    return Preference(own, REPLICAS, times)


def asked(name: str, by: Preference, is_enough: IsEnough = TWO) -> frozenset[str]:
    """The quorum that is asked first."""
    return by.first(name, REPLICAS, is_enough, 0.0)[0]


def test_all_front_ends_ask_the_same_replicas_for_an_object_and_others_for_others() -> None:
    names = [f"register/a{number}" for number in range(300)]
    chosen = [asked(name, preference()) for name in names]
    assert chosen == [asked(name, preference(r1=0.0015)) for name in names]
    assert all(len(each) == 2 for each in chosen)
    assert min(Counter(replica for each in chosen for replica in each).values()) > 180


def test_keys_of_a_dictionary_are_asked_for_at_the_same_replicas() -> None:
    assert len({asked(f"dictionary/d/k{number}", preference()) for number in range(100)}) == 1


def test_a_front_end_within_a_replica_asks_the_same_ones_as_all_others() -> None:
    """Its own one answers much sooner, and the others are not slow for that."""
    for own in REPLICAS:
        quick = preference(own, **dict.fromkeys(REPLICAS, 0.01) | {own: 0.0001})
        assert quick.order("queue/q", 0.0) == preference().order("queue/q", 0.0)


def test_who_did_not_answer_comes_last_until_it_does() -> None:
    some = preference()
    first, second, third = some.order("queue/q", 0.0)
    some.note(first, 0.0, is_well=False)
    assert some.order("queue/q", 0.0) == [second, third, first]
    some.note(first, 0.0, is_well=True)
    assert some.order("queue/q", 0.0) == [first, second, third]


def test_who_failed_is_not_preferred_for_a_while_even_if_it_answers_again() -> None:
    """A replica whose disk is full answers all the time."""
    full = preference()
    first, second, third = full.order("queue/q", 10.0)
    full.note_failing(first, 10.0, is_silent=False)
    full.note(first, 10.0, is_well=True)
    assert full.order("queue/q", 10.0 + AGAIN_S / 2) == [second, third, first]
    assert full.order("queue/q", 10.0 + AGAIN_S) == [first, second, third]


def test_silence_for_a_moment_changes_nothing() -> None:
    """Else readers would ask others than writers after each hiccup of the machine."""
    hung = preference()
    first, second, third = hung.order("queue/q", 10.0)
    hung.note(first, 10.0, is_well=True)
    hung.note_failing(first, 10.0 + SILENT_S / 2, is_silent=True)
    assert hung.order("queue/q", 10.0 + SILENT_S / 2) == [first, second, third]
    hung.note_failing(first, 10.0 + 2 * SILENT_S, is_silent=True)
    assert hung.order("queue/q", 10.0 + 2 * SILENT_S) == [second, third, first]


def test_a_few_late_answers_do_not_make_a_replica_slow() -> None:
    times = AnswerTimes()
    late = Preference(None, REPLICAS, times)
    for turn in range(100):
        for replica in REPLICAS:
            times.note(replica, 0.001)
        if turn > 90:
            times.note("r2", 0.2)
            assert late.order("queue/q", 0.0) == preference().order("queue/q", 0.0)


def test_who_is_much_slower_than_the_quickest_comes_last() -> None:
    for slow in REPLICAS:
        assert preference(None, **{slow: 0.009}).order("queue/q", 0.0)[-1] == slow
    assert preference("r1", r1=0.06, r2=0.001, r3=0.06).order("queue/q", 0.0)[0] == "r2"


def test_no_more_are_asked_first_than_are_needed() -> None:
    first = preference("r1").order("queue/q", 0.0)
    weighted = VoteCount({first[0]: 1, first[1]: 1, first[2]: 3}, 3)
    assert asked("queue/q", preference("r1"), weighted.is_met_by) == {first[2]}
    assert asked("queue/q", preference(), lambda _: False) == set(REPLICAS)


def test_a_majority_is_asked_even_where_fewer_are_enough() -> None:
    """Else one replica alone would hold what is acknowledged until the others are told."""
    one = VoteCount(dict.fromkeys(REPLICAS, 1), 1).is_met_by
    first, second, _ = preference().order("queue/q", 0.0)
    tried = preference()
    tried.first("queue/q", REPLICAS, one, 0.0)
    quorum, beside = tried.first("queue/q", REPLICAS, one, 0.1)
    assert (set(quorum), set(beside)) == ({first}, {second})


def test_who_is_not_asked_is_tried_once_in_a_while_so_that_it_is_known_how_quick_it_is() -> None:
    times = AnswerTimes()
    tried = Preference(None, REPLICAS, times)

    def at(now_s: float) -> int:
        quorum, beside = tried.first("queue/q", REPLICAS, TWO, now_s)
        return len(quorum | beside)

    assert (at(100.0), at(100.1)) == (3, 3), "none has answered yet"
    for replica in REPLICAS:
        times.note(replica, 0.001)
    assert at(100.0 + AGAIN_S / 2) == 2
    assert at(100.3 + AGAIN_S) == 3
    assert at(100.4 + AGAIN_S) == 2


def test_of_several_the_own_one_is_asked_first_and_those_last_that_did_not_answer() -> None:
    own = preference("r2")
    assert own.well_first(["r3", "r1", "r2"]) == ["r2", "r3", "r1"]
    own.note("r2", 0.0, is_well=False)
    own.note("r3", 0.0, is_well=False)
    assert own.well_first(["r3", "r1", "r2"]) == ["r1", "r2", "r3"]
    assert preference().well_first(["r2", "r1"]) == ["r2", "r1"]


def test_who_is_no_member_any_more_is_not_asked() -> None:
    members = preference()
    members.follow(("r1", "r4"))
    assert set(members.order("queue/q", 0.0)) == {"r1", "r4"}
