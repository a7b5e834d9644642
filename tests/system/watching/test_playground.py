"""`quorate playground`: replicas killed and started on the live page by who has its key, and by nobody else."""

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from quorate.cli.playground.server import ANSWER_S_MAX, BODY_BYTES_MAX, KEY_HEADER
from tests.support import forked
from tests.support.browser import Tab
from tests.system.harness import WAIT_S
from tests.system.live_page import DRAWN, ROWS, SUM, act, assert_quiet, begin
from tests.unit.cli.conftest import quorate

pytestmark = pytest.mark.slow

BUTTONS = "[...document.querySelectorAll('#playground-replicas button')].map(each => each.textContent)"


@pytest.fixture(scope="module")
def told() -> Iterator[dict[str, Any]]:
    """A playground that runs, as its command tells it; at its end nothing is left of it."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with forked.started(["playground", "--json"], text=True, **streams) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            found = json.loads(line)
            yield found
            process.send_signal(signal.SIGTERM)
            assert process.wait(WAIT_S) == 0
        finally:
            process.kill()
    assert not Path(found["cluster"]).parent.exists()
    for each in found["replicas"]:
        with pytest.raises(httpx.ConnectError):
            httpx.get(each["url"], trust_env=False)


@pytest.fixture
def client(told: dict[str, Any]) -> Iterator[httpx.Client]:
    """A caller on this machine that does not know the key."""
    address = told["url"].partition("/ui#key=")[0]
    with httpx.Client(base_url=address, trust_env=False, timeout=ANSWER_S_MAX) as made:
        yield made


def test_a_person_kills_replicas_on_the_page_sees_it_in_the_trace_and_starts_them(
    tab: Tab, told: dict[str, Any]
) -> None:
    begin(tab)
    tab.show(told["url"])
    tab.wait_for(f"{DRAWN} && {BUTTONS}.length === 3")
    assert "key" not in tab.evaluate("location.href"), "it stays in the memory of the page"
    assert tab.evaluate(BUTTONS) == ["Kill r1", "Kill r2", "Kill r3"]
    assert "✓ Done" in act(tab, "Enqueue", '"wash"')
    tab.evaluate("document.querySelector('#playground-replicas button').focus()")
    tab.press("Enter")
    tab.wait_for(f"{BUTTONS}[0] === 'Start r1'")
    # The page goes on: another replica answers it now.
    tab.wait_for("document.querySelector('#served-by').textContent === 'seen from r2'")
    tab.wait_for(f"{SUM}.startsWith('2 of 3 replicas are up. r1 is down')")
    tab.wait_for(f"{ROWS}[0]?.[1] === '?not known'")
    assert 'Dequeued "wash"' in act(tab, "Dequeue")
    assert tab.evaluate("document.activeElement.textContent") == "Dequeue"
    tab.click("#playground-replicas button")
    tab.wait_for(f"{BUTTONS}[0] === 'Kill r1' && {SUM} === 'All 3 replicas are up.'")
    assert tab.evaluate("document.querySelector('#served-by').textContent") == "seen from r2", (
        "who was asked stays so"
    )
    assert_quiet(tab, told["url"].partition("/ui")[0])


def test_nobody_kills_without_the_key(client: httpx.Client, tab: Tab) -> None:
    for key in (b"", b"wrong", "ä".encode()):
        headers = {KEY_HEADER.encode(): key}
        for path in ("/playground/replicas/r2/kill", "/playground/replicas/r2/start"):
            answer = client.post(path, headers=headers)
            assert (answer.status_code, answer.json()["type"]) == (403, "/problems/forbidden")
        assert client.get("/playground/replicas", headers=headers).status_code == 403
    begin(tab)
    tab.show(f"{client.base_url}/ui")
    tab.wait_for("document.querySelector('#playground-trouble').checkVisibility()")
    assert "open the address" in tab.evaluate("document.querySelector('#playground-trouble').textContent")
    assert tab.evaluate(BUTTONS) == []


def test_pages_of_other_origins_reach_nothing_and_only_what_the_page_asks_is_passed_on(
    client: httpx.Client, told: dict[str, Any]
) -> None:
    key = {KEY_HEADER: told["url"].partition("#key=")[2]}
    kill, overview = "/playground/replicas/r2/kill", "/v1/overview"
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        assert client.post(kill, headers=key | headers).status_code in (403, 421)
        assert client.get(overview, headers=headers).status_code in (403, 421)
    assert client.get(overview, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    for path in ("/v1/admin/tokens", "/v1/x/../admin/tokens", "/v1/../replica/v1/batch"):
        # As a client would send it that does not shorten paths.
        answer = client.send(client.build_request("GET", "/", extensions={"target": path.encode()}))
        assert answer.status_code == 404, path
    assert client.post("/v1/queues/q/items", content=b"x" * (BODY_BYTES_MAX + 1)).status_code == 413
    assert client.post("/playground/replicas/r9/kill", headers=key).status_code == 404
    states = client.get("/playground/replicas", headers=key).json()["replicas"]
    assert [each["is_running"] for each in states] == [True, True, True]
    policy = client.get("/ui").headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert client.get("/playground/playground.js").headers["content-security-policy"] == policy


def test_without_replicas_the_page_is_told_and_a_taken_port_is_named(
    client: httpx.Client, told: dict[str, Any]
) -> None:
    key = {KEY_HEADER: told["url"].partition("#key=")[2]}
    for each in told["replicas"]:
        client.post(f"/playground/replicas/{each['id']}/kill", headers=key).raise_for_status()
    answer = client.post("/v1/queues/q/items", json={"item": 1})
    assert (answer.status_code, answer.json()["definite"]) == (503, True)
    assert "no replica runs" in answer.json()["detail"]
    for each in told["replicas"]:
        client.post(f"/playground/replicas/{each['id']}/start", headers=key).raise_for_status()
    refused = quorate("playground", "--port", str(client.base_url.port))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "is taken" in refused.stderr
    assert "leave out --port" in refused.stderr
