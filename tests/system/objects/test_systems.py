"""Shows that objects kept by quorum systems can be used while their quorums are up, and not while these are down.

Systems are given as a pair, for each operation and event class, or as a plan printed them.
"""

import json
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pytest

from quorate.api_specs.cluster import ChoiceRule, parse
from quorate.cli.cluster.document import new_document
from quorate.client_sdk import Client, QuorateError, connect
from quorate.quorums.systems.expressions import parse_system
from quorate.quorums.systems.systems import is_quorum
from tests.system.harness import Clusters
from tests.unit.cli.conftest import quorate

# Whoever reads asks r1, or r2 and r3; whoever changes something stores it at r1 and at r2 or r3.
CHOICES = [
    ChoiceRule(f"{adt}/config", reads="r1 + r2*r3", writes="r1*(r2 + r3)")
    for adt in ("register", "queue", "dictionary")
]


def test_what_is_up_is_what_the_system_says(clusters: Clusters) -> None:
    cluster = clusters.start(rules=CHOICES)
    with connect(cluster.document, deadline_s=20) as client:
        register, queue, users = (
            client.register("config"),
            client.queue("config"),
            client.dictionary("config"),
        )
        register.write(1)
        queue.enqueue_many(["a", "b", "c"])
        assert users.put_if_absent("x", 1)
        cluster.kill("r3")
        assert register.compare_and_set(1, 2)
        assert queue.dequeue() == "a"
        users.put("y", 2)
        cluster.restart("r3")
        cluster.kill("r1")
        with connect(cluster.document, deadline_s=20) as other:
            assert other.register("config").read() == 2
            assert other.dictionary("config").items() == {"x": 1, "y": 2}
            for change in (
                lambda: other.register("config").write(3, deadline_s=1),
                lambda: other.queue("config").enqueue("d", deadline_s=1),
                lambda: other.dictionary("config").put_if_absent("z", 3, deadline_s=1),
            ):
                with pytest.raises(QuorateError):
                    change()
        cluster.restart("r1")
        assert [queue.dequeue(), queue.dequeue()] == ["b", "c"]


BY_CLASS: Final = [
    # Adding needs r1, or r2 and r3; taking reads r1 and one more, and is stored at any one.
    ChoiceRule(
        "queue/jobs", initials={"Deq": "r1*r2*r3"}, finals={"Enq": "r1 + r2*r3", "Deq": "r1 + r2 + r3"}
    ),
    # Writing needs any one; a compare-and-set is stored everywhere, so that the others read all, for writes are anywhere.
    ChoiceRule("register/config", finals={"Write": "r1 + r2", "Cas": "r1*r2*r3"}),
    ChoiceRule("dictionary/users", initials={"Get": "r1 + r2*r3"}, finals={"Cas": "r1*r2*r3"}),
]


def test_each_event_class_needs_its_own_final_quorum(clusters: Clusters) -> None:
    cluster = clusters.start(rules=BY_CLASS)
    with connect(cluster.document, deadline_s=20) as client:
        client.queue("jobs").enqueue_many(["a", "b"])
        client.register("config").write(1)
        assert client.register("config").compare_and_set(1, 2)
        client.dictionary("users").put("x", 1)
        cluster.kill("r3")
        client.queue("jobs").enqueue("c")
        client.register("config").write(3)
        assert client.register("config").read() == 3
        client.dictionary("users").put("x", 2)
        assert client.dictionary("users").get("x") == 2
        with connect(cluster.document, deadline_s=1) as hasty:
            refused(lambda: hasty.queue("jobs").dequeue())
            refused(lambda: hasty.register("config").compare_and_set(3, 4))
            refused(lambda: hasty.dictionary("users").compare_and_set("x", 2, 3))
        cluster.restart("r3")
        assert [client.queue("jobs").dequeue() for _ in "abc"] == ["a", "b", "c"]


def refused(operation: Callable[[], Any]) -> None:
    with pytest.raises(QuorateError):
        operation()


OPERATIONS: Final[dict[str, Callable[[Client, str], Any]]] = {
    "Enq": lambda client, name: client.queue(name).enqueue("b"),
    "Deq": lambda client, name: client.queue(name).dequeue(),
    "Write": lambda client, name: client.register(name).write(2),
    "Read": lambda client, name: client.register(name).read(),
    "Put": lambda client, name: client.dictionary(name).put("k", 2),
    "Get": lambda client, name: client.dictionary(name).get("k"),
}
PLANS: Final = [
    ("queue", "Enq=70,Deq=30", "Enq >= 99.98%"),
    ("queue", "Enq=30,Deq=70", "Deq >= 99.4%"),
    ("register", "Write=1,Read=5", "Read >= 99.98%"),
    ("dictionary", "Put=5,Get=1", "Put >= 99.999%"),
]


URLS = {f"r{n}": f"http://127.0.0.1:{n}" for n in (1, 2, 3)}


def test_what_plans_print_can_be_pasted_and_is_up_as_they_say(clusters: Clusters) -> None:
    """One object for each plan; then r1, which the votes of most of them prefer, is killed."""
    offers = [planned(*plan) for plan in PLANS]
    rules = []
    for number, ((adt, _, _), offer) in enumerate(zip(PLANS, offers, strict=True)):
        head, mark, general = new_document(URLS).partition("[[choices]]")
        narrowed = offer["toml"].replace(f'"{adt}/*"', f'"{adt}/plan{number}"')
        rules.append(parse(f"{head}{narrowed}\n{mark}{general}").choices[0])
    cluster = clusters.start(rules=rules)
    first = {"queue": "Enq", "register": "Write", "dictionary": "Put"}
    with connect(cluster.document, deadline_s=20) as client:
        for number, (adt, _, _) in enumerate(PLANS):
            OPERATIONS[first[adt]](client, f"plan{number}")
        cluster.kill("r1")
        up, down = by_availability(offers, {"r2", "r3"})
        assert up
        assert down
        # First those that are up: a change that fails half-way leaves a value that a reader must first settle.
        for operation, name in up:
            OPERATIONS[operation](client, name)
        with connect(cluster.document, deadline_s=1) as hasty:
            for operation, name in down:
                refused(partial(OPERATIONS[operation], hasty, name))


def by_availability(
    offers: list[Any], alive: set[str]
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The operations, each on the object of its offer, whose quorums the systems of the offer find alive; and the others."""
    up: list[tuple[str, str]] = []
    down: list[tuple[str, str]] = []
    for number, offer in enumerate(offers):
        for operation in offer["availability"]:
            needed = (offer["initial"][operation], offer["final"][f"{operation}/Ok"])
            is_up = all(is_quorum(parse_system(system), alive) for system in needed)
            (up if is_up else down).append((operation, f"plan{number}"))
    return up, down


def planned(adt: str, mix: str, target: str) -> Any:
    """The first offer of a plan for three replicas that are up unlike often."""
    operations = ",".join(part.partition("=")[0] for part in mix.split(","))
    words = ("--mix", mix, "--target", target, "--operations", operations, "--p", "r1=0.999,r2=0.95,r3=0.9")
    done = quorate("quorums", "plan", adt, "-n", "3", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["offers"][0]
