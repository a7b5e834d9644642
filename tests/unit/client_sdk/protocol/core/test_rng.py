"""Numbers from a seed: the published sequence, so that a seed replays its run."""

from quorate.client_sdk.protocol.core.rng import Rng

FIRST_OF_SEED_0 = 0xE220A8397B1DCDAF
"""The first output of SplitMix64 from 0, as its reference code gives it."""


def test_the_sequence_is_that_of_splitmix64() -> None:
    assert Rng(0).next() == (FIRST_OF_SEED_0 >> 11) / 2**53


def test_a_seed_replays_and_another_differs() -> None:
    one, again, other = Rng(7), Rng(7), Rng(8)
    numbers = [one.next() for _ in range(100)]
    assert numbers == [again.next() for _ in range(100)]
    assert other.next() not in numbers
    assert all(0 <= number < 1 for number in numbers)
