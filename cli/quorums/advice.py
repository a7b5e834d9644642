"""The advice of a report, read back for `quorate choice set --advice`: for which cluster it holds, and what its figures say of a choice.

Owns the refusals of a report that is of something else. What `figures.json` means, `quorate.spark_reports.model.advice` says.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import typer
from msgspec import Struct, to_builtins

from ...adts.types.catalogue import adt_of
from ...api_specs.cluster import ChoiceRule, ClusterDocument
from ...spark_reports.model.advice import Told, available, read_told, rule_of, standing_rule_of
from ...spark_reports.model.errors import ReportError
from ...spark_reports.model.figures import AdaptiveFigures, RecommendationFigures
from ...spark_reports.model.phrases import EARLIEST_S, NO_BREAK, duration
from ...spark_reports.text import adaptive
from ..failure import Usage
from .input import percent

AdviceOption = Annotated[
    Path | None,
    typer.Option(
        "--advice",
        metavar="OUT",
        help="A report (its folder, or figures.json in it): takes its choice where none is given, and shows its figures.",
    ),
]
StandingOption = Annotated[
    bool,
    typer.Option(
        "--standing",
        help="Take the standing rule of the report: two choices, between which the cluster switches by itself.",
    ),
]
NAME: Final = "figures.json"
SHARES: Final = ("served", "served_fixed", "difference", "low", "high", "certain")
"""What programs are told of a standing rule, by its keys in `figures.json`."""


class Availability(Struct, frozen=True):
    """For event classes of some objects, the share of the report's time with both quorums up: before and after."""

    event_classes: tuple[str, ...]
    before: float
    after: float

    @property
    def told(self) -> str:
        """In words."""
        then, later = percent(self.before), percent(self.after)
        shares = f"{then} -> {later} of that time" if then != later else f"{later} of that time, as before"
        return f"{', '.join(self.event_classes)} available {shares}"


class Advice:
    """A report that speaks of objects of a cluster: its recommended choice, or its standing rule. Raises Usage where it speaks of others, has no such
    rule, or cannot be read."""

    def __init__(
        self, given: Path, cluster: ClusterDocument, objects: str, *, is_standing: bool = False
    ) -> None:
        self.place: Final = given / NAME if given.is_dir() else given
        self._told: Final = self._read()
        self._objects: Final = objects
        self._names: Final = self._names_in(cluster)
        self._votes: Final = cluster.own_votes
        self._recommended: Final = self._own()
        self._standing: Final = self._winning() if is_standing else None

    def _read(self) -> Told:
        try:
            return read_told(self.place.read_bytes())
        except OSError as error:
            words = error.strerror or str(error)
            raise Usage(
                f"--advice {self.place} cannot be read ({words}): name the folder of a report, or its {NAME}"
            ) from None
        except ReportError as error:
            raise Usage(f"--advice {self.place} {error}") from None

    def _own(self) -> RecommendationFigures:
        rows = self._told.recommendations
        if not rows:
            raise Usage(f"--advice {self.place} recommends no choice: its report says why")
        adt = adt_of(self._objects)
        found = next((row for row in rows if row.adt == adt), None)
        if found is None:
            types = ", ".join(row.adt for row in rows)
            raise Usage(
                f"--advice {self.place} is about objects of type {types}, and not about {self._objects}: make a report with --type {adt}"
            )
        return found

    def _winning(self) -> AdaptiveFigures:
        """The standing rule that is to be set."""
        row = next((row for row in self._told.adaptive if row.adt == self._recommended.adt), None)
        if row is not None and row.wins:
            return row
        found = adaptive.cannot_switch(self._recommended) if row is None else adaptive.wins_nothing(row)
        raise Usage(f"--advice {self.place} has no standing rule: leave --standing out. {_plain(found)}")

    def _names_in(self, cluster: ClusterDocument) -> Mapping[str, str]:
        """The member that each replica of the report is: by its id, or by host and port, as Prometheus names it."""
        at = {urlsplit(url).netloc: id for id, url in cluster.urls.items()}
        names = {row.replica: at.get(row.replica, row.replica) for row in self._told.replicas}
        members = cluster.own_votes
        if sorted(names.values()) != sorted(members):
            raise Usage(
                f"--advice {self.place} is about the replicas {', '.join(names)}, and the cluster's members are {', '.join(members)}: make a report of these"
            )
        votes = {names[row.replica]: row.votes for row in self._told.replicas}
        if votes != members:
            now = ",".join(f"{row.replica}={members[names[row.replica]]}" for row in self._told.replicas)
            raise Usage(
                f"--advice {self.place} counts other votes than the cluster: make the report again with --votes {now}"
            )
        return names

    @property
    def rule(self) -> ChoiceRule:
        """What is advised, as a rule for the objects."""
        if self._standing is not None:
            return standing_rule_of(self._objects, self._standing, self._names, self._votes)
        return rule_of(self._objects, self._recommended.quorums)

    @property
    def source(self) -> str:
        """Where the figures come from, and of which time."""
        window, told = self._told.window, self._told.source
        begin = ""
        if window.start_s >= EARLIEST_S:
            begin = f" from {datetime.fromtimestamp(window.start_s, tz=UTC):%Y-%m-%d %H:%M:%S} UTC on"
        length = _plain(duration(window.end_s - window.start_s))
        return f"{self.place}: {length}{begin}, {told.kind} ({', '.join(told.files)})"

    def compared(self, before: ClusterDocument, after: ClusterDocument) -> list[Availability]:
        """What the report has of each event class of the objects; nothing where it lacks some of the sets of replicas that were up together."""
        then = available(self._told, before.choice_of(self._objects), self._names)
        later = self._switched or available(self._told, after.choice_of(self._objects), self._names)
        grouped: dict[tuple[float, float], list[str]] = {}
        for event_class in later if then else ():
            grouped.setdefault((then[event_class], later[event_class]), []).append(event_class)
        return [Availability(tuple(classes), *pair) for pair, classes in grouped.items()]

    @property
    def _switched(self) -> dict[str, float]:
        """What the report has of each event class of its mix under the standing rule; nothing where none is to be set."""
        rows = () if self._standing is None else self._standing.classes
        return {row.event_class: row.adaptive for row in rows}

    @property
    def sentences(self) -> list[str]:
        """What the report says of the standing rule: how much of the mix it would have served instead of how much, and how sure that is."""
        if self._standing is None:
            return []
        return [_plain(each) for each in adaptive.winning(self._standing, self._told.window)]

    @property
    def shares(self) -> dict[str, Any]:
        """The same for programs."""
        told = {} if self._standing is None else to_builtins(self._standing)
        return {"standing": {name: told[name] for name in SHARES}} if told else {}


def _plain(text: str) -> str:
    return text.replace(NO_BREAK, " ")
