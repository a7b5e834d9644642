"""Words of the command line that `quorate quorums` needs in several places: replicas and votes, chances, files, shares.

Numbers are read as exact fractions of their decimal form, so that availability is computed without rounding.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Final, TypeVar

import typer

from ...adts.specification import Specification, operation_of
from ...api_specs.limits import REPLICAS_MAX, VOTES_MAX
from ...quorums.planning.latency import AnswerTime, answer_time
from ...quorums.planning.traces import UpTrace, exact_number, read_trace
from ...quorums.systems.failures import Group, Groups, Independent, Model
from ...quorums.systems.systems import BadQuorums
from ..failure import Usage

Number = TypeVar("Number")

DEFAULT_REPLICAS: Final = 3
ROUNDING: Final = 1e-12
"""A float that is nearer to 1 than this is 1: sums and products of floats are no surer. Fractions are exact."""

ReplicasOption = Annotated[
    int | None,
    typer.Option(
        "--replicas", "-n", min=1, max=REPLICAS_MAX, help="So many replicas, r1, r2 …, of one vote (3)."
    ),
]
VotesOption = Annotated[
    str | None,
    typer.Option(
        "--votes", metavar="r1=2,r2=1,…", help="Replicas with their votes, instead of -n; 0 is allowed."
    ),
]
OperationsOption = Annotated[
    str, typer.Option("--operations", metavar="A,B", help="Only these are used; all, where it is left out.")
]
UpOption = Annotated[
    str,
    typer.Option("--p", metavar="P | r1=P,…", help="How likely a replica is up, 0 to 1; independent ones."),
]
GroupsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--group",
        metavar="NAME=P:r1,r2",
        help="Replicas that fall together, as a rack that is up with P; repeat it.",
    ),
]
TraceOption = Annotated[
    Path | None,
    typer.Option(
        "--trace",
        metavar="FILE",
        help="CSV of who was up when: start_s,end_s,up or replica,start_s,end_s,up.",
    ),
]


def replicas_of(count: int | None, votes: str | None) -> dict[str, int]:
    """Votes by replica, from -n or from --votes."""
    if votes is None:
        return {f"r{each}": 1 for each in range(1, (count or DEFAULT_REPLICAS) + 1)}
    if count is not None:
        raise Usage("--votes says which replicas there are; leave -n out")
    found = by_name(votes, "--votes", whole_number)
    if len(found) > REPLICAS_MAX:
        raise Usage(f"--votes names {len(found)} replicas; name at most {REPLICAS_MAX}")
    return found


def whole_number(word: str) -> int:
    """A number of votes."""
    if not (word.isascii() and word.isdigit() and int(word) <= VOTES_MAX):
        raise ValueError(f"a whole number from 0 to {VOTES_MAX}")
    return int(word)


def number(word: str) -> Fraction:
    """A decimal number, exactly."""
    try:
        return exact_number(word)
    except (ValueError, ZeroDivisionError):
        raise ValueError("a number") from None


def time_of(word: str) -> AnswerTime:
    """Milliseconds: `5`, or several with weights, `5:9/50:1`."""
    points = []
    for point in word.split("/"):
        time_ms, _, weight = point.partition(":")
        points.append((float(number(time_ms)), float(number(weight or "1"))))
        if min(points[-1]) < 0:
            raise ValueError(f"times and weights of 0 or more; {point} is negative")
    return answer_time(points)


def by_name(
    text: str, option: str, read: Callable[[str], Number], example: str = "r1=1,r2=2"
) -> dict[str, Number]:
    """`r1=2,r2=1` as a mapping; Usage names the part that cannot be read, and shows the `example`."""
    found: dict[str, Number] = {}
    for part in text.split(","):
        name, equals, word = (each.strip() for each in part.partition("="))
        if not name or not equals:
            raise Usage(f"{option}: {part!r} is not NAME=VALUE; write as {example}")
        if name in found:
            raise Usage(f"{option}: {name} is given twice; give it once")
        try:
            found[name] = read(word)
        except (ValueError, OverflowError) as error:
            raise Usage(f"{option}: {name}={word}: write {error}") from None
    return found


def for_each(
    text: str, option: str, replicas: Sequence[str], read: Callable[[str], Number], naming: str = "--votes"
) -> dict[str, Number]:
    """One value for all replicas, or `r1=…,r2=…` with one for each. `naming` is the option that names replicas."""
    if "=" not in text:
        try:
            return dict.fromkeys(replicas, read(text.strip()))
        except (ValueError, OverflowError) as error:
            raise Usage(f"{option}: {text!r}: write {error}, or one for each as r1=…") from None
    found = by_name(text, option, read)
    for name in found:
        if name not in replicas:
            raise Usage(f"{option}: unknown replica {name!r}; {_known(replicas, naming)}")
    return found


def _known(replicas: Sequence[str], naming: str) -> str:
    return f"known are {', '.join(replicas)}; {naming} names others"


def names_of(text: str) -> list[str] | None:
    """`A,B` as a list; None for nothing."""
    return [word.strip() for word in text.split(",") if word.strip()] or None


def trace_from(file: Path, replicas: Sequence[str]) -> UpTrace:
    """The trace in `file`, which may name these replicas only."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            return read_trace(lines, replicas)
    except UnicodeDecodeError:
        raise Usage(f"{file} is no text in UTF-8: save it as one") from None
    except OSError as error:
        raise Usage(f"{file} cannot be read ({error.strerror}): give the path of a trace") from None
    except BadQuorums as error:
        raise Usage(f"{file}: {error}") from None


def model_of(
    up: str,
    groups: Sequence[str],
    trace: UpTrace | None,
    replicas: Sequence[str],
    naming: str = "--votes",
) -> Model[Fraction] | None:
    """How replicas fail, as the options say; None where they say nothing. `naming` is as in `for_each`."""
    if trace is not None:
        if up or groups:
            raise Usage("--trace says who was up; leave --p and --group out")
        return trace.joint()
    if not up and not groups:
        return None
    chances = for_each(up or "1", "--p", replicas, number, naming)
    for name in replicas:
        if name not in chances:
            raise Usage(f"--p: nothing is said about replica {name!r}; give it a number from 0 to 1")
    try:
        if not groups:
            return Independent(chances)
        return Groups(chances, tuple(_group(text) for text in groups))
    except BadQuorums as error:
        raise Usage(str(error)) from None


def _group(text: str) -> Group[Fraction]:
    head, colon, members = text.partition(":")
    name, equals, chance = (each.strip() for each in head.partition("="))
    if not (name and equals and colon and names_of(members)):
        raise Usage(f"--group: {text!r} is not NAME=P:r1,r2; write as rack1=0.99:r1,r2")
    try:
        return Group(name, frozenset(names_of(members) or ()), number(chance))
    except ValueError as error:
        raise Usage(f"--group {name}: {error}") from None


def event_classes(
    specification: Specification, words: Mapping[str, Number], option: str
) -> dict[str, Number]:
    """`Enq` stands for the operation's first event class, the normal one; `Deq/Empty` for itself."""
    found: dict[str, Number] = {}
    for word, value in words.items():
        matching = [name for name in specification.depends if word in (name, operation_of(name))]
        if not matching:
            known = ", ".join(specification.depends)
            raise Usage(f"{option}: a {specification.name} has no event class {word!r}: use {known}")
        if matching[0] in found:
            raise Usage(f"{option}: {matching[0]} is given twice; give it once")
        found[matching[0]] = value
    return found


def percent(share: float | Fraction) -> str:
    """A share as a percentage that shows two digits of what is missing: 99.970 %, 99.999901 %."""
    missing = 1 - Fraction(share)
    if not missing or (isinstance(share, float) and missing < ROUNDING):
        return "100 %"
    if missing == 1:
        return "0 %"
    digits, small = 2, float(missing) * 100
    while digits < 16 and small * 10**digits < 10:
        digits += 1
    return f"{float(100 * Fraction(share)):.{digits}f} %" if digits <= 12 else f"100 % - {small:.1e} %"
