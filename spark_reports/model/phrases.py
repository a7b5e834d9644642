"""Numbers in words: how the page writes shares, differences, durations and lists. Pure."""

from collections.abc import Sequence
from datetime import UTC, datetime
from math import ceil, inf, log10
from re import sub
from typing import Final

NO_BREAK: Final = "\N{NO-BREAK SPACE}"
NO_VALUE: Final = "\N{EN DASH}"
MISSING_MIN: Final = 1e-9
ROUNDING: Final = 1e-12
"""A share that is nearer to 1 than this is 1: sums and products of floats are no surer."""

SMALLEST: Final = 5e-4
ROUNDS_UP: Final = 0.9995
"""From so much of a unit on, three digits say the whole of it."""

EARLIEST_S: Final = 315_532_800.0  # 1980
LATEST_S: Final = 32_503_680_000.0  # 3000
"""Between these, seconds are taken for seconds since 1970; those of a trace may count from anywhere."""


def percent(share: float) -> str:
    """Write a share so that what is missing to 100 % keeps about two digits; but for rounding, only 1 is written 100 %.

    The blank before the sign does not break.

    >>> [percent(share).replace(NO_BREAK, "_") for share in (1.0, 0.99954, 0.9954, 0.954, 0.9999987, 0.0, 1e-5)]
    ['100_%', '99.954_%', '99.54_%', '95.4_%', '99.99987_%', '0_%', '<_0.1_%']
    >>> [percent(share).replace(NO_BREAK, "_") for share in (1 - 1e-10, 1 - 1e-16)]
    ['>_99.9999999_%', '100_%']
    """
    missing = 1 - share
    if missing < ROUNDING:
        return f"100{NO_BREAK}%"
    if missing < MISSING_MIN:
        return f">{NO_BREAK}{(1 - MISSING_MIN) * 100:.7f}{NO_BREAK}%"
    if share <= 0:
        return f"0{NO_BREAK}%"
    if share < SMALLEST:
        return f"<{NO_BREAK}0.1{NO_BREAK}%"
    # One digit more than the place of the first that is not a nine; the small number is for 1 - 0.999, which is above 0.001.
    decimals = max(1, 1 + ceil(-log10(missing * 100) - 1e-9))
    return f"{share * 100:.{decimals}f}{NO_BREAK}%"


def maybe_percent(share: float | None) -> str:
    """Write a share, or a dash where there is none."""
    return NO_VALUE if share is None else percent(share)


def nines(share: float) -> float:
    """Give how many nines a share has: 0.9 has 1, 0.99 has 2, 0.95 has 1.3; 1 has infinitely many."""
    missing = 1 - share
    return max(0.0, -log10(missing)) if missing >= ROUNDING else inf


def in_nines(share: float, low: float | None = None) -> str:
    """Write an availability in nines; where all was answered, what its interval leaves certain.

    >>> in_nines(0.995), in_nines(1.0, low=0.98), in_nines(1.0), in_nines(0.9), in_nines(0.0)
    ('2.3 nines', 'at least 1.7 nines', 'nothing missing', '1.0 nines', '0.0 nines')
    """
    if nines(share) < inf:
        return f"{nines(share):.1f} nines"
    return "nothing missing" if low is None or nines(low) == inf else f"at least {nines(low):.1f} nines"


def points(difference: float) -> str:
    """Write the size of a difference between shares in percentage points, without a sign."""
    size = abs(difference) * 100
    if size >= 1:
        return f"{size:.1f} points"
    return f"{size:.2f} points" if size >= 0.01 or not size else f"{size:.1g} points"


def signed(difference: float) -> str:
    """Write a difference between shares in percentage points with its sign, a true minus where there is one.

    >>> signed(0.0123), signed(0.0)
    ('+1.23', '0.00')
    """
    text = f"{difference * 100:+.2f}"
    return "0.00" if text in {"+0.00", "-0.00"} else text.replace("-", "\N{MINUS SIGN}")


def counted(number: int, thing: str, things: str = "") -> str:
    """Write a number of things: `1 outage`, `2 outages`."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def duration(seconds: float) -> str:
    """Write a duration with three digits and the unit that suits it.

    >>> [duration(each).replace(NO_BREAK, "_") for each in (0.9996, 0.000_999_6, 119.96, 119.9)]
    ['1_s', '1_ms', '2_min', '120_s']
    """
    if seconds == 0:
        return f"0{NO_BREAK}s"
    for unit, length_s in (("days", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3)):
        # Minutes and more only where they are plainly easier to read than seconds.
        if seconds >= length_s * (2 if length_s > 1 else 1) * ROUNDS_UP:
            number = seconds / length_s
            return f"{number:,.0f}{NO_BREAK}{unit}" if number >= 999.5 else f"{number:.3g}{NO_BREAK}{unit}"
    return f"{seconds * 1e6:.3g}{NO_BREAK}µs"


def moment(time_us: int) -> str:
    """Write a moment, given in microseconds, as a date if it can be one: times of a trace may count from 0.

    >>> moment(1_793_491_200_000_000), moment(90_000_000)
    ('2026-11-01 00:00:00 UTC', '90 s')
    """
    time_s = time_us / 1e6
    if not EARLIEST_S <= time_s < LATEST_S:
        return f"{time_s:.10g} s"
    return f"{datetime.fromtimestamp(time_s, tz=UTC):%Y-%m-%d %H:%M:%S UTC}"


def maybe_duration(seconds: float | None) -> str:
    """Write a duration, or a dash where there is none."""
    return NO_VALUE if seconds is None else duration(seconds)


def listed(things: Sequence[str], last: str = "and") -> str:
    """Join things as a sentence does.

    >>> listed(["r1"]), listed(["r1", "r2", "r3"])
    ('r1', 'r1, r2 and r3')
    """
    return f" {last} ".join(part for part in (", ".join(things[:-1]), *things[-1:]) if part)


def quoted(name: str, adt: str = "") -> str:
    """Put a name of several words, or one that is that of a type too, in quotation marks: the sentence stays clear.

    >>> quoted("majority"), quoted("Enq (0, 1)"), quoted("queue", "queue")
    ('majority', '"Enq (0, 1)"', '"queue"')
    """
    return f'"{name}"' if " " in name or name == adt else name


def unbroken(name: str) -> str:
    """Keep the two numbers of a quorum, as in Enq (0, 1), on one line.

    >>> unbroken("Enq (0, 1), Deq (3, 1)").replace(NO_BREAK, "_")
    'Enq (0,_1), Deq (3,_1)'
    """
    return sub(r"(\(\d+), (\d+\))", rf"\1,{NO_BREAK}\2", name)


def shortened(name: str, chars_max: int) -> str:
    """Cut a name in its middle: names of one run often differ at their ends.

    >>> shortened("a-very-long-name-1", 11)
    'a-ver…ame-1'
    """
    if len(name) <= chars_max:
        return name
    tail = (chars_max - 1) // 2
    return f"{name[: chars_max - 1 - tail]}…{name[len(name) - tail :]}"
