"""Which days of a store are to be made, for what its manifest says and what the input has now. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ..model.days import span_of_dates
from ..model.phrases import counted
from .manifest import InputFile, KeptDay, Manifest

NAMED_MAX: Final = 5
"""So many stretches of days are named, and no more."""


@dataclass(frozen=True, slots=True)
class WantedDay:
    """A day as the input has it now: the digest of its files, and which these are."""

    digest: str
    files: tuple[str, ...]


def wanted_days(manifest: Manifest, present: Mapping[str, InputFile]) -> dict[str, WantedDay]:
    """Every day of which the input says anything, in order."""
    files: dict[str, list[str]] = {}
    for path, each in sorted(present.items()):
        for day in each.days:
            files.setdefault(day, []).append(path)
    return {
        day: WantedDay(manifest.digest({path: present[path] for path in files[day]}), tuple(files[day]))
        for day in sorted(files)
    }


def file_gone(before: KeptDay | None, rows: int, present: Collection[str]) -> str | None:
    """The file for want of which a day would lose rows if it were made anew; None where it would not."""
    if before is None or rows >= before.facts.rows:
        return None
    return next((path for path in before.files if path not in present), None)


def files_of(
    days: Mapping[str, KeptDay], before: Manifest, present: Mapping[str, InputFile]
) -> dict[str, InputFile]:
    """The files that the manifest is to name: those of the input, and those that a kept day was made of."""
    needed = {path for each in days.values() for path in each.files}
    gone = {path: each for path, each in before.files.items() if path in needed}
    return dict(sorted((gone | dict(present)).items()))


class Lessened(NamedTuple):
    """A day that is left as it was: `gone` is missing from the input, in which `rows_left` of its `rows_kept` rows are left."""

    day: str
    gone: str
    rows_left: int
    rows_kept: int


@dataclass(frozen=True, slots=True)
class Changes:
    """What became of the days of a store, each by its date, in order.

    Attributes:
        new: made for the first time.
        repeated: made anew, for their input changed.
        emptied: taken away, for the files that they were made of are there and have no row of them any more.
        kept: left as they were.
        vanished: of those, the days of which the input has no file any more.
        lessened: of those, the days that would have lost rows.
        unsettled: files of the input that were written to while they were read; days with rows in them were left as they were.
    """

    new: Sequence[str]
    repeated: Sequence[str]
    emptied: Sequence[str]
    kept: Sequence[str]
    vanished: Sequence[str]
    lessened: Sequence[Lessened]
    unsettled: Sequence[str]

    def sentences(self, place: str) -> Iterator[str]:
        """The changes in words."""
        made = [f"{counted(len(self.new), 'day')} new{_dates(self.new)}"]
        if self.repeated:
            made.append(f"{len(self.repeated)} repeated, as their input changed{_dates(self.repeated)}")
        if self.emptied:
            made.append(f"{len(self.emptied)} without any row by now{_dates(self.emptied)}")
        yield f"{place}: {', '.join([*made, f'{len(self.kept)} kept'])}."
        if self.vanished:
            days = counted(len(self.vanished), "kept day")
            yield f"The input no longer has any file of {days}{_dates(self.vanished)}."
        for each in self.lessened[:NAMED_MAX]:
            yield (
                f"{each.day} stays as it was kept, with {each.rows_kept:,} rows: {each.gone} is gone from the input, which has "
                f"{each.rows_left:,} rows of that day left. Bring the file back to have the day made anew."
            )
        if len(self.lessened) > NAMED_MAX:
            yield f"So do {len(self.lessened) - NAMED_MAX} days more."
        if self.unsettled:
            files = counted(len(self.unsettled), "file")
            yield (
                f"{files} of the input changed while being read ({_some(self.unsettled)}): days with rows there wait for a later run."
            )


def _dates(days: Sequence[str]) -> str:
    """Dates in brackets, those of days one after the other as `first to last`."""
    stretches: list[tuple[str, str]] = []
    for day in days:
        if stretches and span_of_dates(*stretches[-1]).end_us == span_of_dates(day, day).start_us:
            stretches[-1] = stretches[-1][0], day
        else:
            stretches.append((day, day))
    said = [first if first == last else f"{first} to {last}" for first, last in stretches]
    return f" ({_some(said)})" if said else ""


def _some(things: Sequence[str]) -> str:
    """The first things of a list, and how many more there are."""
    more = [f"{len(things) - NAMED_MAX} more"] if len(things) > NAMED_MAX else []
    return ", ".join([*things[:NAMED_MAX], *more])
