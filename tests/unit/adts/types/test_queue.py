"""A queue: its steps against a deque, and what waits over a summary."""

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.log import NOTHING, Entry, Seen, Summary, Value
from quorate.adts.specification import Response
from quorate.adts.types import queue
from quorate.adts.types.queue import Queue
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.timestamp import Timestamp, make
from tests.unit.adts.types.steps import ITEMS, OK, Words, responses


def at(us: int) -> Timestamp:
    return make(us, 0, "c")


def entry(number: int, us: int | None = None) -> Entry:
    """An entry with the id of `number`, at `us` when it was stamped anew."""
    return Entry(at(number), at(number if us is None else us), Value(str(number)))


def seen(*entries: Entry) -> dict[str, Seen]:
    return {each.id: Seen(each, {"r1"}) for each in entries}


def shown(view: list[Seen]) -> list[str]:
    return [str(found.entry.value) for found in view]


def test_the_view_is_in_timestamp_order_however_the_replies_came() -> None:
    assert shown(queue.view(NOTHING, seen(entry(3), entry(1), entry(2)))) == ["1", "2", "3"]


def test_entries_at_or_below_the_horizon_are_consumed() -> None:
    assert shown(queue.view(Summary(horizon=at(2)), seen(entry(1), entry(2), entry(3)))) == ["3"]


def test_adopted_entries_wait_wherever_the_horizon_stands() -> None:
    summary = Summary(horizon=at(5), adopted=(entry(2),))
    assert shown(queue.view(summary, seen(entry(2), entry(6)))) == ["2", "6"]
    assert shown(queue.view(summary, {})) == ["2"]


def test_an_adopted_entry_is_not_there_twice_when_a_log_has_it_at_another_time() -> None:
    summary = Summary(horizon=at(5), adopted=(entry(2),))
    (found,) = queue.view(summary, seen(entry(2, 9)))
    assert found.entry == entry(2)
    assert found.holders == {"r1"}


def test_what_was_taken_while_incomplete_does_not_come_back_at_another_time() -> None:
    summary = Summary(horizon=at(5), ambiguous=((at(2), make_ballot(at(5), 1)),))
    assert queue.view(summary, seen(entry(2, 9))) == []


SUMMARIES = st.builds(
    lambda horizon, adopted, taken: Summary(
        horizon=at(horizon),
        adopted=tuple(entry(number) for number in sorted(adopted)),
        ambiguous=tuple((at(number), make_ballot(at(9), 1)) for number in sorted(taken - adopted)),
    ),
    st.integers(0, 9),
    st.frozensets(st.integers(1, 9), max_size=3),
    st.frozensets(st.integers(1, 9), max_size=3),
)


@given(SUMMARIES, st.dictionaries(st.integers(1, 9), st.integers(1, 12), max_size=6))
def test_each_item_waits_once_or_not_at_all(summary: Summary, logs: dict[int, int]) -> None:
    """A slow definition: every id counts once, adopted ones always, others when above the horizon and not taken."""
    view = queue.view(summary, seen(*(entry(number, us) for number, us in logs.items())))
    waiting = {each.id: each.t for each in summary.adopted}
    for number, us in logs.items():
        if at(us) > summary.horizon and at(number) not in dict(summary.ambiguous):
            waiting.setdefault(at(number), at(us))
    assert {found.entry.id: found.entry.t for found in view} == waiting
    assert [found.entry.t for found in view] == sorted(waiting.values())
    assert len(view) == len(waiting)


@given(st.lists(st.tuples(st.just("Enq"), ITEMS) | st.sampled_from([("Deq",), ("Peek",), ("Size",)])))
def test_a_queue_is_first_in_first_out(words: Words) -> None:
    plain: deque[int] = deque()
    for (word, *args), response in responses(Queue(), words):
        if word == "Enq":
            plain.append(args[0])
            assert response == OK
        elif word == "Size":
            assert response == Response("Ok", (len(plain),))
        elif not plain:
            assert response == Response("Empty")
        else:
            assert response == Response("Ok", (plain.popleft() if word == "Deq" else plain[0],))
