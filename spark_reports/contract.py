"""What a measured run looks like on disk, and what is checked of it before Spark starts.

A run is a folder with

* `operations*.jsonl` or `operations*.jsonl.gz`: one JSON object per finished operation (`OPERATION_FIELDS`);
* `replicas.csv`: the true up and down intervals of each replica, `replica,start_s,end_s,up`;
* `choices.json`: the votes of the replicas and the quorum choices that were run or are to be compared.

This module owns the names and the reasons for which a row is kept aside, so that the Spark jobs and the plain-Python
reference cannot drift apart. It reads `choices.json`, which is small; it never reads a row of the other two.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeGuard

from quorate.spark_reports.errors import ReportError

OPERATION_FIELDS: Final = (
    "object",
    "adt",
    "operation",
    "choice",
    "front_end",
    "start_s",
    "latency_s",
    "outcome",
    "answered",
)
"""The fields every operation must have; `event_class` comes on top and is null unless the outcome is ok."""

OUTCOMES: Final = ("ok", "unavailable", "unknown")
INTERVALS_HEADER: Final = "replica,start_s,end_s,up"
NUMBER_PATTERN: Final = r"^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$"
"""A number in `replicas.csv`; narrower than either Java's or Python's parser, so that both read the same."""

TIME_S_MAX: Final = 1e11
"""Times beyond this (the year 5138) are refused: most likely milliseconds, and microseconds stay exact below it."""

REPLICAS_MAX: Final = 16
"""More replicas than this are refused, because up to 2**replicas different up-sets are tabled by name."""

NAMES_FORBIDDEN: Final = frozenset(',"\r\n')
"""No replica may have these in its name, so that a line of `replicas.csv` splits at its commas."""

# Reasons, in the order in which they are tested: a row is counted under the first that holds.
MALFORMED_JSON: Final = "not one JSON object with fields of the right type"
MISSING_FIELD: Final = "missing field: "
UNKNOWN_OUTCOME: Final = "unknown outcome"
UNKNOWN_CHOICE: Final = "quorum choice not in choices.json"
OTHER_ADT: Final = "ADT differs from that of the quorum choice"
UNKNOWN_OPERATION: Final = "operation not in the quorum choice"
CLASS_WITHOUT_OK: Final = "event class given though the outcome is not ok"
CLASS_MISSING: Final = "no event class though the outcome is ok"
UNKNOWN_CLASS: Final = "event class is not one of the operation in the quorum choice"
BAD_START: Final = "start time is not a plausible number of seconds"
BAD_LATENCY: Final = "negative or implausible latency"
UNKNOWN_ANSWER: Final = "answered by an unknown replica"

MALFORMED_CSV: Final = "not four fields, or a field that is not a number"
UNKNOWN_REPLICA: Final = "unknown replica"
BAD_TIME: Final = "time is not a plausible number of seconds"
BAD_UP: Final = "up is neither 0 nor 1"
ENDS_BEFORE_START: Final = "interval ends before it starts"
OVERLAPS: Final = "interval overlaps an earlier one of the same replica"

REASONS: Final = (
    MALFORMED_JSON,
    MISSING_FIELD,
    UNKNOWN_OUTCOME,
    UNKNOWN_CHOICE,
    OTHER_ADT,
    UNKNOWN_OPERATION,
    CLASS_WITHOUT_OK,
    CLASS_MISSING,
    UNKNOWN_CLASS,
    BAD_START,
    BAD_LATENCY,
    UNKNOWN_ANSWER,
    MALFORMED_CSV,
    UNKNOWN_REPLICA,
    BAD_TIME,
    BAD_UP,
    ENDS_BEFORE_START,
    OVERLAPS,
)


@dataclass(frozen=True, slots=True)
class ClassQuorum:
    """The quorums of one event class under one choice, in votes."""

    choice: str
    adt: str
    event_class: str
    initial: int
    final: int

    @property
    def operation(self) -> str:
        """The operation of the class: `Deq` of `Deq/Empty`."""
        return self.event_class.partition("/")[0]

    @property
    def needed(self) -> int:
        """Votes that must be live: the larger quorum, since both may be the same replicas."""
        return max(self.initial, self.final)


@dataclass(frozen=True, slots=True)
class Choices:
    """The contents of `choices.json`: votes per replica and every class of every choice, both in file order."""

    votes: Mapping[str, int]
    classes: tuple[ClassQuorum, ...]

    def normal_class(self, choice: str, operation: str) -> ClassQuorum:
        """Give the class that stands for an operation whose outcomes differ in their quorums.

        It is `<operation>/Ok`, or, where the choice has no such class, the one that needs the most votes. Whoever
        asks for a Deq wants an item, so `Deq/Ok` decides whether Deq is available, not `Deq/Empty`.
        """
        own = [c for c in self.classes if c.choice == choice and c.operation == operation]
        normal = [c for c in own if c.event_class == f"{operation}/Ok"]
        return normal[0] if normal else max(own, key=lambda c: c.needed)

    def operations(self) -> list[ClassQuorum]:
        """Give the normal class of each (choice, operation), in file order."""
        pairs = dict.fromkeys((c.choice, c.operation) for c in self.classes)
        return [self.normal_class(choice, operation) for choice, operation in pairs]


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The files of a measured run."""

    operations: tuple[Path, ...]
    replicas: Path
    choices: Path


def find_run_files(input_dir: Path) -> RunFiles:
    """Find the files of a run.

    Raises:
        ReportError: the folder or one of its files is missing, or the header of `replicas.csv` is another one.
    """
    if not input_dir.is_dir():
        raise ReportError(f"{input_dir} is no folder; give the folder that a measured run wrote")
    operations = sorted({*input_dir.glob("operations*.jsonl"), *input_dir.glob("operations*.jsonl.gz")})
    if not operations:
        raise ReportError(
            f"{input_dir} holds no operations*.jsonl or operations*.jsonl.gz; measure a run into it"
        )
    files = RunFiles(tuple(operations), input_dir / "replicas.csv", input_dir / "choices.json")
    for path in (files.replicas, files.choices):
        if not path.is_file():
            raise ReportError(f"{path} is missing; a measured run writes it beside its operations")
    with files.replicas.open(encoding="utf-8-sig", errors="replace") as lines:
        header = lines.readline().strip()
    if header != INTERVALS_HEADER:
        raise ReportError(
            f"{files.replicas} begins with {header[:80]!r}; its first line must be {INTERVALS_HEADER}"
        )
    return files


def never_observed_together(files: RunFiles) -> ReportError:
    """Give the error for a trace in which the state of every replica is known at no moment."""
    return ReportError(
        f"{files.replicas}: at no moment is the state of every replica known; write good intervals for each replica "
        f"of {files.choices.name} over one common time"
    )


def read_choices(path: Path) -> Choices:
    """Read and check `choices.json`.

    Raises:
        ReportError: it is not JSON, a part of it has the wrong form, or a quorum needs more votes than there are.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ReportError(f"{path} cannot be read as JSON ({error}); write it anew") from error
    if not isinstance(document, dict):
        raise ReportError(f'{path} must be an object with the keys "replicas" and "choices"')
    votes = _read_votes(path, document.get("replicas"))
    classes = _read_classes(path, document.get("choices"), sum(votes.values()))
    return Choices(votes, classes)


def _read_votes(path: Path, replicas: Any) -> dict[str, int]:
    if not isinstance(replicas, dict) or not replicas:
        raise ReportError(f'{path}: "replicas" must name at least one replica, as {{"r1": {{"votes": 1}}}}')
    if len(replicas) > REPLICAS_MAX:
        raise ReportError(f"{path} names {len(replicas)} replicas; a report holds {REPLICAS_MAX} at most")
    votes: dict[str, int] = {}
    for replica, entry in replicas.items():
        if not replica or replica != replica.strip() or NAMES_FORBIDDEN & set(replica):
            raise ReportError(
                f"{path}: replica {replica!r} needs a name without commas, quotes or outer blanks"
            )
        own = entry.get("votes") if isinstance(entry, dict) else None
        if not _is_count(own):
            raise ReportError(
                f"{path}: votes of replica {replica!r} are {own!r}; give a whole number, 0 or more"
            )
        votes[replica] = own
    return votes


def _read_classes(path: Path, choices: Any, votes_total: int) -> tuple[ClassQuorum, ...]:
    if not isinstance(choices, dict) or not choices:
        raise ReportError(f'{path}: "choices" must hold at least one quorum choice')
    classes: list[ClassQuorum] = []
    for name, choice in choices.items():
        adt = choice.get("adt") if isinstance(choice, dict) else None
        quorums = choice.get("classes") if isinstance(choice, dict) else None
        if not isinstance(adt, str) or not isinstance(quorums, dict) or not quorums:
            raise ReportError(f'{path}: choice {name!r} needs an "adt" and at least one entry in "classes"')
        classes += [_read_class(path, name, adt, cls, pair, votes_total) for cls, pair in quorums.items()]
    return tuple(classes)


def _read_class(path: Path, choice: str, adt: str, cls: str, pair: Any, votes_total: int) -> ClassQuorum:
    place = f"{path}: choice {choice!r}, class {cls!r}"
    if not all(cls.partition("/")):
        raise ReportError(f"{place}: an event class is written operation/outcome, as Deq/Empty")
    if not isinstance(pair, list) or len(pair) != 2 or not all(_is_count(part) for part in pair):
        raise ReportError(
            f"{place} has quorums {pair!r}; give [initial, final], two whole numbers, 0 or more"
        )
    quorum = ClassQuorum(choice, adt, cls, pair[0], pair[1])
    if quorum.needed > votes_total:
        raise ReportError(
            f"{place} needs {quorum.needed} votes, the replicas have {votes_total}; lower the quorum"
        )
    return quorum


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
