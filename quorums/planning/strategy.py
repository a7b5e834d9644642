"""The best strategy over quorums, by linear programming. Pure; needs scipy, which is imported when a strategy is asked for.

Owns the linear program. Its columns are quorums of the slots (accesses): s[k, q] is how often slot k draws quorum q. Rows,
for a workload of mixes m with shares w[m] and replicas x:

    minimise    sum over m of w[m] * L[m]                               (the load)
    such that   sum over q of s[k, q] = 1                               for each slot k
                sum over k and q with x in q of s[k, q] * cost[k, m, x] <= L[m]     for each m and x

Quorums are not listed: 13 of 25 are five million. *Column generation* (Gilmore and Ford-Fulkerson; see Dantzig and Wolfe
1960) starts with a few and asks, with the prices y that the program puts on the rows, for the quorum that would improve it
most: the cheapest one at the replica prices sum over m of y[m, x] * cost[k, m, x], which `minimal.cheapest` finds without
listing. None improves: the optimum. (Up to 8 replicas all quorums are columns: one step is quicker than several.) For the
2x2 grid of `cost`, two rows and two transversals reach load 1/2, and with every price 1/4 each quorum of two costs what it
must, so none improves.

The answer is float64 and is judged, not believed: the cost is computed anew from the strategy, and `bound` is the least
load that any strategy can have, by weak duality from the prices. The two differ by the error; on the benchmark's systems by
less than 1e-9.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ..choices.assignment import Assignment
from ..choices.minimal import cheapest, minimal_quorums
from ..systems.systems import BadQuorums, replicas_of
from .cost import Access, Draw, Slot, Strategy, Workload, evaluate, slots_of

STEPS_MAX: Final = 2000
_LISTED_UP_TO: Final = 8
"""With so few replicas all columns at once (at most 70 for a slot of votes) are quicker than several steps."""
_IMPROVES: Final = 1e-9


class MissingSolver(ImportError):
    """scipy is not installed."""


def best_strategy(assignment: Assignment, workload: Workload) -> Strategy:
    """The strategy with the least load.

    While some replicas are known to be down, ask for `assignment.surviving(dead)`.

    Raises:
        BadQuorums: the program was not solved.
        MissingSolver: scipy is not installed.
    """
    slots = slots_of(assignment, workload)
    if not slots:
        return evaluate(slots, {}, workload, bound=0.0)
    draws, bound = _Program(slots, workload).solve()
    return evaluate(slots, draws, workload, bound)


@dataclass
class _Prices:
    """What the rows cost at the program's optimum: the dual solution. `loads` by mix and replica."""

    loads: list[dict[str, float]]
    slots: list[float]


@dataclass
class _Program:
    slots: Sequence[Slot]
    workload: Workload
    columns: list[tuple[int, frozenset[str]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.names = list(dict.fromkeys(name for slot in self.slots for name in replicas_of(slot.system)))
        self.weights = self.workload.weights
        self.lists_all = len(self.names) <= _LISTED_UP_TO

    def solve(self) -> tuple[dict[Access, Draw], float]:
        """How often to draw what, and the bound."""
        for slot in range(len(self.slots)):
            self.columns += [(slot, quorum) for quorum in dict.fromkeys(self._first_columns(slot))]
        for _ in range(STEPS_MAX):
            found = self._solve_columns()
            prices = self._prices(found)
            better = [] if self.lists_all else self._improving(prices)
            if not better:
                return self._draws(found.x), self._bound(prices)
            self.columns += better
        raise BadQuorums(f"no optimum within {STEPS_MAX} steps; ask for fewer replicas or mixes")

    def _first_columns(self, slot: int) -> list[frozenset[str]]:
        """All that there are, or for each replica a quorum that prefers it and those after it in turn."""
        system = self.slots[slot].system
        if self.lists_all:
            return list(minimal_quorums(system))
        count = len(self.names)
        ring = (
            {name: 1 + (index - start) % count / count for index, name in enumerate(self.names)}
            for start in range(count)
        )
        found = [cheapest(system, prices) for prices in ring]
        return [quorum for quorum in found if quorum is not None]

    def _solve_columns(self) -> Any:
        """The optimum over the columns so far. Variables: columns, then L of each mix."""
        rows = [
            [
                *(self._cost(slot, mix, name) if name in quorum else 0.0 for slot, quorum in self.columns),
                *(-1.0 if other == mix else 0.0 for other in range(len(self.weights))),
            ]
            for mix in range(len(self.weights))
            for name in self.names
        ]
        sums = [
            [*(float(slot == which) for slot, _ in self.columns), *[0.0] * len(self.weights)]
            for which in range(len(self.slots))
        ]
        objective = [*[0.0] * len(self.columns), *self.weights]
        return _solver()(
            objective,
            A_ub=rows,
            b_ub=[0.0] * len(rows),
            A_eq=sums,
            b_eq=[1.0] * len(sums),
            method="highs",
        )

    def _cost(self, slot: int, mix: int, name: str) -> float:
        return self.workload.cost(self.slots[slot], mix, name)

    def _prices(self, found: Any) -> _Prices:
        if found.status != 0:
            raise BadQuorums(f"the linear program was not solved: {found.message}")
        upper = iter([max(0.0, -float(each)) for each in found.ineqlin.marginals])
        loads = [{name: next(upper) for name in self.names} for _ in self.weights]
        return _Prices(loads, [float(each) for each in found.eqlin.marginals])

    def _cheapest(self, slot: int, prices: _Prices) -> tuple[frozenset[str], float]:
        """The quorum of a slot that costs least at these prices, and what it costs."""
        of_replica = {
            name: sum(of_mix[name] * self._cost(slot, mix, name) for mix, of_mix in enumerate(prices.loads))
            for name in self.names
        }
        quorum = cheapest(self.slots[slot].system, of_replica) or frozenset()
        return quorum, sum(of_replica[name] for name in quorum)

    def _improving(self, prices: _Prices) -> list[tuple[int, frozenset[str]]]:
        """For each slot the quorum that costs least at these prices, where it costs less than those drawn."""
        known = set(self.columns)
        found = [(slot, *self._cheapest(slot, prices)) for slot in range(len(self.slots))]
        return [
            (slot, quorum)
            for slot, quorum, cost in found
            if cost < prices.slots[slot] - _IMPROVES and (slot, quorum) not in known
        ]

    def _bound(self, prices: _Prices) -> float:
        """Weak duality: for any prices y >= 0 whose loads sum to w[m], no strategy costs less.

        Prices from the solver keep that sum up to its tolerance; they are scaled so that it holds.
        """
        for w, of_mix in zip(self.weights, prices.loads, strict=True):
            total = sum(of_mix.values())
            factor = w / total if total else 0.0
            of_mix.update({name: price * factor for name, price in of_mix.items()})
        return sum(self._cheapest(slot, prices)[1] for slot in range(len(self.slots)))

    def _draws(self, x: Any) -> dict[Access, Draw]:
        """Chances below a billionth are the solver's rounding: left out, and the rest made to sum to 1."""
        draws: dict[Access, Draw] = {}
        for index, slot in enumerate(self.slots):
            kept = [
                (quorum, float(p))
                for (at, quorum), p in zip(self.columns, x, strict=False)
                if at == index and p > 1e-9
            ]
            total = sum(p for _, p in kept)
            draws[slot.access] = tuple((quorum, p / total) for quorum, p in kept)
        return draws


def check_solver() -> None:
    """MissingSolver when scipy is not installed."""
    _solver()


def _solver() -> Any:
    try:
        from scipy.optimize import linprog  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "scipy":
            raise
        raise MissingSolver(
            "optimal strategies need scipy, which is not installed: pip install 'quorate[plan]'"
        ) from None
    return linprog
