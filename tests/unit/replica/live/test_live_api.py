"""The live page's files and what it asks, as HTTP; and the cluster scan that asks the other replicas for it."""

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from quorate.api_specs.cluster import ClusterDocument
from quorate.api_specs.messages import Scan
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.live import api, cluster_scan
from quorate.replica.live import page as live_page
from quorate.replica.live.cluster_scan import ClusterScan, Seen
from quorate.replica.live.models import Choices, ObjectTrace, Overview
from quorate.replica.live.overview import overview_of
from quorate.replica.service.member import Member
from quorate.replica.store.group_commit import Overloaded
from tests.support.in_process import InProcessCluster, in_process
from tests.unit.replica.conftest import Serving, one_replica

FILES = sorted(path.name for path in live_page.FOLDER.iterdir())
WAIT_S = 60.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCluster]:
    with in_process(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.mark.parametrize("name", ["", *FILES])
async def test_every_file_is_served_with_what_keeps_the_page_to_itself(
    client: httpx.AsyncClient, name: str
) -> None:
    answer = await client.get(f"/ui/{name}" if name else "/ui")
    assert answer.status_code == 200
    assert answer.content == (live_page.FOLDER / (name or "index.html")).read_bytes()
    assert answer.headers["content-type"] == live_page.TYPES[Path(name or "index.html").suffix]
    policy = answer.headers["content-security-policy"].split("; ")
    assert policy[0] == "default-src 'none'"
    assert "script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert not any("unsafe" in each or "*" in each or "http" in each for each in policy)
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_browsers_keep_a_file_and_ask_whether_it_is_still_the_same(client: httpx.AsyncClient) -> None:
    answer = await client.get("/ui/page.js")
    assert answer.headers["cache-control"] == "no-cache"
    tag = answer.headers["etag"]
    for known in (tag, f'W/{tag}, "other"', "*"):
        again = await client.get("/ui/page.js", headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert (await client.get("/ui/page.js", headers={"If-None-Match": '"other"'})).status_code == 200
    assert (await client.get("/ui/page.css")).headers["etag"] != tag


async def test_there_is_nothing_else_below_the_page(client: httpx.AsyncClient) -> None:
    for path in ("/ui/none.js", "/ui/..%2fapp.py", "/ui/%2e%2e", "/ui/a/b"):
        answer = await client.get(path)
        assert (answer.status_code, answer.json()["type"]) == (404, "/problems/no-such-path"), path
    assert (await client.post("/ui")).status_code == 405
    moved = await client.get("/ui/")
    assert (moved.status_code, moved.headers["location"]) == (308, "/ui")


@pytest.mark.parametrize("name", FILES)
def test_the_files_need_nobody_else_and_make_no_markup_of_text(name: str) -> None:
    text = (live_page.FOLDER / name).read_text(encoding="utf-8")
    named = set(re.findall(r"\b(?:https?|wss?)://[^\s\"'`)]+", text)) - {"http://www.w3.org/2000/svg"}
    assert named == set()
    words = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|localStorage|sessionStorage|cookie"
    assert re.findall(words, text) == []
    if name.endswith(".html"):
        assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", text) == []


async def test_the_page_is_open_and_what_it_shows_asks_for_the_token(serving: Serving) -> None:
    async with serving(one_replica(), token="secret") as client:
        for path in ("/ui", "/ui/page.js"):
            assert (await client.get(path)).status_code == 200
        for path in ("/v1/overview", "/v1/trace?object=queue/q", "/v1/choices"):
            assert (await client.get(path)).status_code == 401
            answer = await client.get(path, headers={"Authorization": "Bearer secret"})
            assert answer.status_code == 200


async def test_overview_and_trace_follow_what_happens(client: httpx.AsyncClient) -> None:
    await client.post("/v1/queues/q/items", json={"items": ["x", "y"]})
    await client.post("/v1/queues/q/dequeue")
    horizon = (await client.get("/v1/queues/q")).json()[
        "horizon"
    ]  # What was decided goes along with the next question.
    answer = await client.get("/v1/overview")
    assert answer.headers["cache-control"] == "no-store"
    told = Overview.model_validate_json(answer.content, strict=True)
    (found,) = told.objects
    assert (told.served_by, found.object, found.entries) == ("r1", "queue/q", 1)
    assert found.horizon == horizon
    answer = await client.get("/v1/trace", params={"object": "queue/q"})
    assert answer.headers["cache-control"] == "no-store"
    trace = ObjectTrace.model_validate_json(answer.content, strict=True)
    assert trace.rows[-1].events == {"r1": '[Enq("y"); Ok()]'}
    choices = Choices.model_validate_json((await client.get("/v1/choices")).content, strict=True)
    assert choices.ready == ["r1"]


async def absent_keys(client: httpx.AsyncClient) -> list[str]:
    objects = (await client.get("/v1/overview")).json()["objects"]
    return [each["object"].rpartition("/")[2] for each in objects if each["is_absent"]]


async def test_keys_without_a_value_are_told_apart_whether_it_was_written_or_decided(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_scan, "KEPT_S", 0.0)
    keys = "/v1/dictionaries/d/entries"
    for key in ("blind", "there", "decided", "again"):
        await client.put(f"{keys}/{key}", json={"value": "x"})
    await client.delete(f"{keys}/blind")
    gone = await client.post(f"{keys}/decided/compare-and-delete", json={"old": "x"})
    assert gone.json() == {"deleted": True}
    await client.delete(f"{keys}/again")
    never = await client.post(f"{keys}/never/compare-and-set", json={"old": "x", "new": "y"})
    assert never.json() == {"swapped": False}
    assert {"again", "blind", "decided"} <= set(await absent_keys(client))
    await client.put(f"{keys}/again", json={"value": "y"})
    found = await absent_keys(client)
    assert {"blind", "decided"} <= set(found)
    assert not {"again", "there"} & set(found)


async def test_values_are_read_up_to_a_bound_to_find_keys_without_one(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_scan, "KEPT_S", 0.0)
    monkeypatch.setattr(cluster_scan, "READ_MAX", 10)
    for key, value in (("a", None), ("b", "x" * 20), ("c", None)):
        await client.put(f"/v1/dictionaries/d/entries/{key}", json={"value": "y"})
        if value is None:
            await client.delete(f"/v1/dictionaries/d/entries/{key}")
        else:
            await client.put(f"/v1/dictionaries/d/entries/{key}", json={"value": value})
    assert await absent_keys(client) == ["a"], "what lies behind the bound is not known, and counts as there"


async def test_a_trace_is_of_that_object_and_no_other(client: httpx.AsyncClient) -> None:
    await client.post("/v1/queues/jobs2/items", json={"item": 1})
    for name in ("queue/jobs", "queue/jobs2"):
        answer = await client.get("/v1/trace", params={"object": name})
        assert len(answer.json()["rows"]) == (1 if name == "queue/jobs2" else 0)


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/v1/trace", "malformed"),
        ("/v1/trace?object=queue/a/b", "bad-name"),
        ("/v1/trace?object=dictionary/d", "bad-name"),
        ("/v1/trace?object=%3Cimg%3E", "bad-name"),
        ("/v1/trace?object=queue/q&entries=0", "malformed"),
        ("/v1/trace?object=queue/q&entries=201", "malformed"),
        ("/v1/overview?limit=0", "malformed"),
        ("/v1/overview?limit=101", "malformed"),
        ("/v1/overview?after=%00", "bad-name"),
        ("/v1/overview?prefix=%C3%A4", "bad-name"),
    ],
)
async def test_what_is_out_of_form_is_refused(client: httpx.AsyncClient, path: str, problem: str) -> None:
    answer = await client.get(path)
    assert (answer.status_code, answer.json()["type"]) == (400, f"/problems/{problem}")


async def test_objects_come_in_pages(client: httpx.AsyncClient) -> None:
    for name in "cab":
        await client.put(f"/v1/registers/{name}", json={"value": 1})
    after, names = "", []
    for _ in range(4):
        page = (await client.get("/v1/overview", params={"after": after, "limit": 1})).json()
        names += [each["object"] for each in page["objects"]]
        after = page["next"] or ""
        if not after:
            break
    assert names == ["register/a", "register/b", "register/c"]
    page = (await client.get("/v1/overview", params={"prefix": "register/b"})).json()
    assert [each["object"] for each in page["objects"]] == ["register/b"]


def test_a_replica_is_up_or_does_not_vote_or_is_down(cluster: InProcessCluster) -> None:
    url = f"{cluster.document.urls['r1']}/v1/overview"

    def states() -> list[tuple[str, str]]:
        replicas = httpx.get(url, timeout=WAIT_S, trust_env=False).json()["replicas"]
        return [(each["state"], each["trouble"]) for each in replicas]

    def eventually(wanted: list[str]) -> list[tuple[str, str]]:
        late_s = time.monotonic() + WAIT_S
        found = states()
        while [state for state, _ in found] != wanted:
            assert time.monotonic() < late_s, found
            time.sleep(0.05)
            found = states()
        return found

    eventually(["ready", "ready", "ready"])
    member = cluster._up["r2"].member
    member.lost = "its store is gone"
    cluster.stop("r3")
    (_, ready), (_, lost), (_, down) = eventually(["ready", "not-voting", "down"])
    assert ready == ""
    assert "its store is gone" in lost
    assert down
    member.lost = None
    cluster.start("r3")
    eventually(["ready", "ready", "ready"])


@pytest.fixture
def member(tmp_path: Path) -> Iterator[Member]:
    document: ClusterDocument = one_replica()
    made = Member(open_folder(tmp_path / "data", document, "r1"))
    yield made
    made.close()


async def looked(scan: ClusterScan, question: Scan, caller: str = "") -> dict[str, Seen]:
    return await scan.once(question, lambda: scan.look(question), caller)


async def test_the_same_question_of_several_viewers_is_asked_once(member: Member) -> None:
    looking = ClusterScan(member, None)
    try:
        first, second = await asyncio.gather(looked(looking, Scan("")), looked(looking, Scan("")))
        assert first is second
        assert first["r1"].state == "ready"
        late_s = time.monotonic() + WAIT_S
        while await looked(looking, Scan("")) is first:
            assert time.monotonic() < late_s, "an answer is kept for ever"
            await asyncio.sleep(0.05)
    finally:
        await looking.aclose()


async def test_many_who_ask_the_same_get_one_text(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a hundred objects each took two milliseconds: 1,400 viewers held up all others for seconds."""
    made: list[Overview] = []

    def overview(*given: Any) -> Overview:
        made.append(overview_of(*given))
        return made[-1]

    monkeypatch.setattr(api, "overview_of", overview)
    answers = await asyncio.gather(*(client.get("/v1/overview") for _ in range(20)))
    assert [answer.status_code for answer in answers] == [200] * 20
    assert len(made) == 1


async def test_different_questions_at_a_time_are_bounded_and_one_caller_leaves_room_for_others(
    member: Member,
) -> None:
    """Forty connections of one token, which asked for traces, darkened the page for all others."""
    looking, half = ClusterScan(member, None), cluster_scan.KEPT_MAX // 2
    try:
        scans = [Scan(f"queue/{number}") for number in range(half + 1)]
        # All begin before the first can be answered.
        mine = [looked(looking, scan, "a") for scan in (*scans, scans[0])]
        *answered, refused, again = await asyncio.gather(*mine, return_exceptions=True)
        assert isinstance(refused, Overloaded)
        assert all(isinstance(each, dict) for each in (*answered, again))
    finally:
        await looking.aclose()


async def test_a_caller_beside_one_that_has_its_share_is_answered_at_once(member: Member) -> None:
    looking, half = ClusterScan(member, None), cluster_scan.KEPT_MAX // 2
    try:
        scans = [Scan(f"queue/{number}") for number in range(half + 1)]
        looks = [looked(looking, scan, "a") for scan in scans[:half]]
        *answered, other = await asyncio.gather(*looks, looked(looking, scans[half], "b"))
        assert all(isinstance(each, dict) for each in (*answered, other))
    finally:
        await looking.aclose()


async def test_questions_that_are_answered_do_not_count_and_kept_answers_give_way(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_scan, "KEPT_S", WAIT_S)
    looking = ClusterScan(member, None)
    try:
        scans = [Scan(f"queue/{number}") for number in range(cluster_scan.KEPT_MAX + 4)]
        answers = [await looked(looking, scan) for scan in scans]
        assert await looked(looking, scans[-1]) is answers[-1], "the newest are kept"
        assert await looked(looking, scans[0]) is not answers[0], "the oldest gave way"
    finally:
        await looking.aclose()


async def test_an_answer_that_gave_way_does_not_take_a_newer_one_along(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_scan, "KEPT_MAX", 1)
    due: list[Callable[[], None]] = []
    monkeypatch.setattr(
        asyncio.get_running_loop(), "call_later", lambda _, what, *args: due.append(partial(what, *args))
    )
    looking = ClusterScan(member, None)
    try:
        for name in ("queue/a", "queue/b"):
            await looked(looking, Scan(name))
        again = await looked(looking, Scan("queue/a"))
        due[0]()
        assert await looked(looking, Scan("queue/a")) is again
        due[2]()
        assert await looked(looking, Scan("queue/a")) is not again
    finally:
        await looking.aclose()


async def test_a_viewer_who_goes_away_does_not_take_the_answer_from_others(member: Member) -> None:
    looking = ClusterScan(member, None)
    try:
        gone = asyncio.ensure_future(looked(looking, Scan("")))
        stays = asyncio.ensure_future(looked(looking, Scan("")))
        await asyncio.sleep(0)
        gone.cancel()
        assert (await stays)["r1"].state == "ready"
        assert gone.cancelled()
    finally:
        await looking.aclose()


async def test_overview_and_trace_show_keys_as_they_were_written(client: httpx.AsyncClient) -> None:
    for escaped in ("a%2F%20b", "=20", "c"):
        await client.put(f"/v1/dictionaries/shop/entries/{escaped}", json={"value": 1})
    names = ["dictionary/shop/=20", "dictionary/shop/a/ b", "dictionary/shop/c"]
    seen, after = [], ""
    for _ in names:
        page = (await client.get("/v1/overview", params={"limit": 1, "after": after})).json()
        seen += [each["object"] for each in page["objects"]]
        if page["next"] is None:
            break
        assert page["next"] == seen[-1]
        after = page["next"]
    assert seen == names
    for prefix, found in (
        ("dictionary/shop/a/ ", names[1:2]),
        ("dictionary/shop/=2", names[:1]),
        ("dictionary/shop/=", names[:1]),
        ("dictionary/shop/=3", []),  # Asked of the replicas as the two before it.
    ):
        told = (await client.get("/v1/overview", params={"prefix": prefix})).json()
        assert [each["object"] for each in told["objects"]] == found
    trace = (await client.get("/v1/trace", params={"object": names[1]})).json()
    assert (trace["object"], len(trace["rows"])) == (names[1], 1)
