"""The operations on objects, from the words of a command line to a live cluster and back."""

import json
import os
import shlex
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from quorate import __version__
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import Dictionary, Page
from quorate.client_sdk.protocol.operations import observe
from tests.support import forked
from tests.unit.cli.conftest import TIMEOUT_S, Run, quorate, quorate_here

pytestmark = pytest.mark.slow


def test_queue_gives_back_what_was_put_in_order(run: Run, cluster: LocalCluster) -> None:
    """The first commands run as processes of their own, as everywhere else; what they say is the same here."""
    place = str(cluster.document_path)
    assert (
        quorate("queue", "q", "enqueue", '"x"', "1", '{"a": [null]}', QUORATE_CLUSTER=place).returncode == 0
    )
    assert quorate("queue", "q", "enqueue", "-", stdin='"y"\n\n2\n', QUORATE_CLUSTER=place).returncode == 0
    assert (
        quorate("queue", "q", "size", QUORATE_CLUSTER=place).stdout
        == run("queue", "q", "size").stdout
        == "5\n"
    )
    assert json.loads(run("queue", "q", "peek", "--json").stdout) == {"item": "x"}
    assert run("queue", "q", "dequeue").stdout == '"x"\n'
    taken = []
    while items := json.loads(run("queue", "q", "dequeue", "--max", "10", "--json").stdout)["items"]:
        taken += items
    assert taken == [1, {"a": [None]}, "y", 2]


def test_objects_are_listed_and_keys_deleted(run: Run) -> None:
    for key in ("old-a", "old-b", "new"):
        run("dict", "listed", "put", key, "1")
    run("queue", "listed", "enqueue", "1", "2")
    lines = run("object", "list", "queue/listed").stdout.splitlines()
    assert [line.split() for line in lines if "listed" in line] == [["queue/listed", "2"]]
    run("queue", "plus+@=", "enqueue", "1")
    assert "queue/plus+@= " in run("object", "list", "queue/plus+@=").stdout
    first = json.loads(run("object", "list", "dictionary/listed/", "--limit", "2", "--json").stdout)
    assert [each["object"] for each in first["objects"]] == [
        "dictionary/listed/new",
        "dictionary/listed/old-a",
    ]
    assert first["next"] == "dictionary/listed/old-a"
    told = run("object", "list", "dictionary/listed/", "--limit", "2").stdout
    assert told.splitlines()[-1] == "There are more: --after dictionary/listed/old-a"
    rest = run("object", "list", "dictionary/listed/", "--after", first["next"], "--json").stdout
    assert [each["object"] for each in json.loads(rest)["objects"]] == ["dictionary/listed/old-b"]
    assert run("object", "list", "nothing/").stdout == "No object has a name that begins with nothing/.\n"
    assert run("object", "delete", "dict/listed", "--prefix", "old-").stdout == "2 deleted.\n"
    assert json.loads(run("dict", "listed", "items", "--json").stdout)["items"] == {"new": 1}
    assert run("object", "delete", "dictionary/listed", "--json").stdout == '{"deleted":1}\n'
    assert json.loads(run("dict", "listed", "items", "--json").stdout)["items"] == {}
    for wrong, words in (
        (("queue/listed",), "stays once it was used"),
        (("dict/listed/new",), "`quorate dict listed delete new` deletes it"),
        (("dictionary/listed", "--prefix", ""), "--prefix is empty"),
        (("nothing/a",), "names no object"),
    ):
        refused = run("object", "delete", *wrong)
        assert refused.returncode == 2
        assert words in refused.stderr


def test_empty_queue_is_an_answer(run: Run) -> None:
    taken = run("queue", "empty", "dequeue")
    assert (taken.returncode, taken.stdout, taken.stderr) == (0, "", "")
    assert json.loads(run("queue", "empty", "dequeue", "--json").stdout) == {"items": []}


def test_leases_are_delivered_and_settled(run: Run) -> None:
    assert run("queue", "leased", "enqueue", '"a"', '"b"', '"c"').returncode == 0
    lines = run("queue", "leased", "acquire", "--max", "2", "--lease", "600").stdout.splitlines()
    first, second = (line.split("\t") for line in lines)
    assert [first[1:], second[1:]] == [["1", '"a"'], ["1", '"b"']]
    assert run("queue", "leased", "ack", first[0]).returncode == 0
    assert run("queue", "leased", "renew", second[0], "--lease", "60").returncode == 0
    assert run("queue", "leased", "release", second[0], "--delay", "0").returncode == 0
    lost = run("queue", "leased", "ack", second[0], "--json")
    assert (lost.returncode, json.loads(lost.stdout)) == (1, {"lost": [second[0]]})
    leases = json.loads(run("queue", "leased", "acquire", "--max", "9", "--json").stdout)["leases"]
    assert [(each["value"], each["deliveries"]) for each in leases] == [("b", 2), ("c", 1)]
    tokens = [each["token"] for each in leases]
    assert run("queue", "leased", "reject", *tokens).returncode == 0
    assert run("queue", "leased", "leases").stdout == "held 0  waiting 0  dead 2\n"
    letters = run("queue", "leased", "dead-letters").stdout.splitlines()
    assert [line.split("\t")[1:] for line in letters] == [["rejected", "2", '"b"'], ["rejected", "1", '"c"']]
    assert run("queue", "leased", "requeue", leases[0]["id"]).stdout == "1\n"
    assert run("queue", "leased", "purge").stdout == "1\n"
    assert json.loads(run("queue", "leased", "leases", "--json").stdout) == {
        "held": 0,
        "waiting": 1,
        "dead": 0,
    }
    again = json.loads(run("queue", "leased", "acquire", "--json").stdout)["leases"][0]["token"]
    assert run("queue", "leased", "release", again, "--delay", "500").returncode == 0
    assert run("queue", "leased", "purge-delayed", "--due-after", "600").stdout == "0\n"
    assert run("queue", "leased", "purge-delayed").stdout == "1\n"


def test_register_swaps_only_what_matches(run: Run) -> None:
    assert run("register", "r", "read").stdout == "null\n"
    assert run("register", "r", "cas", "null", '"ann"').returncode == 0
    refused = run("register", "r", "cas", '"eve"', '"mallory"', "--json")
    assert (refused.returncode, json.loads(refused.stdout)) == (1, {"swapped": False})
    assert run("register", "r", "write", "[1, 2]").returncode == 0
    assert run("register", "r", "read").stdout == "[1,2]\n"


def test_dictionary_keeps_keys(run: Run) -> None:
    assert run("dict", "d", "put", "ann", '{"age": 36}').returncode == 0
    assert run("dict", "d", "put-if-absent", "ann", "1").returncode == 1
    assert run("dict", "d", "put-if-absent", "bob", "1").returncode == 0
    assert run("dict", "d", "cas", "bob", "1", "2").returncode == 0
    for words in (("items",), ("items", "--pages")):
        assert run("dict", "d", *words).stdout == 'ann\t{"age":36}\nbob\t2\n'
    assert run("dict", "d", "items", "--prefix", "b").stdout == "bob\t2\n"
    assert run("dict", "d", "size", "--prefix", "b").stdout == "1\n"
    assert run("dict", "d", "delete", "ann").returncode == 0
    absent = run("dict", "d", "get", "ann")
    assert (absent.returncode, absent.stdout) == (1, "null\n")
    assert run("dict", "d", "put", "nothing", "null").returncode == 0
    assert run("dict", "d", "get", "nothing").returncode == 0
    refused = run("dict", "d", "compare-and-delete", "bob", "1", "--json")
    assert (refused.returncode, json.loads(refused.stdout)) == (1, {"deleted": False})
    assert run("dict", "d", "get", "bob").stdout == "2\n"
    assert run("dict", "d", "compare-and-delete", "bob", "2").stdout == "ok\n"
    assert json.loads(run("dict", "d", "size", "--json").stdout) == {"size": 1}


def test_keys_are_any_text(run: Run) -> None:
    assert run("dict", "any", "put", "mugs/[red] & é", "1").returncode == 0
    assert run("dict", "any", "put", "two\nlines", "2").returncode == 0
    assert run("dict", "any", "get", "mugs/[red] & é").stdout == "1\n"
    assert run("dict", "any", "items").stdout == "mugs/[red] & é\t1\ntwo\\u000alines\t2\n"
    told = run("object", "list", "dictionary/any/mugs/[", "--limit", "1").stdout
    assert "dictionary/any/mugs/[red] & é " in told
    more = run("object", "list", "dictionary/any/", "--limit", "1").stdout
    assert more.splitlines()[-1] == "There are more: --after 'dictionary/any/mugs/[red] & é'"
    shown = run("trace", "dict/any/mugs/[red] & é").stdout
    assert shown.splitlines()[0].strip() == "dictionary/any/mugs/[red] & é"
    (trace,) = json.loads(run("trace", "dict/any/mugs/[red] & é", "--json").stdout)["traces"]
    assert (trace["object"], len(trace["rows"])) == ("dictionary/any/mugs/[red] & é", 1)
    assert run("object", "delete", "dict/any", "--prefix", "mugs/[").stdout == "1 deleted.\n"
    refused = run("dict", "any", "get", "é" * 34)
    assert refused.returncode == 2
    assert "takes 204 of 200 characters" in refused.stderr


def test_a_dictionary_is_shown_page_by_page(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pages: list[str] = []

    def noting(dictionary: Dictionary, prefix: str, *, after: str = "") -> Page:
        pages.append(after)
        return page(dictionary, prefix, after=after)

    page = Dictionary.page
    monkeypatch.setattr(Dictionary, "page", noting)
    monkeypatch.setattr(observe, "PAGE_OBJECTS", 1)
    monkeypatch.setattr(observe, "PAGE_BYTES", 1)
    for key in ("a", "b.1", "b.2", "b.3", "c"):
        assert run("dict", "paged", "put", key, "1").returncode == 0
    assert run("dict", "paged", "items", "--pages", "--prefix", "b.").stdout == "b.1\t1\nb.2\t1\nb.3\t1\n"
    assert pages == ["", "b.1", "b.2"]


def test_url_of_one_replica_is_enough(cluster: LocalCluster) -> None:
    url = cluster.urls["r2"]
    for named in (url, url.removeprefix("http://")):
        assert quorate("queue", "by-url", "size", "--cluster", named).stdout == "0\n"
        assert quorate("status", "--cluster", named).returncode == 0


def test_words_that_are_wrong_are_told_in_one_sentence(run: Run) -> None:
    for words, expected in [
        (("queue", "q", "enqueue", "hello"), "is not JSON"),
        (("queue", "../etc", "size"), "is not allowed"),
        (("queue", "q", "enqueue", "-"), "holds no value"),
        (("queue", "q", "dequeue", "--max", "1000000"), "batch_items_max"),
        (("trace", "stack/s"), "names no object"),
    ]:
        done = run(*words)
        assert (done.returncode, done.stdout) == (2, ""), words
        assert expected in done.stderr
        assert "Traceback" not in done.stderr
        told = run(*words, "--json")
        assert json.loads(told.stdout)["definite"] is True


def test_a_negative_number_is_told_its_place(run: Run) -> None:
    refused = run("register", "balance", "write", "-5", "--json")
    assert refused.returncode == 2
    assert "behind --, options in front: quorate register {NAME} write" in json.loads(refused.stdout)["error"]
    assert run("register", "balance", "write", "--", "-5").returncode == 0
    assert run("register", "balance", "read").stdout == "-5\n"
    assert "No such option: -5" in run("register", "balance", "read", "-5").stderr


NO_DISK = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
UNWRITABLE = (
    pytest.param("> /dev/full", "No space left on device", marks=NO_DISK),
    pytest.param(">&-", "it is closed"),
)


@pytest.mark.parametrize(("redirected", "why"), UNWRITABLE)
@pytest.mark.parametrize("options", ["", "--json"])
def test_what_was_taken_and_could_not_be_shown_is_no_certain_failure(
    run: Run, cluster: LocalCluster, options: str, redirected: str, why: str
) -> None:
    """Exit code 1 would say that the item certainly still waits, 0 that it was shown."""
    assert run("queue", "unshown", "enqueue", "1").returncode == 0
    taken = quorate_redirected(cluster, f"queue unshown dequeue {options} {redirected}")
    assert taken.returncode == 3
    shown, told = taken.stderr.splitlines()
    assert json.loads(shown) in (1, {"items": [1]}), "or the item would be shown nowhere"
    assert told.startswith(f"quorate: The answer could not be written to standard output ({why})")
    assert run("queue", "unshown", "size").stdout == "0\n"


def test_lease_that_could_not_be_shown_is_shown_on_standard_error(run: Run, cluster: LocalCluster) -> None:
    assert run("queue", "unleased", "enqueue", "1").returncode == 0
    leased = quorate_redirected(cluster, "queue unleased acquire >&-")
    token, _, value = leased.stderr.splitlines()[0].split("\t")
    assert (leased.returncode, value) == (3, "1")
    assert run("queue", "unleased", "ack", token).returncode == 0


@pytest.mark.parametrize(
    "redirected", [pytest.param("> /dev/full 2>&1", marks=NO_DISK), ">&- 2>&-", ">&- 2>/dev/null"]
)
@pytest.mark.parametrize("options", ["", "--json"])
def test_where_nobody_can_be_told_the_exit_code_tells(
    run: Run, cluster: LocalCluster, options: str, redirected: str
) -> None:
    """It was 1, "it certainly did not happen", where standard error could not be written, and 120 where Python tried again at the end."""
    assert run("queue", "untold", "enqueue", "1").returncode == 0
    command = forked_redirected if options else quorate_redirected
    taken = command(cluster, f"queue untold dequeue {options} {redirected}")
    assert taken.returncode == 3
    assert run("queue", "untold", "size").stdout == "0\n"
    wrong = command(cluster, f"queue untold enqueue wash {options} {redirected}")
    assert wrong.returncode == 2


@pytest.mark.parametrize(("redirected", "why"), UNWRITABLE)
@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("--version", f"quorate {__version__}"),
        ("--help", "--version"),
        ("queue --help", "dead-letters"),
        ("status", "incarnation"),
        ("trace queue/unshown", "horizon"),
        ("doctor", "clock skew"),
        ("quorums types", "* offered by the service"),
    ],
)
def test_what_commands_and_help_could_not_show_stands_on_standard_error(
    cluster: LocalCluster, words: str, shown: str, redirected: str, why: str
) -> None:
    """Help ended in a trace, tables in the bare words of the system, both with exit code 1."""
    done = forked_redirected(cluster, f"{words} {redirected}")
    assert (done.returncode, "Traceback" in done.stderr) == (3, False), done.stderr
    assert shown in done.stderr
    told = done.stderr.splitlines()[-1]
    assert told.startswith(f"quorate: The answer could not be written to standard output ({why})")


def unread(cluster: LocalCluster, *words: str) -> subprocess.CompletedProcess[str]:
    """A command whose reader has gone."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as to_nobody:
        return subprocess.run(
            [sys.executable, "-m", "quorate.cli.main", *words],
            stdout=to_nobody,
            stderr=subprocess.PIPE,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
            env=as_users_have_it(cluster),
        )


@pytest.mark.parametrize(
    "words",
    [
        "dict unread items",
        "dict unread items --json",
        "dict unread get ann",
        "queue unread leases",
        "queue unread dead-letters --json",
        "configuration",
        "object list --json",
        "trace dictionary/unread/ann --json",
    ],
)
def test_a_look_whose_reader_has_gone_ends_without_a_word(
    run: Run, cluster: LocalCluster, words: str
) -> None:
    """As in `quorate dict users items | head -1`: the whole listing stood on standard error."""
    assert run("dict", "unread", "put", "ann", "1").returncode == 0
    looked = unread(cluster, *words.split())
    assert (looked.returncode, looked.stderr) == (1, "")


def test_item_whose_reader_has_gone_stands_on_standard_error(run: Run, cluster: LocalCluster) -> None:
    assert run("queue", "unread", "enqueue", "1").returncode == 0
    taken = unread(cluster, "queue", "unread", "dequeue")
    assert (taken.returncode, taken.stderr.splitlines()[0]) == (3, "1")
    assert "(Broken pipe)" in taken.stderr


def test_what_standard_output_has_no_signs_for_is_no_certain_failure(run: Run, cluster: LocalCluster) -> None:
    """It was taken, and shown nowhere but as an exception's trace: exit code 1 would say that the item certainly still waits."""
    assert run("queue", "unsigned", "enqueue", '"\N{EURO SIGN}"').returncode == 0
    taken = quorate_redirected(cluster, "queue unsigned dequeue", PYTHONIOENCODING="ascii:strict")
    assert taken.returncode == 3
    shown, told = taken.stderr.splitlines()
    assert json.loads(shown) == "\N{EURO SIGN}"
    assert "its encoding is ascii" in told


def test_values_of_which_the_first_were_enqueued_are_no_certain_failure(
    run: Run, cluster: LocalCluster
) -> None:
    """Exit code 1 or 2 would say that nothing was: who corrects the last one, and sends all again, would have the first twice."""
    long = json.dumps("x" * cluster.document.limits.value_bytes_max)
    lines = "\n".join([*map(str, range(600)), long])
    place = str(cluster.document_path)
    done = quorate("queue", "partly", "enqueue", "-", "--json", stdin=lines, QUORATE_CLUSTER=place)
    assert done.returncode == 3
    told = json.loads(done.stdout)
    assert told["definite"] is False
    assert told["error"].startswith("The first 500 of 601 values were enqueued")
    assert run("queue", "partly", "size").stdout == "500\n"


def test_a_full_pipe_that_does_not_block_is_waited_for(run: Run, cluster: LocalCluster) -> None:
    """Items were taken, and left out of the answer without a word."""
    items = [f"{number}" * 2000 for number in range(9)]
    assert run("queue", "piped", "enqueue", *map(json.dumps, items)).returncode == 0
    shown, into = os.pipe()
    os.set_blocking(into, False)
    filled = os.write(into, b"x" * 10_000_000)
    words = [sys.executable, "-m", "quorate.cli.main", "queue", "piped", "dequeue", "--max", "9"]
    environment = os.environ | {"QUORATE_CLUSTER": str(cluster.document_path)}
    with subprocess.Popen(words, stdout=into, env=environment) as command, os.fdopen(shown) as reading:
        os.close(into)
        deadline_s = time.monotonic() + TIMEOUT_S
        while run("queue", "piped", "size").stdout != "0\n":
            assert time.monotonic() < deadline_s
        said = reading.read()
    assert command.returncode == 0
    assert [json.loads(line) for line in said[filled:].splitlines()] == items


def test_standard_streams_may_be_closed(run: Run, cluster: LocalCluster) -> None:
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        assert quorate_redirected(cluster, f"queue closed enqueue 1 {closed}").returncode == 0
    assert run("queue", "closed", "size").stdout == "4\n"
    refused = quorate_redirected(cluster, "queue closed enqueue wash 2>&-")
    assert (refused.returncode, refused.stdout) == (2, "")


def as_users_have_it(cluster: LocalCluster) -> dict[str, str]:
    """Variables with which Python writes late, as by default."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return kept | {"COLUMNS": "120", "QUORATE_CLUSTER": str(cluster.document_path)}


def quorate_redirected(cluster: LocalCluster, words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """The command as a shell runs it, with what the words say of its standard streams."""
    command = f"{shlex.quote(sys.executable)} -m quorate.cli.main {words}"
    environment = as_users_have_it(cluster) | more
    return subprocess.run(
        command, shell=True, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=environment
    )


def forked_redirected(cluster: LocalCluster, words: str) -> subprocess.CompletedProcess[str]:
    """The same without what Python needs to start; of redirections it knows those of the tests here."""
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    closed, asked = [], []
    with ExitStack() as opened:
        for word in words.replace("> ", ">").split():
            match word.partition(">"):
                case (_, "", _):
                    asked.append(word)
                case (number, _, "&-"):
                    closed.append(number or "1")
                case ("2", _, "&1"):
                    streams["stderr"] = streams["stdout"]
                case (number, _, path):
                    streams["stderr" if number else "stdout"] = opened.enter_context(open(path, "w"))
        environment = as_users_have_it(cluster) | {forked.CLOSED: " ".join(closed)}
        with forked.started(asked, stdin=subprocess.DEVNULL, text=True, env=environment, **streams) as done:
            out, err = done.communicate(timeout=TIMEOUT_S)
    return subprocess.CompletedProcess(words, done.returncode, out or "", err or "")


def test_missing_document_says_what_to_do(tmp_path_factory: pytest.TempPathFactory) -> None:
    done = quorate("queue", "q", "size", cwd=tmp_path_factory.mktemp("nowhere"))
    assert done.returncode == 2
    assert "quorate up" in done.stderr


def test_a_wrong_command_line_is_told_in_json_too() -> None:
    told = quorate("queue", "jobs", "dequeue", "--max", "0", "--json")
    assert told.returncode == 2
    answer = json.loads(told.stdout)
    assert "--max" in answer["error"]
    assert answer["definite"]


def test_nobody_at_home_is_a_definite_failure() -> None:
    done = quorate("queue", "q", "size", "--cluster", "http://127.0.0.1:9", "--deadline", "1")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_without_a_deadline_an_operation_gets_no_more_than_the_cluster_gives(tmp_path: Path) -> None:
    """It was refused: the command's own ten seconds were more than `deadline_s_max`."""
    document = tmp_path / "cluster.toml"
    assert quorate_here("init", "--out", str(document), "--ports", "9,10,11").returncode == 0
    document.write_text(
        document.read_text()
        + '\n[limits]\ndeadline_s_max = 0.5\nwait_s_max = 0.5\n[types]\nhits = "quorate.adts.library.numbers:Counter"\n'
    )
    for words in (["queue", "q", "size"], ["call", "hits/n", "value"]):
        done = quorate_here(*words, QUORATE_CLUSTER=str(document))
        assert done.returncode == 1, done.stderr
        assert "deadline_s_max" not in done.stderr


def test_trace_of_a_cluster_that_is_down_is_an_error(tmp_path: Path) -> None:
    assert quorate("init", "--ports", "9,10,11", cwd=tmp_path).returncode == 0
    done = quorate("trace", "queue/q", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "No replica shows its logs (r1, r2, r3: Connection refused)" in done.stderr
    assert (
        "No replica shows its logs"
        in json.loads(quorate("trace", "queue/q", "--json", cwd=tmp_path).stdout)["error"]
    )


def test_replica_that_holds_another_document_is_not_ready(cluster: LocalCluster, tmp_path: Path) -> None:
    other = tmp_path / "cluster.toml"
    other.write_text(cluster.document_path.read_text().replace("name = ", 'name = "other" # ', 1))
    done = quorate("status", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.count("not ready") == 3
    assert "r2: it holds another cluster file: give all the same one" in done.stdout
    told = json.loads(quorate("status", "--json", cwd=tmp_path).stdout)["replicas"]
    assert [(each["is_up"], each["is_ready"], each["document_agrees"]) for each in told] == [
        (True, False, False)
    ] * 3


def test_help_names_no_type_beside_a_flag() -> None:
    for words in (("trace",), ("queue", "q", "dequeue"), ("serve",), ()):
        shown = quorate(*words, "--help").stdout
        assert "--help" in shown
        assert "bool" not in shown


def test_values_are_shown_with_what_nobody_would_see_spelled_out(run: Run) -> None:
    """A mark of direction would turn around what a terminal shows after it; the value itself stays what it is."""
    value, shown = "a\u202eb\u009bc", '"a\\u202eb\\u009bc"'
    assert run("queue", "unseen", "enqueue", json.dumps(value, ensure_ascii=False)).returncode == 0
    assert run("register", "unseen", "write", shown).returncode == 0
    assert run("dict", "unseen", "put", "k", shown).returncode == 0
    for name, event in (("queue/unseen", "Enq"), ("register/unseen", "Write")):
        drawn = run("trace", name).stdout
        assert f"[{event}({shown}); Ok()]" in drawn
        assert not {"\u202e", "\u009b"} & set(drawn)
    traced = json.loads(run("trace", "queue/unseen", "--json").stdout)["traces"][0]["rows"][0]["events"]["r1"]
    assert traced == f'[Enq("{value}"); Ok()]', "a program reads what is stored"
    assert run("queue", "unseen", "peek").stdout == f"{shown}\n"
    assert run("register", "unseen", "read").stdout == f"{shown}\n"
    assert run("dict", "unseen", "get", "k").stdout == f"{shown}\n"
    assert run("dict", "unseen", "items").stdout == f"k\t{shown}\n"
    assert run("register", "unseen", "read", "--json").stdout == f'{{"value":{shown}}}\n'
    assert run("register", "unseen", "cas", shown, "null").returncode == 0
    assert run("register", "unseen", "cas", "null", shown).returncode == 0
    decided = [line for line in run("trace", "register/unseen").stdout.splitlines() if "decided" in line]
    assert len(decided) == 1
    assert shown in decided[0]
    assert run("queue", "unseen", "dequeue").stdout == f"{shown}\n"


def test_trace_shows_what_each_replica_holds(run: Run) -> None:
    run("queue", "traced", "enqueue", '"x"')
    shown = run("trace", "queue/traced")
    assert shown.returncode == 0
    assert '[Enq("x"); Ok()]' in shown.stdout
    assert "horizon" in shown.stdout
    (trace,) = json.loads(run("trace", "queue/traced", "--json").stdout)["traces"]
    assert trace["replicas"].keys() == {"r1", "r2", "r3"}
    # A final quorum of two holds it for certain; the third may be on its way.
    assert len(trace["rows"][0]["events"]) >= 2


def test_status_and_doctor_find_all_well(run: Run, cluster: LocalCluster) -> None:
    told = json.loads(run("status", "--json").stdout)["replicas"]
    assert [each["id"] for each in told if each["is_ready"] and each["document_agrees"]] == ["r1", "r2", "r3"]
    assert "ready" in run("status").stdout
    narrow = quorate("status", COLUMNS="60", QUORATE_CLUSTER=str(cluster.document_path)).stdout
    assert all(url in narrow for url in cluster.urls.values())
    found = run("doctor", "--json")
    assert found.returncode == 0
    checks = {check["what"]: check["ok"] for check in json.loads(found.stdout)["checks"]}
    assert checks["replica r1"]
    assert checks["clock skew"]
