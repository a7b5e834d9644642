"""Simulated clusters of a class, run by a process of their own (`clusters`): what came of them.

Owns the border to that process, and how long it may take.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, to_builtins

from ..failure import Usage

SIMULATED_S_MAX: Final = 60.0
"""Of all seeds together."""


class Broken(Struct):
    """A cluster whose answers are wrong: its seed, how many calls it had, and the few that show it. Where a promise of another
    kind was broken, there are none, and `promise` says which."""

    seed: int
    calls: int
    shown: tuple[str, ...] = ()
    drawing: tuple[str, ...] = ()
    promise: str = ""


class Simulated(Struct):
    """What came of one cluster, or of several. `unable` says what the class's code was not able to do, in any of them."""

    clusters: int = 0
    calls: int = 0
    faults: int = 0
    given_up: int = 0
    """Clusters of which too many calls overlap to be judged."""
    broken: Broken | None = None
    unable: str = ""

    def with_one(self, other: "Simulated") -> "Simulated":
        """Both together."""
        return Simulated(
            self.clusters + other.clusters,
            self.calls + other.calls,
            self.faults + other.faults,
            self.given_up + other.given_up,
            other.broken,
            other.unable,
        )

    def for_json(self) -> Mapping[str, Any]:
        """What programs are told."""
        return {
            "clusters": self.clusters,
            "calls": self.calls,
            "faults": self.faults,
            "given_up": self.given_up,
            "broken": to_builtins(self.broken),
        }


_DECODE: Final = msgspec.json.Decoder(Simulated).decode


def simulated(file: Path, name: str, first: int, seeds: int) -> Simulated:
    """What came of so many clusters of the class, or of as many as there is time for; nothing is run after one that went wrong.

    Raises Usage where the code is not able to go on.
    """
    words = [sys.executable, "-m", f"{__package__}.clusters", str(file), name, str(first), str(seeds)]
    env = os.environ | {"PYTHONHASHSEED": "1"}  # A set is in the same order each time.
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as begun:
        try:
            out, error = begun.communicate(timeout=SIMULATED_S_MAX)
            is_ended = True
        except subprocess.TimeoutExpired:
            begun.kill()
            out, error = begun.communicate()
            is_ended = False
    total = Simulated()
    for line in out.splitlines(keepends=True):
        if line.endswith(b"\n"):  # It may have been killed amid the last one.
            total = total.with_one(_DECODE(line))
    if total.broken is not None:
        return total
    if total.unable:
        raise Usage(total.unable)
    if is_ended and total.clusters < seeds:
        said = error.decode(errors="replace").strip().splitlines()
        raise Usage(said[-1] if begun.returncode and said else f"{file}:{name} ended its process")
    return total
