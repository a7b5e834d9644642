"""Takes the days of an input into a store: makes those that are new or whose files changed, and leaves the others.

In plain Python, a file at a time: a day of Parquet is worked through before Spark would have started.
"""

from collections.abc import Collection, Container, Iterator, Mapping
from hashlib import file_digest
from typing import Any, Final, cast

from msgspec.structs import replace

from ..input import parquet_files, probe_rows
from ..input.foreign import Foreign, select
from ..input.probe_rows import Part
from ..input.probes import FIELDS, Spacing
from ..input.sources import Source
from ..model.aggregates import EXAMPLE_CHARS, Rejected, together
from ..model.days import date_of
from ..model.errors import ReportError
from ..model.places import Place
from .changes import Changes, Lessened, WantedDay, file_gone, files_of, wanted_days
from .folder import ClusterFolder
from .manifest import Facts, InputFile, KeptDay, Manifest, all_facts


class _Anyone:
    """Every name that a replica can have."""

    def __contains__(self, name: object) -> bool:
        return bool(name)


def update(folder: ClusterFolder, source: Source, step_us: int | None, votes: Mapping[str, int]) -> Changes:
    """Bring what is kept of a cluster to the state of the input.

    Args:
        folder: the cluster's part of the store, `written` by nobody else.
        source: a prober's samples alone.
        step_us: the distance of two samples; None for that which the store has.
        votes: votes by replica, which a new store keeps; empty for those that it has.

    Raises:
        ReportError: a file cannot be read, the store cannot be written, or the step or the replicas are not those
            of the store.
    """
    before = folder.manifest() or _begun(folder, step_us, votes)
    check_asked(folder, before, step_us, votes)
    return _Update(folder, source, before).run()


def _begun(folder: ClusterFolder, step_us: int | None, votes: Mapping[str, int]) -> Manifest:
    """What is kept of a cluster before its first day."""
    if step_us is None:
        raise ReportError(
            f"{folder.place} has no day yet: say how far apart the probes are, with --step SECONDS; the store keeps it"
        )
    return Manifest(folder.cluster, Spacing(step_us).step_us, dict(votes))


def check_asked(folder: ClusterFolder, kept: Manifest, step_us: int | None, votes: Mapping[str, int]) -> None:
    """See that a step and votes fit what is kept.

    Raises:
        ReportError: they do not.
    """
    if step_us not in {None, kept.step_us}:
        raise ReportError(
            f"{folder.place} was made with a step of {kept.step_us / 1e6:g} s: leave --step out, or give another --cluster or "
            "--store"
        )
    if votes and kept.votes and set(votes) != set(kept.votes):
        raise ReportError(
            f"{folder.place} was made of the replicas {', '.join(sorted(kept.votes))}: name these with --votes, or leave it "
            "out, or give another --cluster or --store"
        )


class _Update:
    """One run over the input. Files go by their paths within it."""

    def __init__(self, folder: ClusterFolder, source: Source, before: Manifest) -> None:
        self.folder: Final = folder
        self.source: Final = source
        self.before: Final = before
        packed = [] if source.probe_parquet is None else parquet_files.files_in(source.probe_parquet)
        self.paths: Final = {
            path.relative_to(source.place).as_posix(): path for path in [*source.probe_lines, *packed]
        }

    def run(self) -> Changes:
        """Make what is to be made, and commit it."""
        before = self.before.days
        present = self._present()
        wanted = wanted_days(self.before, present)
        there = self.folder.edge_files()
        todo = {day: each for day, each in wanted.items() if not self._is_kept(day, each, there)}
        made, lessened = dict[str, KeptDay](), list[Lessened]()
        for day, part in self._parts(todo):
            edges = part.edges(Spacing(self.before.step_us))
            facts = _facts(part)
            missing = file_gone(before.get(day), facts.rows, present)
            if missing is None:
                name = self.folder.write_edges(day, todo[day].digest, edges)
                made[day] = KeptDay(todo[day].digest, name, todo[day].files, facts)
            else:
                lessened.append(Lessened(day, missing, facts.rows, before[day].facts.rows))
        unsettled = {name for name, each in present.items() if not self._is_unchanged(name, each)}
        made = {day: each for day, each in made.items() if unsettled.isdisjoint(each.files)}
        settled = {name: each for name, each in present.items() if name not in unsettled}
        gone = before.keys() - wanted.keys()
        emptied = {day for day in gone if settled.keys() >= set(before[day].files)}
        self._keep({day: each for day, each in (before | made).items() if day not in emptied}, settled)
        return Changes(
            new=sorted(made.keys() - before.keys()),
            repeated=sorted(made.keys() & before.keys()),
            emptied=sorted(emptied),
            kept=sorted(before.keys() - made.keys() - emptied),
            vanished=sorted(gone - emptied),
            lessened=sorted(lessened),
            unsettled=sorted(unsettled),
        )

    def _keep(self, days: Mapping[str, KeptDay], present: Mapping[str, InputFile]) -> None:
        """Commit days, and the files that are known."""
        if days and not self.before.days:
            named = all_facts(each.facts for each in days.values()).replicas
            select(Foreign(named, [], {}), self.before.votes)  # whoever misspelt a replica begins once more
        days = dict(sorted(days.items()))
        after = replace(self.before, days=days, files=files_of(days, self.before, present))
        if after != self.before:
            self.folder.commit(after)
        self.folder.sweep(after)

    def _is_kept(self, day: str, wanted: WantedDay, there: Container[str]) -> bool:
        kept = self.before.days.get(day)
        return kept is not None and kept.digest == wanted.digest and kept.edges in there

    def _present(self) -> dict[str, InputFile]:
        """The files of the input; only those are read whose size or time of change is not as it was."""
        found = {name: self._recognized(name) for name in self.paths}
        unread = [name for name, each in found.items() if each is None]
        read = dict(self._read(unread)) if unread else {}
        return {name: each or read[name] for name, each in found.items()}

    def _recognized(self, name: str) -> InputFile | None:
        """What is known of a file already; None for one that is new or changed."""
        known = self.before.files.get(name)
        if known is None:
            return None
        size, modified_ns = _state(self.paths[name])
        if (known.bytes, known.modified_ns) == (size, modified_ns):
            return known
        is_same = known.bytes == size and known.sha256 == _digest(self.paths[name])
        return replace(known, modified_ns=modified_ns) if is_same else None

    def _read(self, names: Collection[str]) -> Iterator[tuple[str, InputFile]]:
        """Find out the days of files, and what their rows are that say no time."""
        paths = {self.paths[name]: name for name in names}
        states = {path: (*_state(path), _digest(path)) for path in paths}
        days = {path: set(rows.by_day()) for path, rows in self._rows(paths, ("time_s",))}
        torn = {path for path, own in days.items() if None in own}
        undated = {}
        for path, rows in self._rows(torn) if torn else ():
            part = Part(self._replicas())
            part.add(rows.by_day()[None])
            undated[path] = _facts(part)
        for path, name in paths.items():
            dates = tuple(date_of(day) for day in sorted(day for day in days[path] if day is not None))
            yield name, InputFile(*states[path], dates, undated.get(path, Facts()))

    def _parts(self, todo: Mapping[str, WantedDay]) -> Iterator[tuple[str, Part]]:
        """The rows of each day; every file is read once, and a day is given as soon as its last file was."""
        missing = {day: len(each.files) for day, each in todo.items()}
        parts: dict[str, Part] = {}
        paths = {self.paths[name] for each in todo.values() for name in each.files}
        for _, rows in self._rows(paths) if paths else ():
            for number, own in rows.by_day().items():
                day = "" if number is None else date_of(number)
                if day in todo:
                    parts.setdefault(day, Part(self._replicas())).add(own)
                    missing[day] -= 1
                    if not missing[day]:
                        yield day, parts.pop(day)

    def _rows(
        self, paths: Collection[Place], columns: tuple[str, ...] = FIELDS
    ) -> Iterator[tuple[Place, probe_rows.Rows]]:
        return probe_rows.rows_of(self.source, columns, only=paths)

    def _replicas(self) -> Container[str]:
        return self.before.votes or _Anyone()

    def _is_unchanged(self, name: str, each: InputFile) -> bool:
        """Whether a file is still as it was before it was read."""
        return _state(self.paths[name]) == (each.bytes, each.modified_ns)


def _facts(part: Part) -> Facts:
    rejected = together(
        Rejected(each.source, each.reason, 1, each.line[:EXAMPLE_CHARS]) for each in part.rejects
    )
    return Facts(part.read, tuple(sorted(part.replicas)), rejected)


def _state(path: Place) -> tuple[int, int]:
    """Size and time of change."""
    try:
        found = path.stat()
    except OSError as error:
        raise ReportError(
            f"{path} cannot be read ({error}); bring it back, or take it away for good"
        ) from error
    return found.st_size, found.st_mtime_ns


def _digest(path: Place) -> str:
    try:
        with path.open("rb") as file:
            return file_digest(cast(Any, file), "sha256").hexdigest()
    except OSError as error:
        raise ReportError(
            f"{path} cannot be read ({error}); bring it back, or take it away for good"
        ) from error
