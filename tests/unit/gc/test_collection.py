"""What may be forgotten: each rule keeps every view, and one step earlier something would be lost."""

from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.adts import cell
from quorate.adts.log import NOTHING, Entry, Seen, Summary, Value
from quorate.adts.types import queue
from quorate.gc.collection import collected_by_commit, collected_by_completion, ended_at, may_forget
from quorate.timestamps.ballot import NO_BALLOT, Ballot
from quorate.timestamps.timestamp import ZERO, Timestamp, make

REPLICAS = ("r1", "r2", "r3")


def at(us: int) -> Timestamp:
    return make(us, 0, "c")


def entry(us: int, *, deletion: bool = False) -> Entry:
    return Entry(at(us), at(us), None if deletion else Value(str(us)))


def seen(entries: list[Entry]) -> dict[str, Seen]:
    return {each.id: Seen(each, {"r1"}) for each in entries}


def without(entries: list[Entry], collected: Timestamp) -> list[Entry]:
    return [each for each in entries if each.t > collected]


LOGS = st.sets(st.integers(1, 9)).map(lambda times: [entry(us) for us in sorted(times)])


@given(st.integers(0, 9), st.integers(0, 3), LOGS)
def test_queue_views_over_a_decided_horizon_need_no_row_at_or_below_it(
    decided: int, later: int, log: list[Entry]
) -> None:
    """Decided horizons only rise: every later view is over this horizon or a higher one."""
    summary = Summary(horizon=at(decided + later))
    kept = without(log, collected_by_commit("queue", at(decided)))
    assert queue.view(summary, seen(kept)) == queue.view(summary, seen(log))


def test_a_row_just_above_the_horizon_is_an_item() -> None:
    log = [entry(1), entry(2)]
    kept = without(log, collected_by_commit("queue", at(1)))
    assert [found.entry for found in queue.view(Summary(horizon=at(1)), seen(kept))] == [entry(2)]


def test_collecting_at_accept_would_lose_what_a_lower_decision_still_needs() -> None:
    """A horizon of 2 is accepted by one replica and never decided; the decision that wins has the horizon 1. Had the
    replica dropped its rows at the accept, the item 2 would be gone (DESIGN section 6)."""
    log = [entry(1), entry(2)]
    accepted, winner = Summary(horizon=at(2)), Summary(horizon=at(1))
    dropped_early = without(log, collected_by_commit("queue", accepted.horizon))
    assert queue.view(winner, seen(dropped_early)) == []
    kept = without(log, collected_by_commit("queue", winner.horizon))
    assert [found.entry for found in queue.view(winner, seen(kept))] == [entry(2)]


@given(st.integers(0, 9), st.integers(0, 3), LOGS)
def test_cells_over_a_decided_value_need_no_older_row(decided: int, later: int, log: list[Entry]) -> None:
    summary = Summary(horizon=at(decided + later), value=Value("decided"))
    kept = without(log, collected_by_commit("register", at(decided)))
    assert cell.current(summary, seen(kept)) == cell.current(summary, seen(log))


LAYOUTS = st.lists(
    st.tuples(st.integers(1, 6), st.frozensets(st.sampled_from(REPLICAS), min_size=1)), max_size=6
)


@given(LAYOUTS)
def test_a_complete_entry_of_a_cell_makes_older_rows_history_for_every_reader(
    layout: list[tuple[int, frozenset[str]]],
) -> None:
    """Three replicas, final and initial quorums of two, and any reader's quorum."""
    holders = dict(layout)
    complete = [at(us) for us, where in holders.items() if len(where) >= 2]
    newest = collected_by_completion("register", complete)
    for quorum in combinations(REPLICAS, 2):
        log = [entry(us) for us, where in holders.items() if where & set(quorum)]
        kept = log if newest is None else [each for each in log if each.t >= newest]
        assert cell.current(NOTHING, seen(kept))[:2] == cell.current(NOTHING, seen(log))[:2]


def test_an_incomplete_newer_entry_must_not_collect_the_complete_one() -> None:
    """Value 1 is complete; value 2 is at one replica only. A reader that misses 2 needs 1."""
    assert collected_by_completion("register", [at(1)]) == at(1)
    misses_two = [entry(1)]
    one_step_earlier = [each for each in misses_two if each.t >= at(2)]
    assert cell.current(NOTHING, seen(one_step_earlier)) == (ZERO, None, None)
    assert cell.current(NOTHING, seen(misses_two))[1] == "1"


def test_completeness_of_a_queue_entry_collects_nothing() -> None:
    """It waits until it is taken, and so do those before it."""
    assert collected_by_completion("queue", [at(1), at(2)]) is None
    assert collected_by_completion("register", []) is None


DELETED = Summary(horizon=at(5), value=None)


@pytest.mark.parametrize(
    ("name", "summary", "ended"),
    [
        ("dictionary/d/k", DELETED, at(5)),
        ("dictionary/d/k", Summary(horizon=at(5), value=Value("5")), None),
        ("register/r", DELETED, None),
        ("queue/q", DELETED, None),
        ("dictionary/d/k", NOTHING, at(7)),
        ("queue/q", NOTHING, at(7)),
        ("register/r", NOTHING, at(7)),
        ("queue/q", Summary(terms=(Ballot(f"{at(6)}/00000001"),)), None),
        ("cart/ann", Summary(horizon=at(5), terms=(Ballot(f"{at(6)}/00000001"),)), at(5)),
        ("cart/ann", Summary(horizon=at(5), value=Value("{}")), None),
        ("cart/ann", Summary(horizon=at(5), adopted=(entry(6),)), None),
    ],
)
def test_an_object_comes_to_nothing_by_a_deletion_or_where_nothing_was_decided_on_nothing(
    name: str, summary: Summary, ended: Timestamp | None
) -> None:
    assert ended_at(name, summary, Ballot(f"{at(7)}/00000001")) == ended


def test_an_object_of_which_nothing_was_accepted_has_not_come_to_nothing() -> None:
    assert ended_at("dictionary/d/k", NOTHING, NO_BALLOT) is None


DECIDED = Ballot(f"{at(7)}/00000001")
DECIDED_AGAIN = Ballot(f"{at(8)}/00000001")


def test_what_came_to_nothing_by_the_newest_decision_here_may_be_forgotten() -> None:
    assert may_forget(DECIDED, DECIDED, at(5), is_newer_here=False)


@pytest.mark.parametrize(
    ("accepted", "ended", "is_newer_here"),
    [
        (DECIDED, None, False),
        (DECIDED, at(5), True),
        (DECIDED_AGAIN, at(5), False),
        (NO_BALLOT, at(5), False),
    ],
    ids=["is something", "newer row", "decided again", "not decided"],
)
def test_what_is_not_the_newest_here_stays(
    accepted: Ballot, ended: Timestamp | None, *, is_newer_here: bool
) -> None:
    assert not may_forget(DECIDED, accepted, ended, is_newer_here=is_newer_here)


def test_forgetting_before_every_replica_confirmed_brings_the_key_back() -> None:
    """r3 slept through the deletion. If r1 and r2 forget it now, a reader of r2 and r3 finds the old value."""
    slept = [entry(1)]
    tombstone = entry(5, deletion=True)
    assert cell.current(NOTHING, seen([tombstone, *slept]))[1] is None
    assert cell.current(NOTHING, seen(slept))[1] == "1"
    # Confirmed everywhere, each replica may forget at its own time: no reader sees the value again.
    for forgot in product([True, False], repeat=3):
        logs = [[] if gone else [entry(1), tombstone] for gone in forgot]
        for one, other in combinations(logs, 2):
            assert cell.current(NOTHING, seen([*one, *other]))[1] is None


def test_of_ones_own_type_no_complete_call_makes_older_ones_history() -> None:
    """They are to run before it."""
    assert collected_by_completion("cart", [at(1), at(2)]) is None
    assert collected_by_completion("queue", [at(1)]) is None
    assert collected_by_commit("cart", at(2)) == at(2), "they have run"
