"""docs/reference/types.md, made from the catalogue and the search: `python -m tests.unit.adts.types_page > docs/reference/types.md`."""

from collections.abc import Iterator, Mapping

from quorate.adts.dependency import Relation, dependencies
from quorate.adts.specification import Specification, operation_of
from quorate.adts.types.catalogue import SPECIFICATIONS, known_types

PLAIN_TYPE = '''class NotThere(Exception):
    """The item is not in the cart."""


class Cart:
    """What a customer wants to buy: how many of each item."""

    examples = {"count": (1, 2)}

    def __init__(self) -> None:
        self.items: dict[str, int] = {}

    def add(self, item: str, count: int = 1) -> None:
        self.items[item] = self.items.get(item, 0) + count

    def remove(self, item: str) -> None:
        if item not in self.items:
            raise NotThere
        del self.items[item]

    def content(self) -> dict[str, int]:
        return self.items
'''

OWN_TYPE = '''from quorate.adts.specification import Response


class Seats:
    """The seats of a coach. State: the set of those that are booked."""

    name = "seats"
    # Each operation's arguments, with a few values for the search to try; two different ones of a kind are enough
    # where an operation only compares them.
    arguments = {"Book": {"seat": ("1a", "1b")}, "Free": {"seat": ("1a", "1b")}, "Count": {}}
    results = {"Count/Ok": ("booked",)}

    def initial(self):
        return frozenset()

    def step(self, booked, invocation):
        match invocation.operation:
            case "Book" if invocation.args[0] in booked:
                return booked, Response("Taken")
            case "Book":
                return booked.union(invocation.args), Response("Ok")
            case "Free":
                return booked.difference(invocation.args), Response("Ok")
        return booked, Response("Ok", (len(booked),))
'''

INTRODUCTION = """# Data types and their dependencies

This page is made from the specifications in `adts/` and from the search in `adts/dependency.py`, and a test compares it
with them. `quorate quorums types` and `quorate quorums depends TYPE` show the same.

## How to read it

An *event class* is an operation and how it ended, as `Deq/Empty`. Class P **depends on** class Q when a front end that
has not seen an event q of Q may give an answer p of P that is wrong: there are histories h1 and h2 such that h1·h2·p and
h1·q·h2 are legal, and h1·q·h2·p is not (Herlihy 1986). A *witness* shows such histories on one line, `+` before q and
`!` before p:

<!-- drawn: one line of what `quorate quorums depends queue` prints -->
```text
[Enq(a); Ok()] +[Deq(); Ok(a)] ![Deq(); Ok(a)]
```

A front end that has not seen that a was taken would take it again. So Deq/Ok depends on Deq/Ok, and every initial quorum of Deq must
meet every final quorum of Deq/Ok. What depends on nothing needs no initial quorum. All outcomes of an operation share
the initial quorum, because the outcome is not known before reading: it must meet what *any* of them depends on.

*If* says what holds in every instance that was found; names with a prime belong to the event depended on. `key = key'`:
only events of the same key matter. Where this is so for everything that an operation depends on and changes, each key
is an object of its own.

A pair is certain: its witness proves it, and none is shorter. That there is no other pair is certain where the page says
"none of any length", over the arguments that were tried; else it holds for histories of up to {events_max} events.

Types marked *offered* are what the service keeps; the others are for planning. `adts/dependency.py` says why quorums that
follow such a table make every answer right, and that other relations may do so too; `tests/unit/adts/test_dependency.py`
checks on all short histories that these do, and that no pair can be left out.

A queue's [leases](../how-to/leases.md) are not in its table. An acquire takes from the front as a Deq does, so it depends on what Deq
depends on; it, and whatever ends a lease, also depends on all of their kind before. So they run as Deq does, with its initial
and final quorums, which meet their like. What one item may go through under leases is specified in
`simulation/judging/lease_checkers.py` (`Item`), which the simulation holds histories against.

"""

END = """## A type of your own

Write a class into a file. Its attributes are the state of an object, its methods are the operations:

<!-- run: file cart.py -->
```python
{plain_type}```

<!-- run: sh -->
```sh
quorate types check cart.py:Cart
```

This runs every operation from many states in two processes, which must agree, and
[on simulated clusters](../how-to/own-types.md#2-check-it). Then it tells what depends on what, with the shortest
example of each pair, and all minimal quorum choices with their availability: add needs no initial quorum, so that one replica of three is
enough for it; remove and content then need all three, or everyone needs two. The same name, `cart.py:Cart`, goes wherever a command takes a
type: `quorate quorums choices`, `availability`, `plan` and `depends`.

- The attributes are JSON values: texts, numbers, booleans, None, lists, and dictionaries whose keys are texts. Keys come back in order.
- Arguments have hints, or values to try in `examples`. Two values are enough where an operation only compares them.
- `blind`, where the class has it, names operations whose calls are [stored without a look](../how-to/own-types.md#store-without-a-look).
- `observing`, where the class has it, names operations that only look. With [eventual
  consistency](../how-to/eventual-consistency.md) any one replica answers them.
- A method that returns ends `Ok`. One that raises an exception of your own ends with its name, and has changed nothing.
- What a method does follows from attributes and arguments alone. Times, chances and new names are arguments.

[Served on replicas](../how-to/own-types.md), calls of operations that the class calls blind are stored, and all others are decided, for replicas
keep its objects without its code: the kinds and choices here are for planning.

### With outcomes of your own choosing

A serial specification says more: any hashable states, several outcomes with results, and several right answers. Name it in the same way:

<!-- run: file seats.py -->
```python
{own_type}```

<!-- run: sh -->
```sh
quorate quorums depends seats.py:Seats
```

It finds that Book/Ok depends on Book/Ok of the same seat, Book/Taken on Free/Ok,
and that each seat is an object of its own. An object that may answer in several ways has a method `outcomes(state,
invocation)` that lists them all, as `adts/types/semiqueue.py` does; `step` then gives one of them. States must be hashable and
must not be changed. The file is run: name only files that you trust.

## As JSON

`quorate quorums types --json` answers `{{"types": […]}}`; of each:

| key | meaning |
| --- | --- |
| `type` | its name |
| `offered` | whether the service keeps objects of it |
| `operations` | of each: `operation`, `arguments` (names), `kind` (`blind`, `observe` or `decide`), `classes` (its outcomes) |

`quorate quorums depends TYPE --json` answers:

| key | meaning |
| --- | --- |
| `type`, `kinds` | its name; the kind of each operation |
| `classes`, `changes` | the event classes that occur; those that change the state |
| `pairs` | of each: `class` depends on `depends_on`; `conditions`; `witness` with `before` (h1), `inserted` (q), `between` (h2) and `illegal` (p) |
| `split_by`, `split` | the argument by which objects fall apart, or null; the operations that concern one part |
| `anomalies` | with `--consistency eventual`: what answers may miss then, each with `class`, `misses` and `history` |
| `events_max`, `complete` | how long histories were searched; whether longer ones can add nothing |
| `declared` | whether this is the table that the type declares; null for a type of your own |
"""


def section(specification: Specification, relation: Relation) -> Iterator[str]:
    """The lines of one type."""
    offered = " (offered)" if specification.name in SPECIFICATIONS else ""
    yield f"## {specification.name}{offered}"
    yield ""
    yield "| operation | runs | outcomes |"
    yield "| --- | --- | --- |"
    for operation, kind in specification.kinds.items():
        names = ", ".join(specification.arguments[operation])
        outcomes = [name for name in relation.classes if operation_of(name) == operation]
        shown = ", ".join(_outcome(specification.results, name) for name in outcomes)
        yield f"| `{operation}({names})` | {kind.value} | {shown} |"
    yield ""
    yield "| event class | depends on | if | witness |"
    yield "| --- | --- | --- | --- |"
    for name in relation.classes:
        pairs = [(q, witness) for (p, q), witness in relation.pairs.items() if p == name]
        if not pairs:
            yield f"| {name} | nothing | | |"
        for q, witness in pairs:
            conditions = ", ".join(f"{condition}" for condition in relation.conditions[name, q])
            yield f"| {name} | {q} | {conditions} | `{witness}` |"
    yield ""
    if relation.split_by is not None:
        yield f"Each {relation.split_by} is an object of its own for {', '.join(relation.split)}."
    if relation.complete:
        yield "No further pair has a witness: none of any length."
    else:
        yield f"No further pair has a witness of up to {relation.events_max} events before the illegal one."
    yield ""


def _outcome(results: Mapping[str, tuple[str, ...]], name: str) -> str:
    term = name.partition("/")[2]
    return f"`{term}({', '.join(results.get(name, ()))})`"


def rendered() -> str:
    """The whole page."""
    relations = {name: dependencies(each) for name, each in known_types().items()}
    events_max = max(relation.events_max for relation in relations.values())
    lines = [line for name, each in known_types().items() for line in section(each, relations[name])]
    return (
        INTRODUCTION.format(events_max=events_max)
        + "\n".join(lines)
        + "\n"
        + END.format(plain_type=PLAIN_TYPE, own_type=OWN_TYPE)
    )


if __name__ == "__main__":
    print(rendered(), end="")
