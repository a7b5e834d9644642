"""Alert rules and dashboard: each name in them is there, each alert is seen to fire, and the page says what to do about it.

A real Prometheus asks live replicas the same expressions in `test_prometheus.py`.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from quorate.api_specs.cluster import ClockSettings
from quorate.api_specs.limits import DEAD_MAX
from quorate.replica.telemetry.metric_table import EVENTS, METRICS, OF_QUEUES, PROCESS
from tests.docs.pages import ROOT

FOLDER: Final = ROOT / "packaging/monitoring"
RULES: Final[list[dict[str, Any]]] = yaml.safe_load((FOLDER / "quorate.rules.yml").read_text())["groups"][0][
    "rules"
]
CASES: Final[list[dict[str, Any]]] = [
    case
    for test in yaml.safe_load((FOLDER / "quorate.rules.test.yml").read_text())["tests"]
    for case in test["alert_rule_test"]
]
DASHBOARD: Final[dict[str, Any]] = json.loads((FOLDER / "dashboard.json").read_text())
PAGE: Final = (ROOT / "docs/how-to/alerts.md").read_text()
OF_PROMETHEUS: Final = {"job", "instance", "le"}
"""Labels that every series may have."""
ALERTS: Final = [rule["alert"] for rule in RULES]


def expressions_of_dashboard() -> list[str]:
    """What its panels ask, with what Grafana puts in for its variables."""
    asked = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
    return [each.replace("$__rate_interval", "1m").replace("$job", "quorate") for each in asked]


EXPRESSIONS: Final = [*(rule["expr"] for rule in RULES), *expressions_of_dashboard()]


def labels_of(metric: str) -> set[str]:
    """The labels of a metric; KeyError where there is none of that name."""
    if metric == "up" or metric in PROCESS:
        return OF_PROMETHEUS
    told, base = {**METRICS, **OF_QUEUES}, re.sub(r"_(bucket|sum|count)$", "", metric)
    return {*told[metric if metric in told else base].labels, *OF_PROMETHEUS}


def metrics_in(expression: str) -> set[str]:
    """The metrics that an expression reads."""
    return set(re.findall(r"\b(?:up|quorate_\w+|process_\w+)\b(?=[{\[ )]|$)", expression))


def wrong_labels(expression: str) -> Iterator[str]:
    """Labels that the expression goes by, and that its metrics do not have."""
    for metric, matchers in re.findall(r"(\w+)\{([^}]*)\}", expression):
        yield from {label for label in re.findall(r"(\w+)=", matchers) if label not in labels_of(metric)}
    everywhere = set[str]().union(*map(labels_of, metrics_in(expression)))
    for names in re.findall(r"\b(?:by|on) ?\(([^)]*)\)", expression):
        yield from {name for name in re.split(r", *", names) if name not in everywhere}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression_names_metrics_and_labels_that_there_are(expression: str) -> None:
    assert metrics_in(expression)
    assert list(wrong_labels(expression)) == []
    for pattern in re.findall(r'event=~?"([^"]+)"', expression):
        events = [event.replace(" ", "-") for event in EVENTS]
        assert any(re.fullmatch(pattern, event) for event in events), pattern


@pytest.mark.parametrize("rule", RULES, ids=ALERTS)
def test_alert_tells_where_and_leads_to_its_part_of_the_page(rule: dict[str, Any]) -> None:
    name, told = rule["alert"], rule["annotations"]
    shown = set(re.findall(r"\$labels\.(\w+)", told["summary"])) - {"instance"}
    assert shown <= set[str]().union(*map(labels_of, metrics_in(rule["expr"])))
    assert told["runbook"] == f"docs/how-to/alerts.md#{name.lower()}"
    section = PAGE.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    assert [word for word in ("**Means.**", "**Look.**", "**Do.**") if word not in section] == []


def test_page_tells_of_these_alerts_and_of_no_others() -> None:
    assert re.findall(r"^## (Quorate\w+)$", PAGE, re.MULTILINE) == ALERTS
    assert len(ALERTS) == 10


def test_figures_of_the_rules_are_those_of_the_product() -> None:
    expressions = {rule["alert"]: rule["expr"] for rule in RULES}
    assert f"_seconds > {ClockSettings().offset_max_s / 2:g}" in expressions["QuorateClockDrifts"]
    assert f"quorate_queue_dead_letters_max / {DEAD_MAX}" in expressions["QuorateNearlyFull"]


@pytest.mark.parametrize("alert", ALERTS)
def test_each_alert_is_tried_where_it_fires_and_before(alert: str) -> None:
    cases = [case["exp_alerts"] for case in CASES if case["alertname"] == alert]
    assert any(cases)
    assert not all(cases)


def promtool(*words: str) -> str:
    """What it prints, which must end well; skips where there is none."""
    if shutil.which("promtool") is None:
        pytest.skip("no promtool here; on Debian and Ubuntu: apt-get install prometheus")
    done = subprocess.run(
        ["promtool", *words],
        cwd=FOLDER,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_alerts_fire_as_their_tests_say() -> None:
    assert "SUCCESS" in promtool("test", "rules", "quorate.rules.test.yml")


def test_every_expression_of_the_dashboard_is_one(tmp_path: Path) -> None:
    rules = [{"record": f"panel:{n}", "expr": each} for n, each in enumerate(expressions_of_dashboard())]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    assert f"{len(rules)} rules found" in promtool("check", "rules", str(tmp_path / "rules.yml"))


def test_panels_of_the_dashboard_have_their_places_and_ask_the_chosen_source() -> None:
    taken = set[tuple[int, int]]()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
        if panel["type"] != "row":
            sources = {each["datasource"]["uid"] for each in [panel, *panel["targets"]]}
            assert sources == {"${datasource}"}, panel["title"]
    numbers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(numbers)) == len(numbers)
    variables = {each["name"] for each in DASHBOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD))) - {"__rate_interval"}
    assert used == variables
