"""How sure a measured availability is.

Two intervals are given, because neither alone is honest. Wilson's takes every attempt for an independent trial; but
attempts fail together, in outages, so with many attempts it is far too narrow. The block bootstrap draws whole stretches
of time anew and so keeps failures together; but where nothing failed, or in one block only, it sees nothing to vary and
is too narrow as well. `widest` takes the lower low and the higher high of both.
"""

import random
from collections.abc import Sequence
from math import sqrt
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
    """Attempts and successes within one stretch of time."""

    attempts: int
    ok: int


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


def block_bootstrap(blocks: Sequence[Block], seed: int = 0) -> Interval | None:
    """Give the 2.5 % and 97.5 % quantiles of the share over blocks drawn with replacement.

    The seed is fixed, so that the same run always gives the same report. None if no more than one block has attempts.
    """
    if sum(block.attempts > 0 for block in blocks) < 2:
        return None
    rng = random.Random(seed)
    shares = []
    for _ in range(RESAMPLES):
        drawn = rng.choices(blocks, k=len(blocks))
        attempts = sum(block.attempts for block in drawn)
        if attempts:
            shares.append(sum(block.ok for block in drawn) / attempts)
    shares.sort()
    return Interval(shares[int(0.025 * len(shares))], shares[int(0.975 * len(shares))])


def widest(first: Interval, second: Interval | None) -> Interval:
    """Give the smallest interval that holds both."""
    return first if second is None else Interval(min(first.low, second.low), max(first.high, second.high))
