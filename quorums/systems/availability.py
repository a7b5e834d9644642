"""How often how many votes are live, exactly, by summing rather than by drawing samples. Pure.

Owns the arithmetic from "which replicas are up, how often" to "how often are so many votes live". It knows votes and
up-sets; it must not know ADTs, clocks, files or Spark. Two models of failure are answered:

* *independent* replicas, each up with a probability of its own (`live_votes_independent`);
* *joint* up-sets, as weighed in a trace, in which replicas may fail together (`live_votes_joint`).

Probabilities may be `float` or `fractions.Fraction`; with `Fraction` the results carry no rounding at all. Nothing is checked
here: models of failure (`failures`) and systems (`systems.votes`) refuse what is no probability and no vote.
"""

from collections.abc import Mapping
from fractions import Fraction
from functools import reduce
from operator import add
from typing import TypeVar

Probability = TypeVar("Probability", float, Fraction)


def live_votes_independent(
    votes: Mapping[str, int], up_probability: Mapping[str, Probability]
) -> dict[int, Probability]:
    """Give the probability of each number of live votes, for replicas that fail independently.

    Derivation, on two replicas `a` (1 vote, up with 0.9) and `b` (2 votes, up with 0.8). Before any replica is looked
    at, 0 votes are live for certain: `{0: 1}`. A replica moves each number of votes up by its own votes with
    probability p and leaves it with 1 - p; the numbers add up where they meet:

    * after `a`: `{0: 0.1, 1: 0.9}`;
    * after `b`: `{0: 0.1*0.2, 1: 0.9*0.2, 2: 0.1*0.8, 3: 0.9*0.8} = {0: 0.02, 1: 0.18, 2: 0.08, 3: 0.72}`.

    With N replicas and V votes in all this takes N*V steps at most, where listing the up-sets would take 2**N.

    Args:
        votes: votes of each replica, not negative; a replica may have none.
        up_probability: for each of them a number from 0 to 1.
    """
    number = type(next(iter(up_probability.values())))
    distribution = {0: number(1)}
    for replica, replica_votes in votes.items():
        distribution = _with_replica(distribution, replica_votes, up_probability[replica])
    return dict(sorted(distribution.items()))


def live_votes_joint(
    up_set_weights: Mapping[frozenset[str], Probability], votes: Mapping[str, int]
) -> dict[int, Probability]:
    """Give the share of each number of live votes, from the up-sets of a trace and their weights.

    A weight is how long the replicas of the set, and no others, were up, in any unit, or how often; the shares are
    the weights divided by their sum.
    """
    total = reduce(add, up_set_weights.values())
    weight_of: dict[int, Probability] = {}
    for up_set, weight in up_set_weights.items():
        live = sum(votes[replica] for replica in up_set)
        weight_of[live] = weight_of[live] + weight if live in weight_of else weight
    return {live: weight_of[live] / total for live in sorted(weight_of)}


def _with_replica(
    distribution: Mapping[int, Probability], replica_votes: int, up: Probability
) -> dict[int, Probability]:
    """Take one more replica into a distribution of live votes."""
    result: dict[int, Probability] = {}
    for live, probability in distribution.items():
        for live_after, factor in ((live, 1 - up), (live + replica_votes, up)):
            share = probability * factor
            result[live_after] = result[live_after] + share if live_after in result else share
    return result
