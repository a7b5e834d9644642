"""`python -m quorate.cli.types.walked FILE NAME [other]`: the steps of a class, as JSON, in a process of their own.

Owns the border to that process. What the class prints goes to standard error, so that it is not taken for a step.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Final

from ...adts.plain_class import PlainClass
from ...adts.walk import Step, walk
from ..failure import EXIT_USAGE, Usage
from ..quorums.data_types import own_type, users_code

WALK_S_MAX: Final = 20.0
"""A walk takes less than a second, unless a method does not end."""
_APART: Final = ({"PYTHONHASHSEED": "1", "TZ": "UTC"}, {"PYTHONHASHSEED": "2", "TZ": "Pacific/Kiritimati"})
"""Two processes that order sets otherwise, and are of another day."""


def walked_apart(file: Path, name: str) -> tuple[Sequence[Step], Sequence[Step]]:
    """The steps that two processes took, in two walks. Raises Usage where one cannot."""
    words = [sys.executable, "-m", __name__, str(file), name]
    begun = [
        subprocess.Popen(
            words + which, env=os.environ | apart, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for which, apart in zip(([], ["other"]), _APART, strict=True)
    ]
    try:
        here, there = (_steps(file, name, each) for each in begun)
    finally:
        for each in begun:
            each.kill()
            each.communicate()
    return here, there


def _steps(file: Path, name: str, begun: subprocess.Popen[bytes]) -> Sequence[Step]:
    try:
        out, error = begun.communicate(timeout=WALK_S_MAX)
    except subprocess.TimeoutExpired:
        raise Usage(
            f"{file}:{name} takes more than {WALK_S_MAX:.0f} s for a few calls: does a method loop without end?"
        ) from None
    if begun.returncode or not out:
        lines = error.decode(errors="replace").strip().splitlines()
        raise Usage(lines[-1] if lines else f"{file}:{name} ended its process")
    return [Step(*step) for step in json.loads(out)]


def main() -> None:
    """Print the steps."""
    file, name, *which = sys.argv[1:]
    try:
        with redirect_stdout(sys.stderr):
            found = own_type(Path(file), name)
            if not isinstance(found, PlainClass):
                raise Usage(
                    f"{file}:{name} has `step`: `types check` is for plain classes, whose methods are the operations"
                )
            with users_code(f"{file}:{name} fails"):
                steps = list(walk(found, is_other=bool(which)))
    except Usage as error:
        print(error, file=sys.stderr)
        sys.exit(EXIT_USAGE)
    json.dump(steps, sys.stdout)


if __name__ == "__main__":
    main()
