"""Whatever stands in a summary, what is made of it passes the checks; what was right stays as it was, and all else is told."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from quorate.adts.log import Dead, Decision, Entry, Leased, Settled, Summary, Value
from quorate.api_specs.checking import COUNT_MAX, check_summary
from quorate.api_specs.limits import DEAD_MAX, DEFAULTS, DELIVERIES_MAX, Limits
from quorate.api_specs.mending import mended
from quorate.timestamps.timestamp import make
from tests.unit.api_specs.strategies import values_of
from tests.unit.api_specs.test_checking import BALLOT, SUMMARY


def entry(number: int, value: str = "1") -> Entry:
    stamp = make(number, 0, "c")
    return Entry(stamp, stamp, Value(value))


@settings(deadline=None)
@given(values_of(Summary), st.sampled_from([DEFAULTS, Limits(recent_decisions_max=1, batch_items_max=1)]))
def test_what_is_made_of_it_passes(summary: Summary, limits: Limits) -> None:
    sound, told = mended(summary, limits)
    check_summary(sound, limits)
    assert (sound == summary) is (not told)
    assert mended(sound, limits) == (sound, ())
    assert sound.horizon == summary.horizon


def test_what_is_sound_stays() -> None:
    assert mended(SUMMARY, DEFAULTS) == (SUMMARY, ())


def test_a_count_that_is_too_high_is_lowered_and_its_item_stays() -> None:
    held = Leased(entry(1), 5, COUNT_MAX, is_held=True, excused=COUNT_MAX)
    dead = Dead(entry(2), "rejected", COUNT_MAX)
    sound, told = mended(Summary(leases=(held,), dead=(dead,)), DEFAULTS)
    assert sound.leases == (replace(held, deliveries=DELIVERIES_MAX, excused=DELIVERIES_MAX),)
    assert sound.dead == (replace(dead, deliveries=DELIVERIES_MAX),)
    assert len(told) == 2


def test_what_no_bound_lets_stay_is_told_whole() -> None:
    """As after a limit was lowered."""
    big = Leased(entry(1, '"' + "x" * 50 + '"'))
    many = tuple(Dead(entry(n), "expired") for n in range(DEAD_MAX + 1))
    sound, told = mended(Summary(leases=(big,), dead=many), Limits(value_bytes_max=50))
    assert (sound.leases, sound.dead) == ((), many[:-1])
    assert "x" * 50 in told[0]
    assert many[-1].entry.id in told[1]


def test_what_its_parts_carry_too_much_of_leaves_with_the_part() -> None:
    taken = tuple(entry(n) for n in range(1000))
    recent = tuple(Decision(f"Deq {n}", BALLOT, taken if n < 6 else ()) for n in range(8))
    settled = tuple(Settled(BALLOT, "drop", ("t",) * tokens) for tokens in (1000, 25, 24))
    sound, told = mended(Summary(recent=recent, settled=settled), DEFAULTS)
    assert [each.id for each in sound.recent] == [f"Deq {n}" for n in (0, 1, 2, 3, 6, 7)]
    assert [len(each.tokens) for each in sound.settled] == [1000, 24]
    assert len(told) == 3
