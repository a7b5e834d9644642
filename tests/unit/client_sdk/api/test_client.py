"""Both clients against three replicas behind real loopback servers: every method, errors and deadlines."""

import asyncio
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

import pytest

from quorate.api_specs.limits import DEFAULTS, Limits
from quorate.api_specs.problems import KINDS
from quorate.client_sdk import (
    BadCluster,
    BadInput,
    Client,
    ClientTls,
    Closed,
    OutcomeUnknown,
    RefusedByReplicas,
    Unavailable,
    connect,
    connect_async,
)
from quorate.client_sdk.protocol.core.values import Done, Enqueue, Operation, Outcome
from quorate.client_sdk.transport.link import EXCHANGE_TIMEOUT_S
from tests.system.harness import until_now
from tests.unit.client_sdk.loopback import LoopbackCluster, PendingCommand, cluster_of, problem
from tests.unit.client_sdk.scripted import document_of

LIMITS = Limits(batch_items_max=10, value_bytes_max=1000)
PATIENT_S = 20.0
"""The deadline of what ends long before it, unless it is waited out."""


@pytest.fixture
def cluster() -> Iterator[LoopbackCluster]:
    with cluster_of(document_of("r1", "r2", "r3", limits=LIMITS)) as made:
        yield made


@pytest.fixture
def client(cluster: LoopbackCluster) -> Iterator[Client]:
    with connect(cluster.document, deadline_s=PATIENT_S) as made:
        yield made


def test_a_queue_is_first_in_first_out(client: Client) -> None:
    queue = client.queue("jobs")
    assert queue.dequeue() is None
    assert queue.peek() is None
    assert queue.dequeue(max_items=3) == []
    queue.enqueue({"n": 1})
    queue.enqueue_many([2, "three", [4]])
    queue.enqueue_many([])
    assert queue.size() == 4
    assert queue.peek() == {"n": 1}
    assert queue.dequeue() == {"n": 1}
    assert queue.dequeue(max_items=2) == [2, "three"]
    assert queue.dequeue(10) == [[4]]
    assert queue.size() == 0


def test_the_items_of_a_queue_are_listed_and_stay(client: Client) -> None:
    queue = client.queue("listed")
    assert queue.items() == []
    queue.enqueue_many([None, "two", [3]])
    assert queue.items() == queue.items(3) == queue.items(100) == [None, "two", [3]]
    assert queue.items(2) == [None, "two"]
    assert queue.dequeue() is None
    assert queue.items() == ["two", [3]]
    assert queue.size() == 2
    with pytest.raises(BadInput, match="max_items is 0"):
        queue.items(0)


def test_a_key_is_deleted_only_while_it_holds_the_value(client: Client) -> None:
    users = client.dictionary("compared")
    for key in ("z", "a", "m"):
        users.put(key, key)
    assert list(users.items()) == ["a", "m", "z"], "in order"
    for key in users.items():
        users.delete(key)
    users.put("k", [1, {"a": None}])
    assert not users.compare_and_delete("k", [1])
    assert users.get("k") == [1, {"a": None}]
    assert users.compare_and_delete("k", [1, {"a": None}], idempotency_key="once")
    assert users.compare_and_delete("k", [1, {"a": None}], idempotency_key="once"), "the first answer again"
    assert not users.compare_and_delete("k", [1, {"a": None}])
    assert users.items() == {}
    assert users.put_if_absent("k", 2), "it is absent, and not null"
    with pytest.raises(BadInput, match="use delete"):
        users.compare_and_delete("k", None)


def test_one_of_many_callers_deletes_what_it_read(client: Client) -> None:
    users = client.dictionary("contended")
    users.put("k", "v")
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda _: users.compare_and_delete("k", "v"), range(8)))
    assert won.count(True) == 1


@pytest.mark.parametrize("forward", [True, False])
def test_a_client_may_decide_for_itself(cluster: LoopbackCluster, forward: bool) -> None:
    """Two front ends that take from one queue meet, and ask a replica's then. The replicas here know no asks, so that the
    outcome is unknown, as it is when that replica dies."""
    with (
        connect(cluster.document, forward=forward) as one,
        connect(cluster.document, forward=forward) as other,
        pytest.raises(OutcomeUnknown, match="asked to decide") if forward else nullcontext(),
    ):
        for _ in range(5):
            assert one.queue("met").dequeue() is other.queue("met").dequeue() is None
            one.queue("met").enqueue(1)
            assert other.queue("met").dequeue() == 1


def test_a_dequeue_waits_for_an_item(client: Client, cluster: LoopbackCluster) -> None:
    queue, servers = client.queue("jobs"), cluster.servers.values()
    assert queue.dequeue() is None
    in_one_look = sum(len(server.messages) for server in servers)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(queue.dequeue, wait_s=15)
        until_now(
            lambda: sum(len(server.messages) for server in servers) > 2 * in_one_look,
            "it looks again",
            deadline_s=15,
        )
        queue.enqueue("late")
        assert waiting.result(60) == "late"
    started_s = time.monotonic()
    assert queue.dequeue(wait_s=0.3, deadline_s=PATIENT_S) is None
    assert 0.3 <= time.monotonic() - started_s < PATIENT_S


def test_a_register_has_compare_and_set(client: Client) -> None:
    register = client.register("leader")
    assert register.read() is None
    assert register.compare_and_set(None, "a")
    assert not register.compare_and_set("b", "c")
    register.write({"b": 1, "a": [None]})
    assert register.compare_and_set({"a": [None], "b": 1}, "d")
    assert register.read() == "d"
    register.write([1.0, 2**53])
    assert not register.compare_and_set([True, 2**53], "e")
    assert not register.compare_and_set([1, 2**53 + 1], "e")
    assert register.compare_and_set([1, 2.0**53], "e")


def test_a_dictionary_has_every_method(client: Client) -> None:
    users = client.dictionary("users")
    assert users.get("ann") is None
    users.put("ann", 1)
    assert not users.put_if_absent("ann", 2)
    assert users.put_if_absent("bob", 2)
    assert users.compare_and_set("bob", 2, 3)
    assert not users.compare_and_set("bob", 2, 4)
    assert users.items() == {"ann": 1, "bob": 3}
    assert users.size() == 2
    users.delete("ann")
    users.delete("nobody")
    assert users.get("ann") is None
    assert users.items() == {"bob": 3}


def test_a_dictionary_is_listed_by_prefix_and_in_pages(client: Client) -> None:
    stock = client.dictionary("stock")
    kept = {f"shop.{number:02}": number for number in range(7)}
    for key, value in {"cellar.1": 0, **kept, "yard": 9}.items():
        stock.put(key, value)
    stock.delete("shop.03")
    del kept["shop.03"]
    assert stock.items("shop.") == kept
    assert (stock.size("shop."), stock.size("shop.05"), stock.size("none")) == (6, 1, 0)
    pages = [stock.page("shop.", max_keys=3)]
    while pages[-1].next:
        pages.append(stock.page("shop.", after=pages[-1].next, max_keys=3))
    assert {key: value for page in pages for key, value in page.items.items()} == kept
    assert len(pages) == 3
    assert list(stock.page(after="shop.05").items) == ["shop.06", "yard"]
    for asked, sentence in (
        ({"max_keys": 0}, "use 1 to"),
        ({"max_keys": DEFAULTS.page_entries_max + 1}, "page_entries_max"),
        ({"max_keys": 1.5}, "max_keys"),
        ({"prefix": "a" * 201}, "the prefix 'aaa"),
        ({"after": "a" * 201}, "the key `after` 'aaa"),
    ):
        with pytest.raises(BadInput, match=re.escape(sentence)):
            stock.page(**asked)


def test_keys_are_any_text(client: Client) -> None:
    stock = client.dictionary("any")
    kept = {"shop/mugs & cups": 1, "shop/=41": 2, "shop/=20": 3, "shop/é": 4, ".": 5, "=20": 6, "\n": 7}
    for key, value in kept.items():
        assert stock.put_if_absent(key, value)
        assert stock.get(key) == value
    in_shop = {key: value for key, value in kept.items() if key.startswith("shop/")}
    assert (stock.items(), stock.items("shop/")) == (kept, in_shop)
    assert (stock.items("shop/="), stock.size("shop/="), stock.items("=2")) == (
        {"shop/=41": 2, "shop/=20": 3},
        2,
        {"=20": 6},
    )
    met, after = list[str](), ""
    for _ in kept:
        page = stock.page(after=after, max_keys=1)
        met, after = [*met, *page.items], page.next
    assert (met, after) == (list(stock.items()), "")
    assert stock.compare_and_set("shop/é", 4, 8)
    assert stock.compare_and_delete("shop/é", 8)
    stock.delete("=20")
    assert kept.keys() - stock.items().keys() == {"shop/é", "=20"}


def test_a_repeat_with_the_same_key_takes_effect_once(client: Client) -> None:
    queue = client.queue("jobs")
    for _ in range(2):
        queue.enqueue("once", idempotency_key="e1")
    assert queue.size() == 1
    queue.enqueue("second")
    assert queue.dequeue(idempotency_key="d1") == "once"
    assert queue.dequeue(idempotency_key="d1") == "once"
    assert queue.size() == 1


async def test_the_asyncio_client_has_the_same_methods(cluster: LoopbackCluster) -> None:
    async with connect_async(cluster.document) as client:
        queue, register, users = client.queue("q"), client.register("r"), client.dictionary("d")
        await queue.enqueue(1)
        await queue.enqueue_many([2, 3])
        assert (await queue.peek(), await queue.size()) == (1, 3)
        assert await queue.dequeue() == 1
        assert await queue.dequeue(max_items=5) == [2, 3]
        await register.write("x")
        assert await register.compare_and_set("x", "y")
        assert await register.read() == "y"
        await users.put("k", 1)
        assert await users.compare_and_set("k", 1, 2)
        assert not await users.put_if_absent("k", 3)
        assert (await users.get("k"), await users.items(), await users.size()) == (2, {"k": 2}, 1)
        await users.delete("k")
        assert await users.size() == 0


async def test_connect_async_can_be_awaited_too(cluster: LoopbackCluster) -> None:
    client = await connect_async(cluster.servers["r2"].url)
    assert await client.queue("q").size() == 0
    await client.aclose()
    await client.aclose()
    with pytest.raises(Closed) as caught:
        await client.queue("q").size()
    assert caught.value.definite


async def test_a_closed_client_with_a_history_says_so_too(cluster: LoopbackCluster, tmp_path: Path) -> None:
    """The history was told first, and its file was closed."""
    client = await connect_async(cluster.document, history=tmp_path / "h.jsonl")
    await client.aclose()
    with pytest.raises(Closed) as caught:
        await client.queue("q").enqueue(1)
    assert caught.value.definite
    assert (tmp_path / "h.jsonl").read_text() == ""


@pytest.mark.parametrize("key", ['"quoted"', "%41", "a,b", "'", "../x", "~" * 200])
def test_a_key_that_rest_takes_is_taken(client: Client, key: str) -> None:
    """Else what was asked over REST could not be repeated from Python."""
    for _ in range(2):
        client.queue("q").enqueue(1, idempotency_key=key)
    assert client.queue("q").size() == 1


@pytest.mark.parametrize("key", ["", "a b", "é", "a\n", "x" * 201])
def test_no_other_key_is(client: Client, key: str) -> None:
    with pytest.raises(BadInput, match="printable"):
        client.queue("q").enqueue(1, idempotency_key=key)


async def test_tasks_share_a_client(cluster: LoopbackCluster) -> None:
    async with connect_async(cluster.document) as client:
        queue = client.queue("q")
        await asyncio.gather(*(queue.enqueue(number) for number in range(200)))
        taken = await asyncio.gather(*(queue.dequeue() for _ in range(200)))
        assert sorted(taken) == list(range(200))
        assert await queue.dequeue() is None
    batches = sum(len(server.messages) for server in cluster.servers.values())
    assert batches < 600, "concurrent operations share batches"


def test_threads_share_a_client(client: Client) -> None:
    queue = client.queue("q")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(queue.enqueue, range(100)))
        taken = list(pool.map(lambda _: queue.dequeue(), range(100)))
    assert sorted(taken) == list(range(100))


async def test_a_client_belongs_to_one_event_loop(cluster: LoopbackCluster) -> None:
    async with connect_async(cluster.document) as client:
        with pytest.raises(BadInput, match="another event loop"):
            await asyncio.to_thread(asyncio.run, client.queue("q").size())


def test_a_cluster_is_a_document_a_path_or_a_url(cluster: LoopbackCluster, tmp_path: Path) -> None:
    replicas = "".join(
        f'[[replicas]]\nid = "{info.id}"\nurl = "{info.url}"\n' for info in cluster.document.replicas
    )
    limits = "[limits]\nbatch_items_max = 10\nvalue_bytes_max = 1000\n"
    path = tmp_path / "cluster.toml"
    path.write_text(f'name = "scripted"\n{replicas}{limits}')
    for given in (cluster.document, path, str(path), cluster.servers["r3"].url):
        with connect(given) as client:
            assert client.document == cluster.document
            assert client.queue("q").size() == 0


def test_of_several_urls_one_must_answer(cluster: LoopbackCluster) -> None:
    dead, alive = "http://127.0.0.1:1", cluster.servers["r3"].url
    for given in ([dead, alive], (alive, dead), [alive]):
        with connect(given) as client:
            assert client.document == cluster.document

    async def refuse(_: PendingCommand) -> bytes:
        return problem(403, "forbidden")

    cluster.servers["r3"].handler = refuse
    with pytest.raises(RefusedByReplicas):
        connect([dead, alive])
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1/.*; .*127\.0\.0\.1:2/"):
        connect([dead, "http://127.0.0.1:2"])


def test_endpoints_override_addresses(cluster: LoopbackCluster) -> None:
    urls = {replica: server.url for replica, server in cluster.servers.items()}
    swapped = urls | {"r1": urls["r2"], "r2": urls["r1"]}
    with (
        connect(cluster.document, endpoints=swapped) as client,
        pytest.raises(RefusedByReplicas, match=r"r1 \(its URL reaches replica r2"),
    ):
        client.register("r").read()
    with connect(cluster.document, endpoints=urls) as client:
        client.queue("q").enqueue(1)


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        (
            {"cluster": "nowhere.toml"},
            BadCluster,
            "cannot read the cluster file nowhere.toml.*'nowhere.toml'$",
        ),
        ({"cluster": "/"}, BadCluster, "name the file itself, as cluster.toml in that folder$"),
        ({"cluster": "127.0.0.1:8001"}, BadCluster, "for a replica's URL write http://127.0.0.1:8001$"),
        ({"cluster": "http://127.0.0.1:1"}, Unavailable, r"127\.0\.0\.1:1"),
        ({"cluster": "http://127.0.0.1:1", "deadline_s": "5"}, BadInput, "deadline_s is of type str"),
        ({"cluster": []}, BadInput, "or a list of URLs"),
        ({"cluster": [5]}, BadInput, "or a list of URLs"),
        ({"cluster": 5}, BadInput, "the cluster is 5: use its file, a replica's URL"),
        ({"cluster": ["my-cluster/cluster.toml"]}, BadInput, "or a list of URLs"),
        ({"endpoints": {"r9": "http://127.0.0.1:1"}}, BadInput, "no replica r9: use r1, r2"),
        ({"endpoints": {"r1": "127.0.0.1:1"}}, BadInput, "must look like http://host:port"),
        ({"token": "sécret"}, BadInput, "printable ASCII"),
        ({"token": "se\ncret"}, BadInput, "printable ASCII"),
        ({"deadline_s": 0}, BadInput, "deadline_s is 0"),
        ({"deadline_s": "5"}, BadInput, "deadline_s is of type str"),
        ({"deadline_s": 26}, BadInput, "deadline_s_max"),
    ],
)
def test_connect_says_what_is_wrong(options: dict[str, Any], error: type[Exception], sentence: str) -> None:
    before = threading.active_count()
    with pytest.raises(error, match=sentence) as caught:
        connect(**({"cluster": document_of("r1", "r2")} | options))
    assert "cret" not in str(caught.value)
    assert threading.active_count() == before, "no thread is left behind"


def test_a_cluster_that_allows_less_than_the_default_gives_what_it_allows() -> None:
    limits = Limits(deadline_s_max=0.5, wait_s_max=0.5)
    with connect(document_of("r1", "r2", limits=limits)) as client:  # Nobody listens there.
        began_s = time.monotonic()
        with pytest.raises(Unavailable):
            client.register("r").read()
        assert time.monotonic() - began_s < PATIENT_S


@pytest.mark.parametrize(
    "wrong",
    [
        lambda client: client.queue("../etc"),
        lambda client: client.queue(""),
        lambda client: client.register("x" * 201),
        lambda client: client.dictionary("d").get("a" * 201),
        lambda client: client.queue("q").enqueue(float("nan")),
        lambda client: client.queue("q").enqueue("x" * 1000),
        lambda client: client.queue("q").enqueue_many(range(11)),
        lambda client: client.queue("q").dequeue(max_items=0),
        lambda client: client.queue("q").dequeue(max_items=11),
        lambda client: client.queue("q").dequeue(wait_s=21),
        lambda client: client.queue("q").dequeue(wait_s=2, deadline_s=1),
        lambda client: client.queue("q").size(deadline_s=-1),
        lambda client: client.queue("q").size(deadline_s="1"),
        lambda client: client.queue("q").size(deadline_s=float("nan")),
        lambda client: client.queue("q").enqueue(1, idempotency_key="a b"),
    ],
)
def test_bad_input_is_refused_before_anything_is_sent(cluster: LoopbackCluster, wrong: Any) -> None:
    with connect(cluster.document) as client, pytest.raises(BadInput) as caught:
        wrong(client)
    assert caught.value.definite
    assert isinstance(caught.value, ValueError)
    assert not any(server.messages for server in cluster.servers.values())


def test_one_dead_replica_is_not_noticed(cluster: LoopbackCluster, client: Client) -> None:
    cluster.servers["r2"].stop()
    queue = client.queue("q")
    started_s = time.monotonic()
    for number in range(20):
        queue.enqueue(number)
    assert [queue.dequeue() for _ in range(20)] == list(range(20))
    assert time.monotonic() - started_s < 40 * EXCHANGE_TIMEOUT_S / 2, "it is not waited for each time"


def test_two_dead_replicas_end_at_the_deadline_and_come_back(
    cluster: LoopbackCluster, client: Client
) -> None:
    client.register("r").write("before")
    for replica in ("r2", "r3"):
        cluster.servers[replica].stop()
    started_s = time.monotonic()
    with pytest.raises(Unavailable) as reading:
        client.register("r").read(deadline_s=0.5)
    assert reading.value.definite
    with pytest.raises(OutcomeUnknown) as writing:
        client.register("r").write("lost?", deadline_s=0.5)
    assert not writing.value.definite
    assert time.monotonic() - started_s < PATIENT_S
    cluster.servers["r2"].start()
    assert client.register("r").read() in ("before", "lost?")


async def test_files_for_tls_that_cannot_be_used_are_refused_at_once(tmp_path: Path) -> None:
    """Each operation waited until its deadline, and said that an address is no host name."""
    missing = str(tmp_path / "none.pem")
    document = document_of("r1", "r2")
    for tls in (ClientTls(missing), ClientTls("", missing, missing), ClientTls("", missing)):
        with pytest.raises(BadInput, match="tls: "):
            connect(document, endpoints={"r2": "HTTPS://127.0.0.1:1"}, tls=tls)
        with pytest.raises(BadInput, match="tls: "):
            await connect_async(document, endpoints={"r2": "https://127.0.0.1:1"}, tls=tls)
        connect(document, tls=tls).close()  # Nobody shows them.


def test_another_cluster_document_is_refused(cluster: LoopbackCluster) -> None:
    urls = {replica: server.url for replica, server in cluster.servers.items()}
    with connect(document_of("r1", "r2", "r3"), endpoints=urls, deadline_s=PATIENT_S) as client:
        started_s = time.monotonic()
        with pytest.raises(RefusedByReplicas, match="wrong-cluster") as caught:
            client.queue("q").enqueue(1)
        assert caught.value.definite
        assert time.monotonic() - started_s < PATIENT_S, "a refusal is not waited out"


def test_replicas_that_refuse_the_token_say_so(cluster: LoopbackCluster) -> None:
    async def unauthorized(_: object) -> bytes:
        return problem(401, "unauthorized", definite=True)

    for server in cluster.servers.values():
        server.handler = unauthorized
    with connect(cluster.document, token="wrong-token") as client:
        with pytest.raises(RefusedByReplicas, match="unauthorized") as caught:
            client.queue("q").size()
        assert "wrong-token" not in repr(caught.value) + repr(client) + repr(vars(client))


def test_who_calls_the_sdk_is_told_of_an_argument_and_of_no_header() -> None:
    told = str(RefusedByReplicas(f"r1 (it asks for a token. {KINDS['unauthorized'].advice})", definite=True))
    accepted = "Pass a token that this cluster accepts: connect(..., token=...)"
    assert told == f"r1 (it asks for a token. {accepted}.)"


def test_a_closed_client_says_so(cluster: LoopbackCluster) -> None:
    client = connect(cluster.document)
    client.close()
    client.close()
    with pytest.raises(Closed) as caught:
        client.queue("q").size()
    assert caught.value.definite


def test_close_ends_what_still_runs(cluster: LoopbackCluster) -> None:
    client = connect(cluster.document)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.queue("q").dequeue, wait_s=15)
        while not cluster.servers["r1"].messages:
            time.sleep(0.01)
        client.close()
        with pytest.raises(Closed) as caught:
            waiting.result(60)
    assert not caught.value.definite


def test_an_observer_that_calls_its_own_client_is_refused_at_once(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """It waited for the thread that it ran in, and so did the call that it was to hear of."""
    client.on_finished(lambda *_: client.queue("heard").enqueue(1))
    client.queue("q").enqueue(1)
    assert "call this client from another" in caplog.text
    assert client.queue("heard").size() == 0


def test_observers_hear_of_every_outcome(client: Client) -> None:
    heard: list[tuple[Operation, float, float, Outcome]] = []
    client.on_finished(lambda *each: heard.append(each))
    before_s = time.time()
    client.queue("q").enqueue(1)
    [(operation, started_s, latency_s, outcome)] = heard
    assert isinstance(operation, Enqueue)
    assert before_s <= started_s <= time.time()
    assert 0 < latency_s < PATIENT_S
    assert isinstance(outcome, Done)
    assert len(outcome.answered) >= 2


TAKEN_S: Final = 0.5
"""In this time, a dequeue that waits has taken what came."""


class Handler:
    """A signal's handler that raises, at some moment of a blocking call."""

    def __init__(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        assert client._engine is not None
        self._loop = client._engine._loop
        self._patch = monkeypatch

    def _then_raises(self, owner: Any, name: str, *, after: bool) -> None:
        """As it calls this, or once that has returned."""
        original = getattr(owner, name)

        def raises(*given: Any) -> Any:
            self._patch.undo()
            if after:
                original(*given)
            raise KeyboardInterrupt

        self._patch.setattr(owner, name, raises)

    def after_submission(self) -> None:
        self._then_raises(self._loop, "call_soon_threadsafe", after=True)

    def while_it_waits(self) -> None:
        self._then_raises(Future, "result", after=False)

    def before_its_result_is_told(self) -> None:
        """The task has ended, and its caller leaves before it is told."""
        waits = threading.Event()

        def leaves(future: Future[Any], _timeout_s: float) -> Any:
            waits.set()
            until_now(future.cancelled, "the caller leaves")
            raise KeyboardInterrupt

        def runs(future: Future[Any]) -> bool:
            self._patch.undo()
            assert waits.wait(PATIENT_S)
            assert future.cancel()
            return False

        self._patch.setattr(Future, "result", leaves)
        self._patch.setattr(Future, "set_running_or_notify_cancel", runs)

    def once_its_result_is_there(self) -> None:
        self._then_raises(Future, "result", after=True)


@pytest.mark.parametrize("moment", [Handler.after_submission, Handler.while_it_waits])
def test_what_a_blocking_dequeue_takes_after_a_handler_raised_is_given_to_the_next(
    client: Client, monkeypatch: pytest.MonkeyPatch, moment: Callable[[Handler], None]
) -> None:
    """Where it raised just after the submission, the dequeue went on alone, took the item that came later, and gave it to nobody."""
    queue = client.queue("jobs")
    moment(Handler(client, monkeypatch))
    with pytest.raises(KeyboardInterrupt):
        queue.dequeue(wait_s=DEFAULTS.deadline_s_max / 2)
    queue.enqueue("kept")
    over_s = time.monotonic() + TAKEN_S
    while queue.size() and time.monotonic() < over_s:
        time.sleep(0.01)
    assert queue.dequeue(wait_s=PATIENT_S / 2) == "kept"


@pytest.mark.parametrize("moment", [Handler.before_its_result_is_told, Handler.once_its_result_is_there])
def test_what_a_blocking_dequeue_had_taken_as_a_handler_raised_is_given_to_the_next(
    client: Client, monkeypatch: pytest.MonkeyPatch, moment: Callable[[Handler], None]
) -> None:
    queue = client.queue("jobs")
    queue.enqueue_many(["first", "second"])
    moment(Handler(client, monkeypatch))
    with pytest.raises(KeyboardInterrupt):
        queue.dequeue()
    assert [queue.dequeue(), queue.dequeue()] == ["first", "second"]


def test_what_was_left_before_the_loop_began_it_is_not_begun(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client._engine is not None
    begun: list[Any] = []
    client.on_finished(lambda *given: begun.append(given))
    late: list[Any] = []
    monkeypatch.setattr(client._engine._loop, "call_soon_threadsafe", late.append)
    monkeypatch.setattr(Future, "result", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        client.queue("jobs").enqueue("never sent")
    monkeypatch.undo()
    for work in late:
        client._engine._loop.call_soon_threadsafe(work)
    assert client.queue("jobs").dequeue() is None
    assert len(begun) == 1, "the dequeue alone"
