"""Which answers of eventual consistency missed changes: the same as by trying one after the other, with few searches."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.histories import weak
from quorate.adts.histories.calls import Call
from quorate.adts.histories.weak import Anomalies, anomalies
from quorate.adts.specification import Invocation, Response


def read(number: int) -> Call:
    at = 10.0 * number
    return Call("p", "register/r", Invocation("Read"), at, at + 5, (Response("Ok", (number,)),), is_weak=True)


class Judge:
    """Says that all is explained but these numbers."""

    def __init__(self, wrong: set[int]) -> None:
        self.wrong = wrong
        self.searches = 0

    def __call__(self, calls: Sequence[Call]) -> bool:
        self.searches += 1
        return not any(call.answers[0].results[0] in self.wrong for call in calls)


@given(st.integers(0, 40), st.data())
def test_each_that_is_not_explained_is_found(count: int, data: st.DataObject) -> None:
    wrong = data.draw(st.sets(st.integers(0, max(0, count - 1)))) if count else set()
    judge = Judge(wrong)
    found = anomalies("register/r", [read(number) for number in reversed(range(count))], 0, judge)
    assert found == Anomalies("register/r", count, count, tuple(map(read, sorted(wrong))))
    assert judge.searches <= 1 + (len(wrong)) * (2 + count.bit_length())


def test_it_ends_when_it_has_looked_at_so_many_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weak, "CALLS_MAX", 500)
    found = anomalies("register/r", [read(number) for number in range(100)], 20, Judge(set(range(0, 100, 2))))
    assert 0 < found.judged < found.weak == 100
    assert found.missed == tuple(map(read, range(0, found.judged, 2)))


def test_where_a_search_is_given_up_no_more_is_judged() -> None:
    assert anomalies("register/r", [read(0)], 0, lambda _: None) == Anomalies("register/r", 1, 0, ())
