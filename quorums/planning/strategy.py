"""The best strategy over quorums, by linear programming. Pure; needs scipy, which is imported when a strategy is asked for.

Owns the linear program. Its columns are quorums of the slots (accesses): s[k, q] is how often slot k draws quorum q. Rows,
for a workload of mixes m with shares w[m] and replicas x:

    minimise    sum over m of w[m] * L[m]                               (the load; or messages, or waiting)
    such that   sum over q of s[k, q] = 1                               for each slot k
                sum over k and q with x in q of s[k, q] * cost[k, m, x] <= L[m]     for each m and x
                messages, waiting, load <= their limits, where given

Quorums are not listed: 13 of 25 are five million. *Column generation* (Gilmore and Ford-Fulkerson; see Dantzig and Wolfe
1960) starts with a few and asks, with the prices y that the program puts on the rows, for the quorum that would improve it
most: the cheapest one at the replica prices sum over m of y[m, x] * cost[k, m, x], which `minimal.cheapest` finds without
listing. None improves: the optimum. (Up to 8 replicas all quorums are columns: one step is quicker than several.) For the
2x2 grid of `cost`, two rows and two transversals reach load 1/2, and with every price 1/4 each quorum of two costs what it
must, so none improves. Where waiting counts, a quorum's cost is not a sum over replicas: then all minimal quorums are
columns, and there may be `minimal.SETS_MAX` of them.

The answer is float64 and is judged, not believed: the cost is computed anew from the strategy, and `bound` is the least
cost that any strategy can have, by weak duality from the prices. The two differ by the error; on the benchmark's systems by
less than 1e-9.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from ..choices.assignment import Assignment
from ..choices.minimal import blocking_sets, cheapest, minimal_quorums
from ..systems.systems import BadQuorums, Replica, System, Threshold, all_of, choose, replicas_of, votes
from .cost import Access, Draw, Slot, Strategy, Workload, evaluate, messages_of, slots_of, wait_ms

Objective = Literal["load", "messages", "wait"]

STEPS_MAX: Final = 2000
_LISTED_UP_TO: Final = 8
"""With so few replicas all columns at once (at most 70 for a slot of votes) are quicker than several steps."""
_IMPROVES: Final = 1e-9
_BREACH_COST: Final = 1e6
"""The price of breaking a limit while columns are still missing; what is broken in the end cannot be kept."""


@dataclass(frozen=True)
class Limits:
    """What a strategy may cost at most: load, messages per operation, mean waiting in milliseconds."""

    load: float | None = None
    messages: float | None = None
    wait_ms: float | None = None

    def given(self) -> dict[Objective, float]:
        """Those that are set."""
        every: dict[Objective, float | None] = {
            "load": self.load,
            "messages": self.messages,
            "wait": self.wait_ms,
        }
        return {name: limit for name, limit in every.items() if limit is not None}


NO_LIMITS: Final = Limits()


class NoStrategy(BadQuorums):
    """No strategy keeps the limits, or no quorum has so many members to spare."""


class MissingSolver(ImportError):
    """scipy is not installed."""


def best_strategy(
    assignment: Assignment,
    workload: Workload,
    *,
    optimise: Objective = "load",
    limits: Limits = NO_LIMITS,
    spare: int = 0,
) -> Strategy:
    """The strategy with the least load, messages or waiting among those within the limits; of those that are as good in messages or waiting
    the one with the least load.

    With `spare` f, only sets are drawn that still hold a quorum when any f of their members do not answer. While some
    replicas are known to be down, ask for `assignment.surviving(dead)`.

    Raises:
        NoStrategy: none keeps the limits, or no quorum has so many to spare.
        BadQuorums: the program was not solved.
        MissingSolver: scipy is not installed.
    """
    slots = slots_of(assignment, workload)
    if not slots:
        return evaluate(slots, {}, workload, bound=0.0)
    drawn = [slot if not spare else slot._replace(system=with_spare(slot.system, spare)) for slot in slots]
    most = limits.given()
    draws, bound = _Program(slots, drawn, workload, optimise, most).solve()
    found = evaluate(slots, draws, workload, bound)
    if optimise == "load":
        return found
    least = found.messages if optimise == "messages" else found.wait_ms
    limit: dict[Objective, float] = {optimise: min(most.get(optimise, least), least * (1 + _IMPROVES))}
    draws, _ = _Program(slots, drawn, workload, "load", most | limit).solve()
    return evaluate(slots, draws, workload, bound)


def with_spare(system: System, spare: int) -> System:
    """The sets that hold a quorum even without any `spare` of their members.

    Derivation: S without F holds a quorum exactly when it meets every minimal blocking set B; it does so for every F of f
    replicas exactly when S has more than f members in each B. For k of N votes: k + f of N.
    """
    if isinstance(system, Threshold) and _is_equal_votes(system):
        if system.needed + spare <= len(system.parts):
            return votes(dict.fromkeys(replicas_of(system), 1), system.needed + spare)
    elif all(len(block) > spare for block in blocking_sets(system)):
        return all_of([choose(spare + 1, sorted(block)) for block in blocking_sets(system)])
    raise NoStrategy(f"no quorum of {system} can spare {spare} replicas; ask for fewer to spare")


def _is_equal_votes(system: Threshold) -> bool:
    return all(weight == 1 and isinstance(part, Replica) for weight, part in system.parts)


@dataclass
class _Prices:
    """What the rows cost at the program's optimum: the dual solution."""

    loads: list[dict[str, float]]
    slots: list[float]
    limits: dict[Objective, float]


@dataclass
class _Program:
    slots: Sequence[Slot]
    drawn: Sequence[Slot]
    workload: Workload
    optimise: Objective
    limits: Mapping[Objective, float]
    columns: list[tuple[int, frozenset[str]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.names = list(dict.fromkeys(name for slot in self.slots for name in replicas_of(slot.system)))
        self.weights = self.workload.weights
        self.lists_all = "wait" in (self.optimise, *self.limits) or len(self.names) <= _LISTED_UP_TO
        self.has_loads = "load" in (self.optimise, *self.limits)
        self.known: set[tuple[int, frozenset[str]]] = set()
        self.waits: dict[tuple[int, frozenset[str]], float] = {}

    def solve(self) -> tuple[dict[Access, Draw], float]:
        """How often to draw what, and the bound."""
        for slot in range(len(self.slots)):
            for quorum in self._first_columns(slot):
                self._add(slot, quorum)
        for _ in range(STEPS_MAX):
            found = self._solve_columns()
            prices = self._prices(found)
            better = [] if self.lists_all else self._improving(prices)
            if not better:
                break
            for column in better:
                self._add(*column)
        else:
            raise BadQuorums(f"no optimum within {STEPS_MAX} steps; ask for fewer replicas or mixes")
        self._check_kept(found)
        return self._draws(found.x), self._bound(prices)

    def _add(self, slot: int, quorum: frozenset[str]) -> None:
        if (slot, quorum) not in self.known:
            self.known.add((slot, quorum))
            self.columns.append((slot, quorum))

    def _first_columns(self, slot: int) -> list[frozenset[str]]:
        """All that there are, or for each replica a quorum that prefers it and those after it in turn."""
        system = self.drawn[slot].system
        if self.lists_all:
            return list(minimal_quorums(system))
        count = len(self.names)
        ring = (
            {name: 1 + (index - start) % count / count for index, name in enumerate(self.names)}
            for start in range(count)
        )
        found = [cheapest(system, prices) for prices in ring]
        return [quorum for quorum in found if quorum is not None]

    def _share(self, slot: int) -> float:
        return sum(w * share for w, share in zip(self.weights, self.slots[slot].shares, strict=True))

    def _cost(self, kind: Objective, slot: int, quorum: frozenset[str]) -> float:
        """A column's coefficient in the row of messages or of waiting; the load has rows of its own."""
        if kind == "messages":
            return self._share(slot) * messages_of(quorum)
        if kind == "wait":
            if (slot, quorum) not in self.waits:
                self.waits[slot, quorum] = wait_ms(self.slots[slot].system, quorum, self.workload)
            return self._share(slot) * self.waits[slot, quorum]
        return 0.0

    def _solve_columns(self) -> Any:
        """The optimum over the columns so far. Variables: columns, then L of each mix, then a breach of each limit."""
        width = len(self.columns) + len(self.weights) + len(self.limits)
        objective = [self._cost(self.optimise, *column) for column in self.columns]
        objective += [w if self.optimise == "load" else 0.0 for w in self.weights]
        objective += [_BREACH_COST] * len(self.limits)
        rows, most = self._load_rows() if self.has_loads else ([], [])
        for index, (kind, limit) in enumerate(self.limits.items()):
            row = [self._cost(kind, *column) for column in self.columns]
            row += [w if kind == "load" else 0.0 for w in self.weights]
            row += [-1.0 if other == index else 0.0 for other in range(len(self.limits))]
            rows.append(row)
            most.append(limit)
        sums = [[0.0] * width for _ in self.slots]
        for index, (slot, _) in enumerate(self.columns):
            sums[slot][index] = 1.0
        return _solver()(
            objective, A_ub=rows or None, b_ub=most or None, A_eq=sums, b_eq=[1.0] * len(sums), method="highs"
        )

    def _load_rows(self) -> tuple[list[list[float]], list[float]]:
        rows = []
        for mix in range(len(self.weights)):
            for name in self.names:
                row = [
                    self.workload.cost(self.slots[slot], mix, name) if name in quorum else 0.0
                    for slot, quorum in self.columns
                ]
                row += [-1.0 if other == mix else 0.0 for other in range(len(self.weights))]
                rows.append(row + [0.0] * len(self.limits))
        return rows, [0.0] * len(rows)

    def _prices(self, found: Any) -> _Prices:
        if found.status != 0:
            raise BadQuorums(f"the linear program was not solved: {found.message}")
        upper = [max(0.0, -float(each)) for each in found.ineqlin.marginals]
        count = len(self.names)
        loads = [
            dict(zip(self.names, upper[mix * count : (mix + 1) * count], strict=True))
            if self.has_loads
            else {}
            for mix in range(len(self.weights))
        ]
        rest = upper[len(self.weights) * count :] if self.has_loads else upper
        return _Prices(
            loads, [float(each) for each in found.eqlin.marginals], dict(zip(self.limits, rest, strict=True))
        )

    def _replica_prices(self, slot: int, prices: _Prices) -> dict[str, float]:
        """What drawing each replica costs at these prices, with its two messages."""
        worth = (self.optimise == "messages") + prices.limits.get("messages", 0.0)
        each = 2 * self._share(slot) * worth
        return {
            name: each
            + sum(
                of_mix.get(name, 0.0) * self.workload.cost(self.slots[slot], mix, name)
                for mix, of_mix in enumerate(prices.loads)
            )
            for name in self.names
        }

    def _improving(self, prices: _Prices) -> list[tuple[int, frozenset[str]]]:
        """For each slot the quorum that costs least at these prices, where it costs less than those drawn."""
        better = []
        for slot, drawn in enumerate(self.drawn):
            of_replica = self._replica_prices(slot, prices)
            quorum = cheapest(drawn.system, of_replica)
            if quorum is None or (slot, quorum) in self.known:
                continue
            if sum(of_replica[name] for name in quorum) < prices.slots[slot] - _IMPROVES:
                better.append((slot, quorum))
        return better

    def _bound(self, prices: _Prices) -> float:
        """Weak duality: for any prices y >= 0 whose loads sum to w[m] (times what load is worth), no strategy costs less.

        Prices from the solver keep that sum up to its tolerance; they are scaled so that it holds.
        """
        worth = (self.optimise == "load") + prices.limits.get("load", 0.0)
        for w, of_mix in zip(self.weights, prices.loads, strict=True):
            total = sum(of_mix.values())
            factor = w * worth / total if total else 0.0
            of_mix.update({name: price * factor for name, price in of_mix.items()})
        least = sum(self._least_cost(slot, prices) for slot in range(len(self.slots)))
        return least - sum(price * self.limits[kind] for kind, price in prices.limits.items())

    def _least_cost(self, slot: int, prices: _Prices) -> float:
        of_replica = self._replica_prices(slot, prices)
        if not self.lists_all:
            quorum = cheapest(self.drawn[slot].system, of_replica) or frozenset()
            return sum(of_replica[name] for name in quorum)
        waiting = (self.optimise == "wait") + prices.limits.get("wait", 0.0)
        return min(
            sum(of_replica[name] for name in quorum) + waiting * self._cost("wait", slot, quorum)
            for at, quorum in self.columns
            if at == slot
        )

    def _check_kept(self, found: Any) -> None:
        breaches = found.x[len(self.columns) + len(self.weights) :]
        for (kind, limit), breach in zip(self.limits.items(), breaches, strict=True):
            if breach > 1e-7 * max(1.0, limit):
                raise NoStrategy(
                    f"no strategy keeps {kind} within {limit:g} and the other limits; allow more"
                )

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
