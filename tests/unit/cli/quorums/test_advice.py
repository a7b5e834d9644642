"""Reports that speak of another cluster, or of nothing: each is refused with what to do."""

import json
from pathlib import Path

import pytest

from quorate.api_specs.cluster import ClusterDocument, parse
from quorate.cli.failure import Usage
from quorate.cli.quorums.advice import Advice
from quorate.spark_reports.report import Options, make_report
from tests.unit.spark_reports.input.test_foreign import answer, series


def cluster(votes: int = 1) -> ClusterDocument:
    members = [
        f'[[replicas]]\nid = "r{number}"\nurl = "http://127.0.0.1:{8000 + number}"\nvotes = {votes if number == 1 else 1}'
        for number in (1, 2, 3)
    ]
    return parse("\n".join(['name = "local"', *members]))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """The report of an hour in which the second and third replica, named by host and port, fail together for a quarter of it."""
    times = [60.0 * minute for minute in range(60)]
    down = [(time_s, "0" if 900 <= time_s < 1800 else "1") for time_s in times]
    up = [(time_s, "1") for time_s in times]
    export = answer(
        tmp_path,
        series("127.0.0.1:8001", *up),
        series("127.0.0.1:8002", *down),
        series("127.0.0.1:8003", *down),
    )
    mix = {"Enq": 3.0, "Deq": 1.0}
    make_report(export, tmp_path / "out", Options(engine="python", adt="queue", mix=mix))
    return tmp_path / "out"


def refused(place: Path, objects: str = "queue/jobs", votes: int = 1) -> str:
    with pytest.raises(Usage) as caught:
        Advice(place, cluster(votes), objects)
    return str(caught.value)


def changed(out: Path, **parts: object) -> Path:
    path = out / "figures.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | parts), encoding="utf-8")
    return path


def test_the_advice_is_a_rule_with_figures_of_any_choice(out: Path) -> None:
    assert Advice(out / "figures.json", cluster(), "queue/jobs").rule.classes["Enq/Ok"] == (0, 1)
    advice = Advice(out, cluster(), "queue/fast-*")
    assert advice.rule.objects == "queue/fast-*"
    assert advice.rule.classes == {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1), "Deq/Empty": (3, 0)}
    assert advice.source == f"{out / 'figures.json'}: 60 min, prometheus (up.json)"
    (row,) = advice.compared(cluster(), cluster())
    assert (row.event_classes[:2], row.before, row.after) == (("Enq/Ok", "Deq/Ok"), 0.75, 0.75)


def test_a_report_of_another_cluster_is_refused(out: Path) -> None:
    assert refused(out, votes=2) == (
        f"--advice {out}/figures.json counts other votes than the cluster: make the report again with "
        "--votes 127.0.0.1:8001=2,127.0.0.1:8002=1,127.0.0.1:8003=1"
    )
    rows = json.loads((out / "figures.json").read_text())["replicas"]
    two = changed(out, replicas=rows[:2])
    assert refused(two) == (
        f"--advice {two} is about the replicas 127.0.0.1:8001, 127.0.0.1:8002, and the cluster's members are "
        "r1, r2, r3: make a report of these"
    )
    assert "is about the replicas other, 127.0" in refused(
        changed(out, replicas=[rows[0] | {"replica": "other"}, *rows[1:]])
    )


def test_a_report_of_another_type_or_without_advice_is_refused(out: Path) -> None:
    assert refused(out, "register/config") == (
        f"--advice {out}/figures.json is about objects of type queue, and not about register/config: make a report with "
        "--type register"
    )
    assert refused(changed(out, recommendations=[])).endswith("recommends no choice: its report says why")


def test_what_is_no_report_is_refused(out: Path, tmp_path: Path) -> None:
    assert refused(tmp_path / "nowhere").endswith(
        "nowhere cannot be read (No such file or directory): name the folder of a report, or its figures.json"
    )
    assert "cannot be read" in refused(tmp_path), "a folder without one"
    path = out / "figures.json"
    path.write_bytes(path.read_bytes()[:-2])
    assert "figures.json is damaged" in refused(out)
