"""Which input a report has: what `--cluster` names, which time is asked for, and probes of several observers."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Final

import pytest
from rich.console import Console

from quorate.adts.types.catalogue import CONFIGURATION, known_types
from quorate.api_specs.cluster import parse
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.cli.failure import Failure, Usage
from quorate.cli.reports import observed
from quorate.cli.reports.observed import cluster_at, prepare, time_asked
from quorate.spark_reports.model.period import END_US, EVERYTHING, Asked
from quorate.spark_reports.report import Options, make_report
from tests.unit.spark_reports.test_merging import DAY_S, log

DAY_US: Final = 86_400_000_000
NOW_US: Final = DAY_S * 1_000_000 + 5_000_000
STORY: Final = Console(quiet=True)


def wanted(**options: Any) -> dict[str, Any]:
    """The options of a report, where none is given."""
    return {
        "cluster": None,
        "store": None,
        "adt": None,
        "present": None,
        "changes": [],
        "votes": {},
        "step_s": None,
        "asked": EVERYTHING,
    } | options


def test_a_cluster_is_named_as_everywhere_and_else_it_is_a_name_in_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shop").mkdir()
    assert cluster_at("shop") is None, "a folder without a cluster file"
    Path("shop", "cluster.toml").write_text("")
    assert cluster_at("shop") == cluster_at("shop/cluster.toml") == "shop/cluster.toml"
    assert cluster_at("127.0.0.1:8001") == "127.0.0.1:8001"
    assert cluster_at("http://127.0.0.1:8001") == "http://127.0.0.1:8001"
    assert cluster_at("other") is None


@pytest.mark.parametrize(
    ("asked", "shown", "from_us", "to_us"),
    [
        (EVERYTHING, EVERYTHING, 0, END_US),
        (Asked(last_us=2_000_000), Asked(NOW_US - 2_000_000), NOW_US - 2_000_000, END_US),
        (Asked(to_us=9_000_000, last_us=2_000_000), Asked(7_000_000, 9_000_000), 7_000_000, 9_000_000),
        (Asked(3_000_000, 9_000_000), Asked(3_000_000, 9_000_000), 3_000_000, 9_000_000),
    ],
)
def test_the_last_days_of_a_running_cluster_are_those_before_now(
    asked: Asked, shown: Asked, from_us: int, to_us: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: NOW_US * 1000)
    assert time_asked(asked, of_days=False) == (shown, from_us / 1e6, to_us / 1e6)
    # A store says what its last days are, and is given whole days.
    told, from_s, to_s = time_asked(asked, of_days=True)
    assert (told, to_s) == (asked, END_US / 1e6)
    assert from_s * 1e6 % DAY_US == 0
    assert max(0, from_us - 2 * DAY_US) <= from_s * 1e6 <= max(0, from_us - DAY_US)


def test_probes_of_several_observers_are_merged_and_other_input_is_left_alone(tmp_path: Path) -> None:
    log(tmp_path / "a", "r1", [("r1", DAY_S, 1)])
    log(tmp_path / "b", "r2", [("r1", DAY_S, 0)])
    out, options = tmp_path / "out", wanted()
    assert prepare(STORY, [tmp_path / "a"], out, options) == (tmp_path / "a", options, ())
    assert not out.exists()
    both = prepare(STORY, [tmp_path / "a", tmp_path / "b"], out, options)
    assert both.place == out / "probes"
    assert both.notes == [f"Merged into {out / 'probes'}: 1 samples, seen by r1, r2."]
    log(tmp_path / "a", "r2", [("r1", DAY_S, 0)])
    assert prepare(STORY, [tmp_path / "a"], out, options).place == out / "probes"
    kept = wanted(store=tmp_path / "days", cluster="shop")
    assert prepare(STORY, [], out, kept) == (None, kept, ())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "there is nothing to report on: give --input, --cluster, or --store and --cluster"),
        (
            {"cluster": "shop"},
            "--cluster shop: there is no such cluster file, folder of `quorate up`, or URL",
        ),
    ],
)
def test_no_input_is_refused(options: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(Usage, match=sentence):
        prepare(STORY, [], tmp_path, wanted(**options))


class Odd(BaseHTTPRequestHandler):
    """Answers as no replica does."""

    told = b"{}"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.told)))
        self.end_headers()
        self.wfile.write(self.told)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture
def odd(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[dict[str, Any]], str]]:
    """Have a server answer that, whatever it is asked: its URL."""
    with HTTPServer(("127.0.0.1", 0), Odd) as server:

        def answering(told: dict[str, Any]) -> str:
            monkeypatch.setattr(Odd, "told", json.dumps(told).encode())
            return f"http://127.0.0.1:{server.server_port}"

        serving = threading.Thread(target=server.serve_forever, daemon=True)
        serving.start()
        yield answering
        server.shutdown()
        serving.join()


ROW: Final = {"replica": "r1", "time_s": DAY_S, "up": 1, "latency_s": None}


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"every_s": 1, "rows": []}, "it answers, but not as a replica does"),
        ({"every_s": 1, "rows": [ROW | {"up": 2}], "next": ""}, "it answers, but not as a replica does"),
        ({"every_s": 1, "rows": [], "next": "20261101T000000Z.0"}, "its probe log does not come to an end"),
    ],
)
def test_what_no_replica_answers_is_told_and_taken_for_nothing(
    told: dict[str, Any], why: str, tmp_path: Path, odd: Callable[[dict[str, Any]], str]
) -> None:
    url = odd(told)
    assert observed._fetch(url, None, 0.0, 1.0, tmp_path / "rows").missing == why
    assert (tmp_path / "rows").read_bytes() == b""


def test_a_new_store_gets_step_and_votes_of_the_cluster_and_keeps_them(
    tmp_path: Path, odd: Callable[[dict[str, Any]], str]
) -> None:
    url = odd({"every_s": 5, "rows": [ROW], "next": ""})
    members = ((url, 1), (url.replace("127.0.0.1", "localhost"), 0))
    replicas = "".join(
        f'[[replicas]]\nid = "r{n}"\nurl = "{each}"\nvotes = {votes}\n'
        for n, (each, votes) in enumerate(members, 1)
    )
    (file := tmp_path / "cluster.toml").write_text(f'name = "shop"\n{replicas}')
    options = wanted(store=tmp_path / "days", cluster=str(file))
    found = prepare(STORY, [], tmp_path / "out", options).wanted
    assert (found["cluster"], found["step_s"], found["votes"]) == ("shop", 5, {"r1": 1})
    assert found["name"] == "shop"
    given = prepare(STORY, [], tmp_path / "out", options | {"step_s": 7.0, "votes": {"r1": 3}}).wanted
    assert (given["step_s"], given["votes"]) == (7.0, {"r1": 3})
    make_report(tmp_path / "out" / "probes", tmp_path / "out", Options(**{**found, "adt": "queue"}))
    again = prepare(STORY, [], tmp_path / "out", options).wanted
    assert (again["cluster"], again["step_s"], again["votes"]) == ("shop", None, {})


def test_replicas_without_probe_logs_say_how_to_have_them(cluster: LocalCluster, tmp_path: Path) -> None:
    with pytest.raises(Failure) as caught:
        prepare(STORY, [], tmp_path / "out", wanted(cluster=str(cluster.document_path)))
    assert str(caught.value) == (
        "No replica tells of that time what it saw ("
        + "; ".join(
            f"r{n}: this replica keeps no probe log: serve it with --probe-log FOLDER" for n in (1, 2, 3)
        )
        + "). Serve them with --probe-log."
    )
    assert not (tmp_path / "out").exists()


def test_the_clusters_own_register_is_no_object_of_a_type(
    odd: Callable[[dict[str, Any]], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is there once a configuration was changed. The server says the same of every type, so it is asked of one."""
    monkeypatch.setattr(observed, "known_types", lambda: {"register": known_types()["register"]})
    for objects, kept in (([CONFIGURATION], None), ([CONFIGURATION, "register/a"], "register")):
        url = odd({"objects": [{"object": name} for name in objects]})
        document = parse(f'name = "shop"\n[[replicas]]\nid = "r1"\nurl = "{url}"\n')
        assert observed._type_kept(document) == kept
