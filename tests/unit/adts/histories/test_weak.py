"""Which answers of eventual consistency fit no order: the same as by trying them one after the other, and quick."""

import random
from collections.abc import Sequence

import pytest

from quorate.adts.histories import weak
from quorate.adts.histories.calls import Call
from quorate.adts.histories.orders import Model
from quorate.adts.histories.weak import Anomalies, anomalies
from quorate.adts.own import Computed
from quorate.adts.plain_class import PlainClass
from quorate.adts.specification import Invocation, Response, Specification, outcomes_of
from quorate.adts.types.catalogue import known_types
from tests.unit.adts.histories.every_order import in_some_order, random_calls

OBSERVING = {"Read", "Get", "Items", "Peek", "Size", "all"}


class Pile:
    """The order counts."""

    examples = {"item": ("a", "b")}  # noqa: RUF012 - as users write it

    def __init__(self) -> None:
        self.items: list[str] = []

    def put(self, item: str) -> None:
        self.items.append(item)

    def take(self) -> str | None:
        return self.items.pop() if self.items else None

    def all(self) -> list[str]:
        return self.items


def one_by_one(name: str, specification: Specification, calls: Sequence[Call]) -> tuple[Call, ...] | None:
    """The slow, obvious answer; None where the other calls have no right order."""
    kept = [call for call in calls if not call.is_weak]
    if not in_some_order({name: specification}, kept, Model.LINEARIZABLE):
        return None
    missed = []
    for call in sorted((call for call in calls if call.is_weak), key=lambda call: call.returned):
        if in_some_order({name: specification}, [*kept, call], Model.LINEARIZABLE):
            kept.append(call)
        else:
            missed.append(call)
    return tuple(missed)


def with_old_answers(specification: Specification, calls: Sequence[Call], rng: random.Random) -> list[Call]:
    """What observes is weak, and half of it answers from a state of some calls."""
    made = []
    for call in calls:
        is_weak = call.is_known and call.invocation.operation in OBSERVING
        if is_weak and rng.random() < 0.5:
            state = specification.initial()
            for earlier in rng.sample(calls, rng.randint(0, len(calls))):
                for after, _ in list(outcomes_of(specification, state, earlier.invocation))[:1]:
                    state = after
            answers = [response for _, response in outcomes_of(specification, state, call.invocation)]
            made.append(call._replace(answers=tuple(answers[:1]) or call.answers, is_weak=True))
        else:
            made.append(call._replace(is_weak=is_weak))
    return made


@pytest.mark.parametrize("name", ["register", "dictionary", "queue", "counter", "pile"])
def test_it_is_the_same_as_trying_one_after_the_other(name: str) -> None:
    specification: Specification = Computed(PlainClass(Pile)) if name == "pile" else known_types()[name]
    rng = random.Random(name)
    found_missed = found_wrong = 0
    for _ in range(1_500):
        drawn = random_calls({"x": specification}, rng, distinct=name == "queue")
        calls = with_old_answers(specification, drawn, rng)
        expected, found = one_by_one("x", specification, calls), anomalies("x", specification, calls)
        if expected is None:
            found_wrong += 1
            assert found is None, calls
            continue
        count = sum(call.is_weak for call in calls)
        assert found == Anomalies("x", count, count, expected), calls
        found_missed += bool(expected)
    assert found_missed >= 30
    assert found_wrong >= 30 or name == "counter", "its other calls are blind"


def write(number: int) -> Call:
    return Call("w", "r", Invocation("Write", (number,)), 10 * number, 10 * number + 5, (Response("Ok"),))


def read(value: int, invoked: float, returned: float) -> Call:
    return Call("p", "r", Invocation("Read"), invoked, returned, (Response("Ok", (value,)),), is_weak=True)


def test_an_answer_that_later_ones_refute_fits_no_order_and_those_after_it_are_judged_without_it() -> None:
    """The first shows what was never written; the second the register as it was; the third what another one wrote."""
    lost = Call("l", "r", Invocation("Write", (9,)), 11)
    weak_ones = [read(9, 20, 22), read(1, 23, 24), read(2, 26, 28)]
    strong = [read(1, 30, 35)._replace(is_weak=False), read(1, 36, 38)._replace(is_weak=False)]
    found = anomalies("r", known_types()["register"], [write(1), lost, *weak_ones, *strong])
    assert found == Anomalies("r", 3, 3, (weak_ones[0], weak_ones[2]))


def test_an_early_answer_is_found_behind_many_that_are_explained() -> None:
    """It counts what never was put in; those after it say nothing of that."""

    def call(operation: str, at: int, *results: object, returned: int = 3, is_weak: bool = False) -> Call:
        answer = Response("Ok" if results or operation == "Enq" else "Empty", results)
        return Call(
            "p",
            "q",
            Invocation(operation, ("a",) if operation == "Enq" else ()),
            at,
            at + returned,
            (answer,),
            is_weak,
        )

    lost = Call("l", "q", Invocation("Enq", ("z",)), 11)
    early = call("Size", 20, 2, is_weak=True)
    later = [call("Peek", at, "a", is_weak=True) for at in range(30, 330, 10)]
    taken = [call("Deq", 400, "a"), call("Deq", 410)]
    found = anomalies("q", known_types()["queue"], [call("Enq", 10), lost, early, *later, *taken], 20_000)
    assert found == Anomalies("q", 31, 31, (early,))


def test_a_long_history_is_judged_to_its_end() -> None:
    """Of 9,951 answers 111 were judged."""
    calls = [write(number) for number in range(1, 4001)]
    late = [read(number - number % 2, 10 * number + 6, 10 * number + 9) for number in range(2, 4001)]
    found = anomalies("r", known_types()["register"], [*calls, *late])
    assert found is not None
    assert (found.judged, len(found.missed)) == (3999, 1999)


def test_calls_of_unknown_outcome_do_not_multiply_what_is_looked_at() -> None:
    lost = [Call("l", "r", Invocation("Write", (f"l{number}",)), 10 * number + 1) for number in range(1, 31)]
    late = [read(number, 10 * number + 6, 10 * number + 9) for number in range(1, 100)]
    calls = [*(write(number) for number in range(1, 100)), *late, *lost]
    assert anomalies("r", known_types()["register"], calls, 400_000) == Anomalies("r", 99, 99, ())


@pytest.mark.parametrize("bound", ["ways", "visits"])
def test_what_comes_after_too_many_ways_or_steps_is_not_judged(
    bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = [write(number) for number in range(1, 40)]
    late = [read(number, 10 * number + 6, 10 * number + 9) for number in range(1, 40)]
    many = [
        Call("m", "r", Invocation("Write", (f"m{number}",)), 205, 305, (Response("Ok"),))
        for number in range(9)
    ]
    if bound == "ways":
        monkeypatch.setattr(weak, "WAYS_MAX", 5)
    found = anomalies(
        "r", known_types()["register"], [*calls, *late, *many], 200 if bound == "visits" else 20_000
    )
    assert found is not None
    assert (found.missed, 19 <= found.judged < 39) == ((), True)


def test_where_the_other_calls_are_wrong_nothing_is_judged() -> None:
    wrong = [write(1), read(2, 20, 25)._replace(is_weak=False), read(1, 30, 35)]
    assert anomalies("r", known_types()["register"], wrong) is None


def test_an_answer_that_nobody_heard_counts_for_nothing() -> None:
    lost = Call("p", "r", Invocation("Read"), 20, is_weak=True)
    assert anomalies("r", known_types()["register"], [write(1), lost]) == Anomalies("r", 0, 0, ())
