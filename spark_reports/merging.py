"""What several observers saw of the same replicas, merged into what one prober would have written.

Owns the rule, and the files of the result. Observers that look at the same moments, as replicas with a probe log do
(`quorate.replica.upkeep.probing`), say of each replica at most one thing a moment. Of a moment counts what others than the replica
itself say: it was up if any of them had its answer, for one that did not may have been cut off, or busy. The replica's own word
counts where no other speaks: then nobody else was there to ask it.
"""

import gzip
import json
import re
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Final

from ..api_specs.messages import PROBE_LOG_FILE
from .figures.output_folders import OutputFolder
from .input import sources
from .input.files import files_of
from .input.probe_rows import Tested, rows_of
from .input.sources import find_source
from .model.days import DAY_US, date_of
from .model.errors import ReportError
from .model.places import Place

_OTHER: Final = 2
"""Of a word (2 * other + up), so that of all words of a moment the greatest is the one that counts."""
_MERGED: Final = re.compile(r"probes-(?:[0-9]{4}-[0-9]{2}-[0-9]{2}|aside)\.jsonl\.gz")
_LEVEL: Final = 3


@dataclass(frozen=True, slots=True)
class Merged:
    """A folder of probes, one file for each day, and what is to be told of how it came about."""

    place: Path
    observers: Sequence[str]
    samples: int
    split: int
    """Samples of which other observers said both."""


def observers_in(place: Path) -> set[str]:
    """The observers whose probe logs lie in a folder, by the names of the files."""
    names = (PROBE_LOG_FILE.fullmatch(each.name) for each in place.iterdir()) if place.is_dir() else ()
    return {found[1] for found in names if found}


def merge(places: Sequence[Path], place: Path) -> Merged:
    """Merge what lies in folders of probes into the folder `place`; what an earlier report merged there is replaced.

    A file of a probe log names its observer; each folder of other files is one observer.

    Raises:
        ReportError: one holds no probes, a file cannot be read, or the folder cannot be written or has files of somebody else.
    """
    views = _Views()
    for each in places:
        source = find_source(each)
        if source.kind != sources.PROBES:
            raise ReportError(f"{each} is no folder of probes, and nothing else is merged: give one --input")
        for path, rows in rows_of(source):
            found = PROBE_LOG_FILE.fullmatch(path.name)
            views.take(found[1] if found else str(each), rows.tested(rows.replicas()))
    try:
        return _written(views, place)
    except OSError as error:
        raise ReportError(f"{place} cannot be written ({error}); give another --out") from error


def decided(words: Iterable[int]) -> tuple[list[int], int]:
    """Of words about one replica (time in microseconds * 4 + 2 * other + up), in any order: its samples, `probes.packed` and in order, and
    of how many of them other observers said both.

    >>> decided([4 * 7 + 1, 4 * 7 + 2, 4 * 7 + 3, 4 * 9 + 1])
    ([15, 19], 1)
    """
    samples: list[int] = []
    split = 0
    for time_us, said in groupby(sorted(words), lambda word: word >> 2):
        kinds = {word & 3 for word in said}
        samples.append(time_us << 1 | max(kinds) & 1)
        split += {_OTHER, _OTHER | 1} <= kinds
    return samples, split


@dataclass(slots=True)
class _Views:
    """What was read: the words about each replica, who said any, and rows that are none."""

    words: dict[str, "array[int]"] = field(default_factory=lambda: defaultdict(lambda: array("q")))
    observers: set[str] = field(default_factory=set)
    aside: list[str] = field(default_factory=list)

    def take(self, observer: str, tested: Tested) -> None:
        """Take the rows of one more file."""
        self.aside += [line for _, line in tested.rejects]
        for replica, samples in tested.samples.items():
            self.observers.add(observer)
            other = 0 if replica == observer else _OTHER
            self.words[replica].extend((sample >> 1) << 2 | other | sample & 1 for sample in samples)


def _written(views: _Views, place: Path) -> Merged:
    found = {replica: decided(views.words[replica]) for replica in sorted(views.words)}
    samples = {replica: own for replica, (own, _) in found.items()}
    place.parent.mkdir(parents=True, exist_ok=True)
    earlier = [each.name for each in place.parent.glob(f"{place.name}*/*") if _MERGED.fullmatch(each.name)]
    folder = OutputFolder(place, earlier)
    folder.prepare()
    try:
        folder.aside.mkdir()
        for day, lines in _days(samples):
            _write(folder.aside / f"probes-{day}.jsonl.gz", lines)
        if views.aside:
            _write(folder.aside / "probes-aside.jsonl.gz", views.aside)
        folder.install()
    finally:
        folder.discard()
    count, split = sum(map(len, samples.values())), sum(each for _, each in found.values())
    return Merged(place, sorted(views.observers), count, split)


def _days(samples: Mapping[str, Sequence[int]]) -> Iterator[tuple[str, Iterator[str]]]:
    """The lines of each day (UTC)."""
    days = {(sample >> 1) // DAY_US for own in samples.values() for sample in own}
    for day in sorted(days):
        yield date_of(day), _lines(samples, day)


def _lines(samples: Mapping[str, Sequence[int]], day: int) -> Iterator[str]:
    for replica, own in samples.items():
        name = json.dumps(replica)
        first, end = (bisect_left(own, (each * DAY_US) << 1) for each in (day, day + 1))
        for sample in own[first:end]:
            yield f'{{"replica":{name},"time_s":{(sample >> 1) / 1e6!r},"up":{sample & 1},"latency_s":null}}'


def _write(path: Place, lines: Iterable[str]) -> None:
    """As a recorder does; the same lines are the same bytes, which a store goes by."""
    text = "".join(f"{line}\n" for line in lines).encode(errors="replace")
    files_of(path).put(path, gzip.compress(text, _LEVEL, mtime=0))
