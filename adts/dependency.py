"""The dependency relation of a data type, computed from its serial specification by bounded search. Pure.

Owns the definition and the search. Must not know replicas or quorums: what follows for these is the affair of
`quorate.quorums`.

**Definition** (DESIGN section 8; Herlihy 1986). Event class P depends on event class Q when there are events p of P and
q of Q and histories h1, h2 such that h1·h2·p and h1·q·h2 are legal and h1·q·h2·p is not: somebody who has not seen q
would answer p, and be wrong. (h1, q, h2, p) is the *witness*. Example: [Deq(); Ok(a)] is right after [Enq(a); Ok()]
alone, and wrong when [Enq(b); Ok()] came before that; so Deq/Ok depends on Enq/Ok.

**Why these constraints are enough.** Let h be legal, and let g be what a front end saw of it: a part of h that holds
every event on which p depends and, with each of its events, every one on which that depends. If g·p is legal, so is
h·p. For put the events q that are missing into g one after the other, the oldest first. Before each step the history is
h1·h2, where h1·q begins h; the events of h2 are all in g, so none of them depends on q; therefore (by induction along
h2) h1·q·h2 is legal; and as p does not depend on q either, p stays legal. After the last step the history is h. Nothing
here asks for one right response only: the argument holds for types that may answer in several ways. A test checks
it on all short histories.

**What it is not.** A dependency relation need not be unique: for a type there may be other relations with the same
property that neither contain this one nor are contained in it. For a queue whose Deq waits for an item, one has Enq
depend on Enq in place of Deq on Enq (a test shows it). This one lets blind operations be blind.

**What a bounded search guarantees.** Each pair found is real; its witness proves it, and none is shorter over the sample
arguments. A pair that is not found has no witness with at most `events_max` events before p over these arguments; if
the relation is `complete`, none of any length over them. Other arguments are not looked at. Conditions ("the same key")
are true of all that was found, so that they hold as far as the search goes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from .conditions import Condition, Instances, Pair, conditions_of, splitting_operations
from .legality import START, Legality
from .specification import Event, EventClass, Kind, SerialSpecification, operation_of

EVENTS_MAX: Final = 8
"""How long histories are tried when nothing else is said: no pair of a shipped type needs more than 3."""
NODES_MAX: Final = 200_000
"""A few seconds; a shipped type needs less than a fiftieth of it."""


class TooLarge(ValueError):
    """A search that would look at more pairs of positions than allowed."""


class Bound(NamedTuple):
    """How far to search: events before p (h1, q and h2 together), and pairs of positions to look at in all. Where `events_min` is
    given, a search that has gone so far ends at `nodes_max` with what it found."""

    events_max: int = EVENTS_MAX
    nodes_max: int = NODES_MAX
    events_min: int | None = None


DEFAULT: Final = Bound()


class Witness(NamedTuple):
    """Shows that p depends on q: h1·h2·p and h1·q·h2 are legal, h1·q·h2·p is not.

    Printed on one line, with `+` at the event that was inserted and `!` at the one that it makes illegal:
    `[Enq(a); Ok()] +[Deq(); Ok(a)] ![Deq(); Ok(a)]`.
    """

    h1: tuple[Event, ...]
    q: Event
    h2: tuple[Event, ...]
    p: Event

    def __str__(self) -> str:
        return " ".join([*map(str, self.h1), f"+{self.q}", *map(str, self.h2), f"!{self.p}"])

    @property
    def anomaly(self) -> str:
        """The history that whoever answers p without having seen q brings about, in the order of real time."""
        return " ".join(map(str, (*self.h1, self.q, *self.h2, self.p)))


@dataclass(frozen=True)
class Relation:
    """What a search found.

    * `pairs`: a shortest witness for each pair of event classes of which the first depends on the second.
    * `conditions`: what holds between the arguments and results of all instances of a pair, as far as the search went;
      nothing where they do not matter.
    * `classes`, `changes`: the event classes that occur, and those of them that change the state.
    * `split_by`, `split`: whether objects fall apart into one for each value of an argument (a dictionary's keys, a set's
      elements): the argument's name, and the operations that concern one part only.
    * `complete`: whether longer histories over the same arguments can add nothing.
    """

    pairs: Mapping[Pair, Witness]
    conditions: Mapping[Pair, tuple[Condition, ...]]
    classes: tuple[EventClass, ...]
    changes: frozenset[EventClass]
    split_by: str | None
    split: tuple[str, ...]
    events_max: int
    complete: bool

    @property
    def table(self) -> Mapping[EventClass, frozenset[EventClass]]:
        """For each event class those that it depends on: the form in which types declare it."""
        return {name: frozenset(q for p, q in self.pairs if p == name) for name in self.classes}

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """How each operation runs: blind, observe or decide."""
        return {
            operation: self._kind(operation) for operation in dict.fromkeys(map(operation_of, self.classes))
        }

    def _kind(self, operation: str) -> Kind:
        if not any(operation_of(name) == operation for name in self.changes):
            return Kind.OBSERVE
        depends = any(operation_of(p) == operation for p, _ in self.pairs)
        return Kind.DECIDE if depends else Kind.BLIND


def dependencies(specification: SerialSpecification, bound: Bound = DEFAULT) -> Relation:
    """The dependency relation of a data type, over the sample arguments that it declares.

    Walks pairs of positions, (after h1·h2, after h1·q·h2), breadth first: for each q every pair once, whatever the number
    of histories that lead there, and none whose two positions are equal. With E events over S positions within the
    bound this takes O(E²·S²) steps at most, where listing histories would take E to the power of `events_max`.

    Raises TooLarge beyond `bound.nodes_max` pairs, unless it has gone as far as `bound.events_min`; and ValueError for a bound below 1.
    """
    if bound.events_max < 1:
        raise ValueError(
            f"events_max is {bound.events_max}: a history needs at least the event q, so at least 1"
        )
    return _Search(specification, bound).run()


class _Node(NamedTuple):
    """The inserted event, and the positions without and with it."""

    q: int
    without: int
    with_q: int


class _Search:
    """One search; `run` may be called once."""

    def __init__(self, specification: SerialSpecification, bound: Bound) -> None:
        self._specification = specification
        self._bound = bound
        self._legality = Legality(specification)
        # Each position and each node with the one before it and the event between: the way back to the start.
        self._positions: dict[int, tuple[int, int] | None] = {START: None}
        self._nodes: dict[_Node, tuple[_Node, int] | None] = {}
        self._pairs: dict[Pair, Witness] = {}
        self._instances: dict[Pair, Instances] = {}
        self._seen_events: dict[int, None] = {}
        self._changes: set[EventClass] = set()

    def run(self) -> Relation:
        positions, nodes = [START], list[_Node]()
        for events in range(self._bound.events_max):
            try:
                nodes = [*self._inserted(positions), *self._longer(nodes)]
            except TooLarge:
                if self._bound.events_min is None or events < self._bound.events_min:
                    raise
                return self._relation(events, complete=False)
            positions = list(self._next_positions(positions))
            for node in nodes:
                self._judge(node)
        complete = not positions and next(self._longer(nodes), None) is None
        return self._relation(self._bound.events_max, complete=complete)

    def _inserted(self, positions: list[int]) -> Iterator[_Node]:
        """The nodes with an empty h2, after every h1 that leads to `positions`."""
        for position in positions:
            for event, after in self._legality.moves(position).items():
                self._seen_events.setdefault(event)
                if after == position:
                    continue  # Without effect, q cannot make anything illegal.
                self._changes.add(self._class_of(event))
                yield from self._new(_Node(event, position, after), None)

    def _longer(self, nodes: list[_Node]) -> Iterator[_Node]:
        """The nodes one event of h2 further."""
        for node in nodes:
            with_q = self._legality.moves(node.with_q)
            for event, after in self._legality.moves(node.without).items():
                if event in with_q and with_q[event] != after:
                    yield from self._new(_Node(node.q, after, with_q[event]), (node, event))

    def _new(self, node: _Node, origin: tuple[_Node, int] | None) -> Iterator[_Node]:
        if node in self._nodes:
            return
        if len(self._nodes) >= self._bound.nodes_max:
            raise TooLarge(
                f"the search for dependencies of {self._specification.name!r} looks at more than "
                f"{self._bound.nodes_max} pairs of positions: declare fewer sample arguments, or search "
                f"histories shorter than {self._bound.events_max} events"
            )
        self._nodes[node] = origin
        yield node

    def _next_positions(self, positions: list[int]) -> Iterator[int]:
        for position in positions:
            for event, after in self._legality.moves(position).items():
                if after not in self._positions:
                    self._positions[after] = (position, event)
                    yield after

    def _judge(self, node: _Node) -> None:
        """Note every p that is legal without q and not with it."""
        still_legal = self._legality.moves(node.with_q)
        for event in self._legality.moves(node.without):
            if event in still_legal:
                continue
            pair = self._class_of(event), self._class_of(node.q)
            if pair not in self._pairs:
                self._pairs[pair] = self._witness(node, event)
            instance = self._legality.events[event], self._legality.events[node.q]
            self._instances.setdefault(pair, {}).setdefault(instance)

    def _witness(self, node: _Node, p: int) -> Witness:
        h2: list[int] = []
        first, origin = node, self._nodes[node]
        while origin is not None:
            first, event = origin
            h2.append(event)
            origin = self._nodes[first]
        h1: list[int] = []
        before = self._positions[first.without]
        while before is not None:
            h1.append(before[1])
            before = self._positions[before[0]]
        events = self._legality.events
        return Witness(
            tuple(events[each] for each in reversed(h1)),
            events[node.q],
            tuple(events[each] for each in reversed(h2)),
            events[p],
        )

    def _relation(self, events: int, *, complete: bool) -> Relation:
        specification = self._specification
        seen = [self._legality.events[event] for event in self._seen_events]
        conditions = {pair: conditions_of(specification, self._instances[pair], seen) for pair in self._pairs}
        operations = list(specification.arguments)
        classes = sorted(  # As the operations are listed; normal outcomes first.
            dict.fromkeys(event.event_class for event in seen),
            key=lambda name: (operations.index(operation_of(name)), not name.endswith("/Ok")),
        )
        split_by, split = splitting_operations(specification, conditions, self._changes)
        order = {name: number for number, name in enumerate(classes)}
        return Relation(
            pairs={
                pair: self._pairs[pair]
                for pair in sorted(self._pairs, key=lambda pair: (order[pair[0]], order[pair[1]]))
            },
            conditions=conditions,
            classes=tuple(classes),
            changes=frozenset(self._changes),
            split_by=split_by,
            split=split,
            events_max=events,
            complete=complete,
        )

    def _class_of(self, event: int) -> EventClass:
        return self._legality.events[event].event_class
