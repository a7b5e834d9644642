"""The metrics at `/metrics`: what Prometheus reads, documented, and right after known operations."""

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import httpx
import prometheus_client
import pytest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.parser import text_string_to_metric_families

import quorate.client_sdk
from quorate.api_specs.cluster import ChoiceRule, Fallback
from quorate.api_specs.messages import Append, BatchReply, Collect, Request
from quorate.api_specs.problems import KINDS
from quorate.client_sdk.protocol.core.answer_times import AnswerTimes
from quorate.client_sdk.protocol.core.values import Dequeue, Done
from quorate.client_sdk.protocol.operations import blind
from quorate.replica.service.member import Member
from quorate.replica.store import survey as surveying
from quorate.replica.store.database import Reader, StorageFailed
from quorate.replica.store.group_commit import Sized
from quorate.replica.store.store import Store
from quorate.replica.store.survey import survey
from quorate.replica.telemetry import metrics
from quorate.replica.telemetry.metric_table import EVENTS, METRICS, OF_QUEUES, PROCESS
from quorate.replica.telemetry.metrics import CONTENT_TYPE
from quorate.replica.upkeep import announcer
from tests.support.in_process import WAIT_S, InProcessCluster, in_process
from tests.system.harness import until_now
from tests.unit.replica.telemetry.metrics_page import page

ROOT: Final = Path(__file__).parents[4]
TOKEN: Final = "scraper-61c2"
AUTHORISED: Final = {"Authorization": f"Bearer {TOKEN}"}
UNITS: Final = {"duration": "_seconds", "age": "_seconds", "offset": "_seconds", "storage": "_bytes"}

TELL_S: Final = 3600.0
PATIENT_S: Final = 60.0

Scraped = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCluster]:
    """No replica tells the others how far it has come: that would come in between what is counted. And all are asked: one of them is looked at."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(announcer, "TELL_S", TELL_S)
        patch.setattr(AnswerTimes, "hedge_s", lambda *_: 0.0)
        with in_process(tmp_path_factory.mktemp("cluster"), token=TOKEN) as running:
            yield running


def scrape(cluster: InProcessCluster, replica: str = "r1", query: str = "") -> str:
    """The text that a replica answers."""
    url = f"{cluster.document.urls[replica]}/metrics{query}"
    answer = httpx.get(url, headers=AUTHORISED, timeout=WAIT_S, trust_env=False)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == CONTENT_TYPE
    return answer.text


def values(cluster: InProcessCluster, replica: str = "r1", query: str = "") -> Scraped:
    """All series of a replica, by name and labels."""
    families = text_string_to_metric_families(scrape(cluster, replica, query))
    return {
        (each.name, frozenset(each.labels.items())): each.value for one in families for each in one.samples
    }


def grown(before: Scraped, after: Scraped, name: str, **labels: str) -> float:
    """By how much a series has grown; one that is absent stands at 0."""
    where = (name, frozenset(labels.items()))
    return after.get(where, 0.0) - before.get(where, 0.0)


def post(cluster: InProcessCluster, path: str, body: object, replica: str = "r1") -> Any:
    url = cluster.document.urls[replica] + path
    answer = httpx.post(url, json=body, headers=AUTHORISED, timeout=WAIT_S, trust_env=False)
    answer.raise_for_status()
    return answer.json()


def work(cluster: InProcessCluster) -> None:
    """Something of everything."""
    post(cluster, "/v1/queues/some/items", {"items": [1, 2]})
    post(cluster, "/v1/queues/some/dequeue", {"max": 1})
    post(cluster, "/v1/queues/some/dequeue", {"max": 1}, "r2")
    httpx.get(cluster.document.urls["r1"] + "/v1/status", timeout=WAIT_S, trust_env=False)


def test_page_is_made_from_the_table() -> None:
    assert (ROOT / "docs" / "reference" / "metrics.md").read_text() == page(), (
        "write it with: python -m tests.unit.replica.telemetry.metrics_page > docs/reference/metrics.md"
    )


def problems_of(family: Family) -> list[str]:
    """What promtool's check of metrics, and the naming conventions of Prometheus, would find fault with."""
    name, found = family.name + ("_total" if family.type == "counter" else ""), []
    if not re.fullmatch(r"(quorate|process)_[a-z][a-z0-9_]*[a-z0-9]", name):
        found.append("its name is not in form")
    if not family.documentation.strip():
        found.append("no HELP")
    if family.type not in ("counter", "gauge", "histogram"):
        found.append(f"TYPE {family.type}")
    if family.type != "counter" and name.endswith(("_total", "_count", "_sum", "_bucket", "_info_total")):
        found.append("a suffix of another kind")
    found += [
        f"no unit {unit}" for word, unit in UNITS.items() if f"_{word}" in name and not name.endswith(unit)
    ]
    if re.search(r"_(ms|us|milliseconds|minutes|kb|mb|kilobytes)(_|$)", name):
        found.append("no base unit")
    if any(
        label.startswith("__") or not re.fullmatch("[a-z_]+", label)
        for each in family.samples
        for label in each.labels
    ):
        found.append("a label is not in form")
    return found


def test_answer_is_in_form_and_each_metric_is_documented(cluster: InProcessCluster) -> None:
    work(cluster)
    text = scrape(cluster)
    families = list(text_string_to_metric_families(text))
    assert {family.name: problems_of(family) for family in families if problems_of(family)} == {}
    names = [family.name + ("_total" if family.type == "counter" else "") for family in families]
    assert len(set(names)) == len(names)
    assert set(names) - set(PROCESS) == set(METRICS)
    assert [f"# HELP {name} " in text for name in names] == [True] * len(names)
    for family in families:
        if family.name.startswith("quorate_"):
            told = METRICS[family.name + ("_total" if family.type == "counter" else "")]
            assert family.type == told.kind
            assert family.documentation == told.help
            labels = {label for each in family.samples for label in each.labels} - {"le"}
            assert labels == (set(told.labels) if family.samples else labels)


def test_those_who_ask_at_the_same_time_share_one_answer(
    cluster: InProcessCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six hundred at once held up the event loop for two seconds of the processor's time. None is older than its question."""
    made = list[int]()
    generate = prometheus_client.generate_latest

    def counting(*args: Any) -> bytes:
        made.append(1)
        return generate(*args)

    monkeypatch.setattr(metrics, "generate_latest", counting)

    async def ask(times: int) -> set[int]:
        async with httpx.AsyncClient(
            base_url=cluster.document.urls["r1"], headers=AUTHORISED, timeout=WAIT_S, trust_env=False
        ) as client:
            answers = await asyncio.gather(*(client.get("/metrics") for _ in range(times)))
        return {answer.status_code for answer in answers}

    assert asyncio.run(ask(80)) == {200}
    assert 1 <= len(made) <= 20
    before = values(cluster)["quorate_http_requests_total", frozenset()]
    assert values(cluster)["quorate_http_requests_total", frozenset()] > before


def test_histograms_add_up(cluster: InProcessCluster) -> None:
    work(cluster)
    for family in text_string_to_metric_families(scrape(cluster)):
        if family.type != "histogram":
            continue
        series: dict[frozenset[tuple[str, str]], list[float]] = {}
        counts: dict[frozenset[tuple[str, str]], float] = {}
        for each in family.samples:
            labels = frozenset((name, value) for name, value in each.labels.items() if name != "le")
            if each.name.endswith("_bucket"):
                series.setdefault(labels, []).append(each.value)
            elif each.name.endswith("_count"):
                counts[labels] = each.value
        assert counts
        assert {labels: buckets[-1] for labels, buckets in series.items()} == counts
        assert all(buckets == sorted(buckets) for buckets in series.values())


def test_no_label_holds_what_callers_choose(cluster: InProcessCluster) -> None:
    post(cluster, "/v1/queues/a-secret-name/items", {"item": "a-secret-value"})
    assert "a-secret" not in scrape(cluster)
    assert TOKEN not in scrape(cluster)


def test_stranger_is_refused_and_counted(cluster: InProcessCluster) -> None:
    before = values(cluster)
    refused = httpx.get(cluster.document.urls["r1"] + "/metrics", timeout=WAIT_S, trust_env=False)
    assert refused.status_code == 401
    assert (
        httpx.get(
            cluster.document.urls["r1"] + "/nowhere", headers=AUTHORISED, timeout=WAIT_S, trust_env=False
        ).status_code
        == 404
    )
    after = values(cluster)
    assert grown(before, after, "quorate_refusals_total", reason="unauthorized") == 1
    assert grown(before, after, "quorate_refusals_total", reason="no-such-path") == 1
    assert grown(before, after, "quorate_http_requests_total") >= 3, "these, and any of another replica"
    assert grown(before, after, "quorate_connections_made_total") >= 3
    assert after["quorate_http_requests_under_way", frozenset()] == 1


def test_refusals_begin_at_zero_where_their_first_is_seen_by_a_rate(tmp_path: Path) -> None:
    with in_process(tmp_path, token=TOKEN) as fresh:
        refusals = {
            dict(labels)["reason"]: value
            for (name, labels), value in values(fresh).items()
            if name == "quorate_refusals_total"
        }
    assert refusals == dict.fromkeys(KINDS, 0.0)


def test_operations_are_counted_where_they_run(cluster: InProcessCluster) -> None:
    before = values(cluster)
    for _ in range(3):
        post(cluster, "/v1/queues/counted/items", {"items": [1, 2]})
    taken = [post(cluster, "/v1/queues/counted/dequeue", {"max": 4}) for _ in range(3)]
    after = values(cluster)
    assert taken == [{"items": [1, 2, 1, 2]}, {"items": [1, 2]}, {"items": []}]
    operations = "quorate_operations_total"
    assert grown(before, after, operations, type="queue", operation="Enq", outcome="Ok") == 3
    assert grown(before, after, operations, type="queue", operation="Deq", outcome="Ok") == 2
    assert grown(before, after, operations, type="queue", operation="Deq", outcome="Empty") == 1
    count = "quorate_operation_duration_seconds_count"
    assert grown(before, after, count, type="queue", operation="Deq") == 3
    assert grown(before, after, "quorate_round_duration_seconds_count", request="Append") == 3
    assert grown(before, after, "quorate_entries_stored_total") == 6
    assert grown(before, after, "quorate_transaction_rows_sum") == 6
    assert grown(before, after, "quorate_fences_raised_total") >= 1
    assert grown(before, after, "quorate_objects") == 1
    assert after["quorate_storage_bytes", frozenset({("file", "database")})] > 0


def test_survey_counts_what_waits_and_how_old_the_horizon_is(
    cluster: InProcessCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surveying, "KEPT_S", 0.0)
    before = values(cluster)
    post(cluster, "/v1/queues/waits/items", {"items": list(range(5))})
    post(cluster, "/v1/queues/waits/dequeue", {"max": 2})
    post(cluster, "/v1/queues/waits/items", {"items": [7]})
    after = values(cluster)
    assert grown(before, after, "quorate_log_entries") == 6
    # How far the replica knows the horizon depends on which message brought the mark of the decision.
    assert grown(before, after, "quorate_queue_entries_waiting") in (4, 6)
    assert 0 < after["quorate_queue_oldest_waiting_seconds", frozenset()] < 60
    assert after["quorate_horizon_age_seconds", frozenset()] > 0
    assert after["quorate_survey_partial", frozenset()] == 0
    member = cluster.member("r1")
    assert member.folder.database is not None
    later = survey(member.folder.database.path, member.wall_us() + 3_600_000_000)
    assert (later.oldest_waiting_us or 0) > 3_600_000_000
    assert (later.horizon_age_us or 0) >= (later.oldest_waiting_us or 0)


def test_survey_counts_leases_and_dead_letters(cluster: InProcessCluster) -> None:
    post(cluster, "/v1/queues/leased/items", {"items": ["a", "b", "c"]})
    tokens = [each["token"] for each in post(cluster, "/v1/queues/leased/acquire", {"max": 3})["leases"]]
    post(cluster, "/v1/queues/leased/reject", {"tokens": tokens[:1]})
    post(cluster, "/v1/queues/leased/release", {"tokens": tokens[1:2]})
    found = []
    for id in ("r1", "r2", "r3"):
        member = cluster.member(id)
        assert member.folder.database is not None
        told = survey(member.folder.database.path, member.wall_us())
        found.append((told.held, told.kept_waiting, told.dead, told.dead_max))
    assert found.count((1, 1, 1, 1)) >= 2, "a final quorum holds the decision"
    assert values(cluster)["quorate_queue_leases", frozenset({("state", "dead")})] in (0, 1)


def test_who_asks_is_told_of_the_queues_with_the_longest_logs(
    cluster: InProcessCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surveying, "KEPT_S", 0.0)
    for name, number in (("named-long", 30), ("named-longer", 40), ("named-short", 1)):
        post(cluster, f"/v1/queues/{name}/items", {"items": list(range(number))})
    post(cluster, "/v1/queues/named-longer/acquire", {"max": 1})
    assert "quorate_one_queue" not in scrape(cluster)

    def lengths() -> dict[str, float]:
        told = values(cluster, query="?queues=2")
        return {dict(labels)["queue"]: value for (name, labels), value in told.items() if "queue_log" in name}

    until_now(lambda: lengths() == {"named-long": 30, "named-longer": 40}, "r1 has all of them")
    told = values(cluster, query="?queues=2")
    assert {name for name, _ in told} >= OF_QUEUES.keys()
    long = frozenset({("queue", "named-long")})
    assert told["quorate_one_queue_entries_waiting", long] == 30
    assert 0 < told["quorate_one_queue_oldest_waiting_seconds", long] < WAIT_S
    states = {dict(labels)["state"] for name, labels in told if name == "quorate_one_queue_leases"}
    assert states == {"held", "waiting", "dead"}
    for query in ("?queues=101", "?queues=-1", "?queues=all"):
        url = cluster.document.urls["r1"] + "/metrics" + query
        answer = httpx.get(url, headers=AUTHORISED, timeout=WAIT_S, trust_env=False)
        assert answer.status_code == 400, query


def test_a_queue_from_which_much_is_taken_comes_before_one_on_which_less_waits(
    cluster: InProcessCluster,
) -> None:
    post(cluster, "/v1/queues/active/items", {"items": list(range(70))})
    post(cluster, "/v1/queues/active/dequeue", {"max": 70})
    post(cluster, "/v1/queues/quiet/items", {"items": list(range(60))})
    member = cluster.member("r1")
    assert member.folder.database is not None
    path = member.folder.database.path

    def longest() -> list[tuple[str, int]]:
        return [(each.name, each.length) for each in survey(path, member.wall_us()).queues][:2]

    until_now(lambda: longest() == [("queue/active", 70), ("queue/quiet", 60)], "r1 has all of them")


def test_survey_ends_in_time_and_says_so(cluster: InProcessCluster) -> None:
    work(cluster)
    member = cluster.member("r1")
    assert member.folder.database is not None
    found = survey(member.folder.database.path, member.wall_us(), limit_s=-1.0)
    assert found.is_partial
    assert found.entries is None
    reader = Reader(member.folder.database.path, 0.05)
    with pytest.raises(StorageFailed):
        reader.all("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")
    assert reader.is_late
    reader.close()


def fence_first(cluster: InProcessCluster, patch: pytest.MonkeyPatch, name: str, replicas: list[str]) -> None:
    """Have replicas raise their fence to the first entry of an object when it comes, as if another front end had been there just
    before. However slow the machine is, the entry is at the fence, and its next stamp above it."""

    def fencing(member: Member) -> Callable[[Store, Sequence[Request]], Sized[BatchReply]]:
        usual, met = member._handle, False

        def handle(store: Store, requests: Sequence[Request]) -> Sized[BatchReply]:
            nonlocal met
            for each in requests:
                if isinstance(each, Append) and each.object == name and not met:
                    met = True
                    usual(store, [Collect(name, fence=each.entries[-1].t)])
            return usual(store, requests)

        return handle

    for member in map(cluster.member, replicas):
        patch.setattr(member, "_handle", fencing(member))


def events(before: Scraped, after: Scraped) -> dict[str, float]:
    """Those of the front end that grew."""
    found = {
        each: grown(before, after, "quorate_front_end_events_total", event=each.replace(" ", "-"))
        for each in EVENTS
    }
    return {each: times for each, times in found.items() if times}


def enqueue_at_fence(cluster: InProcessCluster, queue: str, fenced: list[str]) -> tuple[Scraped, Scraped]:
    """Enqueue what some replicas have a fence at; the series of r1, which is one of them, before and after."""
    before = values(cluster)
    with pytest.MonkeyPatch.context() as patch:
        # Else a replica that is slow to say that its fence is there would have the entry recovered.
        patch.setattr(blind, "HEDGE_S", PATIENT_S)
        fence_first(cluster, patch, f"queue/{queue}", fenced)
        post(cluster, f"/v1/queues/{queue}/items", {"item": queue})
    after = values(cluster)
    assert post(cluster, f"/v1/queues/{queue}/dequeue", {"max": 9}) == {"items": [queue]}
    assert grown(before, after, "quorate_fences_raised_total") >= 1
    assert grown(before, after, "quorate_entries_fenced_total") >= 1
    return before, after


def test_fence_is_counted_where_it_is_raised_and_where_it_is_met(cluster: InProcessCluster) -> None:
    before, after = enqueue_at_fence(cluster, "fenced", ["r1", "r2", "r3"])
    assert events(before, after) == {"stamped anew": 1}
    assert grown(before, after, "quorate_fences_raised_total") == 1
    assert grown(before, after, "quorate_entries_fenced_total") == 1
    assert grown(before, after, "quorate_entries_stored_total") == 1


def test_recovery_is_counted(cluster: InProcessCluster) -> None:
    before, after = enqueue_at_fence(cluster, "recovered", ["r1", "r2"])
    assert events(before, after)["recoveries"] == 1


def test_duel_is_counted_at_the_loser_and_at_the_replicas(cluster: InProcessCluster) -> None:
    post(cluster, "/v1/queues/duel/items", {"items": [1, 2, 3, 4]})
    post(cluster, "/v1/queues/duel/dequeue", {"max": 1})
    other = cluster.front_end()
    # Its first exchanges may take seconds on a busy machine. Then it knows the time no better than that, and may be refused for its clock.
    outcomes = (cluster.outcome(other, Dequeue("queue/duel")) for _ in range(20))
    assert any(isinstance(outcome, Done) for outcome in outcomes)
    before = values(cluster)
    assert post(cluster, "/v1/queues/duel/dequeue", {"max": 1}) == {"items": [3]}
    after = values(cluster)
    assert events(before, after)["terms lost"] == 1
    refused = "quorate_replica_requests_total"
    assert grown(before, after, refused, request="Accept", outcome="ballot-refused") >= 1


def test_replica_that_must_not_vote_says_why(cluster: InProcessCluster) -> None:
    assert values(cluster)["quorate_ready", frozenset()] == 1
    member = cluster.member("r1")
    member.lost = "for this test"
    try:
        found = values(cluster)
    finally:
        member.lost = None
    assert found["quorate_ready", frozenset()] == 0
    reasons = {labels: value for (name, labels), value in found.items() if name == "quorate_not_ready"}
    assert {dict(labels)["reason"]: value for labels, value in reasons.items()} == {
        "store-lost": 1,
        "other-configuration": 0,
        "starting": 0,
        "storage-failed": 0,
        "stopping": 0,
    }
    assert ("quorate_objects", frozenset()) not in found


def test_standing_rules_are_told_by_metrics_and_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "quorate.replica.upkeep.switching.ROUND_S", WAIT_S
    )  # Else it says that nothing waits.
    rule = ChoiceRule("queue/jobs", fallback=Fallback(down=("r3",), reads="r1"))
    with in_process(tmp_path, token=TOKEN, rules=(rule,)) as cluster:
        switches = cluster.member("r1").switches
        switches.ended["refused"] += 2
        switches.waits = "for this test"
        found = values(cluster)
        url = cluster.document.urls["r1"] + "/v1/status"
        status = httpx.get(url, headers=AUTHORISED, timeout=WAIT_S, trust_env=False).json()
    assert found["quorate_fallback_in_force", frozenset({("objects", "queue/jobs")})] == 0
    ended = {
        dict(labels)["outcome"]: value
        for (name, labels), value in found.items()
        if name == "quorate_switches_total"
    }
    assert ended == {"done": 0, "given-up": 0, "refused": 2}
    assert found["quorate_switch_waits", frozenset()] == 1
    assert (status["fallbacks"], status["switch_waits"]) == ({"queue/jobs": False}, "for this test")


def test_each_event_of_the_code_is_in_the_table() -> None:
    folder = Path(quorate.client_sdk.__path__[0])
    counted = {
        what
        for path in folder.rglob("*.py")
        for what in re.findall(r'\.count\(\s*"([^"]+)"', path.read_text())
    }
    assert len(counted) > 10
    assert counted <= set(EVENTS)


def test_which_release_runs_and_what_it_speaks_is_told(cluster: InProcessCluster) -> None:
    [told] = [dict(labels) for name, labels in values(cluster) if name == "quorate_replica_info"]
    assert (told["replica"], told["release"], told["protocol"]) == ("r1", quorate.__version__, "1-2")
