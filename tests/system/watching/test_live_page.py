"""The live page in a real headless browser, on real replicas: used by hand and by keyboard, looked at, and listened to.

A person starts a cluster, opens the page, enqueues, sees a replica killed, and goes on. Whatever the page is shown, nothing
is loaded from elsewhere, nothing becomes markup, and the console stays empty but for requests that replicas refused.
"""

import asyncio
import json
import re
import time

import httpx
import pytest

from quorate.api_specs.cluster import ChoiceRule
from quorate.api_specs.messages import Batch, BatchReply, Collect
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import OutcomeUnknown, connect
from quorate.timestamps.timestamp import make
from tests.support import browser
from tests.support.browser import Tab
from tests.system.cluster.test_catch_up import held
from tests.system.harness import QUICK, WAIT_S, Clusters, http, until_now
from tests.system.in_vain import failure_of
from tests.system.live_page import (
    CATCH_UP,
    DRAWN,
    IN_HAND,
    MARKUP,
    NOTICE,
    OFFERED,
    OUTCOMES,
    QUEUE_STATE,
    ROWS,
    STANDINGS,
    SUM,
    acquire,
    act,
    assert_quiet,
    begin,
    open_page,
    settle,
)

pytestmark = pytest.mark.slow

EVERY_S_MIN = 0.9
"""Somewhat less than the second that lies between two questions."""

RESTS_S = 2.5
STOPS_MAX = 40

FOCUSED = """(() => { const it = document.activeElement, style = getComputedStyle(it);
  return [it.id || it.textContent.trim(), style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1]; })()"""


def test_a_person_enqueues_sees_a_replica_killed_and_dequeues(tab: Tab, clusters: Clusters) -> None:
    cluster = clusters.start()
    url = open_page(tab, cluster)
    tab.wait_for(f"{SUM} === 'All 3 replicas are up.'")
    assert "Enqueued" in act(tab, "Enqueue", '"wash"')
    enq = '[Enq("wash"); Ok()]'
    tab.wait_for(
        f"JSON.stringify({ROWS}) === {json.dumps(json.dumps([['t1', enq, enq, enq]], separators=(',', ':')))!s}"
    )

    cluster.kill("r3")
    tab.wait_for(f"{SUM}.startsWith('2 of 3 replicas are up. r3 is down')")
    assert tab.evaluate("document.querySelector('#replica-rows tr:nth-child(3) td').textContent") == "✕ down"
    tab.wait_for(f"{ROWS}[0][3] === '?not known'")
    lag = "document.querySelector('#object-rows .lag').textContent"
    tab.wait_for(f"{lag} === 'r3: not known'")

    assert "✓ Done" in act(tab, "Enqueue", '"dry"')
    assert re.search(r'✓ Done .* queue/jobs: Dequeued "wash"', act(tab, "Dequeue"))
    assert "1 item waits" in act(tab, "Count")

    cluster.restart("r3")
    tab.wait_for(f"{SUM} === 'All 3 replicas are up.'")
    dry = '[Enq("dry"); Ok()]'
    tab.wait_for(f"JSON.stringify({ROWS}.at(-1).slice(1)) === JSON.stringify([{dry!r}, {dry!r}, 'blank'])")
    tab.wait_for(f"{lag}.startsWith('r3: misses 1')")
    assert '"dry"' in act(tab, "Dequeue")
    assert "The queue is empty" in act(tab, "Dequeue")
    rows = "[...document.querySelectorAll('#replica-rows tr, #object-rows tr.object')].map(each => each.firstChild.textContent)"
    assert tab.evaluate(rows) == ["r1", "r2", "r3", "queue/jobs"]
    assert_quiet(tab, url)


def test_errors_say_in_words_whether_it_happened(tab: Tab, clusters: Clusters) -> None:
    cluster = clusters.start(settings=QUICK)
    open_page(tab, cluster)
    for id in ("r2", "r3"):
        cluster.kill(id)
    tab.wait_for(f"{SUM}.startsWith('1 of 3 replicas is up.')")
    tab.wait_for(f"{QUEUE_STATE}.includes('no quorum now')")
    told = act(tab, "Enqueue", "1")
    assert "? Not known" in told
    assert "Nobody knows yet whether it happened" in told
    told = act(tab, "Peek")
    assert "✕ No answer" in told
    assert "Nothing was changed by asking" in told
    told = act(tab, "Enqueue", '"' + "x" * 1_048_600 + '"')
    assert "✕ Did not happen" in told
    assert "It certainly did not happen" in told

    cluster.kill("r1")
    tab.wait_for(f"{NOTICE}.includes('does not answer')")
    shown = tab.evaluate(NOTICE)
    assert "What is shown is what it said at" in shown
    assert "? Not known" in act(tab, "Enqueue", "2")
    for id in ("r1", "r2", "r3"):
        cluster.launch(id)
    cluster.ready()
    tab.wait_for(f"{SUM} === 'All 3 replicas are up.' && document.querySelector('#notice').hidden")
    assert "✓ Done" in act(tab, "Enqueue", "3")


def test_it_works_by_keyboard_and_shows_where_one_is(tab: Tab, shared_cluster: LocalCluster) -> None:
    url = open_page(tab, shared_cluster, "?object=queue/keys")
    stops: list[str] = []
    while "value" not in stops:
        tab.press("Tab")
        stop, is_marked = tab.evaluate(FOCUSED)
        assert is_marked, f"the focus is not to be seen on {stop}"
        stops.append(stop)
        assert len(stops) < STOPS_MAX, stops
    assert stops[:2] == ["Skip to the content", "pause"]
    tab.write("wash")
    tab.press("Enter")
    help = "document.querySelector('#value-help').textContent"
    tab.wait_for(f"""{help} === '✕ This is not JSON. For that text, write "wash".'""")
    assert tab.evaluate("document.activeElement.id + document.activeElement.ariaInvalid") == "valuetrue"
    tab.write('"wash"')
    tab.press("Enter")
    tab.wait_for(f"{OUTCOMES}.length === 1")
    tab.press("Tab")
    tab.press("Tab")
    assert tab.evaluate(FOCUSED)[0] == "Dequeue"
    tab.press("Enter")
    tab.wait_for(f"""{OUTCOMES}[0].includes('Dequeued "wash"')""")

    # To another object, and back by the list; the focus stays where it is while the page follows.
    tab.evaluate("document.querySelector('#object-name').focus()")
    tab.write("other")
    tab.press("Enter")
    tab.wait_for("document.querySelector('#trace-object').textContent === 'queue/other'")
    tab.wait_for(
        "[...document.querySelectorAll('#object-rows button')].some(each => each.textContent === 'queue/keys')"
    )
    tab.evaluate(
        "[...document.querySelectorAll('#object-rows button')].find(each => each.textContent === 'queue/keys').focus()"
    )
    live = tab.evaluate("document.querySelector('#as-of').textContent")
    tab.wait_for(f"document.querySelector('#as-of').textContent !== {live!r}")
    assert tab.evaluate(FOCUSED)[0] == "queue/keys"
    tab.press(" ")
    tab.wait_for("document.querySelector('#trace-object').textContent === 'queue/keys'")
    assert tab.evaluate("location.search") == "?object=queue%2Fkeys"
    assert_quiet(tab, url)


def test_the_focus_stays_on_the_operation_that_was_picked(tab: Tab, shared_cluster: LocalCluster) -> None:
    url = open_page(tab, shared_cluster, "?object=queue/focus")
    tab.evaluate("document.querySelector('#value').focus()")
    tab.press("Tab")
    assert tab.evaluate(FOCUSED)[0] == "Enqueue"
    for number, name in enumerate(("Dequeue", "Peek", "Count"), 1):
        tab.press("Tab")
        assert tab.evaluate(FOCUSED)[0] == name
        tab.press("Enter")
        tab.wait_for(f"{OUTCOMES}.length === {number}")
        assert tab.evaluate(FOCUSED) == [name, True]

    httpx.put(f"{url}/v1/registers/focus", json={"value": 1}, timeout=WAIT_S, trust_env=False)
    listed = "[...document.querySelectorAll('#object-rows button')].find(each => each.textContent === 'register/focus')"
    tab.wait_for(f"!!{listed}")
    tab.evaluate(f"{listed}.focus()")
    tab.press("Enter")
    assert tab.evaluate(FOCUSED)[0] == "register/focus"
    assert tab.evaluate(OFFERED) == ["Write", "Read"], "another type has others"
    assert_quiet(tab, url)


def test_a_key_is_shown_as_it_was_written(tab: Tab, shared_cluster: LocalCluster) -> None:
    name = "dictionary/shelf/mugs/red & =20 <b>"
    url = open_page(tab, shared_cluster, f"?{httpx.QueryParams(object=name)}")
    assert "Written 7" in act(tab, "Write", "7")
    assert "Read 7" in act(tab, "Read")
    listed = f"[...document.querySelectorAll('#object-rows button')].find(each => each.textContent === {json.dumps(name)})"
    tab.wait_for(f"{listed}?.ariaCurrent === 'true'")
    tab.wait_for("document.querySelector('#trace-rows, #trace tbody').textContent.includes('Put')")
    tab.evaluate("document.querySelector('#object-key').value = ''")
    tab.evaluate(f"{listed}.click()")
    assert tab.evaluate("document.querySelector('#object-key').value") == "mugs/red & =20 <b>"
    assert_quiet(tab, url)


def test_leases_by_hand_and_what_the_trace_says_of_them(tab: Tab, clusters: Clusters) -> None:
    """Somebody works on one item, and the page on others; each is seen for what it is, with a replica down too."""
    cluster = clusters.start()
    url = open_page(tab, cluster, "?object=queue/work")
    with httpx.Client(base_url=f"{url}/v1/queues/work", trust_env=False) as client:
        client.post("/items", json={"items": ["wash", "dry", MARKUP, 18446744073709551615]})
        client.post("/items", json={"item": "tomorrow", "delay_s": 86400}).raise_for_status()
        client.post("/acquire", json={"lease_s": 3600}).raise_for_status()
    tab.wait_for(f"{STANDINGS}[0]?.startsWith('held until') && {STANDINGS}[4]?.startsWith('delayed until')")
    assert tab.evaluate(STANDINGS)[1:4] == [None, None, None], "these wait for whoever comes first"

    cluster.kill("r3")
    for value in ('"dry"', json.dumps(MARKUP), "18446744073709551615"):
        assert f"Delivered {value}" in acquire(tab)
    assert "Nothing is there to be delivered now" in acquire(tab), "what is left is for tomorrow"
    assert tab.evaluate(IN_HAND) == ['"dry"', json.dumps(MARKUP), "18446744073709551615"]
    counted = act(tab, "Count")
    assert "0 items wait; leases: 4 held, 1 waiting" in counted
    tab.wait_for("document.querySelector('#object-rows .held').textContent === '4 held, 1 waiting'")
    tab.wait_for(f"{STANDINGS}.filter(each => each?.includes(', delivery 1')).length === 4")

    assert 'Renewed "dry"' in settle(tab, 1, "Renew")
    assert 'Acknowledged "dry"' in settle(tab, 1, "Acknowledge")
    assert f"Rejected {json.dumps(MARKUP)}" in settle(tab, 1, "Reject")
    assert "Released 18446744073709551615" in settle(tab, 1, "Release")
    assert tab.evaluate("document.querySelector('#in-hand').hidden")
    assert tab.evaluate("document.activeElement.textContent") == "Acquire", "where one goes on by keyboard"
    tab.wait_for(f"{STANDINGS}.length === 4")
    ended = json.dumps(["dead letter: rejected, delivered once", "waits again, delivered once"])
    tab.wait_for(f"JSON.stringify({STANDINGS}.slice(1, 3)) === JSON.stringify({ended})")
    assert_quiet(tab, url)


def test_a_lease_that_was_lost_is_told_and_leaves_the_hand(tab: Tab, shared_cluster: LocalCluster) -> None:
    url = open_page(tab, shared_cluster, "?object=queue/lost")
    act(tab, "Enqueue", '"wash"')
    tab.evaluate("document.querySelector('#lease-seconds').focus()")
    tab.write("1")
    tab.press("Enter")
    tab.wait_for(f"""{OUTCOMES}[0].includes('Delivered "wash"')""")
    with httpx.Client(base_url=f"{url}/v1/queues/lost", trust_env=False) as client:
        answer = client.post("/acquire", json={"wait_s": 10})
        assert len(answer.json()["leases"]) == 1, "the page's lease is over, and another one is given it"
    told = settle(tab, 1, "Acknowledge")
    assert "✕ Lost" in told
    assert "nothing was done" in told
    assert tab.evaluate(IN_HAND) == []
    tab.evaluate("document.querySelector('#lease-seconds').focus()")
    tab.write("0")
    tab.press("Enter")
    assert tab.evaluate("document.querySelector('#lease-seconds').matches(':invalid')")
    assert_quiet(tab, url)


def test_registers_and_dictionaries_by_hand(tab: Tab, shared_cluster: LocalCluster) -> None:
    url = open_page(tab, shared_cluster, "?object=register/leader")
    assert "Read null" in act(tab, "Read")
    assert "Written" in act(tab, "Write", "18446744073709551615")
    assert "Read 18446744073709551615" in act(tab, "Read"), "exactly as it was written"
    tab.show(f"{url}/ui?object=dictionary/users/ann")
    tab.wait_for(DRAWN)
    assert tab.evaluate("document.querySelector('#choices details[open]').dataset.type") == "dictionary"
    assert "Written" in act(tab, "Write", '{"b": [1, "],}"], "a": 2}')
    assert 'Read {"a":2,"b":[1,"],}"]}' in act(tab, "Read")
    assert "Deleted" in act(tab, "Delete")
    tab.wait_for(f"{ROWS}.at(-1)?.[1] === '[Delete(); Ok()]'")
    assert_quiet(tab, url)
    assert "The key is absent" in act(tab, "Read")


def test_answers_of_eventual_consistency_say_so(tab: Tab, clusters: Clusters) -> None:
    rules = [
        ChoiceRule(f"{name}/old", consistency="eventual") for name in ("register", "dictionary", "queue")
    ]
    cluster = clusters.start(rules=rules)
    url = open_page(tab, cluster, "?object=register/old")
    label = "(eventual consistency: it may be old)"
    assert f"Read {label} null" in act(tab, "Read")
    assert label not in act(tab, "Write", '"blue"')
    tab.show(f"{url}/ui?object=dictionary/old/ann")
    tab.wait_for(DRAWN)
    assert f"The key is absent {label}" in act(tab, "Read")
    tab.show(f"{url}/ui?object=queue/old")
    tab.wait_for(DRAWN)
    assert f"The queue is empty {label}" in act(tab, "Peek")
    assert label not in act(tab, "Dequeue")
    tab.show(f"{url}/ui?object=register/new")
    tab.wait_for(DRAWN)
    assert label not in act(tab, "Read")


def test_it_follows_with_a_bound_and_rests_while_nobody_looks(tab: Tab, shared_cluster: LocalCluster) -> None:
    open_page(tab, shared_cluster)

    def polls() -> int:
        tab.evaluate("0")  # With its answer come the events that were noted before.
        return sum("/v1/overview" in each for each in tab.requests)

    def wait_for_polls(count: int) -> float:
        """Wait until there are so many more; the seconds that it took."""
        began_s, before = time.monotonic(), polls()
        while polls() < before + count:
            assert time.monotonic() < began_s + browser.ANSWER_S_MAX, "it does not follow"
            time.sleep(0.05)
        return time.monotonic() - began_s

    def wait_for_rest() -> None:
        """Wait until nothing is asked for so long as it would else be asked twice; what has just begun may still come."""
        late_s = time.monotonic() + browser.ANSWER_S_MAX
        before, now = -1, polls()
        while now > before:
            assert time.monotonic() < late_s, "it does not rest"
            time.sleep(RESTS_S)
            before, now = now, polls()

    assert wait_for_polls(4) > 3 * EVERY_S_MIN
    with tab.hidden():
        wait_for_rest()
    wait_for_polls(1)
    tab.click("#pause")
    assert tab.evaluate("document.querySelector('#pause').ariaPressed") == "true"
    with tab.hidden():
        pass
    wait_for_rest()
    tab.click("#pause")
    wait_for_polls(1)


def test_with_a_token_it_asks_and_forgets(tab: Tab, clusters: Clusters) -> None:
    cluster = LocalCluster.create(clusters.folder / "guarded", replicas=1, token="open-sesame")
    clusters.made.append(cluster)
    cluster.start()
    cluster.ready()
    url = cluster.urls["r1"]
    is_asked = "document.querySelector('#token-dialog').open"
    begin(tab)
    for _ in range(2):  # A reload asks again: the token was in the memory of the page alone.
        tab.show(f"{url}/ui")
        tab.wait_for(is_asked)
        assert tab.evaluate("document.activeElement.id") == "token"
        for wrong in ("wrong", "öffne-dich-🌱"):  # The second one no request can carry.
            tab.evaluate("document.querySelector('#token-why').textContent = ''")
            tab.write(wrong)
            tab.press("Enter")
            tab.wait_for(
                f"{is_asked} && document.querySelector('#token-why').textContent.includes('refused')"
            )
        tab.write("open-sesame")
        tab.press("Enter")
        tab.wait_for(DRAWN)
    assert "✓ Done" in act(tab, "Enqueue", "1")
    assert tab.evaluate("localStorage.length + sessionStorage.length + document.cookie.length") == 0
    assert tab.evaluate("document.querySelector('#token').value") == ""
    assert not [each for each in tab.requests if "sesame" in each]
    assert {message for message in tab.messages if "401 (Unauthorized)" not in message} == set()

    tab.show(f"{url}/ui")
    tab.wait_for(is_asked)
    tab.press("Escape")
    tab.wait_for(f"{NOTICE}.includes('This replica asks for a token')")
    assert not tab.evaluate(is_asked)
    tab.click("#give-token")
    tab.wait_for(is_asked)
    tab.write("open-sesame")
    tab.press("Enter")
    tab.wait_for(f"{DRAWN} && document.querySelector('#notice').hidden")


def test_short_names_stay_with_their_timestamps(tab: Tab, shared_cluster: LocalCluster) -> None:
    open_page(tab, shared_cluster, "?object=queue/named")
    for value in ("1", "2", "3"):
        act(tab, "Enqueue", value)
    tab.wait_for(f"{ROWS}.length === 3")
    names = [row[0] for row in tab.evaluate(ROWS)]
    # A new object's fence may have a name already: where an earlier one was forgotten, replicas keep its promises.
    first = int(names[0].removeprefix("t"))
    assert names == [f"t{first + number}" for number in range(3)]
    act(tab, "Dequeue")
    act(tab, "Dequeue")
    tab.wait_for(f"{ROWS}.length === 1")
    assert tab.evaluate(ROWS)[0][0] == names[-1]
    tab.click("#trace-whole")
    tab.wait_for(f"/^[0-9a-f]{{14}}\\.[0-9a-f]{{4}}\\./.test({ROWS}[0][0])")


def fence_all_before_now(cluster: LocalCluster, *replicas: str) -> None:
    """As a decision does that nobody ever ended: no entry of the queue that is older may be appended there any more."""

    async def collect() -> None:
        transport = http(cluster.document)
        asked = Collect("queue/jobs", fence=make(time.time_ns() // 1000, 0, "s"))
        for replica in replicas:
            answer = await transport.exchange(replica, Batch(cluster.document.hash, (asked,)), WAIT_S)
            assert isinstance(answer, BatchReply)
        await transport.aclose()

    asyncio.run(collect())


def test_it_shows_what_a_replica_has_not_got_yet_and_what_it_brought(tab: Tab, clusters: Clusters) -> None:
    """x reaches r1 alone, and is fenced at r2 and r3, which may not install it while nobody has settled its fate. r1 was
    down while y was enqueued, and brings it. Then dequeues settle x, and all are level."""
    cluster = clusters.start()
    for id in ("r2", "r3"):
        cluster.kill(id)
    with connect(cluster.document, deadline_s=1) as client:
        failure_of(lambda: client.queue("jobs").enqueue("x"), OutcomeUnknown)
    until_now(lambda: held(cluster, "r1") == 1, "r1 has it")
    cluster.kill("r1")
    for id in ("r2", "r3"):
        cluster.restart(id)
    fence_all_before_now(cluster, "r2", "r3")
    with connect(cluster.document) as client:
        client.queue("jobs").enqueue("y")
    cluster.restart("r1")
    url = open_page(tab, cluster)
    tab.wait_for(f"{CATCH_UP}[0] === 'level; 1 entry brought'")
    tab.wait_for(f"{CATCH_UP}.slice(1).every(each => each === 'r1: 1 change behind')")
    with connect(cluster.document) as client:
        while client.queue("jobs").dequeue() != "y":
            pass
    tab.wait_for(f"{CATCH_UP}.every(each => each.startsWith('level'))")
    cluster.kill("r3")
    tab.wait_for(f"{CATCH_UP}[2] === '\u2013'")
    assert_quiet(tab, url)
