"""Shows that the benchmarks still start, and that what is made of their lines (plots, ratios) is made as it says.

No figure is measured here: that takes a machine that does nothing else.
"""

import asyncio
import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
# Without a command: what others import, and what only a Python with the peers' packages can run.
MODULES = {
    "changing",
    "circumstances",
    "consumers",
    "paced",
    "peers",
    "plain_http",
    "processor_time",
    "works",
}
MODULES |= {"peer_run", "peer_changing"}
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in MODULES)
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def _on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FOLDER)


@pytest.mark.parametrize("script", SCRIPTS)
def test_script_explains_itself(script: str) -> None:
    command = [sys.executable, str(FOLDER / f"{script}.py"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert f"usage: {script}.py" in done.stdout


def point(system: str, width: int, **figures: float) -> dict[str, Any]:
    """A line of the sweep."""
    line = {"sweep": "enqueue", "system": system, "in_flight": width, "load": 0.1}
    return line | {"per_s": 1000.0 * width, "p50_ms": 1.0, "p90_ms": 2.0} | figures


def test_a_plot_says_in_words_what_it_draws(tmp_path: Path) -> None:
    lines = [point("Quorate", 1), point("Quorate", 64), point("etcd", 1), point("etcd", 64, per_s=321.0)]
    run = {"made_by": {"cpus": 2, "commit": "c"}, "sweep": lines}
    (tmp_path / "run.json").write_text(json.dumps(run))
    words = [str(FOLDER / "plots.py"), str(tmp_path / "run.json"), "--out", str(tmp_path)]
    subprocess.run([sys.executable, *words], check=True, timeout=60)
    root = ElementTree.parse(tmp_path / "throughput.svg").getroot()
    assert len(root.findall(f".//{SVG}g/{SVG}polyline")) == 2
    description = root.findtext(f"{SVG}desc") or ""
    assert "Quorate: 1: 1,000, 64: 64,000." in description
    assert "etcd: 1: 1,000, 64: 321." in description
    assert "2 cores, commit c, load 0.1 to 0.1" in "".join(root.itertext())


def test_labels_at_the_ends_of_lines_keep_apart() -> None:
    plots: Any = __import__("plots")
    ends = [(y, plots.Series(f"s{y}", "etcd", [])) for y in (100.0, 101.0, 100.5, 225.0, 226.0)]
    placed = [y for y, _ in plots._apart(ends)]
    assert all(low + plots.LABEL_APART <= high for low, high in itertools.pairwise(placed))
    assert max(placed) <= plots.PANEL_HEIGHT - plots.BOTTOM


def test_an_experiment_that_fails_keeps_no_other_from_running(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run: Any = __import__("run")

    def broken(_: object) -> Iterator[dict[str, Any]]:
        yield {"line": 1}
        raise ConnectionError("gone")

    monkeypatch.setattr(run, "EXPERIMENTS", {"broken": broken, "good": lambda _: iter([{"line": 2}])})
    found, is_good = run.run(["broken", "good"], None)
    assert not is_good
    assert {name: [line["line"] for line in lines] for name, lines in found.items()} == {
        "broken": [1],
        "good": [2],
    }
    told = capsys.readouterr()
    assert [json.loads(line)["experiment"] for line in told.out.splitlines()] == ["broken", "good"]
    assert "ConnectionError: gone" in told.err


def test_consumers_are_compared_pair_by_pair() -> None:
    consumers: Any = __import__("consumers")
    found = consumers.summary({"one": [100.0, 50.0, 10.0], "many": [100.0, 200.0, 20.0]})
    assert found == {"one": 50.0, "many": 100.0, "many to one": [2.0, 1.0, 4.0]}


def test_a_ratio_is_taken_pair_by_pair_against_the_better_way() -> None:
    peers: Any = __import__("peers")
    leader = peers.OPPONENTS["REST", "enqueue"]
    theirs = [
        {leader: 100.0, peers.BETTER_WAYS[leader]: 200.0},
        {leader: 50.0, peers.BETTER_WAYS[leader]: 10.0},
    ]
    found = peers.beside(("REST", "enqueue"), [100.0, 100.0], theirs)
    assert found["peer_runs"] == [200.0, 50.0]
    assert (found["ratio_min"], found["ratio_max"]) == (0.5, 2.0)
    assert peers.beside(("REST", "enqueue"), [100.0], []) == {}


def test_a_run_in_which_the_peer_failed_is_left_out() -> None:
    peers: Any = __import__("peers")
    theirs = [{peers.OPPONENTS["B", "put"]: 50.0}, {}]
    found = peers.beside(("B", "put"), [100.0, 100.0], theirs)
    assert (found["peer_runs"], found["ratio"]) == ([50.0], 2.0)


async def test_an_operation_counts_for_each_phase_in_which_it_is_under_way() -> None:
    """One is under way as the phase begins, and ends in it; all that begin in it fail."""
    paced: Any = __import__("paced")
    begun, may_end = [asyncio.Event() for _ in range(3)], [asyncio.Event() for _ in range(3)]

    async def call(number: int) -> None:
        if number < len(begun):
            begun[number].set()
            await may_end[number].wait()
        if number:
            raise ConnectionError

    async with paced.Callers([{"put": call}], 0.0) as callers:
        await begun[0].wait()

        async def change() -> None:
            may_end[0].set()
            await begun[1].wait()

        change_told = asyncio.create_task(callers.during(change()))
        await begun[1].wait()
        may_end[1].set()
        await begun[2].wait()
        may_end[2].set()
        told = await change_told
    assert told["failed"] == told["errors"]["ConnectionError"] == told["operations"] - 1
    assert told["longest"] == "put"


def test_the_longest_of_all_changes_leaves_out_quiet_phases_and_runs_that_failed() -> None:
    changing: Any = __import__("changing")
    line = {"system": "etcd", "failed": 0}
    phases = [("quiet", 900.0), ("start", 800.0), ("add", 20.0), ("remove", 30.0)]
    run = [line | {"phase": phase, "longest_ms": longest} for phase, longest in phases]
    (found,) = changing.summaries(
        [run, [], [*run, line | {"phase": "replace", "longest_ms": 50.0, "failed": 2}]]
    )
    assert (found["longest_ms"], found["median_ms"], found["failed"]) == ([30.0, 50.0], 40.0, 2)


@pytest.mark.parametrize(
    ("file", "where"),
    [
        ("api_specs/checking.py", "checks"),
        ("replica/access/rate.py", "checks"),
        ("replica/service/reply_budget.py", "checks"),
        ("replica/service/member.py", "handing to the writer"),
        ("replica/store/group_commit.py", "handing to the writer"),
        ("client_sdk/transport/http1.py", "HTTP"),
        ("replica/server/direct.py", "HTTP"),
        ("replica/http/gate.py", "HTTP"),
        ("replica/api/protocol_api.py", "HTTP"),
        ("client_sdk/transport/driver.py", "machine and store"),
        ("replica/protocol/acceptor.py", "machine and store"),
        ("benchmarks/works.py", "the caller"),
    ],
)
def test_processor_time_is_charged_where_the_file_lies(file: str, where: str) -> None:
    assert (FOLDER.parent / file).is_file(), "the file has moved: say where, in PLACES too"
    assert __import__("processor_time").class_of(f"{FOLDER.parent / file}:1") == where
