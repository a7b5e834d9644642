"""Worlds of types of one's own, for tests: the class that a seed draws.

Half of the seeds of `own` draw a small machine at random, whose operations change its state, look at it,
refuse, or fail by a mistake; the others have a list of all that was put, so that every answer tells much of the order. The seeds of `library`
take turns among the bundled types. It must not know what is right.
"""

import random
from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from quorate.adts import library as bundled
from quorate.adts.plain_class import PlainClass
from quorate.simulation.scenarios import burying as worlds
from quorate.simulation.scenarios import own as scenarios
from quorate.simulation.scenarios.scenario import Scenario

CODE: Final = "tests.sim.own:Trail"
WORDS: Final = ("a", "b", "c", "d")
VALUES: Final = (0, 1, 2)
BUNDLED: Final = [
    getattr(bundled, name) for name in bundled.__all__ if not issubclass(getattr(bundled, name), Exception)
]
EACH_ANOTHER: Final = ("item", "entry")
"""Arguments that are another one in each call, so that answers tell whose they are."""


BLIND: Final = ("store", "count")
"""Those of the first kind mean something by their order, those of the second do not."""
KINDS: Final = ("any", "any", "turn", "look", "slip", *BLIND)


class Refused(Exception):
    """How an operation ends that does nothing."""


class Trail:
    """All that was put and not taken again."""

    blind = ("add",)
    observing = ("look",)

    def __init__(self) -> None:
        self.items: list[str] = []
        self.taken = 0

    def put(self, item: str) -> int:
        self.items.append(item)
        return len(self.items)

    def add(self, item: str) -> None:
        self.items.append(item)

    def take(self) -> str:
        if not self.items:
            raise Refused
        self.taken += 1
        return self.items.pop()

    def look(self) -> list[str]:
        return self.items


def own(seed: int) -> Scenario:
    """The scenario of a seed: one object of a type that the seed draws."""
    return _of(seed, type_of(seed))


def library(seed: int) -> Scenario:
    """The scenario of a seed: one object of a bundled type."""
    return _of(seed, PlainClass(BUNDLED[seed % len(BUNDLED)]))


def burying(seed: int) -> Scenario:
    """The scenario of a seed: keys are forgotten beside an object, which is of a type that the seed draws, or a queue."""
    return replace(worlds.burying(seed, type_of(seed), CODE), each_another=EACH_ANOTHER)


def _of(seed: int, found: PlainClass) -> Scenario:
    return replace(scenarios.own(seed, found, CODE), each_another=EACH_ANOTHER)


def type_of(seed: int) -> PlainClass:
    """The type of the objects in the seed's world of `own`."""
    rng = random.Random(f"type {seed}")
    return PlainClass(Trail if rng.random() < 0.5 else _machine(rng))


def _machine(rng: random.Random) -> type:
    """Some states, and operations drawn at random: some commute with all others of their kind, some change nothing."""
    states = rng.randint(2, 6)

    def start(self: Any) -> None:
        self.at = 0

    drawn = {word: rng.choice(KINDS) for word in WORDS[: rng.randint(2, len(WORDS))]}
    operations = {word: _operation(rng, states, kind) for word, kind in drawn.items()}
    named = {
        "blind": tuple(word for word, kind in drawn.items() if kind in BLIND),
        "observing": tuple(word for word, kind in drawn.items() if kind == "look"),
    }
    return type("Machine", (), {"__init__": start, "examples": {"by": VALUES}, **named, **operations})


def _operation(rng: random.Random, states: int, kind: str) -> Callable[..., Any]:
    table = {
        (at, by): (rng.randrange(states), rng.randrange(3), rng.random() < 0.2)
        for at in range(states)
        for by in VALUES
    }

    def store(self: Any, by: int) -> None:
        self.at = (self.at + by) % states if kind == "count" else table[self.at, by][0]

    def operation(self: Any, by: int) -> int:
        after, told, is_refused = table[self.at, by]
        if kind == "turn":
            self.at = (self.at + by) % states
            return 0
        if kind == "look":
            return told + 3 * int(self.at)
        if is_refused and kind == "slip":
            raise KeyError(by)  # A mistake in the code: the call does nothing, and stops no other one.
        if is_refused:
            raise Refused
        self.at = after
        return told

    return store if kind in BLIND else operation
