"""The checkers' further models agree with trying out every order, too: batches, and what is left when clocks are wrong.

`test_linearizability` does the same for single calls on the serial specifications.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, permutations
from typing import Any, Final

from msgspec.structs import replace

from quorate.simulation.history import NEVER, Call
from quorate.simulation.judging.linearizability import Bag, Cell, Serial, linearization, settled, widened
from tests.unit.simulation.judging.test_linearizability import respects_time

HISTORIES: Final = 1_500

Plays = Callable[[Sequence[Call]], bool]


def orders(calls: Sequence[Call]) -> Iterator[tuple[Call, ...]]:
    """Every order of every choice of unknown calls."""
    known = [call for call in calls if call.is_known]
    unknown = [call for call in calls if not call.is_known]
    for size in range(len(unknown) + 1):
        for chosen in combinations(unknown, size):
            yield from permutations([*known, *chosen])


def queue_plays(order: Sequence[Call], *, is_bag: bool) -> bool:
    """Whether a queue, or a bag, could have answered so; an unknown dequeue may have taken any number it was allowed."""
    states: list[tuple[Any, ...]] = [()]
    for call in order:
        states = [after for state in states for after in queue_after(state, call, is_bag=is_bag)]
    return bool(states)


def queue_after(state: tuple[Any, ...], call: Call, *, is_bag: bool) -> list[tuple[Any, ...]]:
    if call.operation == "Enq":
        return [(*state, call.args[0])]
    if call.is_known and not call.results:
        return [] if state else [state]
    sizes = [len(call.results)] if call.is_known else range(1, min(call.count, len(state)) + 1)
    found = []
    for size in sizes:
        for taken in combinations(state, size) if is_bag else [state[:size]]:
            is_right = not call.is_known or (
                set(taken) == set(call.results) if is_bag else taken == call.results
            )
            if is_right and len(taken) == size:
                found.append(tuple(item for item in state if item not in taken))
    return found


def keeps_batches(order: Sequence[Call]) -> bool:
    place = {id(call): number for number, call in enumerate(order)}
    return all(
        call.after is None or (id(call.after) in place and place[id(call.after)] < place[id(call)])
        for call in order
    )


def random_queue(seed: int) -> list[Call]:
    """Up to six calls: batches, dequeues of several, some unknown, some damaged."""
    rng = random.Random(seed)
    state: list[str] = []
    calls: list[Call] = []
    overlap = rng.choice([4, 12, 25])
    while len(calls) < rng.randint(3, 6):
        moment = 20 * len(calls)
        begin, end = moment - rng.randint(0, 2 * overlap), moment + rng.randint(1, 2 * overlap) + 1
        is_lost = rng.random() < 0.2
        returned = NEVER if is_lost else 2 * end + 1
        if rng.random() < 0.5:
            batch = [
                Call("Enq", (f"v{len(calls) + n}",), 2 * begin, returned)
                for n in range(rng.choice([1, 1, 2]))
            ]
            if len(batch) == 2 and not is_lost:
                batch[1].after = batch[0]
            calls += batch
            if not is_lost or rng.random() < 0.5:
                state += [call.args[0] for call in batch]
        else:
            count = rng.choice([1, 2, 3])
            taken = tuple(state[:count])
            if not is_lost or rng.random() < 0.5:
                del state[:count]
            calls.append(Call("Deq", (), 2 * begin, returned, () if is_lost else taken, count))
    if rng.random() < 0.4:
        damage(calls, rng)
    return calls


def damage(calls: list[Call], rng: random.Random) -> None:
    """One dequeue took something else than it did."""
    taking = [call for call in calls if call.operation == "Deq" and call.is_known]
    items = [call.args[0] for call in calls if call.operation == "Enq"]
    free = [item for item in items if not any(item in call.results for call in taking)]
    if taking:
        victim = rng.choice(taking)
        choices = [
            victim.results[1:],
            tuple(reversed(victim.results)),
            tuple(free[-1:]),
            (*victim.results, *free[:1]),
        ]
        victim.results = rng.choice(choices)[: victim.count]


def agree(histories: Callable[[int], list[Call]], expected: Callable[[list[Call]], bool], found: Any) -> None:
    verdicts = {True: 0, False: 0}
    for seed in range(HISTORIES):
        calls = histories(seed)
        right = expected(calls)
        verdicts[right] += 1
        assert (found(calls) is not None) == right, f"seed {seed}: {list(map(str, calls))}, right: {right}"
    assert min(verdicts.values()) > HISTORIES / 50, verdicts


def test_batches_and_runs_agree_with_trying_every_order() -> None:
    def expected(calls: list[Call]) -> bool:
        return any(
            respects_time(order) and keeps_batches(order) and queue_plays(order, is_bag=False)
            for order in orders(calls)
        )

    def found(calls: list[Call]) -> Any:
        searched = settled(calls)
        return linearization(Serial("queue", searched), searched)

    agree(random_queue, expected, found)


def test_the_bag_agrees_with_trying_every_order() -> None:
    def loose(seed: int) -> list[Call]:
        return [replace(call, after=None) for call in random_queue(seed)]

    def expected(calls: list[Call]) -> bool:
        return any(respects_time(order) and queue_plays(order, is_bag=True) for order in orders(calls))

    def found(calls: list[Call]) -> Any:
        searched = settled(calls)
        return linearization(Bag(searched), searched)

    agree(loose, expected, found)


def random_cell(seed: int) -> list[Call]:
    """Up to six writes and reads; a read answers what was newest in an order that wrong clocks may have given."""
    rng = random.Random(seed)
    calls: list[Call] = []
    overlap = rng.choice([4, 12, 25])
    newest: tuple[float, str | None] = (float("-inf"), None)
    for number in range(rng.randint(3, 6)):
        moment = 20 * number
        begin, end = moment - rng.randint(0, 2 * overlap), moment + rng.randint(1, 2 * overlap) + 1
        if rng.random() < 0.5:
            stamp = moment + rng.choice([0, 0, -30, 30])
            calls.append(Call("Write", (f"v{number}",), 2 * begin, 2 * end + 1))
            newest = max(newest, (stamp, f"v{number}"))
        else:
            values = [call.args[0] for call in calls if call.operation == "Write"]
            value = rng.choice([None, *values]) if rng.random() < 0.2 else newest[1]
            calls.append(Call("Read", (), 2 * begin, 2 * end + 1, (value,)))
    return calls


def cell_has_order(calls: list[Call]) -> bool:
    """The definition: an order as a register gives it, in which a write may stand before what ended before it began,
    but no read answers what was not yet written."""
    written = {call.args[0]: call for call in calls if call.operation == "Write"}
    for call in calls:
        if (
            call.operation == "Read"
            and call.results[0] in written
            and written[call.results[0]].invoked > call.returned
        ):
            return False
    return any(
        all(
            second.returned > first.invoked or first.operation == "Write"
            for first, second in combinations(order, 2)
        )
        and register_plays(order)
        for order in permutations(calls)
    )


def register_plays(order: Sequence[Call]) -> bool:
    value = None
    for call in order:
        if call.operation == "Write":
            value = call.args[0]
        elif call.results != (value,):
            return False
    return True


def test_the_cell_agrees_with_trying_every_order_of_writes() -> None:
    agree(random_cell, cell_has_order, lambda calls: linearization(Cell(), widened(calls)))


def test_a_read_that_missed_a_newer_write_may_meet_an_older_one_that_came_later() -> None:
    """The read begins; v is written; w is written by a clock behind; the read answers w; from then on it is v."""
    early = Call("Read", (), 1, 10, ("w",))
    writes = [Call("Write", ("v",), 2, 3), Call("Write", ("w",), 4, 5)]
    late = Call("Read", (), 11, 12, ("v",))
    for calls in ([early, *writes, late], [replace(early, returned=3), *writes, late]):
        is_right = calls[0].returned > 4
        assert cell_has_order(calls) == is_right
        assert (linearization(Cell(), widened(calls)) is not None) == is_right
    after = [replace(early, invoked=6), *writes, late]
    assert not cell_has_order(after)
    assert linearization(Cell(), widened(after)) is None
