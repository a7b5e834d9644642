"""What arrived a window ago, by the elapsed time of this process and the numbers of a store."""

from random import Random
from typing import Final

from quorate.gc.arrivals import NUMBERS, Arrivals

WINDOW_S: Final = 32.0
PART_S: Final = WINDOW_S / NUMBERS


class Store:
    """The numbers of a store."""

    def __init__(self) -> None:
        self.number = 0
        self.rollbacks = 0

    def arrival(self) -> int:
        return self.number


def test_what_was_there_before_the_start_is_old_a_window_after_it() -> None:
    arrivals, store = Arrivals(WINDOW_S), Store()
    store.number = 7
    assert arrivals.old(store, 0.0) == -1
    assert arrivals.old(store, WINDOW_S - 0.1) == -1
    assert arrivals.old(store, WINDOW_S) == 7


def test_what_arrived_is_old_a_window_later_and_a_part_of_it_at_most_though_nobody_asked_in_between() -> None:
    arrivals, store = Arrivals(WINDOW_S), Store()
    for at in range(1000):
        store.number = at
        arrivals.old(store, at * PART_S / 10)
    last_s = 999 * PART_S / 10
    store.number += 1
    arrivals.old(store, last_s + PART_S)
    assert arrivals.old(store, last_s + WINDOW_S) <= 999
    assert arrivals.old(store, last_s + 2 * PART_S + WINDOW_S) == 1000


def test_no_number_is_old_before_a_window_has_passed_and_few_are_kept() -> None:
    arrivals, store = Arrivals(WINDOW_S), Store()
    arrived_s: dict[int, float] = {0: 0.0}
    for step in range(5000):
        now_s = step * 0.037
        if step % 3 == 0:
            store.number += 1
            arrived_s[store.number] = now_s
        old = arrivals.old(store, now_s)
        assert old == -1 or arrived_s[old] + WINDOW_S <= now_s
        if now_s > 2 * WINDOW_S:
            assert arrived_s[old] >= now_s - WINDOW_S - 2 * PART_S
        assert len(arrivals._noted) <= 2 * NUMBERS + 3


def test_the_numbers_of_an_undone_transaction_make_nothing_old_that_gets_them_again() -> None:
    arrivals, store = Arrivals(WINDOW_S), Store()
    store.number = 5
    assert arrivals.old(store, 0.0) == -1
    store.number, store.rollbacks = 4, 1
    for at in range(1, int(WINDOW_S)):
        arrivals.old(store, float(at))
    store.number = 5
    assert arrivals.old(store, WINDOW_S + 0.5) < 5


def test_what_it_remembers_of_its_last_answer_changes_none() -> None:
    """A batch asks twice, and most that only read find the store as it was."""
    for seed in range(50):
        rng, now_s, store = Random(seed), 0.0, Store()
        arrivals, plain = Arrivals(WINDOW_S), Arrivals(WINDOW_S)
        answers = set()
        for _ in range(400):
            now_s += rng.choice((0.0, 0.0, PART_S / 3, PART_S, WINDOW_S / 2, WINDOW_S))
            store.number += rng.choice((0, 0, 0, 1, 5))
            if rng.random() < 0.02:
                store.rollbacks += 1
                store.number = max(0, store.number - rng.randrange(4))
            plain._until_s = 0.0
            answers.add(answer := arrivals.old(store, now_s))
            assert answer == plain.old(store, now_s), (seed, now_s)
        assert len(answers) > 10
