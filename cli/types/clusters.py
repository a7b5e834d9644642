"""`python -m quorate.cli.types.clusters FILE NAME FIRST SEEDS`: simulated clusters of a class, in a process of their own, a line of JSON for
each.

Owns whose code runs: each cluster has a new copy of the class, so that a seed is the same by itself, and is judged by further ones. What
the class prints goes to standard error.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import msgspec

from ...adts.dependency import DEFAULT
from ...adts.histories.calls import Call
from ...adts.histories.orders import Model
from ...adts.histories.verdict import Typed, verdicts
from ...adts.own import Computed
from ...adts.plain_class import BadClass, PlainClass
from ...adts.specification import Invocation, Response
from ...simulation.judging.own import Law, NoOrder
from ...simulation.run import run
from ...simulation.scenarios.own import shared
from ...simulation.violation import Violation
from ...simulation.world.world import Stuck
from ..check.drawing import drawn
from ..failure import EXIT_USAGE, Usage
from ..quorums.data_types import PLAIN_EVENTS_MIN, own_type, users_code
from .simulated import Broken, Simulated


class _Told(PlainClass):
    """A class that keeps the first mistake of its code: to callers it is a refusal, as others are."""

    failure = ""

    def step(self, state: Any, invocation: Invocation) -> tuple[Any, Response]:
        """See PlainClass."""
        try:
            return super().step(state, invocation)
        except BadClass as error:
            self.failure = self.failure or str(error)
            raise


def _clusters(file: Path, name: str, seeds: Sequence[int]) -> Iterator[Simulated]:
    """What comes of each seed, up to the first that goes wrong: that one is told at once, and again with the few calls that show it."""
    law = Law(lambda: _copy(file, name))
    for seed in seeds:
        found = _copy(file, name)
        try:
            report = run(shared(seed, found), law=law)
        except NoOrder as error:
            yield Simulated(1, broken=Broken(seed, len(error.calls)))
            yield Simulated(broken=_shown(law, seed, error.calls))
            return
        except (Violation, Stuck) as error:
            yield Simulated(1, broken=Broken(seed, 0, promise=str(error).splitlines()[0]))
            return
        faults = sum(report.injected.values())
        yield Simulated(1, report.operations, faults, report.given_up, unable=found.failure)
        if found.failure:
            return


def _shown(law: Law, seed: int, calls: Sequence[Call]) -> Broken:
    """The few of the calls that have no right order."""
    typed = Typed(Computed(law, DEFAULT._replace(events_min=PLAIN_EVENTS_MIN)))
    (verdict,) = verdicts({law.name: typed}, calls, Model.LINEARIZABLE)
    assert verdict.found is not None, "a longer search found it"
    shown = tuple(map(str, verdict.shown))
    return Broken(seed, len(calls), shown, tuple(drawn(verdict.found, verdict.shown)))


def _copy(file: Path, name: str) -> _Told:
    found = own_type(file, name, _Told)
    assert isinstance(found, _Told), "the walk takes plain classes alone"
    return found


def main() -> None:
    """Print what comes of each seed."""
    file, name, first, seeds = sys.argv[1:]
    out = sys.stdout.buffer
    try:
        with redirect_stdout(sys.stderr), users_code(f"{file}:{name} fails"):
            for found in _clusters(Path(file), name, range(int(first), int(first) + int(seeds))):
                out.write(msgspec.json.encode(found) + b"\n")
                out.flush()
    except Usage as error:
        print(error, file=sys.stderr)
        sys.exit(EXIT_USAGE)


if __name__ == "__main__":
    main()
