"""The dependency relation once more, by listing histories and replaying each from its start. Meant to be slow and obvious.

Knows nothing but `outcomes_of`, and shares nothing with the search that it checks.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Any, Final

from quorate.adts.specification import (
    Event,
    EventClass,
    Invocation,
    SerialSpecification,
    outcomes_of,
)
from quorate.adts.types.catalogue import known_types

History = tuple[Event, ...]
Table = Mapping[EventClass, frozenset[EventClass]]


class Narrowed:
    """A serial specification with fewer operations and sample arguments, so that lists of histories stay short."""

    def __init__(
        self, full: SerialSpecification, operations: Iterable[str] | None = None, **arguments: tuple[Any, ...]
    ) -> None:
        self._full: Final = full
        self.name: Final = full.name
        self.results: Final = full.results
        self.arguments: Final = {
            operation: {
                name: arguments.get(name, samples) for name, samples in full.arguments[operation].items()
            }
            for operation in operations or full.arguments
        }
        self.initial: Final = full.initial
        self.step: Final = full.step

    def outcomes(self, state: Any, invocation: Invocation) -> Any:
        """See Nondeterministic."""
        return outcomes_of(self._full, state, invocation)


def short_lists() -> dict[str, tuple[SerialSpecification, int]]:
    """Each type with few arguments, and how long its histories may be to be listed in a second or two."""
    types: dict[str, SerialSpecification] = dict(known_types())
    dictionary, directory = types["dictionary"], types["directory"]
    return {name: (each, 3) for name, each in types.items()} | {
        "queue": (types["queue"], 4),
        "stack": (types["stack"], 4),
        "semiqueue": (types["semiqueue"], 4),
        "bounded-counter": (types["bounded-counter"], 5),
        "register": (Narrowed(types["register"], old=(None, "a"), new=("a", "b")), 3),
        "dictionary": (Narrowed(dictionary, key=("k",), old=(None, "a"), new=(None, "a")), 3),
        "dictionary of two keys": (Narrowed(dictionary, old=(None, "a"), new=("b",), value=("a",)), 2),
        "directory": (Narrowed(directory, key=("k",)), 3),
        "directory of two keys": (Narrowed(directory, value=("a",)), 2),
    }


def states_after(specification: SerialSpecification, history: History) -> list[Any]:
    """All states that the history may lead to; none when it is not legal."""
    states: list[Any] = [specification.initial()]
    for invocation, response in history:
        states = [
            after
            for state in states
            for after, given in outcomes_of(specification, state, invocation)
            if given == response
        ]
    return states


def is_legal(specification: SerialSpecification, history: History) -> bool:
    """Whether a serial object may show this history."""
    return bool(states_after(specification, history))


def next_events(specification: SerialSpecification, history: History) -> dict[Event, None]:
    """Every event that may come after the history, as the keys of a dict: in order. Remembered, else as slow as it looks."""
    hashable: Any = specification
    return _next_events(hashable, history)


@lru_cache(maxsize=100_000)
def _next_events(specification: Any, history: History) -> dict[Event, None]:
    found: dict[Event, None] = {}
    states = states_after(specification, history)
    for operation, samples in specification.arguments.items():
        for args in product(*samples.values()):
            invocation = Invocation(operation, args)
            for state in states:
                for _, response in outcomes_of(specification, state, invocation):
                    found[Event(invocation, response)] = None
    return found


def legal_histories(specification: SerialSpecification, length_max: int) -> Iterator[History]:
    """All of them, the shorter first."""
    histories: list[History] = [()]
    for _ in range(length_max):
        yield from histories
        histories = [(*one, event) for one in histories for event in next_events(specification, one)]
    yield from histories


def instances(
    specification: SerialSpecification, events_max: int
) -> Iterator[tuple[History, Event, History, Event]]:
    """Every (h1, q, h2, p) with h1·h2·p and h1·q·h2 legal and h1·q·h2·p not, h1·q·h2 of at most `events_max` events."""
    for history in legal_histories(specification, events_max - 1):
        may_follow = next_events(specification, history)
        for cut in range(len(history) + 1):
            h1, h2 = history[:cut], history[cut:]
            for q in next_events(specification, h1):
                if not is_legal(specification, (*h1, q, *h2)):
                    continue
                still = next_events(specification, (*h1, q, *h2))
                for p in may_follow:
                    if p not in still:
                        yield h1, q, h2, p


def least_lengths(
    found: Iterator[tuple[History, Event, History, Event]],
) -> dict[tuple[EventClass, EventClass], int]:
    """For each pair of classes, the events before p in its shortest instance."""
    lengths: dict[tuple[EventClass, EventClass], int] = {}
    for h1, q, h2, p in found:
        pair, length = (p.event_class, q.event_class), len(h1) + 1 + len(h2)
        lengths[pair] = min(length, lengths.get(pair, length))
    return lengths


def parts_seen(table: Table, history: History, response_class: EventClass) -> Iterator[History]:
    """Every part of the history that a front end may have seen which answers with `response_class`: all that this class
    depends on, and with each event all earlier ones on which that depends."""
    for chosen in product((True, False), repeat=len(history)):
        part = tuple(event for event, is_in in zip(history, chosen, strict=True) if is_in)
        missed = [event for event, is_in in zip(history, chosen, strict=True) if not is_in]
        if any(event.event_class in table[response_class] for event in missed):
            continue
        if not any(_leaves_a_gap(table, history, chosen, place) for place in range(len(history))):
            yield part


def _leaves_a_gap(table: Table, history: History, chosen: Sequence[bool], place: int) -> bool:
    """Whether the event at `place` was seen, but not an earlier one on which it depends."""
    needed = table[history[place].event_class]
    return chosen[place] and any(
        not is_in and event.event_class in needed
        for event, is_in in zip(history[:place], chosen[:place], strict=True)
    )


def wrong_answer(
    specification: SerialSpecification, table: Table, length_max: int
) -> tuple[History, History, Event] | None:
    """A history, a part of it that may have been seen, and an answer that is right after the part alone; None when quorums
    that follow the table make every answer right, as far as all histories of that length show."""
    for history in legal_histories(specification, length_max):
        right = next_events(specification, history)
        for name in table:
            for part in parts_seen(table, history, name):
                for answer in next_events(specification, part):
                    if answer.event_class == name and answer not in right:
                        return history, part, answer
    return None


def found_dependencies(adt: str) -> frozenset[tuple[EventClass, EventClass]]:
    """The pairs of one type of the catalogue, from its short list of histories."""
    specification, events_max = short_lists()[adt]
    return frozenset(least_lengths(instances(specification, events_max)))
