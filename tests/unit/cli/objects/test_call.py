"""`quorate call`, from the words of a command line to live replicas of a type of one's own."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import msgspec
import pytest

from quorate.adts.log import Entry, Summary, Value
from quorate.api_specs.cluster import parse
from quorate.api_specs.messages import Append, Batch, Commit
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.timestamp import make
from tests.unit.adts.types_page import PLAIN_TYPE
from tests.unit.cli.conftest import Run, quorate_here

pytestmark = pytest.mark.slow

JSON = {"Content-Type": "application/json", "Quorate-Protocol": "1-2"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Three replicas, with the code beside their document."""
    folder = tmp_path_factory.mktemp("own")
    made = LocalCluster.create(folder)
    with made:
        place = made.document_path
        place.write_text(place.read_text() + '\n[types]\ncart = "carts_of_the_call_test:Cart"\n')
        (place.parent / "carts_of_the_call_test.py").write_text(PLAIN_TYPE)
        made.start()
        made.ready()
        yield made


def tell_all(cluster: LocalCluster, strange: Append | Commit) -> None:
    """Every replica takes in a message that no front end sends."""
    body = msgspec.json.encode(Batch(parse(cluster.document_path.read_text()).hash, (strange,)))
    for url in cluster.urls.values():
        httpx.post(f"{url}/replica/v1/batch", content=body, headers=JSON).raise_for_status()


def test_operations_are_called_by_their_names(run: Run) -> None:
    assert run("call", "cart/ann", "add", 'item="book"', "count=2").stdout == ""
    assert run("call", "cart/ann", "add", 'item="pen"').returncode == 0
    assert run("call", "cart/ann", "content").stdout == '{"book":2,"pen":1}\n'
    gone = run("call", "cart/ann", "remove", 'item="ink"')
    assert (gone.returncode, gone.stdout, gone.stderr) == (1, "NotThere\n", "")
    told = run("call", "cart/ann", "content", "--json")
    assert json.loads(told.stdout) == {"outcome": "Ok", "result": {"book": 2, "pen": 1}}
    assert json.loads(run("call", "cart/ann", "remove", 'item="ink"', "--json").stdout) == {
        "outcome": "NotThere"
    }


def test_a_repeat_under_a_key_takes_effect_once(run: Run) -> None:
    for _ in range(2):
        assert run("call", "cart/eve", "add", 'item="book"', "--key", "k").returncode == 0
    assert run("call", "cart/eve", "content").stdout == '{"book":1}\n'


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("cart/ann", "add"), "add(item, count): missing a required argument: 'item'"),
        (("cart/ann", "nothing"), "Cart has no operation 'nothing': it has add, remove, content"),
        (("cart/ann", "add", "item"), "'item' is not NAME=VALUE, as count=2"),
        (("cart/ann", "add", "item=book"), "'book'"),
        (("basket/ann", "add"), "The cluster has no type 'basket': its document's [types] name cart"),
        (("cart", "content"), "the name '' is not allowed"),
    ],
)
def test_what_is_no_call_is_told(run: Run, words: tuple[str, ...], told: str) -> None:
    done = run("call", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


def test_where_the_code_is_not_at_hand_it_is_told(cluster: LocalCluster, tmp_path: Path) -> None:
    elsewhere = tmp_path / "cluster.toml"
    text = cluster.document_path.read_text()
    elsewhere.write_text(text.replace("carts_of_the_call_test:Cart", "not_there_at_all:Cart"))
    done = quorate_here("call", "cart/ann", "content", QUORATE_CLUSTER=str(elsewhere))
    assert done.returncode == 2
    assert "not_there_at_all:Cart, the type cart, cannot be imported: ModuleNotFoundError" in done.stderr


def test_the_trace_shows_the_state(run: Run) -> None:
    run("call", "cart/seen", "add", 'item="tea"')
    shown = run("trace", "cart/seen", "--json")
    columns = json.loads(shown.stdout)["traces"][0]["replicas"].values()
    assert '{"state":{"items":{"tea":1}},"version":1}' in [each["value"] for each in columns]
    assert "dictionary/NAME/KEY, cart/NAME" in run("trace", "basket/x").stderr


def test_a_stored_call_that_the_class_cannot_run_is_repaired(run: Run, cluster: LocalCluster) -> None:
    """One of a class that has no such operation any more, or of somebody who writes what no front end writes."""
    run("call", "cart/joe", "add", 'item="book"')
    stamp = make(time.time_ns() // 1000, 0, "strange")
    # As replicas write back what one of them has stored: anything else that does not fit the class they refuse.
    strange = Append("cart/joe", (Entry(stamp, stamp, Value('["shine",[]]')),), "repair")
    tell_all(cluster, strange)
    refused = run("call", "cart/joe", "content")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "Cart has no operation 'shine'" in refused.stderr
    assert "`quorate repair` takes it out" in refused.stderr
    told = run("repair", "cart/joe")
    assert told.returncode == 0
    assert told.stdout.startswith('taken out of the log: ["shine",[]] (')
    assert run("repair", "cart/joe").stdout == "nothing was wrong\n"
    assert run("call", "cart/joe", "content").stdout == '{"book":1}\n'


def test_an_object_whose_state_is_none_of_its_class_begins_anew(run: Run, cluster: LocalCluster) -> None:
    """As somebody who writes what no front end writes may leave it."""
    run("call", "cart/kim", "add", 'item="book"')
    stamp = make(time.time_ns() // 1000, 0, "strange")
    strange = Commit("cart/kim", make_ballot(stamp, 1), stamp, Summary(stamp, value=Value("17")))
    tell_all(cluster, strange)
    refused = run("call", "cart/kim", "content")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "`quorate repair --anew`" in refused.stderr
    assert run("repair", "cart/kim").returncode == 1, "it takes no state away unasked"
    assert run("repair", "cart/kim", "--anew").stdout == "the state of a new object, in place of 17\n"
    assert run("call", "cart/kim", "content").stdout == "{}\n"
    run("call", "cart/kim", "add", 'item="pen"')
    assert run("repair", "cart/kim").stdout == "nothing was wrong\n"
    assert run("call", "cart/kim", "content").stdout == '{"pen":1}\n'


@pytest.mark.parametrize(("name", "command"), [("queue/a", "queue"), ("dictionary/a/k", "dict")])
def test_only_an_object_of_a_type_of_ones_own_begins_anew(run: Run, name: str, command: str) -> None:
    done = run("repair", name, "--anew")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"`quorate {command} --help`" in done.stderr


@pytest.mark.parametrize("name", ["nosuch/x", "nosuch", "queue", "queue/a/b", "queue/.x"])
def test_a_name_of_no_object_is_a_wrong_command_line_for_repair_as_for_call(run: Run, name: str) -> None:
    assert run("call", name, "content").returncode == 2
    done = run("repair", name)
    assert (done.returncode, done.stdout) == (2, "")
    if name == "nosuch/x":
        assert done.stderr == (
            "quorate: 'nosuch/x' names no object: write queue/NAME, register/NAME, dictionary/NAME or dictionary/NAME/KEY, cart/NAME.\n"
        )
