"""What several observers saw, merged: who counts when, and files that a report and a store read."""

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

from quorate.spark_reports.input.sources import find_source
from quorate.spark_reports.merging import Merged, decided, merge, observers_in
from quorate.spark_reports.model.errors import ReportError
from quorate.spark_reports.report import Options, make_report

DAY_S: Final = 1793491200
"""2026-11-01."""
STEP_S: Final = 10


def log(folder: Path, observer: str, seen: Iterable[tuple[str, float, int]]) -> Path:
    """A probe log of what an observer saw: replica, time and state."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"probes-{observer}-20261101T000000Z.jsonl"
    path.write_text(
        "".join(
            json.dumps({"replica": r, "time_s": t, "up": up, "latency_s": None}) + "\n" for r, t, up in seen
        )
    )
    return path


def states(merged: Merged) -> dict[tuple[str, float], int]:
    """What the merged files say, by replica and time."""
    rows = [
        json.loads(line)
        for path in sorted(merged.place.glob("probes-2*.jsonl.gz"))
        for line in gzip.decompress(path.read_bytes()).decode().splitlines()
    ]
    assert len({(row["replica"], row["time_s"]) for row in rows}) == len(rows) == merged.samples
    return {(row["replica"], row["time_s"]): row["up"] for row in rows}


@pytest.mark.parametrize(
    ("own", "others", "up"),
    [
        ((), (0,), 0),
        ((), (1,), 1),
        ((), (0, 1), 1),
        ((), (0, 0), 0),
        ((1,), (0, 0), 0),
        ((0,), (1, 0), 1),
        ((1,), (), 1),
        ((0,), (), 0),
        ((0, 1), (), 1),
    ],
)
def test_others_count_and_the_own_word_where_no_other_speaks(
    own: tuple[int, ...], others: tuple[int, ...], up: int
) -> None:
    words = [7 << 2 | each for each in own] + [7 << 2 | 2 | each for each in others]
    assert decided(words) == ([7 << 1 | up], len(set(others)) - 1 if others else 0)
    assert decided(words[::-1]) == decided(words)


def test_a_replica_that_is_cut_off_is_down_and_the_others_are_not(tmp_path: Path) -> None:
    """It says that it is up, and that the others are down."""
    of = {
        "r1": [("r1", DAY_S, 1), ("r2", DAY_S, 1), ("r3", DAY_S, 0)],
        "r2": [("r1", DAY_S, 1), ("r2", DAY_S, 1), ("r3", DAY_S, 0)],
        "r3": [("r1", DAY_S, 0), ("r2", DAY_S, 0), ("r3", DAY_S, 1)],
    }
    for observer, seen in of.items():
        log(tmp_path / "logs", observer, seen)
    merged = merge([tmp_path / "logs"], tmp_path / "out" / "probes")
    assert states(merged) == {("r1", DAY_S): 1, ("r2", DAY_S): 1, ("r3", DAY_S): 0}
    assert (merged.observers, merged.split) == (["r1", "r2", "r3"], 2)


def test_an_observer_without_a_log_is_missed_by_nobody_and_a_replica_alone_counts(tmp_path: Path) -> None:
    seen = [(name, DAY_S + number * 0.1, int(name != "r2")) for number in range(3) for name in ("r1", "r2")]
    log(tmp_path / "logs", "r1", seen)
    merged = merge([tmp_path / "logs"], tmp_path / "probes")
    assert states(merged) == {(name, time_s): up for name, time_s, up in seen}


def test_each_folder_of_other_files_is_one_observer(tmp_path: Path) -> None:
    for place, up in (("a", 0), ("b", 1)):
        path = log(tmp_path / place, "r9", [("r1", DAY_S, up)])
        path.rename(path.with_name("probes.jsonl"))
    merged = merge([tmp_path / "a", tmp_path / "b"], tmp_path / "probes")
    assert states(merged) == {("r1", DAY_S): 1}
    assert merged.observers == [str(tmp_path / "a"), str(tmp_path / "b")]


def test_days_are_files_whose_bytes_do_not_change_and_former_ones_go(tmp_path: Path) -> None:
    seen = [("r1", DAY_S + 86_400 * day + number * STEP_S, 1) for day in range(2) for number in range(3)]
    path = log(tmp_path / "logs", "r2", seen)
    place = merge([tmp_path / "logs"], tmp_path / "probes").place
    files = {each.name: each.read_bytes() for each in place.iterdir()}
    assert sorted(files) == ["probes-2026-11-01.jsonl.gz", "probes-2026-11-02.jsonl.gz"]
    assert all(content[4:8] == bytes(4) for content in files.values()), "no time of packing"
    log(tmp_path / "logs", "r3", [*seen[:3], ("r1", "soon", 1)])  # type: ignore[list-item]
    merge([tmp_path / "logs"], place)
    assert sorted(each.name for each in place.iterdir()) == [*sorted(files), "probes-aside.jsonl.gz"]
    assert all((place / name).read_bytes() == content for name, content in files.items())
    path.unlink()
    merge([tmp_path / "logs"], place)
    assert sorted(each.name for each in place.iterdir()) == [
        "probes-2026-11-01.jsonl.gz",
        "probes-aside.jsonl.gz",
    ]
    assert find_source(place).has_probes()


def test_bad_rows_come_to_the_report_and_a_store_keeps_merged_days(tmp_path: Path) -> None:
    times_s = [DAY_S + number * STEP_S for number in range(6)]
    log(
        tmp_path / "logs", "r1", [*((name, t, 1) for t in times_s for name in ("r1", "r2")), ("r2", DAY_S, 7)]
    )
    log(tmp_path / "logs", "r2", [("r1", t, 1) for t in times_s])
    place = merge([tmp_path / "logs"], tmp_path / "probes").place
    options = Options(engine="python", adt="queue", step_s=STEP_S, store=tmp_path / "days", cluster="shop")
    made, again = (make_report(place, tmp_path / "out", options) for _ in range(2))
    assert "1 day new" in made.notes[0]
    assert "0 days new" in again.notes[0]
    assert [(row.reason, row.rows) for row in made.figures.rejected] == [("up is neither 0 nor 1", 1)]


def test_what_cannot_be_merged_is_refused(tmp_path: Path) -> None:
    log(tmp_path / "logs", "r1", [("r1", DAY_S, 1)])
    (tmp_path / "up.csv").write_text("time,r1\n0,1\n")
    with pytest.raises(ReportError, match=r"up\.csv is no folder of probes"):
        merge([tmp_path / "logs", tmp_path / "up.csv"], tmp_path / "probes")
    (tmp_path / "probes").mkdir()
    (tmp_path / "probes" / "mine.txt").write_text("")
    with pytest.raises(ReportError, match=r"holds mine\.txt, which no report wrote"):
        merge([tmp_path / "logs"], tmp_path / "probes")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["logs", "probes", "up.csv"]


def test_observers_are_told_by_the_names_of_files(tmp_path: Path) -> None:
    log(tmp_path / "logs", "r1", [])
    log(tmp_path / "logs", "r12", [])
    (tmp_path / "logs" / "probes-2026-11-01.jsonl").write_text("")
    assert observers_in(tmp_path / "logs") == {"r1", "r12"}
    assert observers_in(tmp_path / "nowhere") == set()
