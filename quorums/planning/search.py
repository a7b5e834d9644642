"""Which assignment suits a mix of operations: candidates, what each offers, and those that none beats. Pure.

Owns the search. Candidates are all minimal choices for every distribution of votes up to a largest vote, grids, a majority
of the majorities of failure groups, and systems that the caller names, each as reads with its dual for the changes and the
other way round; whoever has the time tries every system in which each replica stands once. Each is measured exactly; those that miss a target are dropped; of the rest the Pareto front is kept: no
other offers at least as much everywhere and more somewhere.

The front is exact over the candidates, which are not all quorum systems there are. Replicas that are alike in everything
that is measured are interchangeable: of votes that differ by exchanging them one is tried.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import comb, prod
from typing import Final

from ...adts.specification import operation_of
from ..choices.assignment import Assignment, Mix, availability_of, of_choice, of_pair
from ..choices.choices import Constraints, Rule, beats, minimal_choices
from ..choices.minimal import resilience
from ..systems.diagrams import diagram
from ..systems.failures import Groups, Independent, Joint, Model, availability
from ..systems.systems import BadQuorums, System, dual, grid, majority, replicas_of
from . import shapes
from .cost import Workload, one_mix, rounds_of
from .latency import of_event, quantile_ms
from .offers import Offer, Target, limits_of
from .strategy import NO_LIMITS, Limits, NoStrategy, Objective, best_strategy

CANDIDATES_MAX: Final = 20_000
VECTORS_MAX: Final = 5_000
_ALIKE_UP_TO: Final = 8
"""Up to so many replicas, candidates with the same quorums are found by their decision diagrams and tried once."""


@dataclass(frozen=True)
class Setting:
    """What is planned for: the constraints, who there is, how they fail, what is asked of them.

    `dead` replicas are known to be down and stay so; the others fail as the model says.
    """

    constraints: Constraints
    replicas: tuple[str, ...]
    mix: Mix
    model: Model[float]
    workload: Workload
    dead: frozenset[str] = frozenset()
    has_loads: bool = True
    """Whether to compute strategies, which needs a linear program for each candidate."""
    optimise: Objective = "load"
    """What strategies make least."""
    spare: int = 0
    """So many of those asked may be silent, and the others are a quorum."""

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations of the mix."""
        return tuple(dict.fromkeys(operation_of(name) for name, share in self.mix.items() if share))


def plan(
    setting: Setting,
    candidates: Iterable[Assignment],
    targets: Sequence[Target] = (),
) -> list[Offer]:
    """The Pareto front of the candidates that meet all targets, the most available first.

    Targets that need no linear program are tried first, so that few are computed.
    """
    cheap = [target for target in targets if not target.is_cost]
    limits = limits_of(targets)
    offers = []
    for candidate in candidates:
        offer = measure(setting, candidate)
        if offer is None or not all(target.is_met_by(offer) for target in cheap):
            continue
        full = with_cost(setting, offer, limits) if setting.has_loads else offer
        if full is not None and all(target.is_met_by(full) for target in targets):
            offers.append(full)
    return sorted(pareto(offers), key=lambda offer: (-offer.overall, offer.goals(), offer.assignment.label))


def pareto(offers: Sequence[Offer]) -> list[Offer]:
    """Those that no other beats; of several with the same figures the first."""
    of_goals: dict[tuple[float, ...], Offer] = {}
    for offer in offers:
        of_goals.setdefault(offer.goals(), offer)
    front: list[tuple[float, ...]] = []
    for goals in sorted(of_goals):  # what beats another comes before it in this order
        if not any(beats(other, goals) for other in front):
            front.append(goals)
    return [of_goals[goals] for goals in front]


def thinned(offers: Sequence[Offer], within: float) -> list[Offer]:
    """Of these, in order, each that none of those kept before comes near to: is in every figure at least as good, or worse by the share
    `within` of it at most. Of availability the figure is the downtime."""
    kept: list[tuple[Offer, tuple[float, ...]]] = []
    for offer in offers:
        costs = offer.costs()
        if not any(
            all(near <= cost * (1 + within) + 1e-12 for near, cost in zip(other, costs, strict=True))
            for _, other in kept
        ):
            kept.append((offer, costs))
    return [offer for offer, _ in kept]


def measure(setting: Setting, candidate: Assignment) -> Offer | None:
    """All but the costs that need a strategy; None when the dead replicas leave an operation without a quorum."""
    alive = candidate.surviving(setting.dead) if setting.dead else candidate
    if alive is None:
        return None
    mix = one_mix(setting.constraints, setting.mix)
    needed = {operation: alive.needed_of(operation) for operation in setting.operations}
    times = setting.workload.times
    rounds = (
        {op: of_event(alive, setting.constraints.outcomes[op][0], times) for op in needed} if times else {}
    )
    return Offer(
        alive,
        {operation: availability(system, setting.model) for operation, system in needed.items()},
        availability_of(alive, setting.model, mix),
        {operation: resilience(system) for operation, system in needed.items()},
        sum(share * rounds_of(alive, name) for name, share in mix.items()),
        {op: _known(quantile_ms(each, 0.5)) for op, each in rounds.items()},
        {op: _known(quantile_ms(each, 0.99)) for op, each in rounds.items()},
    )


def with_cost(setting: Setting, offer: Offer, limits: Limits = NO_LIMITS) -> Offer | None:
    """The offer with its best strategy; None where none keeps the limits, or no quorum has so many to spare."""
    try:
        found = best_strategy(
            offer.assignment,
            setting.workload,
            optimise=setting.optimise,
            limits=limits,
            spare=setting.spare,
        )
    except NoStrategy:
        return None
    return replace(offer, strategy=found)


def candidates_of(
    setting: Setting, *, votes_max: int = 1, rule: Rule = "inclusion", systems: Collection[System] = ()
) -> list[Assignment]:
    """All candidates: votes from 0 to `votes_max`, grids, majorities of failure groups, and the systems named.

    Raises:
        BadQuorums: there are more than CANDIDATES_MAX, or VECTORS_MAX distributions of votes.
    """
    found: dict[object, Assignment] = {}
    for candidate in _all_candidates(setting, votes_max, rule, systems):
        found.setdefault(_key(candidate, setting.replicas), candidate)
        if len(found) > CANDIDATES_MAX:
            raise BadQuorums(
                f"more than {CANDIDATES_MAX} candidates; give a smaller largest vote, or fewer replicas or operations"
            )
    return list(found.values())


def _all_candidates(
    setting: Setting, votes_max: int, rule: Rule, systems: Collection[System]
) -> Iterator[Assignment]:
    for votes_of in vote_vectors(setting, votes_max):
        given = [f"{name}:{weight}" for name, weight in votes_of.items()]
        label = "equal votes" if set(votes_of.values()) == {1} else f"votes {' '.join(given)}"
        for choice in minimal_choices(setting.constraints, votes_of, rule):
            yield of_choice(setting.constraints, choice, votes_of, f"{label}; {choice}")
    for label, system in _named_systems(setting, systems):
        yield of_pair(setting.constraints, system, label=f"read {label}")
        yield of_pair(setting.constraints, dual(system), label=f"write {label}")


def _named_systems(setting: Setting, systems: Collection[System]) -> Iterator[tuple[str, System]]:
    names = setting.replicas
    for rows in range(2, len(names) // 2 + 1):
        if len(names) % rows == 0:
            width = len(names) // rows
            yield (
                f"rows of a {rows}x{width} grid",
                grid([names[at : at + width] for at in range(0, len(names), width)]),
            )
    if isinstance(setting.model, Groups):
        members = [sorted(group.members) for group in setting.model.groups if group.members]
        if len(members) > 1:
            yield "a majority of group majorities", majority([majority(each) for each in members])
    for system in systems:
        yield str(system), system


def expressions_of(setting: Setting) -> Iterator[Assignment]:
    """Every system in which each replica stands once, as reads with its dual for the changes; simple ones first, and soon very many."""
    names = setting.replicas
    for system in shapes.systems_over([tuple(names[at] for at in group) for group in _alike(setting)]):
        yield of_pair(setting.constraints, system, label=f"read {system}")


def vote_vectors(setting: Setting, votes_max: int) -> Iterator[dict[str, int]]:
    """All distributions of votes from 0 to `votes_max`, equal ones first, then those of fewer votes.

    Replicas that are alike get falling votes; distributions that are multiples of another are left out.
    """
    yield dict.fromkeys(setting.replicas, 1)
    if votes_max == 1:
        return
    alike = _alike(setting)
    count = prod(comb(len(group) + votes_max, votes_max) for group in alike)
    if count > VECTORS_MAX:
        raise BadQuorums(
            f"{count} distributions of 0 to {votes_max} votes; give a smaller largest vote, or fewer replicas"
        )
    places = [at for group in alike for at in group]
    found = []
    for parts in product(*(_falling(len(group), votes_max) for group in alike)):
        weights = [weight for part in parts for weight in part]
        if any(weights) and not _is_multiple(weights):
            at_place = dict(zip(places, weights, strict=True))
            found.append({name: at_place[at] for at, name in enumerate(setting.replicas)})
    yield from sorted(found, key=lambda votes_of: sum(votes_of.values()))


def _falling(length: int, most: int) -> Iterator[tuple[int, ...]]:
    if length == 0:
        yield ()
        return
    for first in range(most, -1, -1):
        for rest in _falling(length - 1, first):
            yield (first, *rest)


def _is_multiple(weights: Sequence[int]) -> bool:
    return any(
        all(weight % factor == 0 for weight in weights) for factor in range(2, max(weights, default=0) + 1)
    )


def _alike(setting: Setting) -> list[list[int]]:
    """The places of replicas, those of a kind together."""
    kinds = [repr(_kind(setting, at)) for at in range(len(setting.replicas))]
    return [[at for at, each in enumerate(kinds) if each == kind] for kind in dict.fromkeys(kinds)]


def _kind(setting: Setting, at: int) -> tuple[object, ...]:
    """Replicas of the same kind are interchangeable in everything that is measured."""
    name = setting.replicas[at]
    work = setting.workload
    same = (
        work.read_capacity.get(name),
        work.write_capacity.get(name),
        work.times.get(name),
        name in setting.dead,
    )
    match setting.model:
        case Independent(up):
            return (up.get(name), *same)
        case Joint():
            return (name,)
        case Groups(up, groups):
            return (up.get(name), *sorted(group.name for group in groups if name in group.members), *same)


def _key(candidate: Assignment, replicas: tuple[str, ...]) -> object:
    """What two candidates with the same quorums share."""
    systems = (*candidate.initials.values(), *candidate.finals.values())
    if len(replicas) > _ALIKE_UP_TO:
        return systems
    order = (
        *replicas,
        *(n for n in dict.fromkeys(n for s in systems for n in replicas_of(s)) if n not in replicas),
    )
    return tuple(diagram(system, order) for system in systems)


def _known(time_ms: float | None) -> float:
    return float("inf") if time_ms is None else time_ms
