"""`python -m tests.sim.planted` lists the planted mistakes; with a NAME it looks for one, or replays one seed of it."""

import argparse
import sys
from collections.abc import Callable

from quorate.simulation.violation import Violation
from quorate.simulation.world.world import Stuck
from tests.sim.planted.catalogue import BY_NAME, PLANTS
from tests.sim.planted.plant import Plant, check_of, table


def verdict(run: Callable[[], None]) -> str:
    """What came of a run, in words."""
    try:
        run()
    except (Violation, Stuck) as found:
        return f"caught by {check_of(found)}: {found}"
    return "no check noticed anything"


def survey(plant: Plant, seeds: range, *, planted: bool) -> None:
    """Say which of these seeds catch the mistake."""
    caught = 0
    for seed in seeds:
        said = verdict(lambda seed=seed: plant.run(seed, planted=planted))  # type: ignore[misc]
        if said.startswith("caught"):
            caught += 1
            print(f"seed {seed}: {said.splitlines()[0]}")
    print(f"{plant.name}: {caught} of {len(seeds)} seeds")


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim.planted", description=__doc__)
    parser.add_argument("name", nargs="?", choices=sorted(BY_NAME), metavar="NAME")
    parser.add_argument(
        "--seed", type=int, help="replay this seed (without: the schedule, or as many seeds as stated)"
    )
    parser.add_argument("--seeds", type=int, default=0, help="how many seeds catch it, of the first so many")
    parser.add_argument("--trace", action="store_true", help="print every message and outcome (with --seed)")
    parser.add_argument("--clean", action="store_true", help="the same without the mistake")
    options = parser.parse_args()
    if options.name is None:
        print(table(PLANTS))
        return 0
    plant = BY_NAME[options.name]
    print(f"{plant.name}: {plant.mistake}", file=sys.stderr)
    planted = not options.clean
    if options.seed is not None:
        trace = print if options.trace else None
        print(verdict(lambda: plant.run(options.seed, planted=planted, trace=trace)))
    elif plant.schedule is not None and not options.seeds:
        print(plant.schedule.__doc__)
        print(verdict(lambda: plant.play(planted=planted)))
    else:
        survey(plant, range(1, 1 + options.seeds) if options.seeds else plant.looked_at, planted=planted)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
