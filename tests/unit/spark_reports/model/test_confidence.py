"""Intervals against published values, and against what they are for."""

import random

import pytest

from quorate.spark_reports.model.confidence import (
    OUTAGES_FEW,
    Block,
    Interval,
    Repairs,
    _ratio,
    _widened,
    block_bootstrap,
    block_bootstrap_difference,
    block_count,
    by_outage,
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


def test_the_interval_by_outage_gives_the_published_values() -> None:
    """Trivedi 2001, example 10.27: one failure, 999 h up and 1 h down, availability 0.9624 to 1; ten of 0.1 h each, 0.9975 to
    0.9996. His has as many times up as times down; ours adds one for the time up that the end cuts off."""
    assert _ratio(1, 1, 0.975) == pytest.approx(39.0)
    assert 999 / (999 + _ratio(1, 1, 0.975)) == pytest.approx(0.9624, abs=5e-5)
    assert 999 / (999 + _ratio(10, 10, 0.975)) == pytest.approx(0.9975, abs=5e-5)
    found = by_outage(10, 0.999, 1000.0, Repairs(0, 0.0))
    assert found is not None
    assert found.high == pytest.approx(0.9996, abs=5e-5)
    assert found.low == pytest.approx(1 / (1 + _ratio(11, 10, 0.975) / 999))
    assert found.low < 0.9975


def test_without_an_outage_the_rule_of_three_counts_with_repairs_of_replicas() -> None:
    """With many repairs of 2 s each their mean is known, and -ln 0.025 = 3.69 of them may have been spared in 1000 s."""
    found = by_outage(0, 1.0, 1000.0, Repairs(99, 198.0))
    assert found is not None
    assert found == pytest.approx((1 / (1 + 2 * 3.689 / 1000), 1.0), abs=2e-4)
    assert by_outage(0, 1.0, 1000.0, Repairs(0, 0.0)) is None, "nobody knows how long an outage would last"
    one = by_outage(0, 1.0, 1000.0, Repairs(1, 2.0))
    assert one is not None
    assert one.low == pytest.approx(1 / (1 + 39 * 2 / 1000)), "one repair says little about the next"


def test_what_was_never_up_or_met_many_outages_has_no_interval_by_outage() -> None:
    assert by_outage(1, 0.0, 10.0, Repairs(1, 10.0)) is None
    assert by_outage(100, 0.9, 10.0, Repairs(1, 10.0)) is None
    assert by_outage(99, 0.9, 10.0, Repairs(1, 10.0)) is not None


def two_states(rng: random.Random, outages: float, length: float) -> list[tuple[float, float]]:
    """The times down within 1 of a process that meets so many outages in the mean while up, each so long in the mean."""
    time, down, found = 0.0, rng.random() < outages * length / (1 + outages * length), []
    while time < 1:
        end = time + (rng.expovariate(1 / length) if down else rng.expovariate(outages))
        if down:
            found.append((time, min(end, 1.0)))
        time, down = end, not down
    return found


def stretches_of(down: list[tuple[float, float]], count: int) -> list[Block]:
    blocks = []
    for index in range(count):
        start, end = index / count, (index + 1) / count
        lost = sum(max(0.0, min(b, end) - max(a, start)) for a, b in down)
        blocks.append(Block(1, 1 - lost * count))
    return blocks


def intervals_of(
    down: list[tuple[float, float]], repairs: Repairs
) -> tuple[Interval | None, Interval | None]:
    """The bootstrap, and what the report gives: with the interval by outage where it counts."""
    lengths_us = [int((end - start) * 1e9) for start, end in down]
    mean_us = sum(lengths_us) // max(1, len(down))
    count = block_count(240, 10**9 // 240, max(lengths_us, default=0), mean_us)
    drawn = block_bootstrap(stretches_of(down, count)) if down and count else None
    if len(down) >= OUTAGES_FEW and drawn is not None:
        return drawn, drawn
    available = 1 - sum(end - start for start, end in down)
    found = by_outage(len(down), available, 1.0, repairs)
    return drawn, drawn if found is None else widest(found, drawn)


@pytest.mark.parametrize(
    ("outages", "length"), [(0.5, 0.05), (1, 0.02), (2, 0.1), (3, 0.05), (5, 0.02), (12, 0.02)]
)
def test_intervals_cover_the_truth_of_a_two_state_process_however_few_its_outages(
    outages: float, length: float
) -> None:
    """Exponential times up and down; five repairs of replicas are known besides. Of what met fewer than three outages, the
    bootstrap alone misses a fifth and more."""
    rng = random.Random(7)
    truth = 1 / (1 + outages * length)
    held = few = few_held = 0
    for _ in range(250):
        down = two_states(rng, outages, length)
        repairs = Repairs(5, sum(rng.expovariate(1 / length) for _ in range(5)))
        drawn, given = intervals_of(down, repairs)
        assert given is not None
        held += given.low <= truth <= given.high
        if 0 < len(down) < 3:
            few += 1
            few_held += drawn is not None and drawn.low <= truth <= drawn.high
    assert held >= 0.9 * 250
    if outages in {2, 3}:
        assert few_held < 0.8 * few


def test_widest_holds_all() -> None:
    assert widest(Interval(0.2, 0.4), None, Interval(0.1, 0.3)) == (0.1, 0.4)

    assert widest(Interval(0.2, 0.4), Interval(0.3, 0.5)) == (0.2, 0.5)
    assert widest(Interval(0.2, 0.4), None) == (0.2, 0.4)
