"""Run one seed and judge it: `python -m tests.sim.run --seed N [--trace]` replays what a failing test printed."""

import argparse
import sys
from collections.abc import Callable

from msgspec import Struct

from quorate.adts.catalogue import adt_of
from tests.sim.checkers import Violation, check_drained, check_object
from tests.sim.scenario import Faults, Scenario, scenario
from tests.sim.world import World


class Report(Struct):
    """What a run did; `counters` are those of the front ends, the replicas' watch and the outcomes."""

    operations: int
    given_up: int
    counters: dict[str, int]


def run(what: Scenario, trace: Callable[[str], None] | None = None) -> Report:
    """Run a scenario and check all that was promised; Violation or Stuck when it does not hold."""
    world = World(what, trace)
    world.run()
    check_quiet(world)
    given_up = judge(world)
    counters = dict(world.counters)
    for source in (world.watch.seen, world.history.outcomes):
        for name, times in source.items():
            counters[name] = counters.get(name, 0) + times
    return Report(sum(world.history.outcomes.values()), given_up, counters)


def check_quiet(world: World) -> None:
    """Where nothing goes wrong, every operation has its answer."""
    failed = [word for word in world.history.outcomes if word.endswith("definite)")]
    if failed and world.scenario.faults == Faults():
        raise Violation(f"without any fault there were outcomes {world.history.outcomes}")


def judge(world: World) -> int:
    """Check the history of every object; the number of searches that were given up."""
    given_up = 0
    is_in_order = not any("stamped anew" in name for name in world.counters)
    for name, calls in world.history.calls.items():
        if not is_in_order:
            # A batch that a dequeue fenced midway: what could be void got a new timestamp, the rest kept its own.
            for call in calls:
                call.after = None
        given_up += check_object(name, calls, is_exact=world.scenario.is_exact)
        if adt_of(name) == "queue":
            check_drained(name, calls)
    return given_up


def run_seed(seed: int) -> Report:
    """Run the scenario of `seed`; a failure names the command that replays it."""
    try:
        return run(scenario(seed))
    except Exception as error:
        error.add_note(f"replay with: python -m tests.sim.run --seed {seed} --trace")
        raise


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--trace", action="store_true", help="print every message and outcome")
    options = parser.parse_args()
    what = scenario(options.seed)
    print(f"scenario: {what}\n", file=sys.stderr)
    report = run(what, print if options.trace else None)
    print(f"right: {report.operations} operations; {report.counters}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
