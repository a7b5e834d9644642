"""Two models of failure, fed from the same moments: up-sets as they lasted, and replicas as if they were independent.

What differs between their predictions is then due to replicas failing together and to nothing else. Time is pooled over
what front ends see: a view that several of them share counts once for each.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations

from ...quorums.systems.failures import Independent, availability
from ...quorums.systems.systems import System
from . import confidence
from .aggregates import BINS, Outage, UpSetTime
from .confidence import Block, Interval, Repairs
from .figures import CorrelationFigures, OutageFigures, PairFigures
from .questions import deciding, names_of

US_PER_S = 1e6


@dataclass(frozen=True)
class Model:
    """How long which replicas were up together.

    `members` is the number of front ends with each view, `blocks` the number of stretches for the bootstrap, or None, and
    `repairs` are the outages of all replicas, `outages` the number of those of each quorum system.
    """

    votes: Mapping[str, int]
    members: Mapping[str, int]
    times: Sequence[UpSetTime]
    blocks: int | None
    repairs: Repairs
    outages: Mapping[System, int]

    @cached_property
    def weights(self) -> dict[int, int]:
        """Microseconds of each up-set, summed over front ends."""
        found: dict[int, int] = defaultdict(int)
        for row in self.times:
            found[row.up] += row.time_us * self.members[row.view]
        return dict(found)

    @cached_property
    def total_us(self) -> int:
        """All of them together."""
        return sum(self.weights.values())

    @cached_property
    def known_us(self) -> float:
        """The known time of a front end, in the mean."""
        return self.total_us / sum(self.members.values())

    @cached_property
    def up_share(self) -> dict[str, float]:
        """The share of the known time in which each replica was up."""
        up_us = dict.fromkeys(self.votes, 0)
        for up, time_us in self.weights.items():
            for name in names_of(up, list(self.votes)):
                up_us[name] += time_us
        return {name: time_us / self.total_us for name, time_us in up_us.items()}

    def enough(self, system: System) -> frozenset[int]:
        """The up-sets that hold a quorum of the system."""
        if system not in self._enough:
            held = deciding([system], self.weights, list(self.votes))
            self._enough[system] = frozenset(up for (_, up), holds in held.items() if holds)
        return self._enough[system]

    @cached_property
    def _enough(self) -> dict[System, frozenset[int]]:
        return {}

    def joint(self, system: System) -> float:
        """The share of the known time in which there was enough for the system."""
        return sum(self.weights[up] for up in self.enough(system)) / self.total_us

    def independent(self, system: System) -> float:
        """The same, had the replicas failed independently."""
        return float(availability(system, Independent(self.up_share)))

    def series(self, system: System) -> list[Block]:
        """For each stretch of time, how long it is known and how long there was enough; nothing without stretches."""
        if self.blocks is None:
            return []
        found = [[0, 0] for _ in range(self.blocks)]
        enough = self.enough(system)
        for row in self.times:
            block = found[row.bin * len(found) // BINS]
            time_us = row.time_us * self.members[row.view]
            block[0] += time_us
            block[1] += time_us if row.up in enough else 0
        return [Block(*each) for each in found]

    def independent_of(self, system: System) -> Callable[[Sequence[int]], float | None]:
        """Give what independent replicas would have given in any selection of stretches, each with its own up shares.

        Several operations need the same system, and are asked about for the same draws.
        """
        if system not in self._predictions:
            self._predictions[system] = lru_cache(maxsize=None)(self._prediction(system))
        return self._predictions[system]

    @cached_property
    def _predictions(self) -> dict[System, Callable[[Sequence[int]], float | None]]:
        return {}

    def _prediction(self, system: System) -> Callable[[Sequence[int]], float | None]:
        replicas = list(self.votes)
        known = [0] * (self.blocks or 0)
        live = {name: [0] * len(known) for name in replicas}
        for row in self.times:
            block = row.bin * len(known) // BINS
            time_us = row.time_us * self.members[row.view]
            known[block] += time_us
            for index, name in enumerate(replicas):
                live[name][block] += time_us if row.up >> index & 1 else 0

        def predict(draw: Sequence[int]) -> float | None:
            total = sum(map(known.__getitem__, draw))
            if not total:
                return None
            up = {name: sum(map(times.__getitem__, draw)) / total for name, times in live.items()}
            return float(availability(system, Independent(up)))

        return predict

    def served(self, mix: Mapping[System, float]) -> list[Block]:
        """The same for a mix of operations, each by the system that it needs."""
        parts = [(share, self.series(system)) for system, share in mix.items()]
        return [
            Block(
                blocks[0].attempts,
                sum(share * each.ok for (share, _), each in zip(parts, blocks, strict=True)),
            )
            for blocks in zip(*(series for _, series in parts), strict=True)
        ]

    def interval(self, series: Sequence[Block]) -> Interval | None:
        """The block bootstrap of a share of time; None where no stretch differs from another: there is nothing to vary."""
        if self.blocks is None or not _varies(series):
            return None
        return confidence.block_bootstrap(series)

    def by_outage(self, system: System, bootstrap: Interval | None) -> Interval | None:
        """The interval by outage of the share of time with enough; None where the bootstrap has outages enough to draw from."""
        outages = self.outages.get(system, 0)
        if outages >= confidence.OUTAGES_FEW and bootstrap is not None:
            return None
        return confidence.by_outage(outages, self.joint(system), self.known_us / US_PER_S, self.repairs)

    def sure(self, system: System) -> tuple[Interval | None, Interval | None]:
        """The interval of the share of time with enough, and the one by outage if that is a part of it."""
        bootstrap = self.interval(self.series(system))
        by_outage = self.by_outage(system, bootstrap)
        if by_outage is None:
            return bootstrap, None
        return confidence.widest(by_outage, bootstrap), by_outage

    def difference(self, series: Sequence[Block], other: Sequence[Block]) -> Interval | None:
        """The block bootstrap of a difference between shares of the same time; None as for `interval`."""
        if self.blocks is None:
            return None
        if not _varies([Block(a.attempts, a.ok - b.ok) for a, b in zip(series, other, strict=True)]):
            return None
        return confidence.block_bootstrap_difference(series, other)


def _varies(series: Iterable[Block]) -> bool:
    shares = {block.ok / block.attempts for block in series if block.attempts}
    return len(shares) > 1


def correlation(model: Model) -> CorrelationFigures:
    """How far replicas were down together.

    The variance of the number of replicas that are down is the sum of q (1 - q) over the replicas, were they independent.
    """
    names, total = list(model.votes), model.total_us
    down = {name: 1 - share for name, share in model.up_share.items()}
    mean = sum(down.values())
    variance = sum(
        us * ((len(names) - up.bit_count()) - mean) ** 2 for up, us in sorted(model.weights.items())
    )
    alone = sum(q * (1 - q) for q in down.values())
    pairs = []
    for (i, one), (j, other) in combinations(enumerate(names), 2):
        mask = 1 << i | 1 << j
        both = sum(us for up, us in model.weights.items() if not up & mask) / total
        spread = (down[one] * (1 - down[one]) * down[other] * (1 - down[other])) ** 0.5
        apart = down[one] * down[other]
        pairs.append(PairFigures(one, other, both, apart, (both - apart) / spread if spread else None))
    return CorrelationFigures(variance / total / alone if alone else None, tuple(pairs))


def outages(rows: Iterable[Outage], number: int) -> OutageFigures:
    """The outages of a system."""
    return outage_figures(next((row[1:] for row in rows if row.system == number), (0, 0, 0)))


def outage_figures(found: tuple[int, int, int]) -> OutageFigures:
    """Put number, total and longest in microseconds into words of the figures."""
    count, total_us, longest_us = found
    mean_s = total_us / count / US_PER_S if count else None
    return OutageFigures(count, total_us / US_PER_S, longest_us / US_PER_S, mean_s)
