"""Parts of the live page that an operator works with, in a headless browser: groups of objects, dead letters, members."""

import json
from pathlib import Path

import httpx
import pytest

from quorate.cli.cluster.local_cluster import LocalCluster
from tests.support.browser import Tab
from tests.system.guarded import GuardedCluster, new_token
from tests.system.harness import WAIT_S
from tests.system.live_page import DRAWN, MARKUP, NOTICE, OUTCOMES, assert_quiet, begin, open_page

pytestmark = pytest.mark.slow

# Of each group: its words, and the names that it shows, as a listener meets them.
GROUPS = """[...document.querySelectorAll('#object-rows tbody')].map(body =>
  [body.querySelector('.group').textContent, [...body.querySelectorAll('tr.object th')].map(each => each.textContent)])"""
LETTERS = (
    "[...document.querySelectorAll('#letter-rows li')].map(each => each.querySelector('code').textContent)"
)
KNOWN = "document.querySelector('#letters-known').textContent"
FOCUSED = "document.activeElement.id"


def listed(tab: Tab, prefix: str) -> None:
    """Have the page list the objects whose names start with that."""
    tab.click("#prefix")
    tab.write(prefix)
    tab.press("Enter")
    tab.wait_for(
        f"{GROUPS}.length > 0 && {GROUPS}.flatMap(each => each[1]).every(each => each.startsWith({prefix!r}))"
    )


def test_objects_are_grouped_and_deleted_keys_are_hidden_until_asked_for(
    tab: Tab, shared_cluster: LocalCluster
) -> None:
    url = open_page(tab, shared_cluster)
    with httpx.Client(base_url=url, timeout=WAIT_S, trust_env=False) as client:
        for name in ("shop.orders", "shop.mail", "alone"):
            client.post(f"/v1/queues/{name}/items", json={"item": 1}).raise_for_status()
        for key in ("ann", "bob", "eve"):
            client.put(f"/v1/dictionaries/users/entries/{key}", json={"value": 1}).raise_for_status()
        client.delete("/v1/dictionaries/users/entries/bob").raise_for_status()
        for number in range(13):
            client.put(f"/v1/dictionaries/many/entries/{number:02}", json={"value": 1}).raise_for_status()
    listed(tab, "queue/")
    groups = {
        words.split("/")[0][2:] + "/" + words.split("/")[1].split(" ")[0]: names
        for words, names in tab.evaluate(GROUPS)
    }
    assert groups["queue/"] == ["queue/alone"]
    assert groups["queue/shop."] == ["queue/shop.mail", "queue/shop.orders"]

    listed(tab, "dictionary/users/")
    tab.wait_for(f"{GROUPS}[0][0] === '▾ dictionary/users/ 2 keys · 2 entries · 1 deleted, not shown'")
    assert tab.evaluate(GROUPS)[0][1] == ["dictionary/users/ann", "dictionary/users/eve"]
    tab.evaluate("document.querySelector('#show-deleted').focus()")
    tab.press(" ")
    tab.wait_for(f"{GROUPS}[0][1].length === 3")
    assert "1 of them deleted" in tab.evaluate(GROUPS)[0][0]
    assert tab.evaluate("document.querySelector('tr.deleted').cells[1].textContent") == "absent"

    # A large group is folded until somebody opens it, and stays as he left it.
    tab.evaluate(
        "document.querySelector('#prefix').value = 'dictionary/many/'; document.querySelector('#prefix-form').requestSubmit()"
    )
    tab.wait_for(f"{GROUPS}[0]?.[0].startsWith('▸ dictionary/many/ 13 keys')")
    tab.evaluate("document.querySelector('button.fold').focus()")
    tab.press("Enter")
    tab.wait_for(f"{GROUPS}[0][1].length === 13")
    assert tab.evaluate("document.activeElement.ariaExpanded") == "true"
    live = tab.evaluate("document.querySelector('#as-of').textContent")
    tab.wait_for(f"document.querySelector('#as-of').textContent !== {live!r}")
    assert (
        tab.evaluate("document.activeElement.className + document.activeElement.ariaExpanded") == "foldtrue"
    )
    assert_quiet(tab, url)


def dead_letters(client: httpx.Client, queue: str, *values: object) -> None:
    """Enqueue items, and reject each."""
    client.post(f"/v1/queues/{queue}/items", json={"items": values}).raise_for_status()
    leases = client.post(f"/v1/queues/{queue}/acquire", json={"lease_s": 60, "max": len(values)}).json()[
        "leases"
    ]
    tokens = [each["token"] for each in leases]
    client.post(f"/v1/queues/{queue}/reject", json={"tokens": tokens}).raise_for_status()


def test_dead_letters_are_listed_delivered_again_and_purged_by_keyboard(
    tab: Tab, shared_cluster: LocalCluster
) -> None:
    url = open_page(tab, shared_cluster, "?object=queue/other")
    values = [MARKUP, 18446744073709551615, {"a": 1}]
    with httpx.Client(base_url=url, timeout=WAIT_S, trust_env=False) as client:
        dead_letters(client, "letters", *values)
        listed(tab, "queue/letters")
        tab.wait_for("document.querySelector('#object-rows .held').textContent === '3 dead'")
        # The count in the table leads to the list.
        tab.evaluate("document.querySelector('#object-rows .held button').focus()")
        tab.press("Enter")
        tab.wait_for(f"{LETTERS}.length === 3")
        assert tab.evaluate(LETTERS) == [json.dumps(MARKUP), "18446744073709551615", '{"a":1}']
        assert "rejected, delivered once" in tab.evaluate(
            "document.querySelector('#letter-rows').textContent"
        )
        assert tab.evaluate(FOCUSED) == "list-letters"
        tab.wait_for(f"{KNOWN} === 'r1 knows of 3 dead letters.'")
        tab.press("Tab")
        if tab.evaluate(FOCUSED) == "letter-rows":  # A browser may let one stop at what scrolls.
            tab.press("Tab")
        assert tab.evaluate("document.activeElement.ariaLabel") == f"Requeue {json.dumps(MARKUP)}"
        tab.press("Enter")
        tab.wait_for(
            f"{OUTCOMES}[0]?.includes('queue/letters: Requeued 1 dead letter') && {LETTERS}.length === 2"
        )
        assert tab.evaluate(FOCUSED) == "list-letters", "where one goes on by keyboard"
        again = client.post("/v1/queues/letters/acquire", json={"lease_s": 60}).json()["leases"]
        assert [each["item"] for each in again] == [MARKUP]

        tab.evaluate("document.querySelector('#purge-letters').focus()")
        tab.press("Enter")
        assert tab.evaluate("document.querySelector('#purge-dialog').open")
        assert (
            tab.evaluate("document.querySelector('#purge-what').textContent")
            == "2 dead letters of queue/letters"
        )
        tab.press("Enter")  # On "Keep", which has the focus.
        assert tab.evaluate("document.querySelector('#purge-dialog').open") is False
        assert len(client.get("/v1/queues/letters/dead-letters").json()["letters"]) == 2
        tab.evaluate("document.querySelector('#purge-letters').focus()")
        tab.press("Enter")
        tab.press("Tab")
        tab.press("Enter")
        tab.wait_for(f"{OUTCOMES}[0].includes('Purged 2 dead letters') && {LETTERS}.length === 0")
        assert client.get("/v1/queues/letters/dead-letters").json()["letters"] == []
    tab.wait_for(f"{KNOWN} === 'r1 knows of none.'")
    assert_quiet(tab, url)
    tab.show(f"{url}/ui?object=register/leader")
    tab.wait_for(DRAWN)
    assert tab.evaluate(
        "document.querySelector('#letters').hidden && document.querySelector('#letters-link').hidden"
    )


def test_of_many_dead_letters_the_oldest_are_listed(tab: Tab, shared_cluster: LocalCluster) -> None:
    url = open_page(tab, shared_cluster, "?object=queue/many")
    with httpx.Client(base_url=url, timeout=WAIT_S, trust_env=False) as client:
        dead_letters(client, "many", *range(51))
    tab.click("#list-letters")
    tab.wait_for(f"{LETTERS}.length === 50")
    assert tab.evaluate(LETTERS) == [str(number) for number in range(50)]
    told = tab.evaluate("document.querySelector('#letters-sum').textContent")
    assert told.startswith("51 dead letters at ")
    assert told.endswith("Shown are the oldest 50.")


# All that a keyboard must reach: what is to be pressed, written into, chosen or scrolled, but for parts that are folded or hidden.
REACHABLE = """[...document.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"]')]
  .filter(each => each.checkVisibility({visibilityProperty: true}) && !each.disabled)"""
NOTE_FOCUS = """(() => { const it = document.activeElement, style = getComputedStyle(it);
  it.dataset.reached = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1; })()"""


def test_a_keyboard_reaches_everything_and_shows_where_it_is(tab: Tab, shared_cluster: LocalCluster) -> None:
    url = open_page(tab, shared_cluster, "?object=queue/reached")
    with httpx.Client(base_url=url, timeout=WAIT_S, trust_env=False) as client:
        dead_letters(client, "reached", "wash", "dry")
    tab.click("#list-letters")
    tab.wait_for(f"{LETTERS}.length === 2")
    tab.click("#pause")
    wanted = tab.evaluate(f"{REACHABLE}.length")
    assert wanted > 30
    for _ in range(
        wanted + 5
    ):  # From the button that was clicked, behind the last one to the first, and around.
        tab.press("Tab")
        tab.evaluate(NOTE_FOCUS)
    missed = f"{REACHABLE}.filter(each => each.dataset.reached !== 'true').map(each => each.outerHTML.slice(0, 80))"
    assert tab.evaluate(missed) == []


def test_a_token_that_may_read_sees_dead_letters_and_cannot_clear_them(tab: Tab, tmp_path: Path) -> None:
    cluster = GuardedCluster(tmp_path)
    reader, writer = (new_token(cluster.tokens, scope) for scope in ("read", "write"))
    with cluster, cluster.client(writer) as client:
        dead_letters(client, "letters", "wash")
        begin(tab)
        tab.show(f"{cluster.url}/ui?object=queue/letters")
        tab.wait_for("document.querySelector('#token-dialog').open")
        tab.write(reader)
        tab.press("Enter")
        tab.wait_for(DRAWN)
        tab.click("#list-letters")
        tab.wait_for(f"JSON.stringify({LETTERS}) === JSON.stringify(['\"wash\"'])")
        tab.click("#letter-rows button")
        tab.wait_for(f"{OUTCOMES}[0]?.includes('✕ Did not happen')")
        assert "Scope write is needed" in tab.evaluate(OUTCOMES)[0]
        assert len(client.get("/v1/queues/letters/dead-letters").json()["letters"]) == 1


MEMBERS = "[...document.querySelectorAll('#member-rows tr')].map(row => [...row.cells].map(cell => cell.textContent))"
MEMBERS_SUM = "document.querySelector('#members-sum').textContent"


def test_members_and_what_changes_are_shown(tab: Tab, shared_cluster: LocalCluster) -> None:
    """First as they are; then what another cluster's replica would answer while it changes is drawn."""
    url = open_page(tab, shared_cluster)
    release = httpx.get(f"{url}/v1/status", timeout=WAIT_S, trust_env=False).json()["release"]
    assert tab.evaluate(MEMBERS_SUM) == "The members are those of the cluster file; none was changed."
    tab.wait_for(f"{MEMBERS}.every(each => each[3] === '0')")
    assert tab.evaluate(MEMBERS) == [[id, "voter", "1", "0", release] for id in ("r1", "r2", "r3")]
    tab.click("#pause")
    answer = httpx.get(f"{url}/v1/overview", timeout=WAIT_S, trust_env=False).json()
    answer["replicas"][2] |= {"role": "leaving", "configuration": 0, "switch_waits": "r1 is down"}
    answer["configuration"] |= {
        "number": 1,
        "before": ["r1", "r2", "r3"],
        "members": ["r1", "r2"],
        "declared_dead": ["r3"],
        "removed": ["r0"],
        "fallbacks": [{"objects": "queue/*", "condition": "r3 is down", "is_in_force": True}],
    }
    tab.evaluate(f"import('{url}/ui/members.js').then(part => part.drawMembers({json.dumps(answer)}))")
    told = "The cluster changes from r1, r2, r3 to r1, r2: configuration 1. Declared dead: r3. Former members: r0."
    assert tab.evaluate(MEMBERS_SUM) == told
    assert tab.evaluate(MEMBERS)[2] == ["r3", "leaving", "1", "0, not 1 yet", release]
    assert tab.evaluate(
        "[...document.querySelectorAll('#member-notes li')].map(each => each.textContent)"
    ) == [
        "queue/*: its fallback is in force while r3 is down.",
        "r3: r1 is down.",
    ]
    assert tab.evaluate(NOTICE) == ""
    assert_quiet(tab, url)
