"""Reports that speak of another cluster, or of nothing: each is refused with what to do."""

import json
from pathlib import Path

import pytest

from quorate.api_specs.cluster import BadCluster, ChoiceRule, ClusterDocument, Fallback, parse
from quorate.cli.cluster.choice_command import with_rule
from quorate.cli.failure import Usage
from quorate.cli.quorums.advice import Advice
from quorate.spark_reports.report import Options, make_report
from tests.unit.spark_reports.input.test_foreign import answer, series

ROOT = Path(__file__).parents[4]


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


FIVE = parse(
    "\n".join(
        [
            'name = "local"',
            *(f'[[replicas]]\nid = "r{n}"\nurl = "http://r{n}.example.net:8000"' for n in range(1, 6)),
        ]
    )
)
"""A cluster of the replicas of the example."""


def example(folder: Path, mix: dict[str, float]) -> Path:
    make_report(ROOT / "examples" / "up.json", folder, Options(engine="python", adt="queue", mix=mix))
    return folder


@pytest.fixture(scope="module")
def switching(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the example with Enq and Deq wanted alike: a standing rule wins, maybe by chance."""
    return example(tmp_path_factory.mktemp("switching"), {"Enq": 1.0, "Deq": 1.0})


def test_the_standing_rule_is_that_of_the_report_by_the_names_of_members(switching: Path) -> None:
    advice = Advice(switching, FIVE, "queue/jobs", is_standing=True)
    of_three = "choose(2; r1, r2, r5)"
    assert advice.rule == ChoiceRule(
        "queue/jobs",
        {"Enq/Ok": (0, 3), "Deq/Ok": (3, 3), "Deq/Empty": (3, 0)},
        fallback=Fallback(down=("r3", "r4"), reads=of_three, writes=of_three),
    )
    wins, rule = advice.sentences
    assert wins.endswith(
        "(+4.49 points, 95 % interval \N{MINUS SIGN}0.96 to +14.67, so that it may be chance)."
    )
    assert rule.startswith('It is "Enq (0, 3), Deq (3, 3)", and "majority of r1.example.net:8000, ')
    (row,) = advice.compared(FIVE, with_rule(FIVE, advice.rule))
    assert row.told == "Enq/Ok, Deq/Ok, Deq/Empty available 82.63 % -> 87.13 % of that time"
    told = advice.shares["standing"]
    assert (told["certain"], told["difference"]) == (False, pytest.approx(0.0449, abs=1e-4))


def test_without_being_asked_for_a_standing_rule_is_not_spoken_of(switching: Path) -> None:
    advice = Advice(switching, FIVE, "queue/jobs")
    assert (advice.rule.standing, advice.sentences, advice.shares) == (None, [], {})


def test_a_standing_rule_that_wins_nothing_or_cannot_switch_is_refused(
    switching: Path, out: Path, tmp_path: Path
) -> None:
    nothing = example(tmp_path / "nothing", {"Enq": 9.0, "Deq": 1.0})
    with pytest.raises(Usage) as caught:
        Advice(nothing, FIVE, "queue/jobs", is_standing=True)
    assert str(caught.value).startswith(
        f"--advice {nothing}/figures.json has no standing rule: leave --standing out. For the queue, switching quorums as replicas fail "
        "wins nothing here: "
    )
    with pytest.raises(
        Usage, match=r"leave --standing out\. For the queue, no standing rule was found that could have"
    ):
        Advice(out, cluster(), "queue/jobs", is_standing=True)
    rule = Advice(switching, FIVE, "queue/jobs", is_standing=True).rule
    eager = with_rule(FIVE, ChoiceRule("queue/fast", {"Enq/Ok": (0, 1), "Deq/Ok": (5, 1)}))
    with pytest.raises(
        BadCluster, match=r"while r3 and r4 are down no fallback could be put in force: .* queue/fast"
    ):
        with_rule(eager, rule)
