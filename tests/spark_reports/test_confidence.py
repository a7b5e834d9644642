"""Intervals against published values, and against what they are for."""

import random

import pytest

from quorate.spark_reports.confidence import (
    Block,
    Interval,
    _widened,
    block_bootstrap,
    block_bootstrap_difference,
    block_count,
    widest,
    wilson,
    wilson_difference,
)


def test_wilson_gives_the_published_values() -> None:
    """Newcombe 1998, Statistics in Medicine 17:857, table I, method 3: 81/263, 15/148, 0/20, 1/29."""
    for ok, attempts, low, high in [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ]:
        assert wilson(ok, attempts) == pytest.approx((low, high), abs=5e-5)


def test_wilson_is_exact_at_the_ends_and_symmetric() -> None:
    assert wilson(7, 7).high == 1.0
    assert wilson(0, 7).low == 0.0
    low, high = wilson(30, 100)
    assert wilson(70, 100) == pytest.approx((1 - high, 1 - low))


@pytest.mark.parametrize(("ok", "attempts"), [(0, 0), (2, 1), (-1, 1)])
def test_wilson_refuses_what_is_no_share(ok: int, attempts: int) -> None:
    with pytest.raises(ValueError, match="give at least one attempt"):
        wilson(ok, attempts)


def test_wilson_difference_gives_the_published_value() -> None:
    """Newcombe 1998, Statistics in Medicine 17:873, table II, method 10: 56/70 - 48/80 is in 0.0524 to 0.3339."""
    found = wilson_difference(56 / 70, wilson(56, 70), 48 / 80, wilson(48, 80))
    assert found == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_failures_in_one_stretch_widen_the_bootstrap_interval() -> None:
    spread = block_bootstrap([Block(100, 90)] * 20)
    clumped = block_bootstrap([Block(100, 100)] * 18 + [Block(100, 0)] * 2)
    assert spread is not None
    assert clumped is not None
    assert spread.high - spread.low < wilson(1800, 2000).high - wilson(1800, 2000).low
    assert clumped.high - clumped.low > 5 * (wilson(1800, 2000).high - wilson(1800, 2000).low)
    assert clumped == block_bootstrap([Block(100, 100)] * 18 + [Block(100, 0)] * 2), (
        "the same run, the same report"
    )


def test_choices_that_met_the_same_outages_are_compared_pairwise() -> None:
    """Both choices lose what the outages take, one of them two in a hundred more: certain, though shares vary a lot."""
    one = [Block(100, 98)] * 16 + [Block(100, 8)] * 4
    other = [Block(100, 100)] * 16 + [Block(100, 10)] * 4
    paired = block_bootstrap_difference(one, other)
    assert paired == pytest.approx((-0.02, -0.02))
    own = block_bootstrap(one)
    assert own is not None
    assert own.high - own.low > 0.2


def test_a_single_block_has_no_bootstrap() -> None:
    assert block_bootstrap([Block(10, 9), Block(0, 0)]) is None
    assert block_bootstrap_difference([Block(10, 9), Block(5, 5)], [Block(10, 9), Block(0, 0)]) is None


def test_blocks_can_hold_the_longest_outage_or_else_one_of_mean_length() -> None:
    assert block_count(240, 1000, 0, 0) == 60
    assert block_count(240, 1000, 10_000, 1000) == 24
    assert block_count(240, 1000, 30_000, 1000) == 8
    assert block_count(240, 1000, 100_000, 30_000) == 8
    assert block_count(240, 1000, 100_000, 31_000) is None


def test_few_blocks_make_a_wider_interval() -> None:
    """The factor for 8 blocks: t is 2.3646 with 7 degrees of freedom; 2.3646 / 1.96 * sqrt(8 / 7) = 1.290."""
    found = _widened(Interval(0.4, 0.6), 0.5, 8)
    assert found == pytest.approx((0.5 - 0.1290, 0.5 + 0.1290), abs=1e-3)


def outages_in_blocks(rng: random.Random) -> list[Block]:
    """240 moments of a replica that goes down with 0.04 and comes back with 0.2 at each, in 10 blocks of 24."""
    up, blocks = rng.random() < 0.2 / 0.24, []
    for _ in range(10):
        ok = 0
        for _ in range(24):
            up = rng.random() >= 0.04 if up else rng.random() < 0.2
            ok += up
        blocks.append(Block(24, ok))
    return blocks


def test_the_bootstrap_covers_the_truth_where_wilson_does_not() -> None:
    """Attempts that fail in outages: of 95 % intervals Wilson's hold the true share 5/6 far too seldom."""
    rng = random.Random(1)
    runs = [outages_in_blocks(rng) for _ in range(300)]
    truth = 0.2 / 0.24
    found = [block_bootstrap(blocks) for blocks in runs]
    covered = sum(each is not None and each.low <= truth <= each.high for each in found) / len(runs)
    plain = [wilson(int(sum(block.ok for block in blocks)), 240) for blocks in runs]
    assert covered >= 0.9
    assert sum(each.low <= truth <= each.high for each in plain) / len(runs) < 0.7


def test_widest_holds_both() -> None:
    assert widest(Interval(0.2, 0.4), Interval(0.3, 0.5)) == (0.2, 0.5)
    assert widest(Interval(0.2, 0.4), None) == (0.2, 0.4)
