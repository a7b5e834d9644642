"""Stateful tests: any operations, one after another, through several front ends, answer what the serial specification does.

A caller who waits for each answer must not be able to tell three replicas from one Python object, whatever is stopped,
restarted, forgotten or repeated meanwhile (at most one replica of three is down). The model is the shipped
`step(state, invocation)` itself; the cluster is `tests.support.in_process`, which runs for all examples, each on objects of its own.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from msgspec import Struct

from quorate.adts.log import Value
from quorate.adts.specification import Invocation, Response
from quorate.adts.types.catalogue import SPECIFICATIONS, object_name
from quorate.api_specs.values import from_value, to_value
from quorate.client_sdk import AsyncClient, AsyncDictionary
from quorate.client_sdk.errors import RefusedByReplicas
from quorate.client_sdk.protocol.core.values import CollectTombstone, Done
from tests.support.in_process import FrontEndHere, InProcessCluster, in_process
from tests.unit.api_specs.test_values import VALUES as ANY_VALUES

WALL_ERRORS_S: Final = (0.0, 3600.0, -3600.0)
"""Of the machines on which the front ends run: they need no clocks that are right."""
NULL: Final = "null"
MODEST: Final = settings(
    max_examples=20,
    stateful_step_count=30,
    deadline=None,
    database=None,
    phases=[Phase.generate],  # No shrinking: an example takes up to a second.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)

ROUNDS_MAX: Final = 8
"""Of examples, until all that must be met was. One round nearly always does; but what a seed draws depends on the modules that
are loaded, since Hypothesis picks constants from them."""

CLIENTS = st.integers(0, len(WALL_ERRORS_S) - 1)
KEYS = st.sampled_from(["a", "b"])
# Few values, so that compare-and-set often meets the one it names; and any others.
VALUES = st.sampled_from([None, 0, 1, "x", {"b": [1, None], "a": 2.5}]) | ANY_VALUES
LABELS = st.sampled_from([None, "first", "second"])
"""Of idempotency keys; None for an operation without one."""

DISTURBANCES = st.sampled_from(["a front end forgets", "time passes", "a replica stops or starts"])
CHOICES = st.randoms(use_true_random=False)

_numbers = itertools.count()

ForwardedRequest = Callable[[int, Any], Any]
"""Runs one operation through the front end of that number, with these arguments."""


class Remembered(Struct):
    """An operation that took effect under an idempotency key: its arguments, other ones, its answer, and when."""

    args: Any
    other: Any
    answer: Any
    ask: ForwardedRequest
    at_s: float = 0.0


class AgainstSpecification(RuleBasedStateMachine):
    """What the machines of all data types share: a name nobody used, the model's state, and what befalls the cluster."""

    adt = ""

    def __init__(self, cluster: InProcessCluster, front_ends: list[FrontEndHere], met: Counter[str]) -> None:
        super().__init__()
        self.cluster = cluster
        self.met = met
        self.name = f"object-{next(_numbers)}"
        self.specification = SPECIFICATIONS[self.adt]
        self.state: Any = self.specification.initial()
        self.front_ends = front_ends
        self.remembered: dict[tuple[str, str], Remembered] = {}
        self.generation = 0

    def teardown(self) -> None:
        self.cluster.start(*self.cluster.down)

    def client(self, number: int) -> AsyncClient:
        return self.front_ends[number].client

    def step(self, operation: str, *args: Any) -> Response:
        """What the specification answers; the model's state moves on."""
        self.state, response = self.specification.step(self.state, Invocation(operation, args))
        return response

    def key(self, label: str | None) -> str | None:
        return None if label is None else f"{label}-{self.generation}"

    def is_repeat(self, kind: str, key: str | None, args: Any, number: int, ask: ForwardedRequest) -> bool:
        """Whether the key took effect before: then this is a true repeat, or it is refused."""
        known = self.remembered.get((kind, key or ""))
        if known is None:
            return False
        if to_value(args) == to_value(known.args):
            assert ask(number, args) == known.answer
        else:
            self.refused(ask, number, args)
        return True

    def refused(self, ask: ForwardedRequest, number: int, args: Any) -> None:
        """The key was used with other arguments: nothing happens."""
        with pytest.raises(RefusedByReplicas, match="idempotency key was used with other") as refused:
            ask(number, args)
        assert refused.value.definite
        self.met["keys refused"] += 1

    def remember(self, kind: str, key: str | None, known: Remembered) -> None:
        if key is not None:
            known.at_s = self.cluster.clock.now().mono_s
            self.remembered[kind, key] = known

    @rule(number=CLIENTS, choose=CHOICES)
    @precondition(lambda self: self.remembered)
    def repeat(self, number: int, choose: Random) -> None:
        """The same key and arguments, by anyone: the first answer, and nothing happens again."""
        known = choose.choice(list(self.remembered.values()))
        assert known.ask(number, known.args) == known.answer
        self.met["repeats answered"] += 1
        if known.other is not None:
            self.refused(known.ask, number, known.other)

    @rule(what=DISTURBANCES, number=CLIENTS, choose=CHOICES)
    def disturb(self, what: str, number: int, choose: Random) -> None:
        """One rule for all of these, so that most steps are operations."""
        if what == "a front end forgets":
            self.cluster.run(self.front_ends[number].client.aclose())
            self.front_ends[number] = self.cluster.front_end(WALL_ERRORS_S[number])
        elif what == "time passes":
            self.let_time_pass(choose.choice([1.0, 15.0, 100.0]))
        elif self.cluster.down:
            self.cluster.start(*self.cluster.down)
        else:
            self.cluster.stop(choose.choice(self.cluster.up))
        self.met[what] += 1

    def let_time_pass(self, seconds: float) -> None:
        """History is deleted as the janitor does it. Keys that may be forgotten from now on are not used again."""
        self.cluster.clock.leap(seconds)
        for replica in self.cluster.up:
            self.met["entries deleted"] += self.cluster.prune(replica)
        oldest_s = self.cluster.clock.now().mono_s - self.cluster.document.limits.retry_window_s * 0.8
        if any(known.at_s < oldest_s for known in self.remembered.values()):
            self.remembered.clear()
            self.generation += 1


class QueueMachine(AgainstSpecification):
    """A queue."""

    adt = "queue"

    @rule(number=CLIENTS, values=st.lists(VALUES, min_size=1, max_size=4), label=LABELS)
    def enqueue(self, number: int, values: list[Any], label: str | None) -> None:
        key = self.key(label)

        def ask(by: int, items: list[Any]) -> None:
            queue = self.client(by).queue(self.name)
            self.cluster.run(queue.enqueue_many(items, idempotency_key=key))

        if not self.is_repeat("Enq", key, values, number, ask):
            ask(number, values)
            for value in values:
                assert self.step("Enq", to_value(value)) == Response("Ok")
            self.remember("Enq", key, Remembered(values, [*values, "other"], None, ask))

    @rule(number=CLIENTS, items_max=st.integers(1, 5), label=LABELS)
    def dequeue(self, number: int, items_max: int, label: str | None) -> None:
        """A repeat may ask for another number of items: it gets what the first took."""
        key = self.key(label)

        def ask(by: int, most: int) -> list[str]:
            queue = self.client(by).queue(self.name)
            taken = self.cluster.run(queue.dequeue(most, idempotency_key=key))
            return [to_value(each) for each in taken]

        if known := self.remembered.get(("Deq", key or "")):
            assert ask(number, items_max) == known.answer
            return
        expected: list[str] = []
        while len(expected) < items_max and (response := self.step("Deq")).condition == "Ok":
            expected += response.results
        assert ask(number, items_max) == expected
        self.met["taken" if expected else "found empty"] += 1
        if expected:
            self.remember("Deq", key, Remembered(items_max, None, expected, ask))

    @rule(number=CLIENTS)
    def peek(self, number: int) -> None:
        found = self.cluster.run(self.client(number).queue(self.name).peek())
        response = self.step("Peek")
        assert to_value(found) == (response.results[0] if response.results else NULL)

    @rule(number=CLIENTS)
    def size(self, number: int) -> None:
        found = self.cluster.run(self.client(number).queue(self.name).size())
        assert self.step("Size").results == (found,)

    @rule(number=CLIENTS, items_max=st.none() | st.integers(1, 4))
    def items(self, number: int, items_max: int | None) -> None:
        """What Size counts, listed."""
        found = self.cluster.run(self.client(number).queue(self.name).items(items_max))
        assert [to_value(each) for each in found] == list(self.state)[:items_max]


class RegisterMachine(AgainstSpecification):
    """A register. One nobody wrote and one that holds null are the same state to its users."""

    adt = "register"

    @rule(number=CLIENTS, value=VALUES)
    def write(self, number: int, value: Any) -> None:
        self.cluster.run(self.client(number).register(self.name).write(value))
        assert self.step("Write", _text(value)) == Response("Ok")

    @rule(number=CLIENTS)
    def read(self, number: int) -> None:
        found = self.cluster.run(self.client(number).register(self.name).read())
        assert self.step("Read").results == (_text(found),)

    @rule(number=CLIENTS, guess=st.none() | VALUES.map(to_value), new=VALUES, label=LABELS)
    def compare_and_set(self, number: int, guess: str | None, new: Any, label: str | None) -> None:
        """Without a guess the value named is the right one."""
        key, old = self.key(label), from_value(Value(guess or self.state or NULL))

        def ask(by: int, args: list[Any]) -> bool:
            register = self.client(by).register(self.name)
            return self.cluster.run(register.compare_and_set(*args, idempotency_key=key))

        if not self.is_repeat("Cas", key, [old, new], number, ask):
            was_old = self.step("Cas", _text(old), _text(new)).condition == "Ok"
            assert ask(number, [old, new]) == was_old
            self.met["swapped" if was_old else "not swapped"] += 1
            if was_old:
                self.remember("Cas", key, Remembered([old, new], [old, [new]], True, ask))


class DictionaryMachine(AgainstSpecification):
    """A dictionary. The model holds JSON text, so that a key which holds null is told from an absent one."""

    adt = "dictionary"

    def dictionary(self, number: int) -> AsyncDictionary:
        return self.client(number).dictionary(self.name)

    @rule(number=CLIENTS, at=KEYS, value=VALUES)
    def put(self, number: int, at: str, value: Any) -> None:
        self.cluster.run(self.dictionary(number).put(at, value))
        assert self.step("Put", at, to_value(value)) == Response("Ok")

    @rule(number=CLIENTS, at=KEYS)
    def delete(self, number: int, at: str) -> None:
        self.cluster.run(self.dictionary(number).delete(at))
        assert self.step("Delete", at) == Response("Ok")

    @rule(number=CLIENTS, at=KEYS)
    def get(self, number: int, at: str) -> None:
        found = self.cluster.run(self.dictionary(number).get(at))
        assert to_value(found) == (self.step("Get", at).results[0] or NULL)

    @rule(number=CLIENTS)
    def items(self, number: int) -> None:
        found = self.cluster.run(self.dictionary(number).items())
        pairs = frozenset((at, to_value(value)) for at, value in found.items())
        assert self.step("Items").results == (pairs,)

    @rule(number=CLIENTS)
    def size(self, number: int) -> None:
        assert self.step("Size").results == (self.cluster.run(self.dictionary(number).size()),)

    @rule(number=CLIENTS, at=KEYS, value=VALUES, label=LABELS)
    def put_if_absent(self, number: int, at: str, value: Any, label: str | None) -> None:
        key, kind = self.key(label), f"PutIfAbsent {at}"

        def ask(by: int, mine: Any) -> bool:
            return self.cluster.run(self.dictionary(by).put_if_absent(at, mine, idempotency_key=key))

        if not self.is_repeat(kind, key, value, number, ask):
            was_absent = self.step("PutIfAbsent", at, to_value(value)).condition == "Ok"
            assert ask(number, value) == was_absent
            self.met["put" if was_absent else "was present"] += 1
            if was_absent:
                self.remember(kind, key, Remembered(value, [value], True, ask))

    @rule(number=CLIENTS, at=KEYS, guess=st.none() | VALUES.map(to_value), new=VALUES, label=LABELS)
    def compare_and_set(self, number: int, at: str, guess: str | None, new: Any, label: str | None) -> None:
        """Without a guess the value named is the right one. To name null is to name an absent key, too."""
        key, kind, held = self.key(label), f"Cas {at}", dict(self.state).get(at)
        named = guess or held or NULL
        old = from_value(Value(named))

        def ask(by: int, args: list[Any]) -> bool:
            return self.cluster.run(self.dictionary(by).compare_and_set(at, *args, idempotency_key=key))

        if not self.is_repeat(kind, key, [old, new], number, ask):
            expected = None if named == NULL and held is None else named
            was_old = self.step("Cas", at, expected, to_value(new)).condition == "Ok"
            assert ask(number, [old, new]) == was_old
            self.met["swapped" if was_old else "not swapped"] += 1
            if was_old:
                self.remember(kind, key, Remembered([old, new], [old, [new]], True, ask))

    @rule(number=CLIENTS, at=KEYS, guess=st.none() | VALUES.map(to_value), label=LABELS)
    def compare_and_delete(self, number: int, at: str, guess: str | None, label: str | None) -> None:
        """Without a guess the value named is the right one. A compare-and-set whose new value is none at all."""
        key, kind, held = self.key(label), f"Cas {at}", dict(self.state).get(at)
        named = guess or held or NULL
        if named == NULL or (kind, key or "") in self.remembered:
            return
        old = from_value(Value(named))
        was_old = self.step("Cas", at, named, None).condition == "Ok"
        dictionary = self.dictionary(number)
        done = self.cluster.run(dictionary.compare_and_delete(at, old, idempotency_key=key))
        assert done == was_old
        self.met["compared and deleted" if was_old else "not deleted"] += 1
        if was_old and key is not None:

            def ask(by: int, args: list[Any]) -> bool:
                dictionary = self.dictionary(by)
                if len(args) == 1:
                    return self.cluster.run(dictionary.compare_and_delete(at, *args, idempotency_key=key))
                return self.cluster.run(dictionary.compare_and_set(at, *args, idempotency_key=key))

            self.remember(kind, key, Remembered([old], [old, [old]], True, ask))

    @rule(number=CLIENTS, at=KEYS, is_old=st.booleans())
    @precondition(lambda self: not self.cluster.down)
    def collect_tombstone(self, number: int, at: str, is_old: bool) -> None:
        """What the janitor does with old deletions; nobody can tell that it did."""
        if is_old:
            self.delete(number, at)
            self.let_time_pass(100.0)
        full = object_name("dictionary", self.name, at)
        if is_old:
            self.cluster.outcome(self.front_ends[number], CollectTombstone(full))
            self.let_time_pass(100.0)
        outcome = self.cluster.outcome(self.front_ends[number], CollectTombstone(full))
        assert isinstance(outcome, Done)
        assert outcome.result or not is_old
        assert not outcome.result or at not in dict(self.state)
        self.met["collected" if outcome.result else "not collected"] += 1


def _text(value: Any) -> str | None:
    return None if value is None else to_value(value)


MUST_MEET_ALWAYS: Final = "repeats answered, keys refused, a replica stops or starts, entries deleted"
MUST_MEET: Final = {
    QueueMachine: "taken, found empty",
    RegisterMachine: "swapped, not swapped",
    DictionaryMachine: "swapped, not swapped, put, was present, collected, not collected, compared and deleted, not deleted",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCluster]:
    with in_process(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.mark.slow
@pytest.mark.parametrize("machine", MUST_MEET)
def test_every_answer_is_that_of_the_serial_specification(
    cluster: InProcessCluster, machine: type[AgainstSpecification]
) -> None:
    met: Counter[str] = Counter()
    front_ends = [cluster.front_end(error_s) for error_s in WALL_ERRORS_S]
    new: Any = partial(machine, cluster, front_ends, met)
    wanted = {*MUST_MEET_ALWAYS.split(", "), *MUST_MEET[machine].split(", ")}
    for number in range(ROUNDS_MAX):
        run_state_machine_as_test(seed(number)(new), settings=MODEST)
        if all(met[what] for what in wanted):
            return
    pytest.fail(f"never met: {', '.join(what for what in wanted if not met[what])}; met: {dict(met)}")
