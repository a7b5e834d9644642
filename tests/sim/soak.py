"""Run seeds until the time is over, on all cores: `python -m tests.sim.soak --minutes 10 [--first N] [--seeds N] [--worlds KIND]`.

Owns the division among processes and the summing up. A seed that fails is reported with the command that replays it, and
the soak goes on; at the end the exit code is 1. Too many failures end it early.
"""

import argparse
import multiprocessing
import os
import time
from collections import Counter
from typing import Final

from msgspec import Struct, field

from tests.sim.run import WORLDS, options_of, run_seed
from tests.sim.sometimes import FAULTS, SOMETIMES, SOMETIMES_LEASED

CHUNK: Final = 50
FAILURES_MAX: Final = 20
PROGRESS_S: Final = 20.0


class Tally(Struct):
    """What some seeds came to."""

    seeds: int = 0
    operations: int = 0
    given_up: int = 0
    counters: Counter[str] = field(default_factory=Counter)
    injected: Counter[str] = field(default_factory=Counter)
    failures: dict[int, str] = field(default_factory=dict)

    def add(self, other: "Tally") -> None:
        """Take in another one."""
        self.seeds += other.seeds
        self.operations += other.operations
        self.given_up += other.given_up
        self.counters.update(other.counters)
        self.injected.update(other.injected)
        self.failures.update(other.failures)


def run_chunk(seeds: range, worlds: str) -> Tally:
    """Run these seeds; failures are kept, and do not stop it."""
    tally = Tally()
    for seed in seeds:
        tally.seeds += 1
        try:
            report = run_seed(seed, worlds)
        except Exception as error:  # noqa: BLE001 - whatever it is, the seed is to be told
            tally.failures[seed] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            continue
        tally.operations += report.operations
        tally.given_up += report.given_up
        tally.counters.update(report.counters)
        tally.injected.update(report.injected)
    return tally


def soak(minutes: float, first: int, seeds: int, workers: int, worlds: str) -> Tally:
    """Run seeds from `first` on for so many minutes, or so many seeds if that is sooner; prints what it does."""
    begun_s = told_s = time.monotonic()
    total = Tally()
    chunks = (range(at, min(at + CHUNK, first + seeds)) for at in range(first, first + seeds, CHUNK))
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        waiting = [
            pool.apply_async(run_chunk, (chunk, worlds))
            for _, chunk in zip(range(2 * workers), chunks, strict=False)
        ]
        while waiting:
            tally = waiting.pop(0).get()
            total.add(tally)
            for seed, said in tally.failures.items():
                print(
                    f"FAILED seed {seed}: {said}\n  replay with: python -m tests.sim.run {options_of(worlds)}--seed {seed} --trace"
                )
            now_s = time.monotonic()
            is_over = now_s - begun_s >= 60 * minutes or len(total.failures) >= FAILURES_MAX
            if not is_over and (chunk := next(chunks, None)) is not None:
                waiting.append(pool.apply_async(run_chunk, (chunk, worlds)))
            if now_s - told_s >= PROGRESS_S:
                told_s = now_s
                print(_line(total, now_s - begun_s), flush=True)
    print_summary(total, time.monotonic() - begun_s, first, worlds)
    return total


def _line(total: Tally, elapsed_s: float) -> str:
    rate = total.operations / elapsed_s
    return (
        f"{elapsed_s:7.0f} s  {total.seeds} seeds  {total.operations} operations  {rate:.0f} operations/s  "
        f"{len(total.failures)} failed"
    )


def print_summary(total: Tally, elapsed_s: float, first: int, worlds: str = "varied") -> None:
    """Everything that was counted."""
    print(f"\nseeds {first} to {first + total.seeds - 1}")
    print(_line(total, elapsed_s))
    print(f"{total.given_up} searches for an order were given up")
    print(f"faults: {sum(total.injected.values())}")
    for name in FAULTS:
        print(f"  {total.injected[name]:10}  {name}")
    sometimes = {"leased": SOMETIMES_LEASED, "own": {}}.get(worlds, SOMETIMES)
    print("sometimes:")
    for name, meaning in sometimes.items():
        print(f"  {total.counters[name]:10}  {name}{': ' if meaning else ''}{meaning}")
    print("further counters and outcomes:")
    for name in sorted(total.counters.keys() - sometimes.keys()):
        print(f"  {total.counters[name]:10}  {name}")
    for seed, said in sorted(total.failures.items()):
        print(
            f"FAILED seed {seed}: {said}\n  replay with: python -m tests.sim.run {options_of(worlds)}--seed {seed} --trace"
        )


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1 << 40, help="at most so many")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--worlds",
        choices=list(WORLDS),
        default="varied",
        help="their kind: with leases, or a type of one's own",
    )
    options = parser.parse_args()
    total = soak(
        options.minutes,
        options.first,
        options.seeds,
        options.workers,
        options.worlds,
    )
    return 1 if total.failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
