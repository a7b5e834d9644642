"""The live page in a browser, for the tests of it: opened, used by mouse, and asked what it shows."""

from typing import Any

from quorate.cli.cluster.local_cluster import LocalCluster
from tests.support.browser import Tab

MARKUP = '<img src=x onerror="window.struck = 1">'
SUM = "document.querySelector('#replicas-sum').textContent"
CATCH_UP = "[...document.querySelectorAll('#replica-rows .catch-up')].map(cell => cell.textContent)"
NOTICE = "document.querySelector('#notice').textContent"
OUTCOMES = "[...document.querySelectorAll('#outcomes li')].map(item => item.innerText)"
OFFERED = "[...document.querySelectorAll('#operations button')].map(each => each.textContent)"
QUEUE_STATE = "document.querySelector('#choices details[data-type=queue] summary').innerText"
DRAWN = "document.querySelectorAll('#choices details[open] svg').length > 0"

# Each row of the trace as a listener meets it: its short name, then the cells.
ROWS = """[...document.querySelectorAll('#trace-rows tr')].map(row =>
  [...row.cells].map((cell, place) => place ? cell.textContent : cell.firstChild.textContent))"""


# How r1's items stand, row by row; null where nothing is said.
STANDINGS = """[...document.querySelectorAll('#trace-rows tr')].map(row =>
  row.cells[1].querySelector('small')?.textContent ?? null)"""
IN_HAND = "[...document.querySelectorAll('#leases li > code')].map(each => each.textContent)"


def begin(tab: Tab) -> None:
    """Leave the page that another test opened, which may still ask its replica, and forget what it said."""
    tab.show("about:blank")
    tab.messages.clear()
    tab.requests.clear()


def open_page(tab: Tab, cluster: LocalCluster, query: str = "", **look: Any) -> str:
    """Open the page of r1, wait until it is drawn, and give the address of its replica."""
    url = cluster.urls["r1"]
    begin(tab)
    tab.show(f"{url}/ui{query}", **look)
    tab.wait_for(DRAWN)
    return url


def act(tab: Tab, button: str, value: str | None = None) -> str:
    """Press the button of an operation; the words that tell how it went."""
    if value is not None:
        tab.click("#value")
        tab.write(value)
    found = tab.evaluate(
        f"[...document.querySelectorAll('#operations button')].findIndex(each => each.textContent === {button!r})"
    )
    return _told(tab, f"#operations button:nth-child({found + 1})")


def acquire(tab: Tab) -> str:
    """Have the page be delivered an item of the queue; the words that tell how it went."""
    return _told(tab, "#lease-form button")


def settle(tab: Tab, place: int, button: str) -> str:
    """Press a button of a lease in hand, counted from 1; the words that tell how it went."""
    number = ("Acknowledge", "Release", "Reject", "Renew").index(button) + 1
    return _told(tab, f"#leases li:nth-child({place}) button:nth-child({number})")


def _told(tab: Tab, button: str) -> str:
    before = len(tab.evaluate(OUTCOMES))
    tab.click(button)
    tab.wait_for(f"document.querySelectorAll('#outcomes li').length > {before}")
    words: str = tab.evaluate(OUTCOMES)[0]
    return words


def assert_quiet(tab: Tab, url: str) -> None:
    """Nothing in the console, and no request to anybody but the replica that serves the page."""
    assert tab.messages == []
    assert tab.requests
    assert [each for each in tab.requests if not each.startswith(url + "/")] == []
