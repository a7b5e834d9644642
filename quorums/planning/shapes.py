"""All quorum systems in which each replica stands once, one of those that differ by exchanging replicas that are alike. Pure.

Owns their enumeration, simple ones first: as the search of quoracle (Whittaker, Charapko, Hellerstein, Howard and Stoica,
"Read-Write Quorum Systems Made Practical", PaPoC 2021) tries them, with *choose* of any parts between *and* and *or*. There are
53 of 5 replicas that are alike, and 11,752 of 9; of 5 replicas that all differ there are 885.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ..systems.systems import Replica, System, choose


class Shape(NamedTuple):
    """A system without names: how many replicas of each kind it has, of how many of its parts it needs, and these; of a single replica
    there are no parts."""

    size: int
    kinds: tuple[int, ...]
    needed: int
    parts: tuple["Shape", ...]


def systems_over(kinds: Sequence[tuple[str, ...]]) -> Iterator[System]:
    """All systems over these replicas, those of one kind together: two that differ by exchanging replicas of a kind are one."""
    for shape in _shapes(tuple(len(each) for each in kinds)):
        yield _named(shape, [iter(each) for each in kinds])


def _named(shape: Shape, names: Sequence[Iterator[str]]) -> System:
    if not shape.parts:
        return Replica(next(names[shape.kinds.index(1)]))
    return choose(shape.needed, [_named(part, names) for part in shape.parts])


def _shapes(kinds: tuple[int, ...]) -> Iterator[Shape]:
    """Those of so many replicas of each kind."""
    size = sum(kinds)
    if size == 1:
        yield Shape(1, kinds, 1, ())
        return
    for parts in _parts(kinds, _LEAST):
        for needed in range(1, len(parts) + 1):
            if not any(_is_same_gate(part, needed, len(parts)) for part in parts):
                yield Shape(size, kinds, needed, parts)


_LEAST: Final = Shape(0, (), 0, ())


def _is_same_gate(part: Shape, needed: int, width: int) -> bool:
    """Whether the part is an *or* within an *or*, or an *and* within an *and*: without its brackets it is another shape."""
    inner = len(part.parts)
    return inner > 0 and ((needed == part.needed == 1) or (needed == width and part.needed == inner))


def _parts(kinds: tuple[int, ...], least: Shape) -> Iterator[tuple[Shape, ...]]:
    """Two parts or more that have these replicas together, in order, none before `least`."""
    size = sum(kinds)
    for taken in _smaller(kinds, least.size):
        rest = tuple(all_ - some for all_, some in zip(kinds, taken, strict=True))
        if sum(taken) > size - sum(taken):
            continue  # The others, which come after it, would be smaller.
        for first in _shapes(taken):
            if first >= least:
                yield from ((first, *others) for others in _parts(rest, first))
                yield from ((first, other) for other in _shapes(rest) if other >= first)


def _smaller(kinds: tuple[int, ...], size_min: int) -> Iterator[tuple[int, ...]]:
    """All that some of these replicas can be, but all of them, fewer first."""
    found: list[tuple[int, ...]] = [()]
    for count in kinds:
        found = [(*each, some) for each in found for some in range(count + 1)]
    yield from sorted(
        (each for each in found if max(size_min, 1) <= sum(each) < sum(kinds)),
        key=lambda each: (sum(each), each),
    )
