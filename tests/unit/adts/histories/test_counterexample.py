"""What is left of a history without a right order: it has none either, and it is small."""

import random
from typing import Any

import pytest

from quorate.adts.histories.calls import NEVER, Call
from quorate.adts.histories.counterexample import Smaller
from quorate.adts.histories.orders import Model
from quorate.adts.histories.search import VISITS_MAX, Found, search
from quorate.adts.specification import Invocation, Response
from quorate.adts.types.catalogue import known_types
from tests.unit.adts.histories.every_order import in_some_order, random_calls

HISTORIES = 400


def smaller(adt: str, calls: list[Call], model: Model = Model.LINEARIZABLE) -> Smaller:
    specifications = {"x": known_types()[adt]}
    found = search(specifications, calls, model)
    assert not found.is_right
    small = Smaller(specifications, calls, model, found, VISITS_MAX)
    small.end_earlier()
    small.leave_out()
    return small


@pytest.mark.parametrize("model", Model)
@pytest.mark.parametrize("adt", ["queue", "register", "dictionary", "set", "semiqueue"])
def test_what_is_left_is_part_of_what_there_was_and_has_no_right_order(adt: str, model: Model) -> None:
    specifications = {"x": known_types()[adt]}
    seen = 0
    for seed in range(HISTORIES):
        calls = random_calls(specifications, random.Random(seed), 6)
        if not search(specifications, calls, model).is_right:
            small = smaller(adt, calls, model)
            whole = {(call.process, call.invocation, call.invoked) for call in calls}
            assert {(call.process, call.invocation, call.invoked) for call in small.calls} <= whole
            assert not in_some_order(specifications, small.calls, model), f"seed {seed}"
            assert not small.found.is_right
            seen += 1
    assert model is Model.SERIALIZABLE or seen >= 3


def call(operation: str, args: tuple[str, ...], invoked: int, *results: str) -> Call:
    return Call("p", "x", Invocation(operation, args), invoked, invoked + 1, (Response("Ok", results),))


def shown(calls: list[Call]) -> list[str]:
    return [str(each) for each in calls]


def test_of_many_reads_and_a_later_end_the_stale_read_is_left() -> None:
    calls = [call("Write", (f"v{number}",), 10 * number) for number in range(20)]
    calls += [call("Read", (), 10 * number + 5, f"v{number}") for number in range(20) if number != 12]
    calls.append(call("Read", (), 125, "v7"))
    small = smaller("register", calls)
    assert shown(small.calls)[-2:] == ["Write(v12) → Ok", "Read() → Ok(v7)"]
    assert len(small.calls) == 14
    assert shown(list(small.found.stuck)) == ["Read() → Ok(v7)"]


def test_of_a_queue_the_two_items_in_the_wrong_order_are_left() -> None:
    calls = [call("Enq", (f"v{number}",), 10 * number) for number in range(50)]
    order = [*range(20), 21, 20, *range(22, 50)]
    calls += [call("Deq", (), 1000 + 10 * place, f"v{number}") for place, number in enumerate(order)]
    small = smaller("queue", calls)
    assert shown(small.calls) == ["Enq(v20) → Ok", "Enq(v21) → Ok", "Deq() → Ok(v21)"]


def test_where_somebody_counts_all_items_stay() -> None:
    calls = [call("Enq", (item,), 10 * number) for number, item in enumerate("xyz")]
    size = Call("p", "x", Invocation("Size"), 50, 51, (Response("Ok", (2,)),))
    small = smaller("queue", [*calls, size])
    assert len(small.calls) == 4


def test_what_was_not_known_at_the_end_is_shown_as_unknown() -> None:
    late = Call("p", "x", Invocation("Write", ("a",)), 1, 100, (Response("Ok"),))
    small = smaller("register", [late, call("Read", (), 5, "b")])
    assert shown(small.calls) == ["Write(a) → ?", "Read() → Ok(b)"] or shown(small.calls) == [
        "Read() → Ok(b)"
    ]
    assert all(each.returned in (6, NEVER) for each in small.calls)


def test_the_moment_at_which_it_goes_wrong_is_known_from_the_search_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To look for it among 2,000 moments by halves asks for 11 searches."""
    calls = [call("Write", (f"v{number}",), 10 * number) for number in range(1_000)]
    calls += [call("Read", (), 10 * number + 5, f"v{number}") for number in range(1_000) if number != 700]
    calls.append(call("Read", (), 7_005, "v3"))
    found = search({"x": known_types()["register"]}, calls)
    assert found.until == 7_006
    small = Smaller({"x": known_types()["register"]}, calls, Model.LINEARIZABLE, found, VISITS_MAX)
    searched = list[int]()

    def counted(*given: Any, **named: Any) -> Found:
        searched.append(len(given[1]))
        return search(*given, **named)

    monkeypatch.setattr("quorate.adts.histories.counterexample.search", counted)
    small.end_earlier()
    assert max(each.returned for each in small.calls) == 7_006
    assert searched == [1_402, 1_401]


def test_without_tries_what_there_is_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate.adts.histories.counterexample.TRIES_MAX", 0)
    calls = [call("Write", ("a",), 1), call("Read", (), 3, "a"), call("Read", (), 5, "b")]
    small = smaller("register", calls)
    assert small.calls == calls
    assert isinstance(small.found, Found)
