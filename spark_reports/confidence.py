"""How sure a measured availability is.

Two intervals are given, because neither alone is honest. Wilson's takes every attempt for an independent trial; but
attempts fail together, in outages, so with many attempts it is far too narrow. The block bootstrap draws whole stretches
of time anew and so keeps failures together; but where nothing failed, or in one block only, it sees nothing to vary and
is too narrow as well. `widest` takes the lower low and the higher high of both.
"""

import random
from collections.abc import Sequence
from functools import lru_cache
from math import hypot, sqrt
from typing import Final, NamedTuple

Z_95: Final = 1.959963984540054
BLOCKS_MIN: Final = 8
BLOCKS_MAX: Final = 60
RESAMPLES: Final = 1000


class Interval(NamedTuple):
    """A 95 % confidence interval of a share."""

    low: float
    high: float


class Block(NamedTuple):
    """Attempts and successes within one stretch of time; or its length, and how much of it there was enough."""

    attempts: int
    ok: float


def wilson(ok: int, attempts: int) -> Interval:
    """Give Wilson's score interval for `ok` out of `attempts` independent trials.

    For 99 of 100 it is (0.9455, 0.9982): unlike the textbook interval it stays within [0, 1] and has a width even
    where nothing failed.

    Raises:
        ValueError: there are no attempts, or fewer attempts than successes.
    """
    if not 0 <= ok <= attempts or not attempts:
        raise ValueError(f"{ok} of {attempts} attempts is no share; give at least one attempt")
    share = ok / attempts
    spread = Z_95 * Z_95 / attempts
    centre = (share + spread / 2) / (1 + spread)
    half = Z_95 * sqrt(share * (1 - share) / attempts + spread / (4 * attempts)) / (1 + spread)
    # At the ends the formula gives 0 and 1 exactly but for rounding.
    return Interval(0.0 if ok == 0 else centre - half, 1.0 if ok == attempts else centre + half)


def block_count(bins: int, bin_us: int, longest_outage_us: int) -> int | None:
    """Give the number of blocks to cut the timeline into, or None if it is too short for a block bootstrap.

    A block must be able to hold the longest outage, or the blocks would not be near-independent; fewer than
    `BLOCKS_MIN` blocks say nothing about how much they vary.
    """
    bins_per_block = max(-(-bins // BLOCKS_MAX), -(-longest_outage_us // bin_us))
    blocks = bins // bins_per_block
    return blocks if blocks >= BLOCKS_MIN else None


@lru_cache(maxsize=8)
def _draws(count: int, seed: int) -> tuple[tuple[int, ...], ...]:
    """The numbers of the blocks in each resample; drawn once, for a report asks for dozens of intervals."""
    rng = random.Random(seed)
    return tuple(tuple(rng.choices(range(count), k=count)) for _ in range(RESAMPLES))


def block_bootstrap(blocks: Sequence[Block], seed: int = 0) -> Interval | None:
    """Give the 2.5 % and 97.5 % quantiles of the share over blocks drawn with replacement.

    The seed is fixed, so that the same run always gives the same report. None if no more than one block has attempts.
    """
    if sum(block.attempts > 0 for block in blocks) < 2:
        return None
    drawn = ([blocks[index] for index in draw] for draw in _draws(len(blocks), seed))
    return _middle_95([share for own in drawn if (share := _share(own)) is not None])


def block_bootstrap_difference(
    blocks: Sequence[Block], other_blocks: Sequence[Block], seed: int = 0
) -> Interval | None:
    """Give the same for the difference of two shares, the blocks of both being drawn together.

    Two choices that were run side by side met the same outages. Drawn together, an outage hits both or neither, and
    the difference varies far less than either share. None if no more than one block has attempts of either.
    """
    if min(sum(block.attempts > 0 for block in own) for own in (blocks, other_blocks)) < 2:
        return None
    differences = []
    for draw in _draws(len(blocks), seed):
        share = _share([blocks[index] for index in draw])
        other = _share([other_blocks[index] for index in draw])
        if share is not None and other is not None:
            differences.append(share - other)
    return _middle_95(differences)


def wilson_difference(share: float, own: Interval, other_share: float, other: Interval) -> Interval:
    """Give Newcombe's interval for the difference of two shares of independent trials, from their Wilson intervals.

    The distances from share to interval end add up as the sides of a right angle do: for 0.99 in (0.94, 1.0) and 0.90
    in (0.82, 0.94) the difference 0.09 lies in 0.09 - sqrt(0.05**2 + 0.04**2) to 0.09 + sqrt(0.01**2 + 0.08**2).
    """
    difference = share - other_share
    low = difference - hypot(share - own.low, other.high - other_share)
    high = difference + hypot(own.high - share, other_share - other.low)
    return Interval(low, high)


def _share(blocks: Sequence[Block]) -> float | None:
    attempts = sum(block.attempts for block in blocks)
    return sum(block.ok for block in blocks) / attempts if attempts else None


def _middle_95(values: list[float]) -> Interval | None:
    values.sort()
    return Interval(values[int(0.025 * len(values))], values[int(0.975 * len(values))]) if values else None


def widest(first: Interval, second: Interval | None) -> Interval:
    """Give the smallest interval that holds both."""
    return first if second is None else Interval(min(first.low, second.low), max(first.high, second.high))
