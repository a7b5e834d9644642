"""Prometheus itself asks three replicas, and is given the pages' own lines: what it scrapes, what operators watch, and the
report of a replica that was killed.

Prometheus samples: each limit below follows from how often it asks, and from how often its answer has a value.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.measurement.faults.held_ports import HeldPort
from tests.docs.pages import ROOT, blocks_of, blocks_run_by
from tests.system.deployment.test_alerts import EXPRESSIONS
from tests.system.harness import until_now

TOOLS: Final = ("prometheus", "promtool", "curl")
WAIT_S: Final = 60
SCRAPE_S: Final = 1
STEP_S: Final = 1
DOWN_S: Final = 8
TOLERANCE_S: Final = 2 * SCRAPE_S + STEP_S
"""A change is met by the next scrape, or by one that was under way, which takes no longer; then by the next step."""

WITH_STANDING_RULES: Final = {"quorate_fallback_in_force"}
"""Metrics that a cluster without such rules does not have."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(map(shutil.which, TOOLS)),
        reason=f"needs {', '.join(TOOLS)}; on Debian and Ubuntu: apt-get install prometheus curl",
    ),
]


class Prometheus:
    """One that runs, and answers at `url`."""

    def __init__(self, url: str) -> None:
        self.url: Final = url

    def ask(self, query: str) -> list[dict[str, Any]]:
        """The series that an expression gives now. Fails where it is no expression."""
        answer = httpx.get(
            f"{self.url}/api/v1/query", params={"query": query}, trust_env=False, timeout=WAIT_S
        )
        assert answer.is_success, f"{query}: {answer.text}"
        found: list[dict[str, Any]] = answer.json()["data"]["result"]
        return found

    def labels(self, query: str, label: str) -> list[str]:
        """The values of a label of these series, in order."""
        return sorted(series["metric"][label] for series in self.ask(query))


def done(command: list[str], folder: Path, given: str = "") -> str:
    """What a command prints, which must end well."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    ended = subprocess.run(
        command,
        cwd=folder,
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=WAIT_S,
        check=False,
        env=os.environ | {"PATH": path},
    )
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


def block_of(page: str) -> str:
    """The block of a page that is run here."""
    (found,) = (
        block for block in blocks_run_by("tests/system/deployment/test_prometheus.py") if block.page == page
    )
    return found.text


def replaced(text: str, places: dict[str, str]) -> str:
    """The text with the test's words in place of the page's, each of which must be there."""
    for old, new in places.items():
        assert old in text, f"{old} is not in:\n{text}"
        text = text.replace(old, new)
    return text


def host(cluster: LocalCluster, replica: str) -> str:
    """Host and port of a replica, as Prometheus names it."""
    return cluster.urls[replica].removeprefix("http://")


@contextmanager
def guarded_cluster(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCluster]:
    """Three replicas that ask for tokens; files `shop` and `prometheus` hold those of callers."""
    for scope, name in (("replica", "replicas"), ("write", "shop"), ("read", "prometheus")):
        words = ["--scope", scope, "--name", name, "--add", "tokens", "--out", name]
        done(["quorate", "token", "new", *words], folder)
    monkeypatch.setenv("QUORATE_TOKENS_FILE", str(folder / "tokens"))
    token = (folder / "replicas").read_text().strip()
    with LocalCluster.create(folder / "cluster", token=token) as cluster:
        cluster.start()
        cluster.ready()
        yield cluster


@contextmanager
def prometheus_of(cluster: LocalCluster, folder: Path) -> Iterator[Prometheus]:
    """Prometheus, configured as the page says; it has scraped each replica when this begins."""
    places = {f"10.0.0.{n}:8001": host(cluster, f"r{n}") for n in (1, 2, 3)}
    places["/etc/prometheus/quorate-token"] = str(folder / "prometheus")
    page = replaced(block_of("docs/how-to/monitoring.md"), places)
    seconds = f"scrape_interval: {SCRAPE_S}s, evaluation_interval: {SCRAPE_S}s"
    (folder / "prometheus.yml").write_text(f"global: {{{seconds}}}\n{page}")
    shutil.copy(ROOT / "packaging/monitoring/quorate.rules.yml", folder)
    done(["promtool", "check", "config", "prometheus.yml"], folder)
    held = HeldPort.chosen()
    command = ["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=series"]
    command.append(f"--web.listen-address=127.0.0.1:{held.number}")
    log = folder / "prometheus.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
    try:
        url = f"http://127.0.0.1:{held.number}"
        until_now(lambda: is_ready(process, url, log), "Prometheus is not ready")
        found = Prometheus(url)
        until_now(lambda: len(found.ask('up{job="quorate"} == 1')) == 3, "Prometheus scrapes all replicas")
        yield found
    finally:
        process.terminate()
        try:
            process.wait(WAIT_S)
        finally:
            process.kill()
            process.wait(WAIT_S)


def is_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> bool:
    """Whether it answers queries; fails where it has ended."""
    assert process.poll() is None, log.read_text()
    try:
        return httpx.get(f"{url}/-/ready", trust_env=False, timeout=WAIT_S).is_success
    except httpx.TransportError:
        return False


def watched() -> list[str]:
    """The expressions that the page tells operators to look at: the code in its table's first column."""
    table = (
        (ROOT / "docs/how-to/monitoring.md")
        .read_text()
        .partition("## What to look at first\n")[2]
        .partition("\n## ")[0]
    )
    rows = [re.split(r"(?<!\\)\|", line)[1] for line in table.splitlines() if line.startswith("| ")]
    spans = [span.replace("\\|", "|") for row in rows for span in re.findall(r"`([^`]*)`", row)]
    return [span for span in spans if re.search(r"\bup\b|quorate_", span)]


def names_in(expression: str) -> set[str]:
    """The metrics that an expression reads."""
    return set(re.findall(r"\bup\b|quorate_\w+", expression))


def check_scraped(prometheus: Prometheus, cluster: LocalCluster, folder: Path) -> None:
    """A counter and a histogram arrive as counted, the exposition is in form, and what operators watch is there."""
    headers = {"Authorization": f"Bearer {(folder / 'shop').read_text().strip()}"}
    with httpx.Client(
        base_url=cluster.urls["r1"], headers=headers, trust_env=False, timeout=WAIT_S
    ) as client:
        for _ in range(3):
            client.post("/v1/queues/jobs/items", json={"item": "fold"}).raise_for_status()
        assert client.get("/v1/queues/jobs", headers={"Authorization": "Bearer none"}).status_code == 401
        shown = client.get("/metrics").raise_for_status().text
    done(["promtool", "check", "metrics"], folder, shown)
    added = f'{{type="queue",operation="Enq",instance="{host(cluster, "r1")}"}}'
    until_now(
        lambda: bool(prometheus.ask(f"quorate_operations_total{added} == 3")), "the counter counts to three"
    )
    assert prometheus.ask(f"quorate_operation_duration_seconds_count{added} == 3")
    named = 'quorate_one_queue_entries_waiting{queue="jobs"} == 3'
    until_now(lambda: bool(prometheus.ask(named)), "the queue is told of by its name")
    (median,) = prometheus.ask(f"histogram_quantile(0.5, quorate_operation_duration_seconds_bucket{added})")
    assert 0 < float(median["value"][1]) < WAIT_S
    assert len(watched()) > 10
    for expression in [*watched(), *EXPRESSIONS]:
        prometheus.ask(expression)
        names = names_in(expression) - WITH_STANDING_RULES
        assert [name for name in names if not prometheus.ask(name)] == [], expression


def kill_for_a_while(prometheus: Prometheus, cluster: LocalCluster) -> tuple[float, float]:
    """Kill r3 and bring it back: the least and the most seconds that it was away, for it answers before it is ready."""
    killed_s = time.monotonic()
    cluster.kill("r3")
    until_now(lambda: prometheus.labels("up == 0", "instance") == [host(cluster, "r3")], "r3 is seen down")
    until_now(
        lambda: prometheus.labels("quorate_peer_up == 0", "replica") == ["r3", "r3"],
        "both others say that r3 is down",
    )
    until_now(lambda: time.monotonic() > killed_s + DOWN_S, "time passes")
    least_s = time.monotonic() - killed_s
    cluster.restart("r3")
    most_s = time.monotonic() - killed_s
    until_now(lambda: not prometheus.ask("up == 0"), "r3 is seen up again")
    until_now(lambda: not prometheus.ask("quorate_peer_up == 0"), "both others say that r3 is up")
    return least_s, most_s


def lose_a_quorum(prometheus: Prometheus, cluster: LocalCluster, folder: Path) -> None:
    """The first operation of a replica's life that finds no quorum is met by the expression of the page."""
    (missing,) = (expression for expression in watched() if "unavailable" in expression)
    assert host(cluster, "r1") not in prometheus.labels(missing, "instance")
    cluster.kill("r2")
    cluster.kill("r3")
    failed = httpx.post(
        f"{cluster.urls['r1']}/v1/queues/jobs/items",
        params={"deadline_s": 1},
        json={"item": "fold"},
        headers={"Authorization": f"Bearer {(folder / 'shop').read_text().strip()}"},
        trust_env=False,
        timeout=WAIT_S,
    )
    assert failed.status_code == 504, failed.text
    until_now(lambda: host(cluster, "r1") in prometheus.labels(missing, "instance"), missing)
    await_alert(prometheus, "QuorateOperationsFail", [host(cluster, "r1")])
    await_alert(prometheus, "QuorateReplicaDown", sorted([host(cluster, "r2"), host(cluster, "r3")]))


def await_alert(prometheus: Prometheus, alert: str, hosts: list[str]) -> None:
    """Wait until the alert's time has begun for these, and for no others."""
    query = f'ALERTS{{alertname="{alert}"}}'
    until_now(lambda: prometheus.labels(query, "instance") == hosts, alert)


def reported(prometheus: Prometheus, folder: Path, start_s: float) -> dict[str, dict[str, Any]]:
    """The figures of each replica, from the page's own commands, for the time from then to now."""
    start, end = (datetime.fromtimestamp(int(at_s), UTC) for at_s in (start_s, time.time()))
    places = {
        "http://prometheus:9090": prometheus.url,
        "2026-11-01T00:00:00Z": f"{start:%Y-%m-%dT%H:%M:%SZ}",
        "2026-11-08T00:00:00Z": f"{end:%Y-%m-%dT%H:%M:%SZ}",
        "step=60": f"step={STEP_S}",
    }
    done(["sh", "-c", replaced(block_of("docs/how-to/report.md"), places)], folder)
    page = blocks_of("docs/how-to/report.md", (ROOT / "docs/how-to/report.md").read_text())
    (report,) = (block.text for block in page if "--input up.json" in block.text)
    done(["sh", "-c", report], folder)
    figures = json.loads((folder / "out/report/figures.json").read_text())
    assert figures["source"]["kind"] == "prometheus"
    return {each["replica"]: each for each in figures["replicas"]}


def test_prometheus_asks_as_the_pages_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUORATE_REPORT_ENGINE", "python")  # Both engines compute the same.
    with (
        guarded_cluster(tmp_path, monkeypatch) as cluster,
        prometheus_of(cluster, tmp_path) as prometheus,
    ):
        check_scraped(prometheus, cluster, tmp_path)
        start_s = time.time()
        least_s, most_s = kill_for_a_while(prometheus, cluster)
        found = reported(prometheus, tmp_path, start_s)
        lose_a_quorum(prometheus, cluster, tmp_path)
        away = {host(cluster, "r1"): (0.0, 0.0), host(cluster, "r2"): (0.0, 0.0)}
        away[host(cluster, "r3")] = (least_s, most_s)
    assert found.keys() == away.keys()
    for replica, (least, most) in away.items():
        figures = found[replica]
        down_s = figures["observed_s"] * (1 - figures["up_share"])
        assert least - TOLERANCE_S <= down_s <= most + TOLERANCE_S, figures
