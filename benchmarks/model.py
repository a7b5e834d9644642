"""What the measured costs say of other machines: round trips, syncs and processor time per operation, made into latencies and
rates; and how well the same model tells what was measured here.

    python benchmarks/model.py FOLDER      with processor_time.jsonl, sweep.jsonl and growth.jsonl in it; prints Markdown

The model. An operation costs a front end and each replica a part of its own (an item) and a share of what each exchange costs;
all that wait go in one exchange, so with w in flight the cost of each is `item + exchange / w`. Both come from the processor
time with 1 and with 64 in flight. One round takes a round trip, the front end's work, one replica's and one sync, one after
another: nothing of a batch overlaps with the next, which is a little too slow for many in flight. A replica's two threads share
one interpreter and a front end has one, so each process has one core at most. Where all run on one machine, its cores bound
the sum.
"""

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

ROUNDS: Final = {"enqueue": 1, "dequeue": 1, "put": 1, "get": 1, "compare-and-set": 2}
"""Of one steady front end."""
WITHOUT_SYNC: Final = {"get"}
MANY: Final = 64
REPLICAS: Final = 3

Line = dict[str, Any]


class Cost(NamedTuple):
    """Seconds of processor time: of each operation, and of each exchange that carries some."""

    item_s: float
    exchange_s: float

    @classmethod
    def between(cls, one_s: float, many_s: float) -> Self:
        """From what an operation costs with 1 and with MANY in flight."""
        exchange_s = max(0.0, (one_s - many_s) / (1 - 1 / MANY))
        return cls(max(0.0, one_s - exchange_s), exchange_s)

    def batch_s(self, width: int) -> float:
        """Of so many operations in one exchange."""
        return width * self.item_s + self.exchange_s

    def times(self, factor: float) -> "Cost":
        """As much dearer."""
        return Cost(self.item_s * factor, self.exchange_s * factor)


class Place(NamedTuple):
    """Where it runs: round trip and sync in seconds; `cores` where everything shares one machine."""

    name: str
    round_trip_s: float
    sync_s: float
    cores: int | None = None


class Kind(NamedTuple):
    """One kind of operation: what it costs a front end of three replicas and each replica; `growth` is by how much of it a
    front end's cost rises with each further replica."""

    name: str
    front: Cost
    replica: Cost
    growth: float

    def cycle_s(self, place: Place, width: int, replicas: int = REPLICAS) -> float:
        """How long a front end that keeps so many in flight takes from one batch to the next."""
        front_s = self.front.times(1 + self.growth * (replicas - REPLICAS)).batch_s(width)
        replica_s = self.replica.batch_s(width)
        waits_s = place.round_trip_s + (0.0 if self.name in WITHOUT_SYNC else place.sync_s)
        alone_s = front_s + replica_s + ROUNDS[self.name] * waits_s
        shared_s = 0.0 if place.cores is None else (front_s + replicas * replica_s) / place.cores
        return max(alone_s, shared_s)

    def rate(self, place: Place, width: int, replicas: int = REPLICAS, fronts: int = 1) -> float:
        """Operations a second of so many front ends on objects of their own, bounded by a replica's one core."""
        by_fronts = fronts * width / self.cycle_s(place, width, replicas)
        return min(by_fronts, width / self.replica.batch_s(width))


def kinds(cpu: Sequence[Line], growth: float) -> dict[str, Kind]:
    """Those that were measured with 1 and with MANY in flight, for so long that the processor's clock shows it: it counts hundredths of a second."""
    spent = {(line["cpu"], line["process"]): line["us"] / 1e6 for line in cpu if "cpu" in line}
    found = {}
    for name in ROUNDS:
        one, many = f"{name}, 1 in flight", f"{name}, {MANY} in flight"
        costs = [
            Cost.between(spent[one, process], spent[many, process])
            for process in ("front end", "replica")
            if (one, process) in spent and (many, process) in spent
        ]
        if len(costs) == 2 and all(any(cost) for cost in costs):
            found[name] = Kind(name, *costs, growth)
    return found


def of_replicas(lines: Sequence[Line]) -> dict[int, Line]:
    """The table of `growth.py` for groups of different sizes."""
    return {int(line["at"].split()[0]): line for line in lines if str(line.get("at")).endswith(" replicas")}


def growth_of_front(groups: dict[int, Line]) -> float:
    """By how much of its cost with three replicas a front end's rises with each further one."""
    least, most = min(groups), max(groups)
    if least == most:
        return 0.0
    return (groups[most]["client_cpu_us"] / groups[least]["client_cpu_us"] - 1) / (most - least)


def markdown(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table."""
    lines = [list(head), ["---", *["---:"] * (len(head) - 1)], *rows]
    return "".join(f"| {' | '.join(str(each) for each in line)} |\n" for line in lines)


def short(number: float) -> str:
    """To three digits, thousands apart."""
    return f"{float(f'{number:.3g}'):,.10g}"


def costs_table(found: dict[str, Kind]) -> str:
    """What the model starts from."""
    head = ["us", "front end, item", "front end, exchange", "replica, item", "replica, exchange"]
    rows = [
        [each.name, *(short(s * 1e6) for cost in (each.front, each.replica) for s in cost)]
        for each in found.values()
    ]
    return markdown(head, rows)


def check_widths(found: dict[str, Kind], sweep: Sequence[Line], here: Place) -> str:
    """Predicted beside measured, over operations in flight."""
    rows: list[list[object]] = []
    for line in sweep:
        if line["system"] == "Quorate" and line["sweep"] in found:
            predicted = found[line["sweep"]].rate(here, line["in_flight"])
            ratio = short(line["per_s"] / predicted)
            rows.append([line["sweep"], line["in_flight"], short(predicted), short(line["per_s"]), ratio])
    rows.sort(key=lambda row: list(ROUNDS).index(str(row[0])))
    return markdown(["operations a second", "in flight", "model", "measured", "measured / model"], rows)


def check_replicas(groups: dict[int, Line], here: Place) -> str:
    """The same for a dequeue and an enqueue by groups of 3, 5 and 7, from the processor time that these took."""
    rows = []
    for count, line in groups.items():
        front, replica = (Cost(line[name] / 1e6, 0.0) for name in ("client_cpu_us", "replica_cpu_us"))
        pair = Kind("enqueue", front, replica, 0.0)
        both = here._replace(sync_s=2 * here.sync_s, round_trip_s=2 * here.round_trip_s)
        model_ms = pair.cycle_s(both, 1, count) * 1e3
        rows.append([count, short(model_ms), short(line["p50_ms"]), short(line["p50_ms"] / model_ms)])
    return markdown(["replicas", "model, ms", "measured p50, ms", "measured / model"], rows)


def latencies(found: dict[str, Kind], places: Sequence[Place]) -> str:
    """One in flight."""
    rows = [
        [each.name, *(short(each.cycle_s(place, 1) * 1e3) for place in places)] for each in found.values()
    ]
    return markdown(["ms, one in flight", *(place.name for place in places)], rows)


def rates(found: dict[str, Kind], place: Place) -> str:
    """64 in flight from each front end, by replicas, front ends and groups."""
    ways = [(3, 1, 1), (5, 1, 1), (7, 1, 1), (3, 4, 1), (3, 16, 1), (3, 16, 4)]
    head = [f"N={n}, {f} front end{'s' * (f > 1)}" + f", {g} groups" * (g > 1) for n, f, g in ways]
    rows = [
        [each.name, *(short(g * each.rate(place, MANY, n, f // g or 1)) for n, f, g in ways)]
        for each in found.values()
    ]
    return markdown([f"a second, {MANY} in flight of each", *head], rows)


def read(file: Path) -> list[Line]:
    """JSON lines."""
    return [json.loads(line) for line in file.read_text().splitlines()]


def main() -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    cpu, sweep, growth = (read(folder / f"{name}.jsonl") for name in ("processor_time", "sweep", "growth"))
    groups = of_replicas(growth)
    rise = growth_of_front(groups)
    found = kinds(cpu, rise)
    sync_s = next(line["p50_us"] for line in cpu if "sync" in line) / 1e6
    here = Place("here", 0.0, sync_s, cpu[0]["cpus"])
    places = [
        Place("one rack, 0.1 ms, sync 0.1 ms", 1e-4, 1e-4),
        Place("one data centre, 0.3 ms, sync 1 ms", 3e-4, 1e-3),
        Place("three zones, 1.5 ms, sync 1 ms", 1.5e-3, 1e-3),
        Place("three regions, 60 ms, sync 1 ms", 6e-2, 1e-3),
    ]
    print(
        f"Sync here: {sync_s * 1e6:.0f} us; a front end's cost rises by {rise:.0%} for each replica above 3.\n"
    )
    for part in (
        costs_table(found),
        check_widths(found, sweep, here),
        check_replicas(groups, here),
        latencies(found, [here, *places]),
        rates(found, places[1]),
    ):
        print(part)


if __name__ == "__main__":
    main()
