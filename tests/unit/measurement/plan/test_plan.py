"""Plans: what they mean, and a sentence with place and remedy for what they cannot mean."""

from pathlib import Path

import pytest

from quorate.api_specs.cluster import ChoiceRule
from quorate.measurement.plan.plan import BadPlan
from quorate.measurement.plan.plan_check import PREFILL_MAX, parse_plan, prefill_of, warnings
from tests.unit.measurement.plans import plan_text

EXAMPLES = sorted((Path(__file__).parents[4] / "examples").glob("*.toml"))

FAILURES = '[[failures]]\nmttf = "1h"\nmttr = "10m"\n'
PARTITION = '[[partitions]]\nfront_ends = ["f1"]\nreplicas = ["r1"]\n'
OWN = '[types]\nseats = "shop:Seats"\n'
WORKLOAD = '[[workloads]]\ntype = "{type}"\nrates = {rates}\n[[workloads.choices]]\nname = "{name}"\n{more}\n'


def workload(type: str = "queue", rates: str = "{ Enq = 1 }", name: str = "one", more: str = "") -> str:
    """A workload of one choice."""
    return WORKLOAD.format(type=type, rates=rates, name=name, more=more)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_committed_examples_are_plans_without_a_warning(path: Path) -> None:
    assert warnings(parse_plan(path.read_text(), path.name)) == []


def test_there_are_examples() -> None:
    assert {path.stem for path in EXAMPLES} >= {"five-replicas-three-racks", "tiny"}


def test_plan_time_becomes_real_time_by_the_scale() -> None:
    plan = parse_plan(plan_text(duration="7d", scale=2520))
    assert plan.length_s == 240
    assert plan.replicas == ("r1", "r2", "r3")


def test_each_choice_has_an_object_of_its_own() -> None:
    plan = parse_plan(plan_text(workload=workload(name="x") + '[[workloads.choices]]\nname = "y"\n'))
    assert plan.choice_by_object == {"queue/x": "x", "queue/y": "y"}
    assert [rule.objects for rule in plan.rules] == ["queue/x", "queue/y"]


def test_a_choice_is_a_rule_of_a_cluster_file() -> None:
    plan = parse_plan(plan_text(workload=workload(more="outbox = true\nexact_empty = true")))
    assert plan.rules == (ChoiceRule("queue/one", outbox=True, exact_empty=True),)
    assert parse_plan(plan_text(workload=workload())).rules == (ChoiceRule("queue/one"),)


def test_a_queue_holds_at_first_what_all_its_dequeues_may_take() -> None:
    plan = parse_plan(plan_text(workload=workload(rates="{ Enq = 1, Deq = 2.5 }")))
    assert prefill_of(plan.workloads[0], plan.length_s) == 251
    assert prefill_of(plan.workloads[0], 1e9) == PREFILL_MAX
    (other,) = parse_plan(plan_text(workload=workload("register", "{ Read = 1 }"))).workloads
    assert prefill_of(other, 100) == 0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("seed = ", r"^my\.toml: Invalid value"),
        (plan_text("colour = 1"), r"cluster: there is no key 'colour'; known are replicas, racks, document"),
        (
            plan_text(FAILURES).replace("[time]", "sead = 1\n[time]"),
            r"there is no key 'sead'; did you mean 'seed'\?",
        ),
        (
            plan_text(FAILURES.replace("[[failures]]", "[failures]")),
            r"failures: write \[\[failures\]\], not \[failures\]",
        ),
        (plan_text().replace("[time]", "[[time]]"), r"time: write \[time\], not \[\[time\]\]"),
        (
            plan_text(FAILURES + "replicas = 'r1'"),
            r"failures 1, replicas: write a list, as \[...\], not a text",
        ),
        (
            plan_text(workload=workload(rates='{ Enq = "1" }')),
            r"workloads 1, rates: write a number, not a text in quotes",
        ),
        (
            plan_text("[[failures]]\nmttf = 5\nmttr = '1h'"),
            r'failures 1, mttf: a duration is a text with its unit, as "2h"',
        ),
        (plan_text(FAILURES, "[[failures]]\nmttf = '1h'"), r"failures 2: the key 'mttr' is missing"),
        (plan_text(FAILURES + 'kind = "burn"'), r"failures 1, kind: 'burn' is none of .*cut"),
        (
            plan_text(FAILURES + 'replicas = ["r4"]'),
            r"failures 1, replicas: there is no 'r4'; known are r1, r2, r3",
        ),
        (plan_text(FAILURES + 'replicas = ["r1", "r1"]'), r"failures 1, replicas: name each once"),
        (plan_text(FAILURES + "shape = 2"), r'failures 1, shape: only law = "weibull" has a shape'),
        (plan_text(FAILURES + 'law = "weibull"\nshape = 0'), r"failures 1: shape .* 0\.1 to 20"),
        (plan_text(FAILURES + 'law = "weibull"'), r'failures 1, law: give "weibull" a shape other than 1'),
        (
            plan_text('[[failures]]\nmttf = "0s"\nmttr = "1h"'),
            r"failures 1: mttf and mttr must be above zero",
        ),
        (
            plan_text('[[failures]]\nmttf = "1ms"\nmttr = "1ms"'),
            r"would be about \d+, at most 20000 are run: raise mttf",
        ),
        (
            plan_text('[[outages]]\nmttf = "1h"\nmttr = "1h"\nracks = ["c"]'),
            r"outages 1, racks: there is no 'c'",
        ),
        (
            plan_text('[[outages]]\nmttf = "1h"\nmttr = "1h"', cluster="[cluster]\nreplicas = 3\n"),
            r"outages 1: there are no racks",
        ),
        (
            plan_text('[[planned]]\nat = "2d"\nfor = "1h"\nreplicas = ["r1"]'),
            r"planned 1, at: 2d is not before .* 1d",
        ),
        (plan_text('[[planned]]\nat = "1h"\nfor = "0s"\nreplicas = ["r1"]'), r"planned 1, for: "),
        (plan_text('[[planned]]\nat = "1h"\nfor = "1h"\nreplicas = []'), r"planned 1, replicas: name those"),
        (plan_text(PARTITION), r"partitions 1: give either at and for .* or mttf and mttr"),
        (plan_text(PARTITION + 'at = "1h"\nfor = "1h"\nmttf = "1h"'), r"partitions 1: give either"),
        (
            plan_text(PARTITION.replace("f1", "f9") + 'at = "1h"\nfor = "1h"'),
            r"front_ends: there is no 'f9'; known are f1, f2",
        ),
        (
            plan_text('[[partitions]]\nreplicas = ["r1"]\nat = "1h"\nfor = "1h"'),
            r"partitions 1: name the replicas",
        ),
        (
            plan_text('[[partitions]]\nreplicas = ["r1"]\nother_replicas = ["r9"]\nat = "1h"\nfor = "1h"'),
            r"partitions 1, other_replicas: there is no 'r9'",
        ),
        (
            plan_text('[[partitions]]\nreplicas = ["r1"]\nother_replicas = ["r1"]\nat = "1h"\nfor = "1h"'),
            r"partitions 1: 'r1' stands on both sides",
        ),
        (
            plan_text(cluster='[cluster]\nreplicas = 3\nfront_ends = ["f1", "r2"]\n'),
            r"cluster, front_ends: 'r2' is a replica; give the front end another name",
        ),
        (
            plan_text(cluster='[cluster]\nracks = { a = ["r1", "r3"] }\n'),
            r"cluster, racks: each of r1, r2 must stand in one",
        ),
        (plan_text(cluster="[cluster]\n"), r"cluster: give racks, replicas"),
        (plan_text(cluster='[cluster]\nreplicas = 3\nfront_ends = ["prober"]\n'), r"'prober' is no name"),
        (
            plan_text(cluster='[cluster]\nreplicas = 3\nfront_ends = ["a", "a"]\n'),
            r"front_ends: name 1 to 16",
        ),
        (plan_text(scale=0), r"time, scale"),
        (plan_text(duration="10s", scale=20), r"time: 10s at scale 20 is 0\.5 s of real time"),
        (plan_text("[prober]\nstep = '1ms'"), r"prober, step: 1ms"),
        (plan_text(workload=""), r"workloads"),
        (
            plan_text(workload=workload("stack")),
            r"workloads 1, type: 'stack' is not kept by replicas; use queue, .*, named in \[types\], as stack = ",
        ),
        (
            plan_text(OWN, workload=workload("seat", "{ reserve = 1 }")),
            r"use queue, .*, seats, or your own class",
        ),
        (
            plan_text(OWN.replace(":", "."), workload=workload()),
            r"\[types\] seats: 'shop.Seats' names no class",
        ),
        (
            plan_text(OWN, cluster='[cluster]\ndocument = "cluster.toml"\n', workload=workload()),
            r"types: the document of a running cluster names its types; leave the table out",
        ),
        (
            plan_text(OWN, workload=workload("seats", "{ x = 1 }", more='classes = { "x/Ok" = [2, 2] }')),
            r"choices 1: .*no event class 'x/Ok': use Call/Ok, Blind/Ok",
        ),
        (
            plan_text(workload=workload(rates="{ Pop = 1 }")),
            r"'Pop' of a queue cannot be measured; use Enq, Deq",
        ),
        (
            plan_text(workload=workload(rates="{ Enq = 1, Peek = 1 }", more="outbox = true")),
            r"choices 1, outbox: Peek cannot be measured through outboxes",
        ),
        (
            plan_text(workload=workload(more="exact_empty = true")),
            r"choices 1: \(queue/one\): exact_empty = true is for queues with outbox = true",
        ),
        (plan_text(workload=workload(rates="{ Enq = 0 }")), r"rates, Enq: 0 a second"),
        (plan_text(workload=workload(rates="{ Enq = 1999, Deq = 2 }")), r"2001 operations a second together"),
        (plan_text(workload=workload() + workload()), r"two choices have the name 'one'"),
        (plan_text(workload=workload(name="a b")), r"choices 1, name: "),
        (
            plan_text(workload=workload(more='classes = { "Enq/Ok" = [0, 1], "Deq/Ok" = [2, 2] }')),
            r"choices 1: \(queue/one\): Deq/Ok does not meet Enq/Ok: initial quorum 2 \+ final quorum 1",
        ),
        (
            plan_text(workload=workload(more='writes = "r1"')),
            r"choices 1: \(queue/one\): writes without reads: give both",
        ),
        (plan_text(workload=workload(more='reads = "r1*r9"')), r"unknown replica 'r9'"),
        (plan_text(workload=workload(more='reads = "r1"\nfinals = { Enq = "r1" }')), r"not several of these"),
        (plan_text(workload=workload(more='object = "queue/x"')), r"object: the plan starts its own cluster"),
    ],
)
def test_mistakes_are_told_with_place_and_remedy(text: str, sentence: str) -> None:
    with pytest.raises(BadPlan, match=r"^my\.toml: ") as told:
        parse_plan(text, "my.toml")
    assert told.match(sentence)


DOCUMENT = '[cluster]\ndocument = "cluster.toml"\n'


def test_a_running_cluster_can_be_cut_and_parted_but_not_killed() -> None:
    mine = workload(more='object = "queue/measured"')
    cut = plan_text(FAILURES + 'kind = "cut"', cluster=DOCUMENT, workload=mine)
    assert parse_plan(cut).choice_by_object == {"queue/measured": "one"}
    assert any("still reach each other" in told for told in warnings(parse_plan(cut)))
    with pytest.raises(
        BadPlan, match=r'failures 1: kind = "kill" needs a cluster that the plan starts itself'
    ):
        parse_plan(plan_text(FAILURES, cluster=DOCUMENT, workload=mine))
    between = '[[partitions]]\nreplicas = ["r1"]\nother_replicas = ["r2"]\nat = "1h"\nfor = "1h"'
    with pytest.raises(
        BadPlan, match=r"partitions 1, other_replicas: .* only in a cluster that the plan starts"
    ):
        parse_plan(plan_text(between, cluster=DOCUMENT, workload=mine))
    with pytest.raises(BadPlan, match=r"choices 1, object: name the queue to measure on"):
        parse_plan(plan_text(cluster=DOCUMENT, workload=workload()))
    with pytest.raises(BadPlan, match="its document says by which quorums"):
        parse_plan(
            plan_text(
                cluster=DOCUMENT,
                workload=workload(more='object = "queue/x"\nclasses = { "Enq/Ok" = [0, 1] }'),
            )
        )
    with pytest.raises(BadPlan, match="not both"):
        parse_plan(plan_text(cluster=DOCUMENT + "replicas = 3\n", workload=mine))


def test_repairs_shorter_than_a_restart_are_warned_of() -> None:
    (told,) = warnings(parse_plan(plan_text(FAILURES)))
    assert told.startswith("failures 1: mttr is 694ms of real time, and a killed replica takes up to 3s")
    assert warnings(parse_plan(plan_text(FAILURES + 'kind = "cut"'))) == []
    assert warnings(parse_plan(plan_text(FAILURES, scale=10))) == []


def test_a_queue_that_may_run_empty_is_warned_of() -> None:
    few = workload(rates="{ Enq = 1, Deq = 1 }").replace(
        "[[workloads.choices]]", "prefill = 3\n[[workloads.choices]]"
    )
    (told,) = warnings(parse_plan(plan_text(workload=few)))
    assert "runs empty" in told
