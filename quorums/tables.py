"""Quorum systems as truth tables: one bit for each set of replicas, kept in one large integer. Pure.

Owns what needs every set: for systems in which a replica stands twice, so that their parts are not independent, and for
whether two systems meet. Bit m of a table of n replicas tells of the set {order[i]: bit i of m}. All 2**20 sets are
128 KiB, and *and*, *or*, *not* of two tables are single operations of the machine's big integers.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from quorate.quorums.availability import Probability
from quorate.quorums.systems import BadQuorums, Replica, System, Threshold, choose, dual, replicas_of

TABLE_REPLICAS_MAX: Final = 20


def check_size(system: System) -> None:
    """BadQuorums when the system is too large to be listed."""
    count = len(replicas_of(system))
    if count > TABLE_REPLICAS_MAX:
        raise BadQuorums(
            f"a system in which a replica stands twice is computed up to {TABLE_REPLICAS_MAX} replicas, and this one has "
            f"{count}; use votes, or write it so that each replica stands once"
        )


@lru_cache(maxsize=64)
def truth_table(system: System, order: tuple[str, ...]) -> int:
    """The table of `system` over the replicas in `order`, which names at least all of the system's.

    Example: `a + b` over (a, b): the sets {}, {a}, {b}, {a, b} give 0, 1, 1, 1, read from the lowest bit 0b1110.
    """
    if isinstance(system, Replica):
        return _replica_table(order.index(system.name), len(order))
    return _threshold_table(system, order)


def _replica_table(index: int, count: int) -> int:
    """Bit m is set where m has bit `index`: 2**index zeros, then as many ones, and again."""
    half = 1 << index
    table, width = ((1 << half) - 1) << half, 2 * half
    while width < 1 << count:
        table |= table << width
        width *= 2
    return table


def _threshold_table(system: Threshold, order: tuple[str, ...]) -> int:
    """Sort all sets by the weight that they satisfy, part by part; weights above `needed` count as `needed`."""
    everything = (1 << (1 << len(order))) - 1
    of_weight = {0: everything}
    for weight, part in system.parts:
        satisfied = truth_table(part, order)
        after: dict[int, int] = {}
        for before, sets in of_weight.items():
            more = min(before + weight, system.needed)
            after[more] = after.get(more, 0) | sets & satisfied
            after[before] = after.get(before, 0) | sets & ~satisfied
        of_weight = after
    return of_weight.get(system.needed, 0)


def minimal_sets(system: System) -> Iterator[frozenset[str]]:
    """The minimal quorums: sets in the table from which no replica can be taken away. Smallest first is not promised.

    A set with bit i set is not minimal if the table also holds the set without i, which stands 2**i places lower.
    """
    check_size(system)
    order = replicas_of(system)
    table = truth_table(system, order)
    larger = 0
    for index in range(len(order)):
        larger |= (table & ~_replica_table(index, len(order))) << (1 << index)
    return (_names(mask, order) for mask in _set_bits(table & ~larger))


def least_size(system: System) -> int:
    """How many replicas the smallest quorum has; all where there is no quorum.

    Halving: there is a quorum of at most k replicas where the table has a set that `choose(k + 1; all)` has not.
    """
    check_size(system)
    order = replicas_of(system)
    table = truth_table(system, order)
    least, most = 0, len(order)
    while least < most:
        middle = (least + most) // 2
        if table & ~truth_table(choose(middle + 1, order), order):
            most = middle
        else:
            least = middle + 1
    return least


def disjoint_quorums(one: System, other: System) -> tuple[frozenset[str], frozenset[str]] | None:
    """A quorum of `one` and a quorum of `other` that share no replica, each minimal; None when all meet.

    They exist where `one` has a quorum that is no quorum of the dual of `other`.
    """
    order = tuple(dict.fromkeys(replicas_of(one) + replicas_of(other)))
    if len(order) > TABLE_REPLICAS_MAX:
        check_size(Threshold(0, ((1, one), (1, other))))
    missing = truth_table(one, order) & ~truth_table(dual(other), order)
    if not missing:
        return None
    first = _names((missing & -missing).bit_length() - 1, order)
    return shrunk(one, first, order), shrunk(other, frozenset(order) - first, order)


def shrunk(system: System, quorum: frozenset[str], order: Sequence[str]) -> frozenset[str]:
    """A minimal quorum within `quorum`."""
    table = truth_table(system, tuple(order))
    mask = sum(1 << index for index, name in enumerate(order) if name in quorum)
    for index in range(len(order)):
        if mask >> index & 1 and table >> (mask ^ 1 << index) & 1:
            mask ^= 1 << index
    return _names(mask, order)


def table_probability(system: System, up_probability: Mapping[str, Probability]) -> Probability:
    """The probability that the replicas that are up hold a quorum, when they fail independently.

    Derivation: condition on the last replica. The upper half of the table holds the sets with it, the lower those without:
    P(table) = p * P(upper) + (1 - p) * P(lower), down to tables of zeros or ones only. Equal halves are computed once, as
    in a binary decision diagram (Bryant 1986).
    """
    check_size(system)
    order = replicas_of(system)
    number = type(next(iter(up_probability.values())))
    known: dict[tuple[int, int], Probability] = {}

    def of(table: int, count: int) -> Probability:
        if table == 0:
            return number(0)
        if table == (1 << (1 << count)) - 1:
            return number(1)
        if (found := known.get((table, count))) is not None:
            return found
        half = 1 << (count - 1)
        up = up_probability[order[count - 1]]
        result = up * of(table >> half, count - 1) + (1 - up) * of(table & ((1 << half) - 1), count - 1)
        known[table, count] = result
        return result

    return of(truth_table(system, order), len(order))


def _set_bits(table: int) -> Iterator[int]:
    for place, byte in enumerate(table.to_bytes((table.bit_length() + 7) // 8, "little")):
        if byte:
            yield from (8 * place + bit for bit in range(8) if byte >> bit & 1)


def _names(mask: int, order: Sequence[str]) -> frozenset[str]:
    return frozenset(name for index, name in enumerate(order) if mask >> index & 1)
