"""How quick the service is, on clusters that this program starts on this machine, also beside other systems: one JSON file per run.

    python benchmarks/run.py --out RUN.json [--only works,sweep,...] [--runs 5] [--replicas 3] [--peers FOLDER] [--peers-python PYTHON]
    python benchmarks/run.py --out RUN.json --trial      whether it all works here, in less than a minute

A cluster of one's own is measured by `quorate bench`, with the same works. Items have 100 bytes; an operation is acknowledged when it is on
disk at a quorum. Experiments: EXPERIMENTS. Each is a list of lines in the file, which are printed as they come. One that fails does not keep the
others from running; the exit code is then 1. `plots.py` draws what `sweep` found. A trial is as short as it can be, and its figures say nothing.

`--peers` (or QUORATE_PEERS) names a folder with scripts that start other systems: then runs of ours and of theirs alternate.
"""

import argparse
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import changing
import consumers
import processor_time
import works
from circumstances import Line, Setting, machine
from peers import add_options, chosen

EXPERIMENTS: Final[dict[str, Callable[[Setting], Iterator[Line]]]] = {
    "works": works.run,
    "sweep": works.sweep,
    "consumers": consumers.run,
    "processor_time": processor_time.run,
    "changing": changing.run,
}


def run(names: list[str], setting: Setting) -> tuple[dict[str, list[Line]], bool]:
    """The lines of each experiment, and whether all ended well."""
    found: dict[str, list[Line]] = {}
    is_good = True
    for name in names:
        lines, begun_s = found.setdefault(name, []), time.monotonic()
        try:
            for line in EXPERIMENTS[name](setting):
                lines.append(line | {"load": round(os.getloadavg()[0], 2)})
                print(json.dumps({"experiment": name} | lines[-1]), flush=True)
        except Exception:  # noqa: BLE001 - whatever it was, the others are worth having
            traceback.print_exc()
            is_good = False
        print(f"{name}: {time.monotonic() - begun_s:.0f} s", file=sys.stderr, flush=True)
    return found, is_good


def options_of(words: list[str] | None = None) -> tuple[argparse.ArgumentParser, argparse.Namespace]:
    """What all experiments share, and what some of them take."""
    text = (__doc__ or "").replace("EXPERIMENTS", ", ".join(EXPERIMENTS))
    for name, experiment in EXPERIMENTS.items():
        text += f"\n{name}: {experiment.__doc__}"
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    parser.add_argument("--only", default=",".join(EXPERIMENTS), metavar="NAMES")
    parser.add_argument("--runs", type=int, default=5, help="of works; of consumers and changing 3 at most")
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--trial", action="store_true", help="as short as it can, on one replica")
    parser.add_argument("--works", default=",".join(works.RUN), help="of the experiment works")
    parser.add_argument(
        "--rest-ms", type=float, default=20.0, help="changing: between two operations of a caller"
    )
    parser.add_argument(
        "--carry",
        type=int,
        nargs=2,
        metavar=("ENTRIES", "KEYS"),
        help="changing: a cluster that holds so much gets a learner",
    )
    parser.add_argument("--rate", default="", help="changing: objects a second that a vote carries")
    add_options(parser)
    return parser, parser.parse_args(words)


def main() -> int:
    """Run what is asked for."""
    parser, options = options_of()
    names = options.only.split(",")
    letters = options.works.split(",")
    for given, known in ((names, list(EXPERIMENTS)), (letters, list(works.RUN))):
        if unknown := set(given) - set(known):
            parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    if options.trial:
        options.runs = options.replicas = 1
        letters = [each for each in letters if each != "D"]  # Nothing goes on without the only replica.
    setting = Setting(options.runs, options.replicas, options.trial, chosen(options), letters, options)
    made_by = machine() | {"is_trial": options.trial}
    found, is_good = run(names, setting)
    options.out.write_text(json.dumps({"version": 1, "made_by": made_by} | found) + "\n", encoding="utf-8")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
