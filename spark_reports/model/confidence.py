"""How sure a measured availability is.

Three intervals are made, because none alone is honest. Wilson's takes every attempt for an independent trial; but attempts
fail together, in outages, so with many attempts it is far too narrow. The block bootstrap draws whole stretches of time anew
and so keeps failures together; but where nothing failed, or in one block only, it sees nothing to vary and is too narrow as
well. There `by_outage` asks how many outages, and of which length, the run might as well have met. `widest` takes the lowest
low and the highest high.
"""

import random
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import comb, hypot, sqrt
from typing import Final, NamedTuple

Z_95: Final = 1.959963984540054
BISECTIONS: Final = 60
TAIL: Final = 0.025
OUTAGES_FEW: Final = 8
"""With fewer outages the bootstrap has too little to draw from: of a thousand runs that meet five, it holds the truth in some
870, and `by_outage` in some 970."""

OUTAGES_OF_SIGN: Final = 6
"""So many outages, all to the credit of one choice, are no chance any more (2 * 0.5**6 = 0.03, the sign test)."""

OUTAGES_MAX: Final = 100
"""With so many outages the bootstrap alone is asked."""

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


def block_count(bins: int, bin_us: int, longest_us: int, mean_us: int) -> int | None:
    """Give the number of blocks to cut the timeline into, or None if it is too short for a block bootstrap.

    A block should be able to hold the longest outage, so that blocks are nearly independent. Where that leaves fewer than
    `BLOCKS_MIN`, which say little about how much they vary, so many are taken, if each still holds an outage of mean length:
    what is remembered from one moment to another fades within that.

    Args:
        bins: columns of the timeline.
        bin_us: width of one, in microseconds.
        longest_us: the longest outage of what is asked about.
        mean_us: the mean length of its outages.
    """
    blocks = bins // max(-(-bins // BLOCKS_MAX), -(-longest_us // bin_us))
    if blocks >= BLOCKS_MIN:
        return blocks
    return BLOCKS_MIN if mean_us <= bins // BLOCKS_MIN * bin_us else None


@lru_cache(maxsize=8)
def _draws(count: int, seed: int) -> tuple[tuple[int, ...], ...]:
    """The numbers of the blocks in each resample; drawn once, for a report asks for dozens of intervals."""
    rng = random.Random(seed)
    return tuple(tuple(rng.choices(range(count), k=count)) for _ in range(RESAMPLES))


def bootstrap(
    count: int, statistic: Callable[[Sequence[int]], float | None], seed: int = 0
) -> Interval | None:
    """Give the 2.5 % and 97.5 % quantiles of a statistic over blocks drawn with replacement, widened for their number.

    The seed is fixed, so that the same run always gives the same report.

    Args:
        count: the number of blocks.
        statistic: of the blocks with these numbers, each as often as it is named; None where they do not say.
        seed: of the draws.
    """
    found = [value for draw in _draws(count, seed) if (value := statistic(draw)) is not None]
    centre = statistic(range(count))
    if not found or centre is None:
        return None
    found.sort()
    middle = Interval(found[int(0.025 * len(found))], found[int(0.975 * len(found))])
    return _widened(middle, centre, count)


def block_bootstrap(blocks: Sequence[Block], seed: int = 0) -> Interval | None:
    """Give the bootstrap interval of the share over blocks. None if no more than one block has attempts."""
    if sum(block.attempts > 0 for block in blocks) < 2:
        return None
    found = bootstrap(len(blocks), share_of(blocks), seed)
    return found and Interval(max(0.0, found.low), min(1.0, found.high))


def block_bootstrap_difference(
    blocks: Sequence[Block], other_blocks: Sequence[Block], seed: int = 0
) -> Interval | None:
    """Give the same for the difference of two shares, the blocks of both being drawn together.

    Two choices that were run side by side met the same outages. Drawn together, an outage hits both or neither, and
    the difference varies far less than either share. None if no more than one block has attempts of either.
    """
    if min(sum(block.attempts > 0 for block in own) for own in (blocks, other_blocks)) < 2:
        return None

    share_in, other_in = share_of(blocks), share_of(other_blocks)

    def difference(draw: Sequence[int]) -> float | None:
        share, other = share_in(draw), other_in(draw)
        return None if share is None or other is None else share - other

    return bootstrap(len(blocks), difference, seed)


def wilson_difference(share: float, own: Interval, other_share: float, other: Interval) -> Interval:
    """Give Newcombe's interval for the difference of two shares of independent trials, from their Wilson intervals.

    The distances from share to interval end add up as the sides of a right angle do: for 0.99 in (0.94, 1.0) and 0.90
    in (0.82, 0.94) the difference 0.09 lies in 0.09 - sqrt(0.05**2 + 0.04**2) to 0.09 + sqrt(0.01**2 + 0.08**2).
    """
    difference = share - other_share
    low = difference - hypot(share - own.low, other.high - other_share)
    high = difference + hypot(own.high - share, other_share - other.low)
    return Interval(low, high)


class Repairs(NamedTuple):
    """Outages whose length is known: how many, and the seconds of all together."""

    outages: int
    total_s: float


def by_outage(outages: int, available: float, known_s: float, repairs: Repairs) -> Interval | None:
    """Give the interval of a share of time that was lost in so many outages.

    The outages begin at random, at a constant rate per time up, and last exponentially distributed times. Then exact limits
    of the rate (Garwood, Biometrika 28, 1936: twice the number of outages, and one more, as degrees of freedom of
    chi-squared) and of the mean length combine to limits of time down by time up, in the form of an F distribution
    (Trivedi, Probability and Statistics with Reliability, Queuing and Computer Science Applications, 2001, example 10.27).
    Where no outage occurred the rate has the limit 3.7 per run, the two-sided form of the rule of three (Hanley and
    Lippman-Hand, JAMA 249, 1983), and an outage is taken to last as long as `repairs` do.

    Args:
        outages: how many there were.
        available: the share of time without one.
        known_s: the time, in seconds.
        repairs: of replicas, which last about as long as an outage, or longer.

    Returns:
        None where nothing is known of how long an outage lasts, or of how long the time between two.
    """
    if outages >= OUTAGES_MAX or available <= 0:
        return None
    if not outages:
        if not repairs.outages:
            return None
        # That many repairs are as good as exactly known.
        lengths = min(repairs.outages, OUTAGES_MAX)
        mean_s = repairs.total_s / repairs.outages
        down = mean_s * lengths * _ratio(1, lengths, 1 - TAIL) / known_s
        return Interval(1 / (1 + down), 1.0)
    down = (1 - available) / available
    low = 1 / (1 + down * _ratio(outages + 1, outages, 1 - TAIL))
    return Interval(low, 1 / (1 + down * _ratio(outages, outages, TAIL)))


@lru_cache(maxsize=256)
def _ratio(over: int, under: int, share: float) -> float:
    """The quantile of the sum of so many exponential times of mean 1, by that of so many others.

    `over / (over + under)` has a beta distribution, and that of whole numbers is a tail of the binomial one. Example: one by
    one, 39 at 0.975, as F with 2 and 2 degrees of freedom has.
    """
    trials = over + under - 1
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        part = (low + high) / 2
        below = sum(comb(trials, k) * part**k * (1 - part) ** (trials - k) for k in range(over, trials + 1))
        low, high = (part, high) if below < share else (low, part)
    return low / (1 - low)


def share_of(blocks: Sequence[Block]) -> Callable[[Sequence[int]], float | None]:
    """Give the statistic of a draw: the share of the attempts in its blocks that succeeded; None without attempts.

    A report asks for it a hundred thousand times: so sums run over plain lists.
    """
    attempts_in = [block.attempts for block in blocks].__getitem__
    ok_in = [block.ok for block in blocks].__getitem__

    def share(draw: Sequence[int]) -> float | None:
        attempts = sum(map(attempts_in, draw))
        return sum(map(ok_in, draw)) / attempts if attempts else None

    return share


def _widened(found: Interval, centre: float, blocks: int) -> Interval:
    """Widen a bootstrap interval for the number of blocks, as Student's t is wider than the normal distribution.

    Blocks drawn from n have a variance (n - 1) / n too small, and the variance itself is uncertain: for 8 blocks the two
    make the interval 1.29 times as wide, for 60 blocks 1.03 times. The quantile of t is Cornish and Fisher's expansion, good
    to one in 200 from 8 blocks on.
    """
    freedom = blocks - 1
    z = Z_95
    t = z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    factor = t / z * sqrt(blocks / freedom)
    return Interval(centre - factor * (centre - found.low), centre + factor * (found.high - centre))


def widest(first: Interval, *others: Interval | None) -> Interval:
    """Give the smallest interval that holds all that there are."""
    found = [first, *(each for each in others if each is not None)]
    return Interval(min(each.low for each in found), max(each.high for each in found))
