"""What a planted mistake is: the rule that it drops, how it gets in and out again, where and how soon it is caught.

Owns the patching and the hunt over seeds. It must not know any single mistake.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from quorate.api_specs.cluster import ChoiceRule, ClockSettings, ReplicaInfo, checked
from quorate.quorums.systems.tally import Quorum
from quorate.simulation.run import run
from quorate.simulation.scenarios.scenario import Scenario, scenario
from quorate.simulation.violation import Violation
from quorate.simulation.world.world import Stuck
from tests.sim.run import WORLDS

Planting = AbstractContextManager[None]

CHECKS: Final = {
    "linearizable": "is not linearizable",
    "taken twice": "taken twice",
    "invented": "nobody enqueued",
    "lost": ": lost [",
    "size": ": not in ",
    "empty": "it was empty, though an item waited",
    "promises rise": "fell from",
    "decided": "counts as decided",
    "complete": "counts as complete",
    "one summary a ballot": "two summaries under the ballot",
    "fences hold": "was acknowledged below the fence",
    "one entry a timestamp": "two entries under the timestamp",
    "one use a timestamp": "was used twice: for",
    "promises bind": "was accepted below the promise",
    "answers": "on a healthy cluster",
    "well formed": "was sent what no replica takes",
    "accepted once": "accepted twice",
    "right course": "took no right course",
    "not too early": "delivered too early",
    "lease order": "delivered in another order",
    "leases bounded": "keeps more leases",
    "same answer": ", and its repeat with ",
    "level": "not caught up with",
    "ended by a decision": "what a decision had ended",
    "nothing below the horizon": "was installed below the horizon",
    "bounded": "more objects than it may",
    "shares of keys": "more keys of a front end than are left",
    "kept in a crash": "forgotten in a crash",
    "given": ": nobody gave ",
    "all see the same": "once all is quiet ",
    "done is known": "though a final quorum holds it",
    "without faults": "without any fault there were outcomes",
}
"""Each check by its short name, and words of its Violation that no other has."""


class Hint(Struct, frozen=True):
    """What of a seed's scenario is fixed, so that a mistake shows sooner. What is not named stays as the seed has it.

    With `rules` (quorum choices) there are `replicas` of one vote each.
    """

    objects: tuple[str, ...] = ()
    rules: tuple[ChoiceRule, ...] = ()
    replicas: int = 3
    clock: ClockSettings | None = None
    faults: Mapping[str, float] = {}
    fields: Mapping[str, Any] = {}

    def apply(self, what: Scenario) -> Scenario:
        """The scenario, as far as the hint wants it otherwise."""
        document = what.document
        if self.rules:
            ids = (f"r{number}" for number in range(1, self.replicas + 1))
            replicas = tuple(ReplicaInfo(name, f"http://{name}:1") for name in ids)
            document = replace(document, replicas=replicas, choices=self.rules)
        return replace(
            what,
            document=checked(replace(document, clock=self.clock or document.clock)),
            objects=self.objects or what.objects,
            faults=replace(what.faults, **self.faults),
            **self.fields,
        )


class Plant(Struct, frozen=True):
    """One mistake. `plant` makes it, and its docstring says what it is; `origin` is the item of DESIGN section 6 that tells
    of it, or "own".

    One of `checks` (names in `CHECKS`) must catch it: within `seeds` seeds from `first` on, in worlds as `hint` has them; or
    in `schedule`, which is played by hand.
    """

    name: str
    plant: Callable[[], Planting]
    checks: tuple[str, ...]
    seeds: int = 0
    hint: Hint = Hint()
    schedule: Callable[[], None] | None = None
    origin: str = "own"
    worlds: str = ""
    """Of which kind (`tests.sim.run.WORLDS`); empty for those of `scenario`."""
    first: int = 1
    """Shortly before a seed that catches it, where that takes long from 1 on."""

    @property
    def looked_at(self) -> range:
        """The seeds within which it must be caught."""
        return range(self.first, self.first + self.seeds)

    @property
    def mistake(self) -> str:
        """What is done wrong, in a sentence."""
        return " ".join((self.plant.__doc__ or "").split())

    def scenario(self, seed: int) -> Scenario:
        """The scenario in which the mistake is looked for."""
        return self.hint.apply(WORLDS[self.worlds](seed) if self.worlds else scenario(seed))

    def run(self, seed: int, *, planted: bool, trace: Callable[[str], None] | None = None) -> None:
        """Run one seed, with the mistake or as shipped; Violation or Stuck where a checker notices something."""
        with self.plant() if planted else nullcontext():
            run(self.scenario(seed), trace)

    def play(self, *, planted: bool) -> None:
        """Play the schedule, with the mistake or as shipped; Violation where a checker notices something."""
        assert self.schedule is not None
        with self.plant() if planted else nullcontext():
            self.schedule()


class Caught(Struct, frozen=True):
    """Which check noticed the mistake, at which seed (0: in the schedule), and what it said."""

    seed: int
    check: str
    said: str


def hunt(plant: Plant, seeds: range) -> Caught | None:
    """Run seeds with the mistake until one is caught."""
    for seed in seeds:
        try:
            plant.run(seed, planted=True)
        except (Violation, Stuck) as found:
            return Caught(seed, check_of(found), str(found))
    return None


def check_of(found: Exception) -> str:
    """The name of the check that raised it."""
    said = str(found)
    return next((name for name, words in CHECKS.items() if words in said), f"another check: {said[:80]}")


def table(plants: Iterable[Plant]) -> str:
    """The mistakes as a table of Markdown."""
    lines = [
        "| mistake | from | what is done wrong | caught by | within |",
        "| --- | --- | --- | --- | --- |",
    ]
    for plant in plants:
        within = "its schedule" if plant.schedule else f"{plant.seeds} seeds"
        within += f" from {plant.first}" if plant.first > 1 else ""
        within += f", {plant.worlds}" if plant.worlds else ""
        lines.append(
            f"| `{plant.name}` | {plant.origin} | {plant.mistake} | {', '.join(plant.checks)} | {within} |"
        )
    return "\n".join(lines)


@contextmanager
def patched(owner: Any, **replacements: Any) -> Iterator[None]:
    """The attributes of a module or class are these for a while."""
    before = {name: vars(owner)[name] for name in replacements}
    for name, new in replacements.items():
        setattr(owner, name, new)
    try:
        yield
    finally:
        for name, old in before.items():
            setattr(owner, name, old)


class AnyOne:
    """A quorum that should be `right`, and is met by any one replica."""

    def __init__(self, right: Quorum) -> None:
        self._right = right

    def is_met_by(self, replicas: Collection[str]) -> bool:
        """See Quorum."""
        return bool(replicas) or self._right.is_met_by(())


class OneTwice:
    """A quorum that should be `right`, and counts one of the replicas twice."""

    def __init__(self, right: Quorum) -> None:
        self._right = right

    def is_met_by(self, replicas: Collection[str]) -> bool:
        """See Quorum."""
        return bool(replicas) and any(self._right.is_met_by([*replicas, again]) for again in replicas)
