"""The search agrees with trying out every order, on small random histories, right ones and damaged ones."""

import random
from collections.abc import Sequence
from itertools import combinations, permutations
from typing import Any

import pytest
from msgspec.structs import replace

from quorate.adts.specification import Invocation
from quorate.adts.types.catalogue import SPECIFICATIONS
from quorate.simulation.history import NEVER, Call
from quorate.simulation.judging.checkers import check_drained, check_object, check_sizes
from quorate.simulation.judging.linearizability import Count, Serial, linearization, settled
from quorate.simulation.violation import Violation

HISTORIES = 1500


def in_some_order(adt: str, calls: Sequence[Call]) -> bool:
    """The slow, obvious answer: every order of every choice of unknown calls, played on the specification."""
    known = [call for call in calls if call.is_known]
    unknown = [call for call in calls if not call.is_known]
    for size in range(len(unknown) + 1):
        for chosen in combinations(unknown, size):
            for order in permutations([*known, *chosen]):
                if respects_time(order) and plays(adt, order):
                    return True
    return False


def respects_time(order: Sequence[Call]) -> bool:
    return all(second.returned > first.invoked for first, second in combinations(order, 2))


def plays(adt: str, order: Sequence[Call]) -> bool:
    specification = SPECIFICATIONS[adt]
    state: Any = specification.initial()
    for call in order:
        state, response = specification.step(state, Invocation(call.operation, call.args))
        if call.operation in ("Cas", "PutIfAbsent"):
            right: tuple[Any, ...] = (response.condition,)
        else:
            right = response.results
        if call.is_known and call.results != right:
            return False
    return True


def random_call(adt: str, rng: random.Random, number: int) -> tuple[str, tuple[Any, ...]]:
    match adt:
        case "queue":
            return rng.choice([("Enq", (f"v{number}",)), ("Deq", ()), ("Deq", ()), ("Peek", ())])
        case "register":
            old = rng.choice([None, *(f"v{earlier}" for earlier in range(number))])
            return rng.choice([("Write", (f"v{number}",)), ("Read", ()), ("Cas", (old, f"v{number}"))])
    key = rng.choice("ab")
    changes = [("Put", (key, f"v{number}")), ("Delete", (key,)), ("PutIfAbsent", (key, f"v{number}"))]
    return rng.choice([*changes, ("Get", (key,)), ("Items", ())])


def random_history(adt: str, seed: int) -> list[Call]:
    """Up to six overlapping calls: played in some order on the specification, then perhaps damaged."""
    rng = random.Random(seed)
    specification = SPECIFICATIONS[adt]
    state: Any = specification.initial()
    calls = []
    overlap = rng.choice([4, 12, 25])
    for number in range(rng.randint(2, 6)):
        operation, args = random_call(adt, rng, number)
        is_lost = rng.random() < 0.2
        if not is_lost or rng.random() < 0.5:
            state, response = specification.step(state, Invocation(operation, args))
            conditional = operation in ("Cas", "PutIfAbsent")
            results: tuple[Any, ...] = (response.condition,) if conditional else response.results
        else:
            results = ()
        moment = 10 * number
        begin, end = moment - rng.randint(0, overlap), moment + rng.randint(1, overlap)
        calls.append(
            Call(operation, args, 2 * begin, NEVER if is_lost else 2 * end + 1, () if is_lost else results)
        )
    for victim, other in combinations(range(len(calls)), 2):
        alike = calls[victim].is_known and calls[victim].operation == calls[other].operation
        if alike and rng.random() < 0.3:
            calls[victim] = replace(calls[victim], results=calls[other].results)
    return calls


@pytest.mark.parametrize("adt", ["queue", "register", "dictionary"])
def test_search_agrees_with_trying_every_order(adt: str) -> None:
    verdicts = {True: 0, False: 0}
    for seed in range(HISTORIES):
        calls = random_history(adt, seed)
        expected = in_some_order(adt, calls)
        verdicts[expected] += 1
        searched = settled(calls) if adt == "queue" else calls
        found = linearization(Serial(adt, searched), searched)
        assert (found is not None) == expected, f"seed {seed}"
        if found is not None:
            assert respects_time(found)
    assert min(verdicts.values()) > HISTORIES / 50, verdicts


def enq(value: str, begin: int, end: int = NEVER) -> Call:
    return Call("Enq", (value,), begin, end)


def deq(begin: int, end: int, *items: str) -> Call:
    return Call("Deq", (), begin, end, items, count=9)


def test_batch_takes_effect_in_its_order_and_a_run_is_taken_at_one_moment() -> None:
    first, second = enq("a", 1, 4), enq("b", 1, 4)
    second.after = first
    check_object("queue/q", [first, second, deq(5, 6, "a", "b")], is_exact=True)
    for wrong in (deq(5, 6, "b", "a"), deq(5, 6, "b")):
        with pytest.raises(Violation, match="not linearizable"):
            check_object("queue/q", [first, second, wrong], is_exact=True)


def test_where_clocks_may_be_wrong_items_may_overtake_but_not_be_missed() -> None:
    calls = [enq("a", 1, 2), enq("b", 3, 4)]
    check_object("queue/q", [*calls, deq(5, 6, "b")], is_exact=False)
    with pytest.raises(Violation, match="not linearizable"):
        check_object("queue/q", [*calls, deq(5, 6, "b"), deq(7, 8)], is_exact=False)


def test_where_clocks_may_be_wrong_a_value_may_be_older_but_not_come_back() -> None:
    writes = [Call("Write", ("a",), 1, 2), Call("Write", ("b",), 3, 4)]
    check_object("register/r", [*writes, Call("Read", (), 5, 6, ("a",))], is_exact=False)
    back = [Call("Read", (), 5, 6, ("b",)), Call("Read", (), 7, 8, ("a",))]
    with pytest.raises(Violation, match="not linearizable"):
        check_object("register/r", [*writes, *back], is_exact=False)


@pytest.mark.parametrize("damaged", [("a", "a"), ("z",)])
def test_doubled_and_invented_items_are_named(damaged: tuple[str, ...]) -> None:
    with pytest.raises(Violation, match=r"taken twice|nobody enqueued"):
        check_object("queue/q", [enq("a", 1, 2), deq(3, 4, *damaged)], is_exact=False)


def test_lost_item_is_excused_only_by_an_unknown_dequeue() -> None:
    calls = [enq("a", 1, 2), enq("b", 1), deq(5, 6)]
    with pytest.raises(Violation, match="lost"):
        check_drained("queue/q", calls)
    check_drained("queue/q", [*calls, Call("Deq", (), 3)])


@pytest.mark.parametrize(("count", "is_right"), [(0, False), (1, True), (2, True), (3, False)])
def test_size_counts_what_ended_before_it_and_not_what_was_taken_before(count: int, is_right: bool) -> None:
    calls = [enq("a", 1, 2), enq("b", 3, 4), enq("c", 5, 12), deq(6, 7, "a")]
    size = Call("Size", (), 8, 10, (count,))
    if is_right:
        check_sizes("queue/q", [size], calls)
    else:
        with pytest.raises(Violation, match=r"not in 1\.\.2"):
            check_sizes("queue/q", [size], calls)


def test_sixty_overlapping_calls_are_checked_quickly() -> None:
    enqueues = [enq(f"v{number:02}", 10 * number, 10 * number + 25) for number in range(30)]
    dequeues = [deq(10 * number + 5, 10 * number + 35, f"v{number:02}") for number in range(30)]
    check_object("queue/q", [*enqueues, *dequeues], is_exact=True)
    dequeues[29] = deq(295, 345)
    with pytest.raises(Violation):
        check_object("queue/q", [*enqueues, *dequeues, deq(400, 410)], is_exact=True)


def test_order_in_which_items_were_taken_says_in_which_they_were_enqueued() -> None:
    """Without that, the search tries the orders of all that was enqueued at once: then it is given up."""
    values = [f"v{number:02}" for number in range(21)]
    enqueues = [enq(value, number, 30) for number, value in enumerate(reversed(values))]
    dequeues = [deq(31 + 2 * at, 32 + 2 * at, *values[at : at + 7]) for at in range(0, 21, 7)]
    calls = [*enqueues, *dequeues]
    assert linearization(Serial("queue", calls), calls, nodes_max=len(calls)) is not None
    enqueues[0] = enq("v20", -2, -1)
    calls = [*enqueues, *dequeues]
    assert linearization(Serial("queue", calls), calls, nodes_max=len(calls)) is None


def test_sizes_are_those_of_one_counter() -> None:
    """An item that a first Size counted is there for the second, acknowledged or not, unless somebody may have taken it."""
    enq, first, second = Call("Enq", (), 1), Call("Size", (), 2, 3, (1,)), Call("Size", (), 4, 5, (0,))
    assert linearization(Count(), [enq, first]) is not None
    assert linearization(Count(), [enq, first, second]) is None
    taken, unknown = Call("Deq", (), 3, 6, ("x",)), Call("Deq", (), 3)
    assert linearization(Count(), [enq, first, second, taken]) is not None
    assert linearization(Count(), [enq, first, second, unknown]) is not None
    assert linearization(Count(), [enq, first, Call("Size", (), 4, 5, (2,))]) is None


def test_a_size_that_forgets_an_item_is_a_violation() -> None:
    calls = [Call("Enq", ("x",), 1), Call("Size", (), 2, 3, (1,)), Call("Size", (), 4, 5, (0,))]
    with pytest.raises(Violation, match="Count"):
        check_object("queue/q", calls, is_exact=True)
