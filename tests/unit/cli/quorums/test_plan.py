"""`quorate quorums choices|availability|plan` as a user types them; in a process of their own once, for the rest needs none."""

import json
import re
from collections.abc import Sequence
from itertools import combinations
from math import isfinite
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from quorate.adts.specification import operation_of
from quorate.adts.types.catalogue import SPECIFICATIONS
from quorate.api_specs.cluster import parse
from quorate.cli.cluster.document import new_document
from quorate.cli.quorums.plots import LINES_MAX
from quorate.quorums.choices.choice import Ordering, QuorumChoice
from quorate.quorums.choices.system_choice import SystemQuorum
from quorate.quorums.systems.expressions import parse_system
from quorate.quorums.systems.tally import Quorum, VoteCount
from tests.unit.cli.conftest import quorate, quorate_here

QUEUE = ("--operations", "Enq,Deq")


def printed(*words: str) -> str:
    done = quorate_here("quorums", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def as_json(*words: str) -> Any:
    return json.loads(printed(*words, "--json"))


def rows(text: str) -> list[list[str]]:
    """The cells of a table's lines, without its head."""
    return [line.replace(", ", ",").split() for line in text.splitlines() if line.strip().startswith("(")]


def test_the_lecture_table_of_three_is_one_command() -> None:
    words = ("choices", "queue", "-n", "3", *QUEUE)
    done = quorate("quorums", *words)
    assert rows(done.stdout) == [
        ["(0,1)", "(3,1)", "(3,0)"],
        ["(0,2)", "(2,2)", "(2,0)"],
        ["(0,3)", "(1,3)", "(1,0)"],
    ]
    assert (done.returncode, done.stdout, done.stderr) == (0, printed(*words), "")


def test_choices_as_json_have_the_documented_keys() -> None:
    found = as_json("choices", "queue", "--votes", "r1=2,r2=1,r3=0", *QUEUE, "--rule", "by-operation")
    assert len(found.pop("toml")) == 2
    assert found == {
        "type": "queue",
        "votes": {"r1": 2, "r2": 1, "r3": 0},
        "rule": "by-operation",
        "ordering": "clock",
        "replication": "typed",
        "classes": ["Enq/Ok", "Deq/Ok", "Deq/Empty"],
        "choices": [
            {"Enq/Ok": [0, 1], "Deq/Ok": [3, 1], "Deq/Empty": [3, 0]},
            {"Enq/Ok": [0, 2], "Deq/Ok": [2, 2], "Deq/Empty": [2, 0]},
        ],
    }


def test_gifford_second_example_is_one_command() -> None:
    found = as_json("availability", "file", "--votes", "a=2,b=1,c=1", "--p", "0.99", "--rule", "by-operation")
    of_label = {each["label"]: each for each in found["assignments"]}
    example = of_label["Write/Ok (0, 3)  Read/Ok (2, 0)"]["classes"]
    assert example["Read/Ok"]["unavailability"] == pytest.approx(1.99e-4)
    assert example["Write/Ok"]["unavailability"] == pytest.approx(1.0099e-2)
    assert example["Write/Ok"]["blocked_by"] == [["a"], ["b", "c"]]


def test_availability_says_what_blocks_and_shows_operations_of_several_outcomes() -> None:
    text = printed("availability", "queue", "-n", "3", "--p", "0.99", *QUEUE)
    assert "99.99990 %" in text
    assert "{r1, r2} {r1, r3} {r2, r3}" in text
    assert "Deq, whatever it is" in text


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text("start_s,end_s,up\n0,9,r1|r2|r3\n9,10,r3\n10,12,r1|r2\n")
    return path


def test_a_trace_shows_outages_beside_what_independence_predicts(trace: Path) -> None:
    found = as_json("availability", "queue", "-n", "3", *QUEUE, "--trace", str(trace))
    middle = found["assignments"][1]["operations"]["Deq"]
    assert middle["availability"] == pytest.approx(11 / 12)
    assert middle["independent"] == pytest.approx(
        (11 / 12) ** 2 * (10 / 12) + 2 * 11 / 12 / 12 * 10 / 12 + (11 / 12) ** 2 * 2 / 12
    )
    assert (middle["outages"], middle["longest_outage_s"], middle["down_s"], middle["observed_s"]) == (
        1,
        1,
        1,
        12,
    )


def test_racks_and_systems_are_taken() -> None:
    found = as_json(
        "availability",
        "file",
        "--system",
        "a*b + c*d",
        "--p",
        "1",
        "--group",
        "west=0.9:a,b",
        "--group",
        "east=0.9:c,d",
    )
    classes = found["assignments"][0]["classes"]
    assert classes["Read/Ok"]["availability"] == pytest.approx(0.99)
    assert classes["Write/Ok"]["availability"] == pytest.approx(0.81)
    assert classes["Read/Ok"]["needs"] == "((a*b) + (c*d))"


def test_a_plan_as_json_has_the_documented_keys_and_keeps_its_targets() -> None:
    found = as_json(
        "plan", "queue", "-n", "3", *QUEUE, "--mix", "Enq=2,Deq=1,Deq/Empty=1", "--p", "0.99",
        "--latency", "r1=5,r2=10,r3=5:9/50:1", "--capacity", "1000", "--target", "Enq >= 99.9%", "--target", "Deq p50 <= 20ms",
    )  # fmt: skip
    assert found.keys() == {"type", "replicas", "dead", "mix", "found", "near", "offers"}
    assert found["found"] == len(found["offers"]) > 0
    for offer in found["offers"]:
        assert offer["availability"]["Enq"] >= 0.999
        assert offer["p50_ms"]["Deq"] <= 20
        assert offer["capacity"] == pytest.approx(1 / offer["load"])
        assert sum(row["share"] for row in offer["strategy"] if row["of"] == "Enq/Ok") == pytest.approx(1)


@pytest.mark.parametrize("count", [21, 22, 23, 24, 25])
def test_as_many_replicas_as_the_calculus_takes_are_planned_with_their_grids(count: int) -> None:
    words = ("-n", str(count), "--mix", "Enq=50,Deq=50", "--p", "0.99", "--rows", "100")
    found = as_json("plan", "queue", *QUEUE, *words)
    assert found["found"] == len(found["offers"]) > 0
    has_grid = any(count % rows == 0 for rows in range(2, count // 2 + 1))
    assert has_grid == any("grid" in offer["label"] for offer in found["offers"])
    assert all("grid" in offer["label"] or "equal votes" in offer["label"] for offer in found["offers"])


@pytest.mark.parametrize(("rows", "width"), [(5, 5), (3, 7)])
def test_availability_takes_grids_of_over_twenty_replicas(rows: int, width: int) -> None:
    names = [f"r{at}" for at in range(rows * width)]
    text = ";".join(",".join(names[at : at + width]) for at in range(0, len(names), width))
    found = as_json("availability", "queue", *QUEUE, "--system", f"grid({text})", "--p", "0.9")
    shares = found["assignments"][0]["operations"]
    hit, whole = 1 - 0.1**width, 0.9**width
    assert shares["Enq"]["availability"] == pytest.approx(hit**rows, abs=1e-12)
    assert shares["Deq"]["availability"] == pytest.approx(hit**rows - (hit - whole) ** rows, abs=1e-12)


def test_a_plan_shows_choices_and_whom_to_ask() -> None:
    text = printed("plan", "queue", "-n", "3", *QUEUE, "--mix", "Enq=1,Deq=1", "--votes-max", "1")
    assert "equal votes; Enq/Ok (0, 2)  Deq/Ok (2, 2)  Deq/Empty (2, 0)" in text
    assert "Deq initial: {r1" in text


def test_a_plan_that_nothing_meets_says_so() -> None:
    text = printed("plan", "queue", "-n", "3", "--mix", "Enq=1", "--target", "Enq >= 100%")
    assert "No candidate meets all targets" in text


@pytest.mark.parametrize("adt", SPECIFICATIONS)
@pytest.mark.parametrize("ordering", ["clock", "quorum"])
def test_what_a_plan_prints_is_the_choice_of_an_object(adt: str, ordering: Ordering) -> None:
    """Every offer, pasted into a cluster file, gives the quorums that the offer names."""
    mix = ",".join(f"{operation}=1" for operation in SPECIFICATIONS[adt].kinds)
    found = as_json(
        "plan", adt, "-n", "4", "--mix", mix, "--ordering", ordering, "--system", "r1*r2 + r3*r4", "--rows", "1000",
    )  # fmt: skip
    assert found["offers"]
    for offer in found["offers"]:
        choice = pasted(offer["toml"], adt, replicas=4)
        for operation, system in offer["initial"].items():
            assert quorums_of(choice.initial_of(operation)) == quorums_of(SystemQuorum(parse_system(system)))
        for name, system in offer["final"].items():
            assert quorums_of(choice.final_of(name)) == quorums_of(SystemQuorum(parse_system(system)))


def test_what_choices_print_is_the_choice_of_an_object() -> None:
    votes = {"r1": 2, "r2": 1, "r3": 1}
    found = as_json("choices", "dictionary", "--votes", "r1=2,r2=1,r3=1", "--operations", "Put,Get,Cas")
    for sizes, text in zip(found["choices"], found["toml"], strict=True):
        choice = pasted(text, "dictionary", replicas=3)
        for name, (initial, final) in sizes.items():
            needed, stored = VoteCount(votes, initial), VoteCount(votes, final)
            assert quorums_of(choice.initial_of(operation_of(name)), 3) == quorums_of(needed, 3)
            assert quorums_of(choice.final_of(name), 3) == quorums_of(stored, 3)


def pasted(rule: str, adt: str, replicas: int) -> QuorumChoice:
    """The choice of an object where the printed rule stands in a document, for that object."""
    urls = {f"r{n}": f"http://127.0.0.1:{8000 + n}" for n in range(1, replicas + 1)}
    head, place, rest = new_document(urls).partition("\n[[choices]]\n")
    narrowed = rule.replace(f'"{adt}/*"', f'"{adt}/one"')
    return parse(head + "\n" + narrowed + place + rest).choice_of(f"{adt}/one")


def quorums_of(quorum: Quorum, replicas: int = 4) -> set[frozenset[str]]:
    """All sets of the replicas that meet it."""
    names = [f"r{n}" for n in range(1, replicas + 1)]
    sets = (frozenset(some) for size in range(replicas + 1) for some in combinations(names, size))
    return {each for each in sets if quorum.is_met_by(each)}


def test_rules_are_printed_to_be_pasted() -> None:
    text = printed("plan", "queue", "-n", "3", *QUEUE, "--mix", "Enq=1,Deq=1", "--toml")
    _, _, first = text.partition("# Offer 1\n")
    rule, _, _ = first.partition("\n# Offer 2")
    assert pasted(rule, "queue", replicas=3).final_of("Enq/Ok").is_met_by({"r1", "r2", "r3"})
    text = printed("choices", "queue", "-n", "3", *QUEUE, "--toml")
    assert text.count('[[choices]]\nobjects = "queue/*"') == 3
    assert '"Enq/Ok" = "(r1 + r2 + r3)"' in text


@pytest.mark.parametrize("words", [("stack",), ("queue", "--replication", "versions")])
def test_there_is_no_rule_where_the_service_keeps_no_such_objects(words: Sequence[str]) -> None:
    assert set(as_json("choices", *words)["toml"]) == {None}
    done = quorate_here("quorums", "choices", *words, "--toml")
    assert done.returncode == 2
    assert "--toml: the service keeps objects of the types queue, register, dictionary" in done.stderr


def test_for_an_unordered_queue_it_says_how_the_service_keeps_one() -> None:
    for adt, exact in (("eventual-queue", ""), ("semiqueue", " and exact_empty = true")):
        done = quorate_here("quorums", "choices", adt, "--toml")
        assert done.returncode == 2
        assert (
            f"--toml: give a queue outbox = true{exact}, and quorums of a queue for its relay" in done.stderr
        )


BAD: list[tuple[Sequence[str], str]] = [
    (("choices", "queues"), "there is no data type 'queues': use queue"),
    (("choices", "queue", "--operations", "Push"), "a queue has no operation 'Push': use Enq"),
    (("choices", "queue", "--votes", "r1"), "--votes: 'r1' is not NAME=VALUE; write as r1=1,r2=2"),
    (("choices", "queue", "--votes", "r1=x"), "--votes: r1=x: write a whole number from 0 to 1000"),
    (("choices", "queue", "--votes", "r1=1,r1=1"), "--votes: r1 is given twice"),
    (("choices", "queue", "--votes", "r1=0"), "no votes at all"),
    (("availability", "queue"), "say how replicas fail: --p 0.99"),
    (("availability", "queue", "--p", "1.5"), "'r1' is 1.5; give a number from 0 to 1"),
    (("availability", "queue", "--p", "high"), "--p: 'high': write a number"),
    (("availability", "queue", "--p", "r1=0.9"), "--p: nothing is said about replica 'r2'"),
    (("availability", "queue", "--p", "r9=0.9"), "--p: unknown replica 'r9'; known are r1, r2, r3; --votes names others"),
    (("availability", "queue", "--group", "rack"), "--group: 'rack' is not NAME=P:r1,r2"),
    (("availability", "queue", "--group", "rack=0.9:r9"), "group 'rack' holds the unknown replica 'r9'"),
    (("availability", "queue", "--group", "rack=2:r1"), "group 'rack' is 2; give a number from 0 to 1"),
    (("availability", "queue", "--p", "0.9", "--trace", "TRACE"), "--trace says who was up; leave --p and --group out"),
    (("availability", "queue", "-n", "2", "--trace", "TRACE"), "trace.csv: line 2: unknown replica 'r3'; known are r1, r2"),
    (("availability", "file", "--system", "a*b|c", "--p", "0.9"), "Read depends on Write/Ok and can miss it: {a, b} and {c}"),
    (("availability", "file", "--system", "a*", "--p", "0.9"), "character 3 of 'a*': the end stands where"),
    (("plan", "queue", "--mix", "Foo=1"), "--mix: a queue has no event class 'Foo': use Enq/Ok"),
    (("plan", "queue", "--mix", "Enq=1", "--dead", "r9"), "--dead: unknown replica 'r9'"),
    (("plan", "queue", "--mix", "Enq=1", "--target", "Enq p50 <= 5"), "needs answer times: give --latency"),
    (("plan", "queue", "--mix", "Enq=1", "--target", "fast"), "'fast' states no target"),
    (("plan", "queue", "--mix", "Enq=1", "--latency", "-5"), "--latency: '-5': write times and weights of 0 or more; -5 is negative"),
    (("plan", "queue", "--mix", "Enq=1", "--capacity", "0"), "capacity of replica 'r1' is 0"),
    (("plan", "queue", "--mix", "Enq=1", "--latency", "1e999"), "--latency: '1e999': write a number"),
    (("plan", "queue", "--mix", "Enq=1", "--latency", "r1=5"), "--latency: nothing is said about replica 'r2'"),
    (("plan", "queue", "--mix", "Enq=1", "--names", "a,a,b"), "--names: a is given twice; give it once"),
    (("plan", "queue", "--mix", "Enq=1", "--system", "r1*r9"), "'r1*r9' names the unknown replica 'r9'; known are r1, r2"),
    (("choices", "queue", "-n", "3", "--votes", "r1=1"), "--votes says which replicas there are; leave -n out"),
    (("choices", "queue", "--votes", ""), "--votes: '' is not NAME=VALUE; write as r1=1,r2=2"),
    (("availability", "queue", "--p", "a=0.9"), "unknown replica 'a'; known are r1, r2, r3; --votes names others"),
    (("availability", "queue", "--p", "0.9", "--system", "a|"), "--system: 'a|' names no writes; write READS, or READS|WRITES"),
    (("availability", "queue", "--p", "0.9", "--system", "|a"), "--system: '|a' names no reads; write READS, or READS|WRITES"),
    (("availability", "queue", "--p", "0.9", "--system", "a", "-n", "3"), "--system names its replicas; leave -n and --votes out"),
    (("availability", "queue", "--p", "0.9", "--system", "votes(1;a:0)"), "votes(1; …) gives no votes at all"),
    (("availability", "queue", "--p", "0.9", "--system", "votes(2;a:1,a:1)"), "names a twice; give each replica its votes once"),
    (("availability", "queue", "--trace", "TWICE"), "twice.csv: line 2: up lists r1 twice; list it once"),
    (("plan", "queue", "--mix", "Enq"), "--mix: 'Enq' is not NAME=VALUE; write as Enq=50,Deq=50"),
    (("plan", "queue", "--mix", "Enq=1", "--latency", "r1=-5"), "--latency: r1=-5: write times and weights of 0 or more; -5 is negative"),
    (("plan", "queue", "--mix", "Enq=1", "--p", "a=0.9"), "unknown replica 'a'; known are r1, r2, r3; --names names others"),
    (("plan", "queue", "--mix", "Enq=1", "--target", ">= 101%"), "availability is 0 to 100 %; write it as 99.9% or 0.999"),
    (("plan", "queue", "--mix", "Enq=1", "--target", "Enq >= 99"), "availability is 0 to 100 %; write it as 99.9% or 0.999"),
    (("plan", "queue", "--mix", "Enq=1", "--system", ""), "--system: an empty text names nobody"),
    (("plan", "queue", "--mix", "Enq=1", "--names", ","), "--names: ',' names nobody; write as a,b,c"),
    (("plan", "queue", "--mix", "Enq=1", "-n", "3", "--names", "a,b"), "--names says which replicas there are; leave -n out"),
    (("plan", "queue", "--mix", "Enq=1", "--least", "wait"), "--least wait needs answer times: give --latency"),
    (("plan", "queue", "--mix", "Enq=1", "--target", "wait <= 9ms"), "the target on wait needs answer times: give --latency"),
    (("plan", "queue", "--mix", "Enq=1", "--plot", "plan.svg"), "a plot over the share of Enq needs a mix of Enq and something else"),
    (("plan", "queue", "--mix", "Enq=1,Deq=1", "--plot", "/none/plan.svg"), "--plot: /none/plan.svg cannot be written"),
    (("availability", "queue", "--p", "1e-999999999"), "--p: '1e-999999999': write a number"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "sentence"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_bad_input_is_named_with_its_place_and_the_remedy(
    words: Sequence[str], sentence: str, trace: Path
) -> None:
    twice = trace.with_name("twice.csv")
    twice.write_text("start_s,end_s,up\n0,9,r1|r2|r1\n")
    files = {"TRACE": str(trace), "TWICE": str(twice)}
    done = quorate_here("quorums", *(files.get(word, word) for word in words))
    assert done.returncode == 2, done.stdout + done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_a_strategy_does_for_all_mixes_that_come_at_times() -> None:
    """Reads `a*b + c*d` and their dual for writes, which cost five times as much: each replica serves half of either (Naor and Wool 1998)."""
    words = ("plan", "file", "--names", "a,b,c,d", "--votes-max", "1", "--within", "0")
    one = as_json(*words, "--mix", "Read=75,Write=25", "--write-capacity", "0.2")
    two = as_json(*words, "--mix", "3:Read=100", "--mix", "Write=1", "--write-capacity", "0.2")
    assert one["mix"] == two["mix"] == {"Read/Ok": 0.75, "Write/Ok": 0.25}
    loads = [{each["label"]: each["load"] for each in found["offers"]} for found in (one, two)]
    # All replicas are as busy in each mix: so the load is that of the mean mix.
    assert loads[0]["read rows of a 2x2 grid"] == pytest.approx(0.75 * 0.5 + 0.25 * 0.5 * 5)
    assert loads[1]["read rows of a 2x2 grid"] == pytest.approx(loads[0]["read rows of a 2x2 grid"])
    same = as_json(*words, "--mix", "Read=75,Write=25", "--capacity", "0.2")
    assert {each["label"]: each["load"] for each in same["offers"]}[
        "read rows of a 2x2 grid"
    ] == pytest.approx(2.5)


@pytest.mark.parametrize(
    ("mix", "told"),
    [
        ("x:Enq=1", "share=x: write a number"),
        ("0:Enq=1", "'0:Enq=1' has no share of the time"),
        ("Enq=0", "the mix holds nothing"),
    ],
)
def test_a_mix_without_a_share_is_refused(mix: str, told: str) -> None:
    done = quorate_here("quorums", "plan", "queue", "--mix", mix)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


def test_what_comes_near_to_an_offer_is_left_out_and_counted() -> None:
    words = ("plan", "queue", "-n", "5", *QUEUE, "--mix", "Enq=50,Deq=50", "--rows", "100")
    every, few = as_json(*words, "--within", "0"), as_json(*words, "--within", "30")
    assert (every["near"], few["found"] + few["near"]) == (0, every["found"])
    assert few["near"] > 0
    labels = [each["label"] for each in every["offers"]]
    assert [each["label"] for each in few["offers"]] == [
        each for each in labels if each in {offer["label"] for offer in few["offers"]}
    ]
    done = quorate_here("quorums", *words, "--within", "30")
    assert f"{few['near']} more come within 30 % of one of these in every figure" in done.stderr


def test_without_a_tolerance_nothing_is_left_out_not_even_what_differs_by_rounding() -> None:
    """Of 8 replicas 6 offers differ from others in the 13th digit."""
    words = ("plan", "file", "-n", "8", "--mix", "Read=60,Write=40", "--rows", "1")
    every, few = as_json(*words, "--within", "0"), as_json(*words, "--within", "1e-9")
    assert every["near"] == 0
    assert few["near"] > 0
    assert few["found"] + few["near"] == every["found"]


FOUR = ("file", "-n", "4", "--mix", "Read=90,Write=10", "--rows", "1000", "--within", "0")


def test_whom_to_ask_is_chosen_for_load_messages_or_time() -> None:
    words = ("plan", *FOUR, "--latency", "r1=9,r2=2,r3=2,r4=2")
    found = {
        least: {each["label"]: each for each in as_json(*words, "--least", least)["offers"]}
        for least in ("load", "messages", "wait")
    }
    for least, figure, other in (
        ("load", "load", "messages"),
        ("messages", "messages", "load"),
        ("wait", "wait_ms", "load"),
    ):
        both = found[least].keys() & found[other].keys()
        pairs = [(found[least][label][figure], found[other][label][figure]) for label in both]
        assert all(own <= theirs + 1e-6 for own, theirs in pairs)
        assert any(own < theirs - 1e-3 for own, theirs in pairs)


def test_a_target_is_a_limit_of_the_strategy() -> None:
    words = ("plan", *FOUR)
    free = as_json(*words, "--least", "messages")["offers"]
    limited = as_json(*words, "--least", "messages", "--target", "load <= 0.7")["offers"]
    assert all(each["load"] <= 0.7 + 1e-6 for each in limited)
    of_label = {each["label"]: each for each in free}
    assert any(
        each["label"] in of_label and each["messages"] > of_label[each["label"]]["messages"] + 1e-3
        for each in limited
    ), "none asks more than it must, so that it has less load"


def test_with_one_to_spare_one_more_is_asked_and_what_cannot_is_left_out() -> None:
    spared = as_json("plan", "file", "-n", "5", "--votes-max", "1", "--mix", "Read=1,Write=1", "--spare", "1")
    assert spared["offers"]
    for each in spared["offers"]:
        for row in each["strategy"]:
            assert len(row["ask"]) >= 2
    (of_all,) = [
        each for each in spared["offers"] if each["label"].startswith("equal votes; Write/Ok (0, 3)")
    ]
    assert {len(row["ask"]) for row in of_all["strategy"]} == {4}
    assert not any("(0, 5)" in each["label"] for each in spared["offers"])


def test_a_search_finds_systems_that_votes_do_not_give() -> None:
    """Of mostly reads, and a replica that hardly ever is up."""
    words = (
        "plan",
        "file",
        "-n",
        "5",
        "--votes-max",
        "1",
        "--mix",
        "Read=90,Write=10",
        "--within",
        "0",
        "--rows",
        "100",
    )
    few, many = as_json(*words), as_json(*words, "--search", "600")
    labels = {each["label"] for each in many["offers"]}
    assert any("choose(2" in label or "((" in label for label in labels), labels
    best = [min(each["load"] for each in found["offers"]) for found in (few, many)]
    assert best[1] <= best[0] + 1e-9
    done = quorate_here("quorums", *words, "--search", "600")
    assert "quorate: all 53 expressions were tried" in done.stderr


def test_a_search_ends_with_its_time() -> None:
    done = quorate_here(
        "quorums", "plan", "queue", "-n", "12", "--votes-max", "1", "--mix", "Enq=1,Deq=1", "--search", "0.2"
    )
    assert done.returncode == 0
    assert "expressions were tried in 0.2 s, not all that there are" in done.stderr


def test_a_plot_is_a_picture_of_load_and_capacity(tmp_path: Path) -> None:
    file = tmp_path / "plan.svg"
    done = quorate_here(
        "quorums", "plan", "file", "-n", "3", "--mix", "Read=90,Write=10", "--plot", str(file)
    )
    assert f"load and capacity over the share of Read are drawn in {file}" in done.stderr
    root = ElementTree.fromstring(file.read_text())
    space = "{http://www.w3.org/2000/svg}"
    assert root.tag == f"{space}svg"
    lines = root.findall(f"{space}polyline")
    offers = as_json("plan", "file", "-n", "3", "--mix", "Read=90,Write=10")["offers"]
    assert len(lines) == 3 * min(len(offers), LINES_MAX), "two panels and the legend"
    assert "share of Read" in {each.text for each in root.findall(f"{space}text")}


PINGED = """
class Pinged:
    def __init__(self) -> None:
        self.count = 0

    def add(self) -> None:
        self.count += 1

    def ping(self) -> str:
        return "here"
"""


def test_a_plot_leaves_out_where_nobody_is_asked(tmp_path: Path) -> None:
    """A ping needs no replica: of pings alone there is no load, and no limit."""
    (tmp_path / "pinged.py").write_text(PINGED)
    file = tmp_path / "plan.svg"
    printed("plan", f"{tmp_path}/pinged.py:Pinged", "--mix", "add=1,ping=1", "--plot", str(file))
    texts = [
        each.text
        for each in ElementTree.fromstring(file.read_text()).iter("{http://www.w3.org/2000/svg}text")
    ]
    ticks = [float(each) for each in texts if each and re.fullmatch("[0-9.e+-]+|inf|nan", each)]
    assert len(ticks) == 2 * 5
    assert all(map(isfinite, ticks))


def test_nothing_is_drawn_where_there_is_no_offer(tmp_path: Path) -> None:
    file = tmp_path / "plan.svg"
    text = printed("plan", "file", "-n", "3", "--mix", "Read=1,Write=1", "--spare", "3", "--plot", str(file))
    assert "give less --spare" in text.replace("\n", " ")
    assert not file.exists()
