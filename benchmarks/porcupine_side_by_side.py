"""`quorate check` beside Porcupine (Anish Athalye) on the histories that it publishes: the same verdicts, and how long each takes.

103 histories of a register in etcd, by Jepsen, and six of a key-value store with 1, 10 and 50 clients, right and wrong. Each history is read first; told
is the time from there to the verdict, of this process and of `go test`, one history after the other. Ours includes the few calls that show what is wrong.
Both judge the keys of the store apart. Needs Go and a checkout.

    .venv/bin/python benchmarks/porcupine_side_by_side.py CHECKOUT

Exit code 1 where a verdict differs.
"""

import argparse
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from quorate.adts.histories.calls import Call
from quorate.adts.histories.orders import Model
from quorate.adts.histories.verdict import Typed, verdicts
from quorate.adts.own import Computed
from quorate.adts.plain_class import PlainClass
from quorate.adts.specification import Invocation, Response, Specification
from quorate.adts.types.catalogue import known_types

STORES: Final = ("c01-ok", "c01-bad", "c10-ok", "c10-bad", "c50-ok", "c50-bad")
TIMES_OUT_S: Final = 600
GO: Final = """
package porcupine

import ("fmt"; "os"; "testing"; "time")

func told(name string, model Model, events []Event) {
	began := time.Now()
	right := CheckEvents(model, events)
	fmt.Println("told", name, right, time.Since(began).Nanoseconds())
}

func TestSideBySide(t *testing.T) {
	for number := 0; number < 200; number++ {
		name := fmt.Sprintf("etcd_%03d", number)
		path := "test_data/jepsen/" + name + ".log"
		if _, err := os.Stat(path); err == nil {
			told(name, etcdModel, parseJepsenLog(path))
		}
	}
	for _, name := range []string{STORES} {
		told(name, kvModel, parseKvLog("test_data/kv/" + name + ".txt"))
	}
}
"""
_JEPSEN: Final = re.compile(r"INFO\s+jepsen\.util\s+-\s+(\d+)\s+:(\w+)\s+:(\w+)\s+(.*)")
_STORE: Final = re.compile(
    r'\{:process (\d+), :type :(\w+), :f :(\w+), :key "(.*?)", :value (?:nil|"(.*)")\}'
)


class Text:
    """One key of the store."""

    blind = ("put", "append")

    def __init__(self) -> None:
        self.value = ""

    def get(self) -> str:
        return self.value

    def put(self, value: str) -> None:
        self.value = value

    def append(self, value: str) -> None:
        self.value += value


class Verdict(NamedTuple):
    """Whether a history is right, and how long that took."""

    is_right: bool
    seconds: float


class History:
    """Calls, as lines tell of them: the moment is the line."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._open: dict[str, int] = {}

    def invoke(self, process: str, object_name: str, invocation: Invocation, line: int) -> None:
        self._open[process] = len(self.calls)
        self.calls.append(Call(process, object_name, invocation, line))

    def end(self, process: str, answer: Response | None, line: int) -> None:
        """`answer` is None where nobody knows."""
        place = self._open.pop(process)
        if answer is not None:
            self.calls[place] = self.calls[place]._replace(returned=line, answers=(answer,))


def of_etcd(text: str) -> list[Call]:
    """The calls of a history of etcd's register."""
    history = History()
    for number, line in enumerate(text.splitlines()):
        if (found := _JEPSEN.match(line)) is None:
            continue
        process, kind, operation, value = found.groups()
        if kind == "invoke":
            words = () if operation == "read" else tuple(map(int, re.findall(r"\d+", value)))
            history.invoke(process, "register/r", Invocation(operation.capitalize(), words), number)
        elif kind == "info" or value == ":timed-out":
            history.end(process, None, number)
        elif operation == "read":
            read = None if value == "nil" else int(value)
            history.end(process, Response("Ok", (read,)), number)
        else:
            history.end(process, Response("Ok" if kind == "ok" else "Fail"), number)
    return history.calls


def of_store(text: str) -> list[Call]:
    """The calls of a history of the key-value store; each key is an object."""
    history = History()
    for number, line in enumerate(text.splitlines()):
        found = _STORE.match(line)
        assert found is not None, line
        process, kind, operation, key, value = found.groups()
        is_get = operation == "get"
        if kind == "invoke":
            history.invoke(process, f"text/{key}", Invocation(operation, () if is_get else (value,)), number)
        else:
            history.end(process, Response("Ok", (value,) if is_get else ()), number)
    return history.calls


def judged(specification: Specification, calls: Sequence[Call]) -> Verdict:
    """What we say."""
    began_s = time.perf_counter()
    types = {call.object: Typed(specification) for call in calls}
    found = list(verdicts(types, calls, Model.LINEARIZABLE))
    return Verdict(all(each.is_right for each in found), time.perf_counter() - began_s)


def ours(checkout: Path) -> Iterator[tuple[str, Verdict]]:
    for path in sorted((checkout / "test_data/jepsen").glob("etcd_*.log")):
        yield path.stem, judged(known_types()["register"], of_etcd(path.read_text()))
    text = Computed(PlainClass(Text))
    for name in STORES:
        yield name, judged(text, of_store((checkout / f"test_data/kv/{name}.txt").read_text()))


def theirs(checkout: Path) -> Iterator[tuple[str, Verdict]]:
    names = ", ".join(f'"{name}"' for name in STORES)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "porcupine"
        shutil.copytree(checkout, copy, ignore=shutil.ignore_patterns(".git"))
        (copy / "side_by_side_test.go").write_text(GO.replace("STORES", names))
        command = ["go", "test", "-run", "TestSideBySide", "-v", "-count=1", "."]
        done = subprocess.run(
            command, cwd=copy, capture_output=True, text=True, timeout=TIMES_OUT_S, check=True
        )
    for name, right, nanoseconds in re.findall(r"^told (\S+) (true|false) (\d+)$", done.stdout, re.MULTILINE):
        yield name, Verdict(right == "true", int(nanoseconds) / 1e9)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("checkout", type=Path)
    checkout = parser.parse_args().checkout
    their, our = dict(theirs(checkout)), dict(ours(checkout))
    assert their.keys() == our.keys(), their.keys() ^ our.keys()
    other = [name for name in our if our[name].is_right != their[name].is_right]
    etcd = [name for name in our if name.startswith("etcd_")]
    print(f"{'history':>24} {'Porcupine, s':>14} {'quorate, s':>14}")
    for words, names in [
        (f"{len(etcd)} of etcd", etcd),
        *((f"store, {name}", [name]) for name in STORES),
    ]:
        times = [sum(each[name].seconds for name in names) for each in (their, our)]
        print(f"{words:>24} {times[0]:14.4f} {times[1]:14.4f}")
    print(f"Other verdicts: {', '.join(other) or 'none'}")
    return bool(other)


if __name__ == "__main__":
    raise SystemExit(main())
