"""What the live page makes of text that somebody else wrote, in a headless browser: names, values, and its own address.

Nothing becomes markup, nothing is shown for what it is not, and what is no object's name is told.
"""

import json

import httpx
import pytest

from quorate.cli.cluster.document import DEFAULT_NAME, new_document, write_new
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import connect
from quorate.measurement.faults.held_ports import HeldPort
from tests.sim.own import Trail
from tests.support.browser import Tab
from tests.system.harness import WAIT_S, Clusters
from tests.system.live_page import IN_HAND, MARKUP, NOTICE, ROWS, acquire, act, assert_quiet, open_page

pytestmark = pytest.mark.slow

UNSEEN = "\u0080\u009f\u061c\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069"
SPELLED = UNSEEN.encode("ascii", "backslashreplace").decode().replace("\\x", "\\u00")


def named(clusters: Clusters, name: str) -> LocalCluster:
    """A cluster of one replica, with a name."""
    root = clusters.folder / "named"
    held = HeldPort.chosen()
    write_new(root / DEFAULT_NAME, new_document({"r1": f"http://127.0.0.1:{held.number}"}, name=name))
    cluster = LocalCluster(root, held=[held])
    clusters.made.append(cluster)
    cluster.format_missing()
    cluster.start()
    cluster.ready()
    return cluster


def test_no_text_becomes_markup(tab: Tab, clusters: Clusters) -> None:
    cluster = named(clusters, MARKUP)
    url = open_page(tab, cluster, f"?object=queue/{MARKUP}")
    assert tab.evaluate("document.querySelector('#cluster-name').textContent") == MARKUP
    assert tab.evaluate("document.querySelector('#trace-object').textContent") == "queue/jobs", (
        "no name at all"
    )
    value = json.dumps(MARKUP)
    assert f"Enqueued {value}" in act(tab, "Enqueue", value)
    tab.wait_for(f"{ROWS}.length === 1")
    assert value in tab.evaluate(ROWS)[0][1]
    assert f"Dequeued {value}" in act(tab, "Dequeue")
    httpx.put(
        f"{url}/v1/registers/leader", json={"value": MARKUP}, timeout=WAIT_S, trust_env=False
    ).raise_for_status()
    swap = {"old": MARKUP, "new": [MARKUP]}
    httpx.post(
        f"{url}/v1/registers/leader/compare-and-set", json=swap, timeout=WAIT_S, trust_env=False
    ).raise_for_status()
    tab.show(f"{url}/ui?object=register/leader")
    tab.wait_for("document.querySelector('#trace-foot')?.textContent.includes('onerror')")
    tab.click("#object-name")
    tab.write(MARKUP)
    tab.press("Enter")
    assert tab.evaluate("document.querySelector('#object-name').matches(':invalid')")
    assert tab.evaluate("document.querySelector('#trace-object').textContent") == "register/leader"
    assert tab.evaluate("[document.querySelectorAll('img').length, window.struck ?? 0]") == [1, 0], (
        "its own sign"
    )
    assert_quiet(tab, url)


def test_the_browser_itself_would_refuse_markup(tab: Tab, shared_cluster: LocalCluster) -> None:
    open_page(tab, shared_cluster)
    tried = "(() => { try { document.body.innerHTML = '<b>x</b>'; return 'made'; } catch (error) { return error.name; } })()"
    assert tab.evaluate(tried) == "TypeError"
    assert any("TrustedHTML" in message for message in tab.messages)


def test_what_nobody_would_see_is_spelled_out(tab: Tab, clusters: Clusters) -> None:
    """A mark of direction would have what follows it read backwards: an event would seem to be another one."""
    cluster = named(clusters, f"mine{UNSEEN}")
    url = open_page(tab, cluster, "?object=queue/unseen")
    assert tab.evaluate("document.querySelector('#cluster-name').textContent") == f"mine{SPELLED}"
    assert tab.evaluate("document.title").startswith(f"mine{SPELLED} ")
    value, shown = f'"a{UNSEEN}b ä"', f'"a{SPELLED}b ä"'
    assert f"Enqueued {shown}" in act(tab, "Enqueue", value)
    tab.wait_for(f"{ROWS}.length === 1")
    assert tab.evaluate(ROWS)[0][1] == f"[Enq({shown}); Ok()]"
    assert f"In front {shown}" in act(tab, "Peek")
    items = httpx.get(f"{url}/v1/queues/unseen/peek", timeout=WAIT_S, trust_env=False).json()["items"]
    assert items == [json.loads(value)], "it is stored as it was written"
    assert f"Delivered {shown}" in acquire(tab)
    assert tab.evaluate(IN_HAND) == [shown]
    assert (
        tab.evaluate("document.querySelector('#leases button').getAttribute('aria-label')")
        == f"Acknowledge {shown}"
    )
    tab.click("#value")
    tab.write(f"a{UNSEEN}b")
    tab.press("Enter")
    help = "document.querySelector('#value-help').textContent"
    tab.wait_for(f"{help}.startsWith('✕')")
    assert f'write "a{SPELLED}b".' in tab.evaluate(help)

    act(tab, "Dequeue")
    body = {"old": None, "new": json.loads(value)}
    at = f"{url}/v1/registers/unseen/compare-and-set"
    httpx.post(at, json=body, timeout=WAIT_S, trust_env=False).raise_for_status()
    tab.show(f"{url}/ui?object=register/unseen")
    tab.wait_for(f"document.querySelector('#trace-foot').textContent.includes({json.dumps(shown)})")
    unseen = json.dumps(list(UNSEEN))
    assert tab.evaluate(f"{unseen}.filter(each => document.body.innerText.includes(each))") == []
    assert_quiet(tab, url)


def test_several_values_are_told_apart_exactly(tab: Tab, shared_cluster: LocalCluster) -> None:
    url = open_page(tab, shared_cluster)
    items = ['"a,\\\\\\"]"', '[1,{"b":[2,3]}]', "18446744073709551615", "null"]
    for some in ([], items[:1], items):
        answer = json.dumps('{"items":[' + ",".join(some) + "]}")
        found = tab.evaluate(f"import('{url}/ui/raw.js').then(raw => raw.itemsIn({answer}))")
        assert found == some


@pytest.mark.parametrize(
    "asked",
    [
        "foo",
        "queue",
        "dictionary/x",
        "queue/a/b",
        "Tree/x",
        "queue/<script>",
        "queue/.a",
        f"queue/{UNSEEN}",
        "",
    ],
)
def test_an_address_that_asks_for_no_object_is_told(
    tab: Tab, shared_cluster: LocalCluster, asked: str
) -> None:
    url = open_page(tab, shared_cluster, f"?{httpx.QueryParams(object=asked)}")
    told = tab.evaluate("document.querySelector('#no-name').innerText")
    assert f"asks for “{asked.replace(UNSEEN, SPELLED)}”, which is no object's name" in told
    assert "queue/NAME, register/NAME, dictionary/NAME/KEY or TYPE/NAME of a type of your own" in told
    assert "1 to 200 of A-Z a-z 0-9" in told
    assert "Shown is queue/jobs." in told
    assert tab.evaluate("document.querySelector('#trace-object').textContent") == "queue/jobs"
    tab.click("#object-name")
    tab.write("other")
    tab.press("Enter")
    tab.wait_for("document.querySelector('#trace-object').textContent === 'queue/other'")
    assert tab.evaluate("document.querySelector('#no-name').hidden")
    assert_quiet(tab, url)


@pytest.mark.parametrize("query", ["", "?object=dictionary/users/ann"])
def test_an_address_that_asks_for_an_object_or_none_is_not_told_off(
    tab: Tab, shared_cluster: LocalCluster, query: str
) -> None:
    open_page(tab, shared_cluster, query)
    assert tab.evaluate("document.querySelector('#no-name').hidden")


def test_an_object_of_ones_own_type_is_shown_and_one_of_no_type_is_told(tab: Tab, clusters: Clusters) -> None:
    cluster = clusters.make()
    place = cluster.document_path
    place.write_text(f'{place.read_text()}\n[types]\nown = "somewhere.else:Trail"\n')
    cluster.start()
    cluster.ready()
    with connect(place) as client:
        client.object(Trail, "x").add("seen")
    open_page(tab, cluster, "?object=own/x")
    tab.wait_for("document.querySelector('#trace').innerText.includes('seen')")
    assert tab.evaluate("document.querySelector('#object-type').value") == "own"
    assert tab.evaluate("document.querySelector('#value-form').hidden")
    assert "quorate call TYPE/NAME OPERATION" in tab.evaluate("document.querySelector('#own-type').innerText")
    assert "own/x" in tab.evaluate("document.querySelector('#object-rows').textContent")
    tab.show(f"{cluster.urls['r1']}/ui?object=tree/x")
    tab.wait_for(f"{NOTICE}.includes(\"the cluster has no data type 'tree'\")")
