"""Run one seed and judge it: `python -m tests.sim.run --seed N [--trace]` replays what a failing test printed.

Owns the kinds of worlds that tests run, and what is shown of one that fails.
"""

import argparse
import contextlib
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final

from msgspec.structs import replace

from quorate.simulation.run import Report, run
from quorate.simulation.scenarios.changing import (
    changing,
    dying,
    dying_in_between,
    moving,
    standing,
    with_learner,
)
from quorate.simulation.scenarios.full import full
from quorate.simulation.scenarios.leased import leased
from quorate.simulation.scenarios.scenario import Scenario, scenario
from quorate.simulation.scenarios.varied import leaping, outboxed, varied, weak, with_faults
from tests.sim.own import burying, library, own
from tests.sim.small import small_bounds

TRACE_LINES: Final = 200
"""Of the trace of a failing run, how many of the latest lines are shown."""
TRACE_CHARS: Final = 400

STEP: Final = 1 << 40
QUEUES: Final = ("queue/a", "queue/b", "queue/c")
SMALL: Final = ("varied", "leased", "own", "burying", "leaping")

WORLDS: Final[Mapping[str, Callable[[int], Scenario]]] = {
    "varied": varied,
    "leased": leased,
    "own": own,
    "library": library,
    "burying": burying,
    "full": full,
    "leaping": lambda seed: leaping(varied(seed)),
    "weak": lambda seed: weak((varied, own, burying)[seed % 3](seed)),
    "outbox": lambda seed: outboxed(steady(seed)),
    "changing": lambda seed: with_learner(without_learner(seed)),
    "moving": lambda seed: moving(without_learner(seed)),
    "standing": lambda seed: standing(without_learner(seed)),
    "queues": lambda seed: with_learner(changing(replace(on_foot((varied, leased), seed), objects=QUEUES))),
    "dying": lambda seed: with_learner(
        dying(
            on_foot((varied, own, burying), seed)
            if seed % 2
            else replace(on_foot((varied, leased), seed // 2), objects=QUEUES)
        )
    ),
    "dying-in-between": lambda seed: dying_in_between(
        on_foot((varied, own, burying), seed)
        if seed % 2
        else replace(on_foot((varied, leased), seed // 2), objects=QUEUES)
    ),
    "small": lambda seed: WORLDS[SMALL[seed % len(SMALL)]](seed),
}
"""Kinds of worlds: with queues, registers and dictionaries; with leases; with a type of one's own, which the seed draws; with a bundled one; whose
deleted keys are forgotten beside an object that lives; whose replicas have room for a handful of objects; whose clocks all leap; of eventual consistency: as varied, own and burying; whose queue has outboxes, as varied and leased; whose members and quorum choices change,
of all these but those whose clocks leap; as these, with members that move to other URLs; or with rules that have fallbacks, which are switched by who is taken to be live; of a few queues, none of which is in use all the time, whose members and quorum choices change;
one of whose members is off for good before the first change; one more of whose members is, in the middle of a change that was to keep it; any of these with small bounds."""


def without_learner(seed: int) -> Scenario:
    """One whose members and quorum choices change, of all kinds of objects."""
    return changing(on_foot((varied, leased, varied, own, burying, WORLDS["weak"]), seed))


def steady(seed: int) -> Scenario:
    """That of the seed, or of one after it, whose clocks do not leap, and which does not forget within the run."""
    what = (varied, leased)[seed % 2](seed)
    return steady(seed + STEP) if what.is_forgetful or what.faults.leaps else what


def on_foot(kinds: Sequence[Callable[[int], Scenario]], seed: int) -> Scenario:
    """That of the seed, or of one after it, whose clocks do not leap: of these kinds, in turn."""
    what = kinds[seed % len(kinds)](seed)
    return on_foot(kinds, seed + STEP) if what.faults.leaps else what


def run_seed(seed: int, worlds: str = "varied") -> Report:
    """Run the scenario of `seed`; a failure names the command that replays it, and shows the end of its trace."""
    with bounds_of(worlds):
        return run_shown(WORLDS[worlds](seed), f"{options_of(worlds)}--seed {seed}")


def bounds_of(worlds: str) -> AbstractContextManager[None]:
    """The bounds of front ends in worlds of this kind."""
    return small_bounds() if worlds == "small" else contextlib.nullcontext()


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


def options_of(worlds: str) -> str:
    """The option of the commands that names this kind of world, with a blank behind."""
    return f"--worlds {worlds} " if worlds != "varied" else ""


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
    options = parser.parse_args()
    what = WORLDS[options.worlds](options.seed)
    if options.plain:
        what = scenario(options.seed)
    if options.fault:
        try:
            what = with_faults(what, what.faults.with_options(options.fault))
        except ValueError as error:
            parser.error(str(error))
    print(f"scenario: {what}\n", file=sys.stderr)
    with bounds_of(options.worlds):
        report = run(what, print if options.trace else None)
    print(f"right: {report.operations} operations; {report.counters}; faults: {report.injected}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
