"""The interactive API pages, as a headless browser shows them that can reach nothing but the replica."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx
import pytest

from quorate.replica.http.routers import OWN_TAG, PROTOCOL_TAG
from quorate.replica.openapi.builder import operations_of
from quorate.replica.openapi.table import TAGS
from tests.support.browser import ANSWER_S_MAX, Tab, tab
from tests.support.documents import API
from tests.support.in_process import InProcessCluster, in_process

TOKEN: Final = "paged-19ce"
SUMMARIES: Final = [each["summary"] for each in operations_of(API)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCluster]:
    with in_process(tmp_path_factory.mktemp("cluster"), token=TOKEN) as running:
        yield running


@pytest.fixture(scope="module")
def pages(cluster: InProcessCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with tab(tmp_path_factory.mktemp("browser")) as opened:
        opened.show(cluster.document.urls["r1"] + "/docs")
        until(opened, f"document.querySelectorAll('.opblock').length === {len(SUMMARIES)}")
        yield opened


def until(page: Tab, expression: str) -> None:
    """Wait until an expression holds in the page."""
    late_s = time.monotonic() + ANSWER_S_MAX
    while not page.evaluate(expression):
        assert time.monotonic() < late_s, (
            f"{expression}\n{page.messages}\n{page.evaluate('document.body.innerText')}"
        )
        time.sleep(0.02)


def click(page: Tab, selector: str) -> None:
    """Press what the selector finds, as soon as it is there."""
    until(page, f"document.querySelector({selector!r}) !== null")
    page.evaluate(f"document.querySelector({selector!r}).click()")


def fill(page: Tab, selector: str, text: str) -> None:
    """Type a text over what a field holds, as soon as it is there, and leave the field."""
    until(page, f"document.querySelector({selector!r}) !== null")
    page.evaluate(f"document.querySelector({selector!r}).focus()")
    page.evaluate("document.activeElement.select()")
    page.call("Input.insertText", text=text)
    page.evaluate("document.activeElement.blur()")


def test_page_draws_every_operation_and_complains_about_nothing(pages: Tab) -> None:
    shown = pages.evaluate("document.body.innerText")
    assert [each for each in SUMMARIES if each not in shown] == []
    tags = pages.evaluate("[...document.querySelectorAll('.opblock-tag')].map(each => each.dataset.tag)")
    assert tags == [
        each for each in TAGS if each not in {OWN_TAG, PROTOCOL_TAG}
    ]  # No type of one's own here.
    assert pages.evaluate("document.querySelectorAll('.errors-wrapper, .loading-container').length") == 0
    assert pages.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert len(pages.screenshot()) > 100_000
    assert pages.messages == []


def test_page_asks_nobody_but_its_replica(pages: Tab, cluster: InProcessCluster) -> None:
    own = cluster.document.urls["r1"] + "/"
    assert {each.partition("?")[0] for each in pages.requests if not each.startswith(("data:", own))} == set()
    assert own + "v1/openapi.json" in pages.requests


def test_a_person_gives_a_token_and_tries_an_operation(pages: Tab, cluster: InProcessCluster) -> None:
    """Before the token, 401; after it, an item that was typed in is in the queue."""
    block = "#operations-queues-enqueue"
    click(pages, f"{block} .opblock-summary-control")
    click(pages, f"{block} .try-out__btn")
    fill(pages, f"{block} [data-param-name='name'] input", "typed")
    fill(pages, f"{block} .body-param__text", '{"item": "by hand"}')
    click(pages, f"{block} .execute")
    status = (
        f"document.querySelector('{block} .live-responses-table .response .response-col_status')?.innerText"
    )
    until(pages, f"({status} ?? '').startsWith('401')")

    click(pages, ".auth-wrapper .authorize")
    fill(pages, ".modal-ux .auth-container input", TOKEN)
    click(pages, ".modal-ux .auth-btn-wrapper button[type='submit']")
    click(pages, ".modal-ux .btn-done")
    click(pages, f"{block} .execute")
    until(pages, f"({status} ?? '').startsWith('200')")

    url = cluster.document.urls["r2"]
    given = {"Authorization": f"Bearer {TOKEN}"}
    taken = httpx.post(f"{url}/v1/queues/typed/dequeue", headers=given, trust_env=False, timeout=30.0)
    assert taken.json() == {"items": ["by hand"]}
    # The browser itself notes the 401; nobody else says anything, and no token is kept.
    assert [each for each in pages.messages if "401" not in each] == []
    assert (
        pages.evaluate(f"JSON.stringify({{...localStorage, ...sessionStorage}}).includes('{TOKEN}')") is False
    )


def test_browser_is_told_to_take_nothing_from_elsewhere(cluster: InProcessCluster) -> None:
    with httpx.Client(base_url=cluster.document.urls["r1"], trust_env=False) as client:
        page = client.get("/docs")
        assert page.headers["content-type"].startswith("text/html")
        names = [part for part in page.text.split('"') if Path(part).suffix in {".js", ".css"}]
        assert len(names) == 3
        for path in ("/docs", *(f"/{name}" for name in names)):
            answer = client.get(path)
            assert answer.status_code == 200
            assert "default-src 'none'" in answer.headers["content-security-policy"]
            assert answer.headers["x-content-type-options"] == "nosniff"
        for path in ("/docs/", "/docs/0/start.js", "/docs/5.35.0/../gate.py", "/docs/5.35.0/LICENSE"):
            assert client.get(path).json()["type"] == "/problems/no-such-path"
        assert client.post("/docs").json()["type"] == "/problems/unauthorized"
