"""Histories, from the SDK's files and by hand, to a verdict and an exit code."""

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import connect
from tests.unit.cli.conftest import quorate_here

CLIENTS = 3
ROUNDS = 12

CART = '''
from quorate.adts.specification import Response


class Cart:
    """What somebody wants to buy, by article."""

    name = "cart"
    arguments = {"add": {"article": ("pen", "ink"), "count": (1, 2)}, "total": {}, "take": {"article": ("pen", "ink")}}
    results = {"total/Ok": ("count",)}

    def initial(self):
        return frozenset()

    def step(self, state, invocation):
        counts = dict(state)
        if invocation.operation == "add":
            article, count = invocation.args
            counts[article] = counts.get(article, 0) + count
            return frozenset(counts.items()), Response("Ok")
        if invocation.operation == "take":
            if not counts.pop(invocation.args[0], 0):
                return state, Response("Missing")
            return frozenset(counts.items()), Response("Ok")
        return state, Response("Ok", (sum(counts.values()),))
'''


def written(path: Path, lines: Iterable[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def calls(name: str, *told: tuple[str, Any, Any], process: str = "p") -> list[dict[str, Any]]:
    """Calls one after the other: (f, value, result)."""
    lines = []
    for number, (f, value, result) in enumerate(told):
        line = {"process": process, "id": f"{name}:{number}", "f": f, "object": name, "value": value}
        lines.append(line | {"type": "invoke", "time": 10 * number})
        lines.append(line | {"type": "ok", "result": result, "time": 10 * number + 5})
    return lines


@pytest.fixture(scope="module")
def lines(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What clients recorded that worked side by side."""
    path = tmp_path_factory.mktemp("history") / "history.jsonl"

    def work(number: int) -> None:
        with connect(cluster.document, history=path, deadline_s=25) as client:
            jobs, leader, users = client.queue("jobs"), client.register("leader"), client.dictionary("users")
            for turn in range(ROUNDS):
                jobs.enqueue_many([[number, turn], {"item": turn + 0.5, "of": number}])
                leader.write(100 * number + turn)
                jobs.dequeue(max_items=2)
                leader.compare_and_set(leader.read(), 1.0)
                users.put(f"key-{turn % 3}", [number, turn])
                users.get(f"key-{(turn + 1) % 3}")
                users.put_if_absent("lock", number)
                users.compare_and_set("lock", number, number + 0.5)
                if turn % 5 == 0:
                    users.items()
                    users.items("key-")
                    users.page(max_keys=2)
                    users.page("key-", after="key-0", max_keys=1)
                    users.size()
                    users.size("key-")
                    users.delete("lock")
                    jobs.peek()
            while jobs.dequeue() is not None:
                pass

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(work, range(CLIENTS)))
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("model", ["linearizable", "sequential", "serializable"])
def test_what_live_replicas_did_is_right(lines: list[dict[str, Any]], tmp_path: Path, model: str) -> None:
    done = quorate_here("check", written(tmp_path / "h.jsonl", lines), "--model", model)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith(" calls on 3 objects.\n")


@pytest.mark.parametrize(
    ("f", "result", "name"),
    [
        ("read", 7777, "register/leader"),
        ("get", [7, 7], "dictionary/users, key-"),
        ("dequeue", "z", "queue/jobs"),
        ("page", {"items": {"key-0": [8, 8]}, "next": "key-0"}, "dictionary/users"),
        ("size", 44, "dictionary/users"),
    ],
)
def test_a_wrong_answer_is_found_and_drawn(
    lines: list[dict[str, Any]], tmp_path: Path, f: str, result: Any, name: str
) -> None:
    lines = [dict(line) for line in lines]
    victims = [
        line for line in lines if line["f"] == f and line["type"] == "ok" and line["result"] is not None
    ]
    victims[len(victims) // 2]["result"] = result
    done = quorate_here("check", written(tmp_path / "h.jsonl", lines))
    assert done.returncode == 1
    assert done.stdout.startswith(name)
    assert "is not linearizable" in done.stdout
    assert "├" in done.stdout
    told = json.loads(quorate_here("check", str(tmp_path / "h.jsonl"), "--json").stdout)
    assert (told["right"], len(told["wrong"])) == (False, 1)
    shown = result["items"]["key-0"] if f == "page" else result
    assert json.dumps(shown, separators=(",", ":")) in told["wrong"][0]["cannot_come_next"][0]


def test_two_items_in_the_wrong_order_are_all_that_is_shown(tmp_path: Path) -> None:
    told: list[tuple[str, Any, Any]] = [("enqueue", number, None) for number in range(20)]
    told += [("dequeue", None, number) for number in (0, 1, 2, 4, 3, *range(5, 20))]
    done = quorate_here("check", written(tmp_path / "h.jsonl", calls("queue/q", *told)))
    assert done.stdout == (
        "queue/q is not linearizable. Of its 40 calls these show it:\n"
        "\n"
        "  p  Enq(3) → Ok    ├─┤\n"
        "  p  Enq(4) → Ok        ├─┤\n"
        "  p  Deq() → Ok(4)          ├─┤\n"
        "\n"
        "  The longest order that fits: Enq(3) → Ok; Enq(4) → Ok.\n"
        "  queue/q is then (3, 4), and none of these can come next:\n"
        "    Deq() → Ok(4)\n"
        "\n"
        "Not linearizable: 40 calls on 1 object.\n"
    )


def test_a_name_in_a_strangers_history_writes_no_line_of_its_own(tmp_path: Path) -> None:
    name = "queue/j\nLinearizable: 9,000 calls on 7 objects.\u202e"
    history = calls(name, ("dequeue", None, 1), process="\x1b[2Jp")
    done = quorate_here("check", written(tmp_path / "h.jsonl", history))
    assert done.returncode == 1, done.stdout + done.stderr
    assert not [line for line in done.stdout.splitlines() if line.startswith("Linearizable: 9,000")]
    assert "j\\u000aLinearizable" in done.stdout
    assert "\\u001b[2Jp" in done.stdout
    assert not {"\x1b", "\u202e"} & set(done.stdout)


def test_models_differ(tmp_path: Path) -> None:
    """A read that misses what another process wrote before is sequential; one that misses its own process's is not."""
    write = calls("register/r", ("write", 1, None), process="a")
    for process, right in (("b", ["sequential", "serializable"]), ("a", ["serializable"])):
        read = [
            line | {"id": "late", "time": line["time"] + 100}
            for line in calls("register/r", ("read", None, None))
        ]
        path = written(tmp_path / "h.jsonl", [*write, *(line | {"process": process} for line in read)])
        codes = {
            model: quorate_here("check", path, "--model", model).returncode
            for model in ("linearizable", "sequential", "serializable")
        }
        assert [model for model, code in codes.items() if code == 0] == right


def test_a_type_of_ones_own_is_judged_by_its_specification(tmp_path: Path) -> None:
    (tmp_path / "cart.py").write_text(CART)
    own = f"{tmp_path / 'cart.py'}:Cart"
    told = [
        ("add", ["pen", 2], ["Ok"]),
        ("add", ["ink", 1], ["Ok"]),
        ("total", [], ["Ok", 3]),
        ("take", ["ink"], ["Ok"]),
        ("take", ["ink"], ["Missing"]),
        ("total", None, ["Ok", 2]),
    ]
    path = written(tmp_path / "h.jsonl", calls("ann", *told))
    assert quorate_here("check", path, "--type", own).stdout == "Linearizable: 6 calls on 1 object.\n"
    told[2] = ("total", [], ["Ok", 2])
    done = quorate_here("check", written(tmp_path / "h.jsonl", calls("ann", *told)), "--type", own)
    assert done.returncode == 1
    assert "    total() → Ok(2)" in done.stdout


def test_operations_without_an_end_or_of_unknown_outcome_may_have_happened(tmp_path: Path) -> None:
    lost = calls("register/r", ("write", 1, None), ("write", 2, None))
    lost[1]["type"] = "info"
    del lost[3]
    for value, code in ((1, 0), (2, 0), (3, 1)):
        read = [
            line | {"id": "late", "time": line["time"] + 100}
            for line in calls("register/r", ("read", None, value))
        ]
        assert quorate_here("check", written(tmp_path / "h.jsonl", [*lost, *read])).returncode == code


def test_operations_that_failed_for_certain_did_not_happen(tmp_path: Path) -> None:
    failed = calls("register/r", ("write", 1, None), ("read", None, 1))
    failed[1]["type"] = "fail"
    assert quorate_here("check", written(tmp_path / "h.jsonl", failed)).returncode == 1


def test_null_is_nothing_there_or_an_item_that_is_null(tmp_path: Path) -> None:
    nulls: list[tuple[str, Any, Any]] = [
        ("enqueue", None, None),
        ("dequeue", None, None),
        ("dequeue", None, None),
        ("peek", None, None),
    ]
    assert quorate_here("check", written(tmp_path / "h.jsonl", calls("queue/q", *nulls))).returncode == 0
    nulls[1:1] = [("enqueue", 1, None)]
    assert quorate_here("check", written(tmp_path / "h.jsonl", calls("queue/q", *nulls))).returncode == 1


def test_equal_values_are_equal(tmp_path: Path) -> None:
    """In JSON's data model a number is its amount; how a value is written does not matter."""
    told = [
        ("write", {"b": "é", "a": 1.0}, None),
        ("cas", [{"a": 1, "b": "é"}, 2], True),
        ("read", None, 2.0),
    ]
    path = written(tmp_path / "h.jsonl", calls("register/r", *told))
    assert "\\u00e9" in Path(path).read_text()
    assert quorate_here("check", path).returncode == 0
    Path(path).write_text(Path(path).read_text().replace("\\u00e9", "é", 1))
    assert quorate_here("check", path).returncode == 0


def test_what_cannot_be_judged_is_said(tmp_path: Path) -> None:
    told = calls("queue/q", ("enqueue", 1, None), ("acquire", None, {"item": 1}))
    null = [line | {"key": "k"} for line in calls("dictionary/d", ("put", None, None))]
    done = quorate_here("check", written(tmp_path / "h.jsonl", told + null))
    assert done.returncode == 3
    assert "queue/q: not judged, for it was used with leases (acquire)" in done.stdout
    assert "dictionary/d: not judged, for it had null put for the key k" in done.stdout
    swap = [line | {"key": "k"} for line in calls("dictionary/d", ("cas", [1, None], True))]
    done = quorate_here("check", written(tmp_path / "h.jsonl", swap))
    assert done.returncode == 3
    assert "dictionary/d: not judged, for it had null set for the key k, or the key deleted" in done.stdout
    assert done.stdout.endswith("There are no calls to judge.\n")


def test_a_search_that_is_given_up_is_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate.adts.histories.verdict.verdicts.__defaults__", (5,))
    lines = calls("register/r", *(("write", number, None) for number in range(8)))
    for line in lines:
        line["time"] = 0 if line["type"] == "invoke" else 9
    lines += [line | {"id": "late", "time": 20} for line in calls("register/r", ("read", None, 9))]
    done = quorate_here("check", written(tmp_path / "h.jsonl", lines))
    assert (done.returncode, done.stdout) == (
        3,
        "register/r: given up, for too many of its 9 calls overlap.\n",
    )


GOOD = '{"process":"p","id":"1","type":"invoke","f":"read","object":"register/r","time":1}\n'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{}\n", "line 1 is not one of a history: Object missing required field `process`"),
        ("what\n" + GOOD, "line 1 is not one of a history"),
        (GOOD + GOOD, "line 2: '1' began before, and has not ended"),
        (GOOD.replace("invoke", "ok"), "line 1: '1' ends, and no line before says that it began"),
        (GOOD + GOOD.replace("invoke", "ok").replace(":1}", ":0}"), "line 2: '1' ends before it began"),
        (
            GOOD.replace('"read"', '"reed"'),
            "line 1: a register has no operation 'reed': use read, write, cas, Write",
        ),
        (
            GOOD.replace("register/r", "r"),
            "line 1: the object 'r' does not say its type, as queue/jobs does: give --type",
        ),
        (GOOD.replace("register/r", "heap/r"), "there is no data type 'heap'"),
        (
            GOOD.replace('"time":1', '"time":5000000000000000000'),
            "line 1: the time 5000000000000000000 is out of range",
        ),
        (GOOD.replace('"time":1', '"time":1e300'), "line 1: the time 1e+300 is out of range"),
        (GOOD[:-2] + ',"value":' + "[" * 20_000 + "]" * 20_000 + "}\n", "line 1"),
        (
            GOOD.replace('"read"', '"cas"')[:-2] + ',"value":[1,2,3]}\n',
            "line 1: cas of register/r has another value or result than the SDK writes",
        ),
        (
            GOOD.replace('"read"', '"cas"'),
            "line 1: cas of register/r has another value or result than the SDK writes",
        ),
        (
            GOOD.replace('"read"', '"get"').replace("register/r", "dictionary/d"),
            "line 1: get of dictionary/d is to say key: a dictionary's operations have a key",
        ),
        (
            GOOD.replace('"f":"read"', '"f":"read","key":"k"'),
            "line 1: read of register/r is to say nothing",
        ),
        (
            (ITEMS := GOOD.replace('"read"', '"items"').replace("register/r", "dictionary/d"))
            + ITEMS.replace("invoke", "ok").replace(":1}", ':2,"result":[1]}'),
            "line 1: items of dictionary/d has another value or result than the SDK writes",
        ),
        (GOOD.replace("read", "Cas"), "line 1: the value of Cas is a list of its arguments: [old, new]"),
        (
            GOOD.replace("read", "Read") + GOOD.replace("read", "Read").replace("invoke", "ok"),
            'the end of Read of line 1: the result is a list of how it ended and what came back, as ["Ok"] or ["Ok", 3]',
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_line(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "h.jsonl").write_text(text)
    done = quorate_here("check", str(tmp_path / "h.jsonl"))
    assert done.returncode == 2
    assert sentence in done.stderr


def test_a_last_line_that_was_being_written_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "h.jsonl").write_text(GOOD + '{"process":"p","id"')
    done = quorate_here("check", str(tmp_path / "h.jsonl"))
    assert done.returncode == 0
    assert (
        done.stderr == f"{tmp_path / 'h.jsonl'}, line 2 was cut off while it was written: it is left out.\n"
    )


@pytest.mark.parametrize(
    "content",
    [
        json.dumps([json.loads(GOOD)]).encode(),
        GOOD.replace("\n", "\r").encode() * 2,
        b"\x7fELF\x02\x01\x00\xff",
        b"a" * 100_000,
        b'\n{"process":"p","id"',
    ],
)
def test_file_of_which_nothing_can_be_read_is_no_history(tmp_path: Path, content: bytes) -> None:
    """Its only line was taken for one that was cut off, and nothing judged, with exit code 0."""
    (tmp_path / "h.jsonl").write_bytes(content)
    done = quorate_here("check", str(tmp_path / "h.jsonl"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "h.jsonl is no history, for its only line is not one of a history: " in done.stderr
    assert "Give a file with a JSON object for each line" in done.stderr


@pytest.mark.parametrize("content", ["", "\n", "\n \n"])
def test_empty_file_holds_no_calls(tmp_path: Path, content: str) -> None:
    (tmp_path / "h.jsonl").write_text(content)
    done = quorate_here("check", str(tmp_path / "h.jsonl"))
    assert (done.returncode, done.stdout) == (0, "There are no calls to judge.\n")


@pytest.mark.parametrize(("read_at", "code"), [(0.25, 1), (0.125, 0)])
def test_times_may_have_fractions(tmp_path: Path, read_at: float, code: int) -> None:
    """As integers these calls would all overlap."""
    write, read = calls("register/r", ("write", 1, None), ("read", None, None))[::2]
    lines = [
        write | {"time": 0},
        read | {"time": read_at},
        write | {"type": "ok", "time": 0.2},
        read | {"type": "ok", "result": None, "time": 0.375},
    ]
    done = quorate_here("check", written(tmp_path / "h.jsonl", lines), "--json")
    assert done.returncode == code, done.stdout + done.stderr
    if code:
        assert json.loads(done.stdout)["wrong"][0]["calls"][0]["returned"] == 0.2


LIMITED = '''
from quorate.adts.specification import Response


class Four:
    """A set of at most four elements: what is found of it with two of them is not all."""

    name = "queue"
    arguments = {"enqueue": {"element": ("a", "b")}, "has": {"element": ("a", "b")}}
    results = {"has/Ok": ("found",)}

    def initial(self):
        return frozenset()

    def step(self, state, invocation):
        element = invocation.args[0]
        if invocation.operation == "has":
            return state, Response("Ok", (element in state,))
        if len(state) >= 4 and element not in state:
            return state, Response("Full")
        return state | {element}, Response("Ok")
'''


def test_a_type_of_ones_own_is_judged_whole_and_by_no_name(tmp_path: Path) -> None:
    """What a search of its dependencies has not seen, nor a queue's words, must not make a right history wrong."""
    (tmp_path / "four.py").write_text(LIMITED)
    told: list[tuple[str, Any, Any]] = [("enqueue", [element], ["Ok"]) for element in "abcd"]
    for answer, code in ((["Full"], 0), (["Ok"], 1)):
        path = written(tmp_path / "h.jsonl", calls("x", *told, ("enqueue", ["e"], answer)))
        assert quorate_here("check", path, "--type", f"{tmp_path / 'four.py'}:Four").returncode == code


TOLD = """
class Tally:
    def __init__(self) -> None:
        self.count = 0

    def add(self, by: int) -> int:
        self.count += by
        return self.count


class Names:
    def __init__(self) -> None:
        self.names: list[str] = []

    def join(self, name: str) -> None:
        self.names.append(name)

    def all(self) -> list[str]:
        return self.names
"""


def test_types_that_a_cluster_document_names_are_judged_each_by_its_own_class(tmp_path: Path) -> None:
    (tmp_path / "told.py").write_text(TOLD)
    assert quorate_here("init", "--out", str(tmp_path / "c.toml")).returncode == 0
    with (tmp_path / "c.toml").open("a") as document:
        document.write('\n[types]\ntally = "told:Tally"\nnames = "told:Names"\nlost = "nowhere:Lost"\n')
    with_cluster = ("--cluster", str(tmp_path / "c.toml"))

    def lines(total: int) -> str:
        added = [("add", [2], ["Ok", 2]), ("add", [1], ["Ok", total])]
        joined = [("join", ["ann"], ["Ok"]), ("all", [], ["Ok", ["ann"]])]
        written(one := tmp_path / "1.jsonl", calls("tally/t", *added))
        written(two := tmp_path / "2.jsonl", calls("names/n", *joined))
        (tmp_path / "h.jsonl").write_text(one.read_text() + two.read_text())
        return str(tmp_path / "h.jsonl")

    assert quorate_here("check", lines(3), *with_cluster).stdout == "Linearizable: 4 calls on 2 objects.\n"
    done = quorate_here("check", lines(4), *with_cluster)
    assert (done.returncode, "tally/t is not linearizable" in done.stdout) == (1, True)
    assert "there is no data type 'tally'" in quorate_here("check", lines(3)).stderr
    for name, words in {
        "lost": "nowhere:Lost, the type lost, cannot be imported: ModuleNotFoundError",
        "heap": f"there is no data type 'heap': the [types] of {tmp_path / 'c.toml'} name tally, names, lost",
    }.items():
        path = written(tmp_path / "h.jsonl", calls(f"{name}/x", ("pop", [], ["Ok"])))
        done = quorate_here("check", path, *with_cluster)
        assert (done.returncode, words in done.stderr) == (2, True), done.stderr


def test_a_queue_with_outboxes_is_judged_as_an_eventual_queue(tmp_path: Path) -> None:
    assert quorate_here("init", "--out", str(tmp_path / "c.toml")).returncode == 0
    text = (tmp_path / "c.toml").read_text()
    rule = '[[choices]]\nobjects = "queue/mail"\noutbox = true\n\n'
    (tmp_path / "c.toml").write_text(text.replace("[[choices]]", f"{rule}[[choices]]", 1))
    ends = [("enqueue", 1, None), ("dequeue", None, None), ("dequeue", None, 1)]
    history = written(tmp_path / "h.jsonl", calls("queue/mail", *ends))
    twice = written(tmp_path / "t.jsonl", calls("queue/mail", *ends, ("dequeue", None, 1)))
    with_cluster = ("--cluster", str(tmp_path / "c.toml"))
    assert quorate_here("check", history, *with_cluster).stdout == (
        "queue/mail was judged as an eventual queue: any order is right, and so is finding nothing. peek and size are not judged.\n"
        "Linearizable: 3 calls on 1 object.\n"
    )
    assert quorate_here("check", history, "--type", "eventual-queue").returncode == 0
    assert quorate_here("check", history, "--type", "semiqueue").returncode == 1, "it may not miss an item"
    assert quorate_here("check", history).returncode == 1
    assert quorate_here("check", twice, *with_cluster).returncode == 1
    exact = rule.replace("outbox = true\n", "outbox = true\nexact_empty = true\n")
    (tmp_path / "c.toml").write_text(text.replace("[[choices]]", f"{exact}[[choices]]", 1))
    assert quorate_here("check", history, *with_cluster).returncode == 1, "it was not empty"
    looks = (("size", None, 7), ("peek", None, "never enqueued"))
    taken = written(tmp_path / "s.jsonl", calls("queue/mail", *ends[::2], *looks, ("dequeue", None, None)))
    told = quorate_here("check", taken, *with_cluster)
    assert told.stdout == (
        "queue/mail was judged as a semiqueue: any order is right, but finding nothing only where nothing waits. "
        "peek and size are not judged.\n"
        "Linearizable: 3 calls on 1 object.\n"
    )
    told = quorate_here("check", taken, *with_cluster, "--json")
    assert json.loads(told.stdout)["judged_as"] == {"queue/mail": "semiqueue"}


@pytest.mark.parametrize("look", [("peek", None, "never enqueued"), ("size", None, 7)])
def test_looks_at_a_queue_in_order_are_judged(look: tuple[str, None, object], tmp_path: Path) -> None:
    assert quorate_here("check", written(tmp_path / "h.jsonl", calls("queue/mail", look))).returncode == 1


def test_code_of_ones_own_that_fails_is_told(tmp_path: Path) -> None:
    (tmp_path / "cart.py").write_text(CART.replace("sum(counts.values())", "sum(counts)"))
    path = written(tmp_path / "h.jsonl", calls("ann", ("add", ["pen", 2], ["Ok"]), ("total", [], ["Ok", 3])))
    done = quorate_here("check", path, "--type", f"{tmp_path / 'cart.py'}:Cart")
    assert done.returncode == 2
    assert "TypeError" in done.stderr


def test_code_of_ones_own_that_ends_the_process_judges_nothing(tmp_path: Path) -> None:
    (tmp_path / "cart.py").write_text("import sys\nsys.exit(0)\n")
    path = written(tmp_path / "h.jsonl", calls("ann", ("add", ["pen", 2], ["Ok"])))
    done = quorate_here("check", path, "--type", f"{tmp_path / 'cart.py'}:Cart")
    assert (done.returncode, "cannot be read: SystemExit" in done.stderr) == (2, True), done.stderr


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = quorate_here("check", str(tmp_path / "none.jsonl"))
    assert done.returncode == 2
    assert "none.jsonl" in done.stderr


def test_answers_of_eventual_consistency_are_counted_where_they_missed_changes(tmp_path: Path) -> None:
    lines = calls(
        "register/r",
        ("write", 1, None),
        ("read", None, 1),
        ("write", 2, None),
        ("read", None, 1),
        ("read", None, 2),
    )
    weak = [line | {"weak": True} if line["f"] == "read" and line["type"] == "ok" else line for line in lines]
    done = quorate_here("check", written(tmp_path / "h", weak))
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "register/r: 1 of 3 answers of eventual consistency have no place in the order: they missed changes, or showed one early.",
        "  p: Read() → Ok(1)",
        "Linearizable: 2 calls on 1 object.",
    ]
    assert quorate_here("check", written(tmp_path / "strong", lines)).returncode == 1
    told = json.loads(quorate_here("check", str(tmp_path / "h"), "--json").stdout)
    assert told["weak"] == [{"object": "register/r", "answers": 3, "judged": 3, "without_place": 1}]
