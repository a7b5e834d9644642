"""Counters and accounts: what each operation does, and that they are those of the catalogue under other names."""

import pytest

from quorate.adts.library import Account, BadAmount, BoundedCounter, Counter, Full, Overdraft
from quorate.adts.types.account import Account as AccountSpecified
from quorate.adts.types.bounded_counter import BoundedCounter as BoundedCounterSpecified
from quorate.adts.types.counter import Counter as CounterSpecified
from tests.unit.adts.library.alike import assert_alike


def test_a_counter_is_that_of_the_catalogue() -> None:
    assert_alike(Counter, CounterSpecified(), {"add": "Add", "value": "Read"})


def test_a_counter_stays_within_64_bits() -> None:
    """Beyond, the sum could not be kept, and the stored call would stop the object."""
    counter = Counter()
    for amount, expected in (((1 << 63) - 1, (1 << 63) - 1), (5, (1 << 63) - 1), (-7, (1 << 63) - 8)):
        counter.add(amount)
        assert counter.value() == expected
    for _ in range(3):
        counter.add(-(1 << 63))
    assert counter.value() == -(1 << 63)


class Two(BoundedCounter):
    """As a user derives one."""

    limit = 2

    def inc(self) -> None:
        self.take(1)

    def dec(self) -> None:
        self.give_back(1)


def test_a_bounded_counter_is_that_of_the_catalogue() -> None:
    names = {"inc": "Inc", "dec": "Dec", "taken": "Read"}
    assert_alike(Two, BoundedCounterSpecified(2), names, outcomes={"BadAmount": "Empty"})


def test_a_bounded_counter_takes_all_places_or_none() -> None:
    places = BoundedCounter()
    assert (places.take(60), places.taken()) == (40, 60)
    with pytest.raises(Full):
        places.take(41)
    assert (places.give_back(10), places.taken()) == (50, 50)
    for count in (51, -1):
        with pytest.raises(BadAmount):
            places.give_back(count)
    with pytest.raises(BadAmount):
        places.take(-1)
    assert places.taken() == 50


def test_an_account_is_that_of_the_catalogue() -> None:
    names = {"credit": "Credit", "debit": "Debit", "balance": "Balance"}
    assert_alike(Account, AccountSpecified(), names, results_of=("balance",))


def test_an_account_is_never_below_zero_and_moves_amounts_above_it() -> None:
    account = Account()
    assert [account.credit(5), account.debit(2)] == [5, 3]
    with pytest.raises(Overdraft):
        account.debit(4)
    for amount in (0, -1):
        for move in (account.credit, account.debit):
            with pytest.raises(BadAmount):
                move(amount)
    assert account.balance() == 3
