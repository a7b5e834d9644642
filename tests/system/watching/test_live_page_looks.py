"""How the live page looks in a headless browser, and how it sounds: widths, colours, names, and silence."""

import httpx
import pytest

from quorate.cli.cluster.local_cluster import LocalCluster
from tests.support.browser import CONTRASTS, MARK_CONTRAST_MIN, OVERFLOWING, TEXT_CONTRAST_MIN, Tab
from tests.system.harness import WAIT_S, Clusters
from tests.system.live_page import QUEUE_STATE, acquire, act, assert_quiet, open_page, settle

pytestmark = pytest.mark.slow

PHONE = 360

# Of the table of objects: the width of its box, and how far the table and its column of entries reach to the right.
COLUMNS = """(() => {
  const box = document.querySelector('#objects-table'), row = document.querySelector('#object-rows tr.object');
  const reach = it => it.getBoundingClientRect().right - box.getBoundingClientRect().left;
  return row && {box: box.clientWidth, table: reach(box.querySelector('table')), entries: reach(row.cells[1])};
})()"""


# Each piece of the names of objects between two places where it may be broken, and on how many lines it stands.
WORDS_ON_LINES = """[...document.querySelectorAll('#object-rows tr.object button.link')].flatMap(button =>
  [...button.childNodes].filter(node => node.nodeType === 3).map(node => {
    const range = document.createRange();
    range.selectNodeContents(node);
    return [node.textContent, range.getClientRects().length];
  }))"""
# Whether the words say that there is more to the right, and whether there is, from where the table is scrolled to.
HINT = """(() => { const box = document.querySelector('#objects-table');
  return [box.previousElementSibling.checkVisibility(), box.classList.contains('more')]; })()"""
LAG_IN_SIGHT = """(() => { const box = document.querySelector('#objects-table').getBoundingClientRect();
  return [...document.querySelectorAll('#object-rows td.lag')].every(each => each.getBoundingClientRect().right <= box.right); })()"""


@pytest.fixture
def busy(shared_cluster: LocalCluster) -> LocalCluster:
    """A cluster with objects of every type, long names and values, an entry that is consumed, and one that is not."""
    url = shared_cluster.urls["r1"]
    with httpx.Client(base_url=url, timeout=WAIT_S, trust_env=False) as client:
        client.post("/v1/queues/busy/items", json={"items": ["wash", {"dry": ["cup", "plate"]}, "x" * 300]})
        client.post("/v1/queues/busy/dequeue", json={})
        client.post("/v1/queues/busy/items", json={"item": "much later", "delay_s": 86400})
        client.post("/v1/queues/busy/acquire", json={"lease_s": 3600})
        client.put("/v1/registers/" + "a-very-long-name-" * 11, json={"value": "y" * 500})
        client.put("/v1/dictionaries/users/entries/ann", json={"value": 36})
    return shared_cluster


@pytest.mark.parametrize(
    ("object", "width"),
    [
        ("queue/busy", PHONE),
        ("queue/busy", 830),
        ("queue/busy", 1280),
        ("queue/busy", 1920),
        ("dictionary/users/ann", PHONE),
        ("register/" + "a-very-long-name-" * 11, PHONE),
    ],
)
def test_nothing_sticks_out(tab: Tab, busy: LocalCluster, object: str, width: int) -> None:
    url = open_page(tab, busy, f"?object={object}", width=width)
    assert "✓ Done" in act(tab, "Peek" if object.startswith("queue") else "Read")
    if object.startswith("queue"):
        assert "Delivered" in acquire(tab)
    tab.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    tab.wait_for(
        "document.querySelectorAll('#choices svg').length === document.querySelectorAll('#choices details').length"
    )
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate(OVERFLOWING.replace("{width}", str(width))) == []
    small = "[...document.querySelectorAll('svg text')].filter(each => each.getBoundingClientRect().height < 12).length"
    assert tab.evaluate(small) == 0
    cut = """[...document.querySelectorAll('svg text')].filter(each =>
      each.getBoundingClientRect().right > each.closest('svg').getBoundingClientRect().right + 1).map(each => each.textContent)"""
    assert tab.evaluate(cut) == []
    assert_quiet(tab, url)


@pytest.mark.parametrize("width", [PHONE, 768, 1280])
def test_names_are_broken_behind_their_signs_and_a_table_that_is_wider_says_so(
    tab: Tab, busy: LocalCluster, width: int
) -> None:
    url = busy.urls["r1"]
    with httpx.Client(base_url=url, timeout=WAIT_S, trust_env=False) as client:
        for name in ("invoices-eu-central-2026", "returns.of-the-year-before-last"):
            client.post(f"/v1/queues/shop.{name}/items", json={"item": 1}).raise_for_status()
    open_page(tab, busy, "?object=queue/busy", width=width)
    tab.wait_for(
        "[...document.querySelectorAll('#object-rows th')].some(each => each.textContent.includes('last'))"
    )
    lines = tab.evaluate(WORDS_ON_LINES)
    assert len(lines) > 10
    assert [word for word, count in lines if count != 1] == []
    is_wide = width == PHONE
    assert tab.evaluate(HINT) == [is_wide, is_wide]
    if is_wide:
        tab.evaluate("document.querySelector('#objects-table').scrollLeft = 10000")
        tab.wait_for(f"JSON.stringify({HINT}) === '[true,false]'")
    else:
        assert tab.evaluate(LAG_IN_SIGHT)


@pytest.mark.parametrize("width", [1400, PHONE])
def test_a_long_name_leaves_the_other_columns_in_sight(tab: Tab, clusters: Clusters, width: int) -> None:
    """No blank and no sign at which a browser would break it: such a name could claim all the room there is."""
    cluster = clusters.start()
    open_page(tab, cluster, width=width)
    act(tab, "Enqueue", "1")
    tab.wait_for(f"!!{COLUMNS}")
    with httpx.Client(base_url=cluster.urls["r1"], timeout=WAIT_S, trust_env=False) as client:
        client.post(f"/v1/queues/{'q' * 200}/items", json={"item": 1}).raise_for_status()
        client.put(f"/v1/dictionaries/{'d' * 200}/entries/{'k' * 200}", json={"value": 1}).raise_for_status()
    tab.wait_for("document.querySelectorAll('#object-rows tr.object').length === 3")
    after = tab.evaluate(COLUMNS)
    assert after["entries"] <= after["box"], "the second column is in sight"
    if width == 1400:
        assert after["table"] <= after["box"], "all of them are"


@pytest.mark.parametrize("dark", [False, True])
def test_text_and_marks_stand_out_in_light_and_dark(tab: Tab, clusters: Clusters, dark: bool) -> None:
    cluster = clusters.start()
    open_page(tab, cluster, dark=dark)
    act(tab, "Enqueue", '"wash"')
    act(tab, "Dequeue")
    for value in ('"dry"', '"iron"', '"fold"'):
        act(tab, "Enqueue", value)
        assert "Delivered" in acquire(tab)
    settle(tab, 1, "Reject")
    tab.click("#list-letters")
    tab.wait_for("document.querySelectorAll('#letter-rows li').length === 1")
    with httpx.Client(base_url=cluster.urls["r1"], timeout=WAIT_S, trust_env=False) as client:
        client.put("/v1/dictionaries/users/entries/ann", json={"value": 1}).raise_for_status()
        client.delete("/v1/dictionaries/users/entries/ann").raise_for_status()
    tab.click("#show-deleted")
    tab.wait_for("!!document.querySelector('#object-rows tr.deleted')")
    tab.wait_for(
        "!!document.querySelector('#trace-rows td.dead') && !!document.querySelector('#trace-rows td.held')"
    )
    for id in ("r2", "r3"):
        cluster.kill(id)
    tab.wait_for(f"{QUEUE_STATE}.includes('no quorum now')")
    tab.click("#value")
    tab.write("no JSON")
    tab.press("Enter")
    tab.wait_for("document.querySelector('#value-help').className.includes('trouble')")
    tab.evaluate("document.getAnimations().forEach(each => each.finish())")
    found: dict[str, dict[str, float]] = tab.evaluate(CONTRASTS)
    assert len(found["text"]) > 20
    del found["marks"]["g.node lost"]  # It has nothing of its own to be seen.
    assert sorted(found["marks"]) == ["path.edge", "rect.null"]
    assert {name: value for name, value in found["text"].items() if value < TEXT_CONTRAST_MIN} == {}
    assert {name: value for name, value in found["marks"].items() if value < MARK_CONTRAST_MIN} == {}


def test_a_listener_finds_the_parts_and_everything_has_a_name(tab: Tab, busy: LocalCluster) -> None:
    open_page(tab, busy, "?object=queue/busy")
    heard = tab.accessible()
    for role in ("banner", "main", "navigation", "contentinfo", "log"):
        assert role in [found for found, _ in heard], role
    headings = [name for role, name in heard if role == "heading"]
    assert headings[1:] == [
        "Replicas",
        "By hand",
        "What happened",
        "Dead letters of queue/busy",
        "Members and changes",
        "Objects",
        "Trace of queue/busy",
        "Quorum choices",
    ]
    regions = [name for role, name in heard if role == "region"]
    assert regions == [headings[1], headings[2], *headings[4:]]
    roles = {"button", "textbox", "combobox", "checkbox", "table", "link", "region", "image"}
    assert [role for role, name in heard if role in roles and not name] == []
    groups = [name for role, name in heard if role == "group" and name]
    assert len(groups) == 1 + 1 + 5, "the object, the operations, and each table in a box that scrolls"
    assert ("rowheader", "r2") in heard
    assert ("columnheader", "Entries missing") in heard
    (graph,) = [name for role, name in heard if role == "image"]
    assert graph.startswith("Constraint graph of a queue: Deq meets Enq/Ok; Deq meets Deq/Ok;")
    live = "[...document.querySelectorAll('[aria-live], [role=alert]')].map(each => each.id)"
    assert tab.evaluate(live) == ["notice", "no-name", "replicas-sum", "outcomes", "members-sum"]


def test_it_speaks_only_when_something_changes(tab: Tab, shared_cluster: LocalCluster) -> None:
    """A live region whose text is set anew each second would never be silent."""
    open_page(tab, shared_cluster)
    tab.evaluate(
        "window.spoken = 0; new MutationObserver(changes => { window.spoken += changes.length; })"
        ".observe(document.querySelector('#replicas-sum'), {childList: true, characterData: true, subtree: true})"
    )
    for _ in range(2):
        live = tab.evaluate("document.querySelector('#as-of').textContent")
        tab.wait_for(f"document.querySelector('#as-of').textContent !== {live!r}")
    assert tab.evaluate("window.spoken") == 0
