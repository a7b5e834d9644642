"""Run one seed and judge it: `python -m tests.sim.run --seed N [--trace]` replays what a failing test printed.

Owns the way from a seed to a verdict. It must not know how a world runs, nor what the promises are (`checkers`).
"""

import argparse
import contextlib
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from quorate.adts.types.catalogue import adt_of
from quorate.api_specs.problems import LIMITS
from tests.sim.checkers.checkers import Violation, check_drained, check_object, check_own
from tests.sim.checkers.lease_checkers import check_leases, projected
from tests.sim.world.faults import NO_FAULTS
from tests.sim.world.leased import leased
from tests.sim.world.own import library, own
from tests.sim.world.scenario import Scenario, keeps_order, scenario
from tests.sim.world.varied import leaping, varied, with_faults
from tests.sim.world.world import World

TRACE_LINES: Final = 200
"""Of the trace of a failing run, how many of the latest lines are shown."""
TRACE_CHARS: Final = 400


class Report(Struct):
    """What a run did; `counters` are those of the front ends, the replicas' watch and the outcomes, `injected` faults."""

    operations: int
    given_up: int
    counters: dict[str, int]
    injected: dict[str, int]


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
    return Report(sum(world.history.outcomes.values()), given_up, counters, dict(world.injected))


def check_quiet(world: World) -> None:
    """Where nothing goes wrong, every operation has its answer."""
    is_tight = world.scenario.leasing is not None and world.scenario.leasing.is_tight
    is_own = (
        world.scenario.drawn is not None
    )  # All callers may carry keys, on one object, whose code may fail.
    reasons = (*LIMITS, "refused") if is_own else LIMITS
    expected = {f"{reason} (definite)" for reason in reasons} if is_tight or is_own else set()
    failed = {word for word in world.history.outcomes if word.endswith("definite)")} - expected
    if failed and world.scenario.faults == NO_FAULTS:
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
        if (drawn := world.scenario.drawn) is not None:
            given_up += check_own(name, drawn, calls)
            continue
        if (leasing := world.scenario.leasing) is not None:
            is_sound = has_good_clocks(world.scenario)
            given_up += check_leases(
                name,
                calls,
                may_wear=leasing.deliveries_max > 0,
                has_good_clocks=is_sound,
                memory_us=int(world.document.limits.retry_window_s * 1e6),
            )
            given_up += check_object(name, projected(calls), is_exact=world.scenario.is_exact)
            continue
        given_up += check_object(name, calls, is_exact=world.scenario.is_exact)
        if adt_of(name) == "queue":
            check_drained(name, calls)
    return given_up


def has_good_clocks(what: Scenario) -> bool:
    """Whether the declared clock errors are true, though the order of enqueues may need none."""
    by_clock = tuple(replace(each, ordering="clock") for each in what.document.choices)
    document = replace(what.document, choices=by_clock)
    is_embedded = what.embedded > 0 or what.is_routed  # Replicas decide for others by their own clocks.
    return keeps_order(document, what.faults, is_embedded=is_embedded)


WORLDS: Final[Mapping[str, Callable[[int], Scenario]]] = {
    "varied": varied,
    "leased": leased,
    "own": own,
    "library": library,
}
"""Kinds of worlds: with queues, registers and dictionaries; with leases; with a type of one's own, which the seed draws; with a bundled one."""


def made(seed: int, worlds: str = "varied", *, is_leaping: bool = False) -> Scenario:
    """The scenario of `seed`, in worlds of this kind."""
    what = WORLDS[worlds](seed)
    return leaping(what) if is_leaping else what


def run_seed(seed: int, worlds: str = "varied", *, is_leaping: bool = False) -> Report:
    """Run the scenario of `seed`; a failure names the command that replays it, and shows the end of its trace."""
    return run_shown(
        made(seed, worlds, is_leaping=is_leaping),
        f"{options_of(worlds, is_leaping=is_leaping)}--seed {seed}",
    )


def run_seeds(seeds: Iterable[int], worlds: str = "varied") -> Report:
    """Run the scenarios of all these seeds: what they did together."""
    operations = given_up = 0
    counters, injected = Counter[str](), Counter[str]()
    for seed in seeds:
        report = run_seed(seed, worlds)
        operations += report.operations
        given_up += report.given_up
        counters.update(report.counters)
        injected.update(report.injected)
    return Report(operations, given_up, counters, injected)


def options_of(worlds: str, *, is_leaping: bool) -> str:
    """The options of the commands that name this kind of world, with a blank behind each."""
    return (f"--worlds {worlds} " if worlds != "varied" else "") + "--leaping " * is_leaping


def run_shown(what: Scenario, options: str) -> Report:
    """Run the scenario that the command's `options` name; a failure says so, and shows the end of its trace."""
    try:
        return run(what)
    except Exception as error:
        error.add_note("\n".join(_latest_trace(what)))
        error.add_note(f"replay with: python -m tests.sim.run {options} --trace")
        raise


def _latest_trace(what: Scenario) -> Iterable[str]:
    """The run again (it is the same again), for the last lines of its trace."""
    lines: deque[str] = deque(maxlen=TRACE_LINES)
    with contextlib.suppress(Exception):
        run(what, lines.append)
    return (line[:TRACE_CHARS] for line in lines)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--trace", action="store_true", help="print every message and outcome")
    parser.add_argument("--plain", action="store_true", help="the seed's scenario as it was at first")
    parser.add_argument(
        "--worlds", choices=list(WORLDS), default="varied", help="the kind of the seed's scenario"
    )
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="as loss=0.1, instead of the seed's",
    )
    parser.add_argument("--leaping", action="store_true", help="the seed's scenario with clocks that leap")
    options = parser.parse_args()
    what = made(options.seed, options.worlds, is_leaping=options.leaping)
    if options.plain:
        what = scenario(options.seed)
    if options.fault:
        try:
            what = with_faults(what, what.faults.with_options(options.fault))
        except ValueError as error:
            parser.error(str(error))
    print(f"scenario: {what}\n", file=sys.stderr)
    report = run(what, print if options.trace else None)
    print(f"right: {report.operations} operations; {report.counters}; faults: {report.injected}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
