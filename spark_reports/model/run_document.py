"""`run.json`: who took part in a measured run, with which quorum choices, and when.

Reads and checks it, and holds what a report knows of its input before it looks at a row; for other people's data, which
has no `run.json`, the same value is made from what the command line says.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeGuard

from ...adts.specification import EventClass, operation_of
from ...adts.types.catalogue import known_types
from ...quorums.systems.expressions import parse_system
from ...quorums.systems.systems import NOBODY, BadQuorums, System, replicas_of
from .aggregates import Span, microseconds
from .contract import REPLICAS_MAX, TIME_S_MAX
from .errors import ReportError
from .places import Place
from .quorum_choices import RUN, Choice, ClassQuorum, of_votes

FORMAT: Final = 2
ORDERINGS: Final = ("clock", "quorum")
NAMES_FORBIDDEN: Final = frozenset(',"\r\n')
"""No replica or front end may have these in its name, so that a line of CSV splits at its commas."""

NAME_CHARS_MAX: Final = 200
EMPTY_PATTERN: Final = r"0?|choose\(0; *\)"
"""How the empty quorum is written: as nothing, as a number, or as `str` writes the system of nobody."""


@dataclass(frozen=True, slots=True)
class Run:
    """What is known of a run before its rows are read; `window` is None where only the rows can tell."""

    votes: Mapping[str, int]
    racks: Mapping[str, str] = field(default_factory=dict)
    choices: tuple[Choice, ...] = ()
    objects: Mapping[str, str] = field(default_factory=dict)
    front_ends: tuple[str, ...] = ()
    window: Span | None = None
    time_scale: float = 1.0
    prober_step_s: float | None = None
    plan: str | None = None
    made: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def views(self, linked: tuple[str, ...]) -> dict[str, str]:
        """Give the view of each front end: its own where links of it were recorded, else that of the replicas, ``""``."""
        return {name: name if name in linked else "" for name in self.front_ends}

    def members(self, linked: tuple[str, ...]) -> dict[str, int]:
        """Give the number of front ends with each view; the replicas' own view counts once where there is no front end."""
        counts: dict[str, int] = {}
        for view in self.views(linked).values():
            counts[view] = counts.get(view, 0) + 1
        return counts or {"": 1}

    def choice_of(self, object_name: str) -> str | None:
        """Give the choice that an object is run with; a dictionary's entry is run with that of its dictionary."""
        return self.objects_by_key.get(object_key(object_name))

    @property
    def objects_by_key(self) -> dict[str, str]:
        """The choice of each object, by `object_key`."""
        return {object_key(name): choice for name, choice in self.objects.items()}


def object_key(object_name: str) -> str:
    """The type and name of an object without the key within it: `dictionary/users` of `dictionary/users/ann`."""
    return "/".join(object_name.split("/")[:2])


def read_run(path: Place) -> Run:
    """Read and check `run.json`.

    Raises:
        ReportError: it is not JSON, is of another format, or a part of it has the wrong form; the sentence names it.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ReportError(f"{path} cannot be read as JSON ({error}); write it anew") from error
    if not isinstance(document, dict):
        raise ReportError(f"{path} must be an object, as docs/reference/measurements.md shows")
    return _Reader(path, document).run()


class _Reader:
    """Takes a document apart; each method answers for one key."""

    def __init__(self, path: Place, document: Mapping[str, Any]) -> None:
        self.path = path
        self.document = document

    def fail(self, sentence: str) -> ReportError:
        return ReportError(f"{self.path}: {sentence}")

    def run(self) -> Run:
        if self.document.get("format") != FORMAT:
            raise self.fail(
                f'"format" is {self.document.get("format")!r}; this report reads {FORMAT}: measure the run anew'
            )
        votes = self.votes()
        choices = self.choices(votes)
        made = self.mapping("made")
        plan = self.document.get("plan")
        if plan is not None and not isinstance(plan, str):
            raise self.fail('"plan" must be the text of the plan')
        return Run(
            votes=votes,
            racks=self.racks(),
            choices=choices,
            objects=self.objects({choice.name for choice in choices}),
            front_ends=self.front_ends(),
            window=self.window(),
            time_scale=self.positive("time_scale", self.document.get("time_scale", 1)),
            prober_step_s=self.prober_step_s(),
            plan=plan,
            made={str(name): str(value) for name, value in made.items()},
            notes=self.notes(),
        )

    def notes(self) -> tuple[str, ...]:
        found = self.document.get("notes", [])
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            raise self.fail('"notes" must be a list of sentences')
        return tuple(found)

    def mapping(self, key: str) -> Mapping[str, Any]:
        found = self.document.get(key, {})
        if not isinstance(found, dict):
            raise self.fail(f'"{key}" must be an object')
        return found

    def check_name(self, what: str, name: object) -> str:
        if (
            not isinstance(name, str)
            or not name
            or name != name.strip()
            or NAMES_FORBIDDEN & set(name)
            or len(name) > NAME_CHARS_MAX
        ):
            raise self.fail(
                f"{what} {name!r} needs a name of at most {NAME_CHARS_MAX} characters, without commas, quotes or outer "
                "blanks"
            )
        return name

    def votes(self) -> dict[str, int]:
        replicas = self.mapping("replicas")
        if not replicas:
            raise self.fail('"replicas" must name at least one replica, as {"r1": {"votes": 1}}')
        if len(replicas) > REPLICAS_MAX:
            raise self.fail(f"names {len(replicas)} replicas; a report holds {REPLICAS_MAX} at most")
        votes: dict[str, int] = {}
        for replica, entry in replicas.items():
            own = entry.get("votes") if isinstance(entry, dict) else None
            if not _is_count(own):
                raise self.fail(f"votes of replica {replica!r} are {own!r}; give a whole number, 0 or more")
            votes[self.check_name("replica", replica)] = own
        if not sum(votes.values()):
            raise self.fail("the replicas have no votes at all; give at least one of them a vote")
        return votes

    def racks(self) -> dict[str, str]:
        racks = ((name, entry.get("rack")) for name, entry in self.mapping("replicas").items())
        return {name: str(rack) for name, rack in racks if rack is not None}

    def objects(self, choices: set[str]) -> dict[str, str]:
        objects = self.mapping("objects")
        for name, choice in objects.items():
            if choice not in choices:
                raise self.fail(f'object {name!r} is run with {choice!r}, which "choices" does not have')
        return dict(objects)

    def front_ends(self) -> tuple[str, ...]:
        found = self.document.get("front_ends", [])
        if not isinstance(found, list):
            raise self.fail('"front_ends" must be a list of names')
        names = tuple(self.check_name("front end", name) for name in found)
        if len(set(names)) < len(names):
            raise self.fail('"front_ends" names one front end twice; name each once')
        return names

    def window(self) -> Span:
        window = self.document.get("window")
        is_pair = isinstance(window, list) and len(window) == 2 and all(map(_is_time, window))
        if not isinstance(window, list) or not is_pair or not window[0] < window[1]:
            raise self.fail(f'"window" is {window!r}; give [start_s, end_s] in seconds since 1970')
        return Span(microseconds(window[0]), microseconds(window[1]))

    def prober_step_s(self) -> float | None:
        prober = self.document.get("prober")
        if prober is None:
            return None
        if not isinstance(prober, dict):
            raise self.fail('"prober" must be an object, as {"step_s": 0.1}')
        return self.positive("prober.step_s", prober.get("step_s"))

    def positive(self, key: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= TIME_S_MAX:
            raise self.fail(f'"{key}" is {value!r}; give a number above 0')
        return float(value)

    def choices(self, votes: Mapping[str, int]) -> tuple[Choice, ...]:
        found = []
        for name, entry in self.mapping("choices").items():
            self.check_name("quorum choice", name.replace(",", ""))
            adt = entry.get("adt") if isinstance(entry, dict) else None
            if not isinstance(adt, str) or not adt:
                raise self.fail(f'choice {name!r} needs an "adt"')
            ordering = entry.get("ordering", "clock")
            if ordering not in ORDERINGS:
                raise self.fail(f"choice {name!r} has ordering {ordering!r}; use {' or '.join(ORDERINGS)}")
            if isinstance(entry.get("classes"), dict) and entry["classes"]:
                classes = [self.numbers(name, cls, pair, votes) for cls, pair in entry["classes"].items()]
            else:
                classes = self.systems(name, adt, entry, votes)
            found.append(Choice(name, adt, ordering, RUN, name, tuple(classes)))
        return tuple(found)

    def numbers(self, choice: str, name: str, pair: Any, votes: Mapping[str, int]) -> ClassQuorum:
        place = f"choice {choice!r}, class {name!r}"
        if not all(name.partition("/")):
            raise self.fail(f"{place}: an event class is written operation/outcome, as Deq/Empty")
        if not isinstance(pair, list) or len(pair) != 2 or not all(_is_count(part) for part in pair):
            raise self.fail(
                f"{place} has quorums {pair!r}; give [initial, final], two whole numbers, 0 or more"
            )
        if max(pair) > sum(votes.values()):
            raise self.fail(
                f"{place} needs {max(pair)} votes, the replicas have {sum(votes.values())}; lower the quorum"
            )
        return of_votes(name, (pair[0], pair[1]), votes)

    def systems(
        self, choice: str, adt: str, entry: Mapping[str, Any], votes: Mapping[str, int]
    ) -> list[ClassQuorum]:
        initials, finals = entry.get("initials", {}), entry.get("finals", {})
        if not isinstance(initials, dict) or not isinstance(finals, dict) or not (initials or finals):
            raise self.fail(f'choice {choice!r} needs "classes", or "initials" and "finals"')
        read = {name: self.system(choice, name, text, votes) for name, text in initials.items()}
        stored = {name: self.system(choice, name, text, votes) for name, text in finals.items()}
        return [
            ClassQuorum(name, read.get(name, read.get(operation_of(name), NOBODY)), stored.get(name, NOBODY))
            for name in _classes(adt, read, stored)
        ]

    def system(self, choice: str, name: str, text: Any, votes: Mapping[str, int]) -> System:
        place = f"choice {choice!r}, {name!r}"
        if not isinstance(text, str):
            raise self.fail(f"{place} has the quorums {text!r}; write them as text, as r1*r2 + r3")
        if re.fullmatch(EMPTY_PATTERN, text.strip()):
            return NOBODY
        try:
            system = parse_system(text)
        except BadQuorums as error:
            raise self.fail(f"{place}: {error}") from None
        for replica in replicas_of(system):
            if replica not in votes:
                raise self.fail(
                    f"{place} names the unknown replica {replica!r}; known are {', '.join(votes)}"
                )
        return system


def _classes(adt: str, initials: Mapping[str, System], finals: Mapping[str, System]) -> list[EventClass]:
    """All event classes of the operations that are spoken of, in the order of the type, where it is known."""
    named = [*finals, *(name for name in initials if "/" in name)]
    operations = set(map(operation_of, (*initials, *finals)))
    known = known_types().get(adt)
    classes = [name for name in known.depends if operation_of(name) in operations] if known else []
    classes += [name for name in dict.fromkeys(named) if name not in classes]
    spoken = {operation_of(name) for name in classes}
    return classes + [f"{name}/Ok" for name in initials if operation_of(name) not in spoken]


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= TIME_S_MAX
