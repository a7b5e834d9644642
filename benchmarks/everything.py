"""All figures of docs/explanation/performance.md with one command, on a machine that does nothing else: about fifty minutes.

    python benchmarks/everything.py --out FOLDER [--runs 5] [--only works,sweep,...] [--peers FOLDER] [--peers-python PYTHON]
    python benchmarks/everything.py --out FOLDER --trial      whether it all works here, in a minute or two

Runs the other benchmarks one after another; each writes FOLDER/NAME.jsonl and what it says to FOLDER/NAME.log. At the end the
plots and the model are made of them. A part that fails or takes too long does not keep the others from running; the exit code
is then 1. What each took is told on standard error, and the load of the machine before the first.

A trial runs every part as short as it can. What it measured says nothing, and goes to FOLDER/trial.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final, NamedTuple

from peers import add_options

HERE: Final = Path(__file__).parent
ENDING_S: Final = 60.0


class Part(NamedTuple):
    """One benchmark: its script and options, whether it knows peers, and its deadline in seconds."""

    words: list[str]
    beside_peers: bool
    deadline_s: float


def parts(runs: int) -> dict[str, Part]:
    """By name, in the order in which they run."""
    return {
        "works": Part(["works.py", "--works", "A,B,C,D,REST", "--runs", str(runs)], True, 400.0 * runs),
        "sweep": Part(["sweep.py"], True, 900.0),
        "consumers": Part(["consumers.py", "--pairs", str(min(runs, 3))], True, 900.0),
        "processor_time": Part(["processor_time.py"], False, 600.0),
        "growth": Part(["growth.py"], False, 1800.0),
        "changing": Part(["changing.py", "--runs", str(min(runs, 3))], True, 900.0),
    }


def trial_parts() -> dict[str, Part]:
    """The same parts, each as short as it can: on one replica, but where groups are compared, for starts take longest."""
    short = {
        "works": ["works.py", "--works", "REST", "--runs", "1", "--scale", "0.1"],
        "sweep": ["sweep.py", "--widths", "1", "8", "--seconds", "0.2"],
        "consumers": ["consumers.py", "--consumers", "2", "--batches", "1", "--pairs", "1", "--items", "50"],
        "processor_time": ["processor_time.py", "--seconds", "0.1", "--stored", "3000"],
        "growth": [
            "growth.py",
            "--only",
            "replicas,size",
            "--groups",
            "1",
            "3",
            "--scale",
            "0.002",
            "--turns",
            "1",
        ],
        "changing": ["changing.py", "--runs", "1", "--seconds", "0.2"],
    }
    return {name: part._replace(words=[*short[name], "--replicas", "1"]) for name, part in parts(1).items()}


def run(name: str, part: Part, out: Path, peers: list[str]) -> bool:
    """Run one part; whether it ended well."""
    words = [
        sys.executable,
        str(HERE / part.words[0]),
        *part.words[1:],
        *(peers if part.beside_peers else []),
    ]
    if name == "processor_time":
        words += ["--markdown", str(out / "processor_time.md")]
    begun_s = time.monotonic()
    with (out / f"{name}.jsonl").open("w") as lines, (out / f"{name}.log").open("w") as log:
        # A session of its own, so that what it started can be ended with it.
        process = subprocess.Popen(words, stdout=lines, stderr=log, start_new_session=True)
        try:
            process.wait(part.deadline_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(ENDING_S)
    print(
        f"{name}: {time.monotonic() - begun_s:.0f} s, exit code {process.returncode}",
        file=sys.stderr,
        flush=True,
    )
    return process.returncode == 0


def finish(out: Path) -> bool:
    """Plots and model, of what is there."""
    made = []
    if (out / "sweep.jsonl").exists():
        plots = [str(HERE / "plots.py"), str(out / "sweep.jsonl"), "--out", str(out)]
        made.append(subprocess.run([sys.executable, *plots], check=False).returncode)
    if all((out / f"{name}.jsonl").exists() for name in ("processor_time", "sweep", "growth")):
        with (out / "model.md").open("w") as text:
            model = [sys.executable, str(HERE / "model.py"), str(out)]
            made.append(subprocess.run(model, stdout=text, check=False).returncode)
    return not any(made)


def main() -> int:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default=",".join(parts(1)))
    parser.add_argument("--trial", action="store_true", help="as short as it can; its figures say nothing")
    add_options(parser)
    options = parser.parse_args()
    known = trial_parts() if options.trial else parts(options.runs)
    names = options.only.split(",")
    if unknown := set(names) - set(known):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    out = options.out / "trial" if options.trial else options.out
    out.mkdir(parents=True, exist_ok=True)
    peers = []
    if options.peers:
        peers = ["--peers", str(options.peers), "--peers-python", options.peers_python]
    print(f"load of the last minute: {os.getloadavg()[0]:.2f}", file=sys.stderr, flush=True)
    good = [run(name, known[name], out, peers) for name in names]
    return 0 if all([*good, finish(out)]) else 1


if __name__ == "__main__":
    sys.exit(main())
