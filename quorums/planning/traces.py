"""Traces of which replicas were up, when: read from CSV lines, checked, and asked for outages. Pure.

Owns two formats and what they mean:

* intervals, `start_s,end_s,up`: `up` lists the replicas up in that interval, separated by `|`, and may be empty;
* replicas, `replica,start_s,end_s,up`: one replica's state, up 1 or down 0, in that interval.

The state of every replica must be known at every moment between the first start and the last end: gaps and overlaps are
refused with the line that shows them. Seconds are kept as exact fractions of what the file says. Opening files is the
caller's.
"""

import csv
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Final, NamedTuple

from ..systems.failures import Joint
from ..systems.systems import BadQuorums, System, is_quorum

INTERVALS: Final = ("start_s", "end_s", "up")
REPLICAS: Final = ("replica", "start_s", "end_s", "up")
LINES_MAX: Final = 1_000_000
WORD_MAX: Final = 40
EXPONENT_MAX: Final = 30


class Interval(NamedTuple):
    """A time in which exactly these replicas were up."""

    start_s: Fraction
    end_s: Fraction
    up: frozenset[str]


class Outages(NamedTuple):
    """Times without a quorum: how many, the longest, all together, of the time observed."""

    outages: int
    longest_s: Fraction
    down_s: Fraction
    observed_s: Fraction


@dataclass(frozen=True)
class UpTrace:
    """Intervals in order, each beginning where the one before ended, and all replicas that are spoken of."""

    intervals: tuple[Interval, ...]
    replicas: tuple[str, ...]

    def joint(self) -> Joint[Fraction]:
        """Each up-set with how long it lasted: nothing is assumed about independence."""
        weights: dict[frozenset[str], Fraction] = {}
        for interval in self.intervals:
            weights[interval.up] = weights.get(interval.up, Fraction(0)) + interval.end_s - interval.start_s
        return Joint(weights)

    def up_shares(self) -> dict[str, Fraction]:
        """The share of the time that each replica was up: what a model of independent replicas would be fed."""
        observed = self.intervals[-1].end_s - self.intervals[0].start_s
        return {
            name: sum((i.end_s - i.start_s for i in self.intervals if name in i.up), Fraction(0)) / observed
            for name in self.replicas
        }

    def outages(self, system: System) -> Outages:
        """When the replicas that were up held no quorum; intervals that touch are one outage.

        Example: two of three are needed; a, b up for 10 s, then a for 1 s, then c for 2 s, then all for 7 s: one outage of
        3 s in 20 s.
        """
        held = {up: is_quorum(system, up) for up in {interval.up for interval in self.intervals}}
        count, longest, down, running = 0, Fraction(0), Fraction(0), Fraction(0)
        for start_s, end_s, up in self.intervals:
            if held[up]:
                running = Fraction(0)
                continue
            count += not running
            running += end_s - start_s
            down += end_s - start_s
            longest = max(longest, running)
        return Outages(count, longest, down, self.intervals[-1].end_s - self.intervals[0].start_s)


class _Row(NamedTuple):
    line: int
    start_s: Fraction
    end_s: Fraction
    replica: str
    up: str


def read_trace(lines: Iterable[str], known: Collection[str] | None = None) -> UpTrace:
    """The trace in CSV `lines`, of either format; the first line is the header.

    `known` are the replicas there are; a trace that names another is refused. Without it all that are named are known.

    Raises:
        BadQuorums: the sentence names the line and what to write instead.
    """
    fields = _fields(lines)
    header = tuple(next(fields, (1, []))[1])
    if header not in (INTERVALS, REPLICAS):
        raise BadQuorums(f"line 1: write the header {','.join(INTERVALS)} or {','.join(REPLICAS)}")
    rows = [_row(header, line, words) for line, words in fields if any(words)]
    if not rows:
        raise BadQuorums("the trace has a header and no interval; add at least one line")
    return _by_intervals(rows, known) if header == INTERVALS else _by_replicas(rows, known)


def _fields(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """The fields of each line, with its number."""
    reader = csv.reader(lines, strict=True)
    try:
        for words in reader:
            if reader.line_num > LINES_MAX:
                raise BadQuorums(f"the trace has more than {LINES_MAX} lines; cut it into several")
            yield reader.line_num, [word.strip() for word in words]
    except csv.Error as error:
        raise BadQuorums(
            f"line {reader.line_num}: not CSV ({error}); write plain fields with commas between them"
        ) from None


def _row(header: Sequence[str], line: int, words: Sequence[str]) -> _Row:
    if len(words) != len(header):
        raise BadQuorums(f"line {line}: {len(words)} fields; write {','.join(header)}")
    fields = dict(zip(header, words, strict=True))
    start_s, end_s = (_seconds(fields[name], name, line) for name in ("start_s", "end_s"))
    if end_s <= start_s:
        raise BadQuorums(f"line {line}: end_s {fields['end_s']} is not after start_s {fields['start_s']}")
    return _Row(line, start_s, end_s, fields.get("replica", ""), fields["up"])


def exact_number(word: str) -> Fraction:
    """A decimal number as it is written; ValueError for one of over 40 characters or beyond 1e±30.

    The bounds keep `1e999999999` from filling the memory, and every figure made of such numbers within floats.
    """
    exponent = word.lower().partition("e")[2]
    if len(word) > WORD_MAX or abs(int(exponent or 0)) > EXPONENT_MAX:
        raise ValueError(f"{word[:WORD_MAX]!r} is too long or too large")
    return Fraction(word)


def _seconds(word: str, name: str, line: int) -> Fraction:
    try:
        return exact_number(word)
    except (ValueError, ZeroDivisionError):
        raise BadQuorums(f"line {line}: {name} is {word!r}; write seconds as a decimal number") from None


def _check_known(name: str, known: Collection[str] | None, line: int) -> None:
    if not name:
        raise BadQuorums(f"line {line}: a replica without a name; write r1|r2, or nothing when none is up")
    if any(mark.isspace() or mark in ";,+" for mark in name):
        # Taken for the name of one more replica, a list with another separator would give wrong shares without a word.
        raise BadQuorums(f"line {line}: {name!r} is no name of one replica; write several as r1|r2")
    if known is not None and name not in known:
        raise BadQuorums(f"line {line}: unknown replica {name!r}; known are {', '.join(known)}")


def _check_joined(before: _Row, after: _Row, whose: str = "") -> None:
    if after.start_s < before.end_s:
        raise BadQuorums(
            f"line {after.line}: the interval{whose} starts at {_shown(after.start_s)} s and overlaps that of line "
            f"{before.line}, which ends at {_shown(before.end_s)} s; let it start there"
        )
    if after.start_s > before.end_s:
        raise BadQuorums(
            f"line {after.line}: nothing is said{whose} from {_shown(before.end_s)} s, where line {before.line} ends, to "
            f"{_shown(after.start_s)} s; add the missing interval, or cut the trace there"
        )


def _shown(seconds: Fraction) -> str:
    return f"{float(seconds):.10g}"


def _by_intervals(rows: list[_Row], known: Collection[str] | None) -> UpTrace:
    named: dict[str, None] = dict.fromkeys(known or ())
    intervals = []
    for row in rows:
        up = [name.strip() for name in row.up.split("|")] if row.up else []
        for name in up:
            _check_known(name, known, row.line)
            if up.count(name) > 1:
                raise BadQuorums(f"line {row.line}: up lists {name} twice; list it once")
        named |= dict.fromkeys(up)
        intervals.append(Interval(row.start_s, row.end_s, frozenset(up)))
    in_order = sorted(rows, key=lambda row: row.start_s)
    for before, after in pairwise(in_order):
        _check_joined(before, after)
    return UpTrace(tuple(sorted(intervals, key=lambda each: each.start_s)), tuple(named))


def _by_replicas(rows: list[_Row], known: Collection[str] | None) -> UpTrace:
    """Merge the replicas' states: sweep over all times at which one of them changes."""
    of_replica: dict[str, list[_Row]] = {name: [] for name in known or ()}
    for row in rows:
        _check_known(row.replica, known, row.line)
        if row.up not in ("0", "1"):
            raise BadQuorums(f"line {row.line}: up is {row.up!r}; write 1 for up and 0 for down")
        of_replica.setdefault(row.replica, []).append(row)
    _check_whole(of_replica)
    changes: dict[Fraction, dict[str, bool]] = {}
    for row in rows:
        changes.setdefault(row.start_s, {})[row.replica] = row.up == "1"
    times = [*sorted(changes), max(row.end_s for row in rows)]
    up: frozenset[str] = frozenset()
    intervals = []
    for start_s, end_s in pairwise(times):
        changed = changes[start_s]
        up = up.difference(changed).union(name for name, is_up in changed.items() if is_up)
        intervals.append(Interval(start_s, end_s, up))
    return UpTrace(tuple(intervals), tuple(of_replica))


def _check_whole(of_replica: Mapping[str, list[_Row]]) -> None:
    """Every replica is spoken of without gap or overlap, from the same first to the same last moment."""
    for name, rows in of_replica.items():
        if not rows:
            raise BadQuorums(f"the trace says nothing about replica {name!r}; add its intervals")
        rows.sort(key=lambda row: row.start_s)
        for before, after in pairwise(rows):
            _check_joined(before, after, f" of {name}")
    _check_edge(of_replica, "starts", lambda rows: rows[0], lambda row: row.start_s)
    _check_edge(of_replica, "ends", lambda rows: rows[-1], lambda row: row.end_s)


def _check_edge(
    of_replica: Mapping[str, list[_Row]],
    verb: str,
    row_of: Callable[[list[_Row]], _Row],
    time_of: Callable[[_Row], Fraction],
) -> None:
    first_name, first = next((name, row_of(rows)) for name, rows in of_replica.items())
    for name, rows in of_replica.items():
        if time_of(row_of(rows)) != time_of(first):
            raise BadQuorums(
                f"line {row_of(rows).line}: the trace of {name} {verb} at {_shown(time_of(row_of(rows)))} s, that of "
                f"{first_name} at {_shown(time_of(first))} s (line {first.line}); let all begin and end together"
            )
