"""The probe log of a replica: what it saw of each replica, in files that `quorate report` reads (docs/reference/measurements.md).

Owns the files of one observer in a folder, which others may share: their names, when the next one begins, which go, and pages of their
rows. Beside each lies one that says which configurations the observer was in meanwhile, under a name that no reader of probes looks for. It blocks; who calls it sees to the thread. One thread writes, and others read meanwhile.
"""

import os
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from ...api_specs.cluster import ClusterDocument
from ...api_specs.limits import PROBE_FILE_BYTES_MAX, PROBE_LOG_BYTES_MAX, PROBE_PAGE_BYTES_MAX
from ...api_specs.messages import NOT_DECODED, PROBE_LOG_FILE, ConfigurationNote, ProbeRow

PLACE_PATTERN: Final = r"([0-9]{8}T[0-9]{6}Z)\.([0-9]{1,12})"
"""Where a page begins: in the file that began then, at that byte."""
_STAMP: Final = "%Y%m%dT%H%M%SZ"
_DAY_S: Final = 86_400.0
_DECODE: Final = msgspec.json.Decoder(ProbeRow).decode
_DECODE_NOTE: Final = msgspec.json.Decoder(ConfigurationNote).decode


class ProbePage(NamedTuple):
    """Rows in the order in which they were written, and where the next page begins; empty where there is none. The first page of a file has
    the configurations of all of it, also of before the time that was asked for: one of them may have been in force then."""

    rows: Sequence[ProbeRow]
    next: str
    configurations: Sequence[ConfigurationNote] = ()


class ProbeLog:
    """The files of `observer` in `folder`, which is there. Those whose rows are all older than `kept_days` go."""

    def __init__(self, folder: Path, observer: str, kept_days: float) -> None:
        self.folder: Final = folder
        self.observer: Final = observer
        self._kept_s: Final = kept_days * _DAY_S
        self._last: Path | None = None
        """The file that was written to last."""
        self._noted: tuple[Path, ClusterDocument] | None = None
        """Which configuration was noted last, beside which file."""

    def write(
        self, time_s: float, rows: Iterable[ProbeRow], configuration: ClusterDocument | None = None
    ) -> None:
        """Append what was seen at a moment, and beside it the configuration, where a file begins, or this process, or it is another than before;
        None where it is changing. Raises OSError; a line that was cut off then spoils no later one."""
        path = self._file_at(time_s)
        if configuration is not None and self._noted != (path, configuration):
            note = {"time_s": time_s, "document": configuration}
            _append(_notes_of(path), msgspec.json.encode(note) + b"\n")
            self._noted = path, configuration
        _append(path, b"".join(msgspec.json.encode(row) + b"\n" for row in rows))

    def page(self, place: str = "", from_s: float = 0.0, to_s: float = float("inf")) -> ProbePage:
        """The rows of one page from `place` on, or, where that is empty, from the first file on that may have any; those alone whose time
        lies from `from_s` to before `to_s`. A file that is gone meanwhile is passed over. Raises OSError."""
        stamp, offset = _parsed(place) if place else (self._first(from_s), 0)
        files = [each for each in self._files() if stamp <= (own := _stamp_of(each)) and _seconds(own) < to_s]
        if not files:
            return ProbePage((), "")
        current, following = files[0], files[1:]
        if _stamp_of(current) != stamp:
            offset = 0
        lines, end, is_whole = _lines_from(current, offset)
        rows = [row for line in lines if (row := _row(line)) is not None and from_s <= row.time_s < to_s]
        notes = () if offset else _notes(_notes_of(current), to_s)
        if not is_whole:
            return ProbePage(rows, f"{_stamp_of(current)}.{end}", notes)
        return ProbePage(rows, f"{_stamp_of(following[0])}.0" if following else "", notes)

    def _file_at(self, time_s: float) -> Path:
        """The file for what was seen then; where it is another one than before, too old ones go first."""
        if self._last is None:
            self._last = next(reversed(self._files()), None)
        stamp = datetime.fromtimestamp(time_s, UTC).strftime(_STAMP)
        last = self._last
        if last is None or _stamp_of(last)[:8] != stamp[:8] or _is_full(last):
            self._prune(time_s)
            self._last = last = self.folder / f"probes-{self.observer}-{stamp}.jsonl"
        return last

    def _prune(self, now_s: float) -> None:
        """Take away what is too old, or too much: the files before one that began too long ago, and the oldest of too many bytes."""
        files = self._files()
        too_old = {
            each for each, later in pairwise(files) if _seconds(_stamp_of(later)) <= now_s - self._kept_s
        }
        kept = [each for each in files if each not in too_old]
        sizes = {each: _bytes_of(each) for each in kept}
        while kept and sum(sizes[each] for each in kept) > PROBE_LOG_BYTES_MAX - PROBE_FILE_BYTES_MAX:
            kept.pop(0)
        for each in files:
            if each not in kept:
                each.unlink(missing_ok=True)
                _notes_of(each).unlink(missing_ok=True)

    def _first(self, from_s: float) -> str:
        """The stamp of the first file that may have rows from then on."""
        earlier = [each for each in self._files() if _seconds(_stamp_of(each)) <= from_s]
        return _stamp_of(earlier[-1]) if earlier else ""

    def _files(self) -> list[Path]:
        """The files of this observer, in the order in which they began."""
        found = (each for each in self.folder.iterdir() if PROBE_LOG_FILE.fullmatch(each.name))
        return sorted(each for each in found if _name(each)[1] == self.observer)


def _append(path: Path, lines: bytes) -> None:
    with os.fdopen(os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o600), "r+b", buffering=0) as file:
        if file.seek(0, os.SEEK_END) and os.pread(file.fileno(), 1, file.tell() - 1) != b"\n":
            lines = b"\n" + lines
        if file.write(lines) != len(lines):
            raise OSError(f"{path} has no room")


def _notes_of(path: Path) -> Path:
    """The file beside a file of rows that says which configurations the observer was in."""
    return path.with_name(path.name.replace("probes-", "configurations-", 1))


def _notes(path: Path, to_s: float) -> list[ConfigurationNote]:
    """What such a file has of before a time; nothing where there is none, as of an earlier release."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    found = (_note(line) for line in lines)
    return [each for each in found if each is not None and each.time_s < to_s]


def _name(path: Path) -> re.Match[str]:
    found = PROBE_LOG_FILE.fullmatch(path.name)
    assert found is not None
    return found


def _stamp_of(path: Path) -> str:
    return _name(path)[2]


def _seconds(stamp: str) -> float:
    """Seconds since 1970; before all time where a name has no time of the calendar."""
    try:
        return datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return float("-inf")


def _parsed(place: str) -> tuple[str, int]:
    found = re.fullmatch(PLACE_PATTERN, place)
    assert found is not None, place
    return found[1], int(found[2])


def _bytes_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _is_full(path: Path) -> bool:
    """Whether the next rows go to another file: also where many configurations were noted, of which one page has all."""
    return _bytes_of(path) >= PROBE_FILE_BYTES_MAX or _bytes_of(_notes_of(path)) >= PROBE_PAGE_BYTES_MAX


def _lines_from(path: Path, offset: int) -> tuple[list[bytes], int, bool]:
    """The whole lines of a page, where they end, and whether the file has no more of them."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            read = file.read(PROBE_PAGE_BYTES_MAX)
    except FileNotFoundError:
        return [], offset, True
    is_whole = len(read) < PROBE_PAGE_BYTES_MAX
    # A line that is longer than a page is none of ours.
    used = len(read) if is_whole else read.rfind(b"\n") + 1 or len(read)
    return read[:used].split(b"\n"), offset + used, is_whole


def _row(line: bytes) -> ProbeRow | None:
    """The row of a line; None of one that is empty, cut off, or still being written."""
    try:
        return _DECODE(line)
    except NOT_DECODED:
        return None


def _note(line: bytes) -> ConfigurationNote | None:
    try:
        return _DECODE_NOTE(line)
    except NOT_DECODED:
        return None
