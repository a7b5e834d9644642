"""What must fit together in a plan, and what a person should know before it runs. Pure.

Owns every sentence about a plan that has the right form and still cannot be run as it stands.
"""

import math
from collections.abc import Iterator
from itertools import chain
from typing import Final

from msgspec import UNSET

from ...adts.specification import operation_of
from ...adts.types.catalogue import BadName, check_name
from ...adts.types.eventual_queue import EventualQueue
from ...api_specs.cluster import BadCluster, ChoiceRule, ClusterDocument, ReplicaInfo, checked
from ...api_specs.limits import REPLICAS_MAX, Limits
from .durations import duration_text
from .own_calls import unknown_type
from .plan import OPERATIONS, BadPlan, Choice, Partition, Plan, Process, Workload, object_of, read_plan

LENGTH_S_MAX: Final = 7 * 86_400.0
"""The longest measurement, in real time."""
EVENTS_MAX: Final = 20_000
"""Failures and partitions that a plan may be expected to draw."""
FRONT_ENDS_MAX: Final = 16
RATE_MAX: Final = 2000.0
"""Operations a second of all workloads together that one process can be asked to begin."""
PROBE_STEP_S_MIN: Final = 0.02
RESTART_S: Final = 3.0
"""What a killed replica takes to answer again, at most, on a machine that has little else to do."""
PREFILL_MAX: Final = 100_000
NAME_CHARS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
PROBER: Final = "prober"
"""The name under which the prober goes its own ways to the replicas."""


def parse_plan(text: str, source: str = "plan.toml") -> Plan:
    """The checked plan of TOML `text`; BadPlan names `source`, the place and the remedy."""
    plan = read_plan(text, source)
    problem = next(_problems(plan), None)
    if problem is not None:
        raise BadPlan(f"{source}: {problem}")
    return plan


def warnings(plan: Plan) -> list[str]:
    """What the plan asks for and the measurement cannot quite do, each in a sentence."""
    found = []
    for place, process in _processes(plan):
        repair_s = process.mttr / plan.time.scale
        if getattr(process, "kind", "") == "kill" and repair_s < RESTART_S:
            found.append(
                f"{place}: mttr is {duration_text(repair_s)} of real time, and a killed replica takes up to "
                f"{duration_text(RESTART_S)} to answer again: repairs will be longer than planned; the true times are "
                'recorded. A smaller scale, or kind = "cut", meets the plan.'
            )
        if (up_s := process.mttf / plan.time.scale) < RESTART_S:
            found.append(
                f"{place}: mttf is {duration_text(up_s)} of real time, too short for front ends to find a replica again."
            )
    if plan.cluster.document and any(kind == "cut" for _, kind in _kinds(plan)):
        found.append(
            'kind = "cut": the replicas of a running cluster still reach each other, so that an operation that a front end '
            "forwards to one of them may succeed. A cluster that the plan starts itself is cut off wholly."
        )
    for number, workload in enumerate(plan.workloads, 1):
        if "Deq" in workload.rates and prefill_of(workload, plan.length_s) < _asked_for(
            workload, plan.length_s
        ):
            found.append(
                f"workloads {number}: the queues begin with fewer items than the run asks for; one whose Enq fails "
                "more often than its Deq runs empty, and then Deq/Empty is measured in the place of Deq/Ok."
            )
    return found


def prefill_of(workload: Workload, length_s: float) -> int:
    """How many items a queue of the workload holds when the measurement begins."""
    if workload.type != "queue":
        return 0
    if workload.prefill is not None:
        return workload.prefill
    return min(PREFILL_MAX, _asked_for(workload, length_s))


def _asked_for(workload: Workload, length_s: float) -> int:
    """The items that all dequeues of a run may take from one queue."""
    return math.ceil(workload.rates.get("Deq", 0.0) * length_s) + 1


def _problems(plan: Plan) -> Iterator[str]:
    return chain(_of_time(plan), _of_cluster(plan), _of_types(plan), _of_faults(plan), _of_workloads(plan))


def _of_time(plan: Plan) -> Iterator[str]:
    if not 0 < plan.time.scale < math.inf:
        yield f"time, scale: it is {plan.time.scale:g}; give the plan seconds of a real one, 1 or more"
        return
    if not 1 <= plan.length_s <= LENGTH_S_MAX:
        longest = duration_text(LENGTH_S_MAX)
        yield (
            f"time: {duration_text(plan.time.duration)} at scale {plan.time.scale:g} is {plan.length_s:.3g} s of real "
            f"time; it must be 1s to {longest}: change duration or scale"
        )
    step_s = plan.prober.step
    if step_s and not PROBE_STEP_S_MIN <= step_s <= plan.length_s:
        yield (
            f"prober, step: {duration_text(step_s)} of real time; use {duration_text(PROBE_STEP_S_MIN)} or more, at most "
            "the run's length, or 0s for no prober"
        )


def _of_cluster(plan: Plan) -> Iterator[str]:
    cluster = plan.cluster
    members = [replica for rack in cluster.racks.values() for replica in rack]
    if cluster.document:
        if cluster.replicas or cluster.racks:
            yield "cluster: give either a document (a cluster that runs) or replicas or racks (one to start), not both"
        for place, kind in _kinds(plan):
            if kind != "cut":
                yield (
                    f'{place}: kind = "{kind}" needs a cluster that the plan starts itself; of a running one, replicas '
                    'can only be cut off (kind = "cut") and front ends parted from them ([[partitions]])'
                )
    elif cluster.racks and (
        cluster.replicas not in (0, len(members)) or sorted(members) != sorted(plan.replicas)
    ):
        names = ", ".join(plan.replicas)
        yield f"cluster, racks: each of {names} must stand in one rack exactly, not {', '.join(members)}"
    elif not 1 <= len(plan.replicas) <= REPLICAS_MAX:
        yield f"cluster: give racks, replicas (1 to {REPLICAS_MAX}), or the document of a cluster that runs"
    yield from _of_front_ends(plan)


def _of_types(plan: Plan) -> Iterator[str]:
    if not plan.types:
        return
    if plan.cluster.document:
        yield "types: the document of a running cluster names its types; leave the table out"
    elif plan.replicas:
        try:
            checked(_document(plan))
        except BadCluster as error:
            yield str(error)


def _of_front_ends(plan: Plan) -> Iterator[str]:
    front_ends = plan.cluster.front_ends
    if not 1 <= len(front_ends) <= FRONT_ENDS_MAX or len(set(front_ends)) < len(front_ends):
        yield f"cluster, front_ends: name 1 to {FRONT_ENDS_MAX} of them, each once"
    if twice := sorted(set(front_ends) & set(plan.replicas)):
        yield f"cluster, front_ends: {twice[0]!r} is a replica; give the front end another name"
    for name in (*front_ends, *plan.cluster.racks):
        if not name or not NAME_CHARS.issuperset(name) or name == PROBER:
            yield f"cluster: {name!r} is no name: use letters, digits, - and _, and not {PROBER!r}"


def _kinds(plan: Plan) -> Iterator[tuple[str, str]]:
    for table in ("failures", "outages", "planned"):
        for number, each in enumerate(getattr(plan, table), 1):
            yield f"{table} {number}", each.kind


def _processes(plan: Plan) -> Iterator[tuple[str, Process]]:
    for table in ("failures", "outages"):
        for number, each in enumerate(getattr(plan, table), 1):
            yield f"{table} {number}", each
    for number, partition in enumerate(plan.partitions, 1):
        if partition.process is not None:
            yield f"partitions {number}", partition.process


def _of_faults(plan: Plan) -> Iterator[str]:
    known = frozenset(plan.replicas)
    for number, failures in enumerate(plan.failures, 1):
        yield from _unknown(plan, f"failures {number}, replicas", failures.replicas, known)
    for number, outages in enumerate(plan.outages, 1):
        if not plan.cluster.racks:
            yield f'outages {number}: there are no racks; give [cluster] racks, as racks = {{ a = ["r1", "r2"] }}'
        yield from _unknown(plan, f"outages {number}, racks", outages.racks, frozenset(plan.cluster.racks))
    for number, planned in enumerate(plan.planned, 1):
        place = f"planned {number}"
        if not planned.replicas:
            yield f"{place}, replicas: name those that are taken down"
        yield from _unknown(plan, f"{place}, replicas", planned.replicas, known)
        yield from _within(plan, place, planned.at, planned.lasts)
    for number, partition in enumerate(plan.partitions, 1):
        yield from _of_partition(plan, f"partitions {number}", partition, known)
    yield from _of_processes(plan)


def _of_partition(plan: Plan, place: str, partition: Partition, known: frozenset[str]) -> Iterator[str]:
    if not partition.replicas or not (partition.front_ends or partition.other_replicas):
        yield f"{place}: name the replicas, and the front_ends or other_replicas, that cannot reach each other"
    yield from _unknown(plan, f"{place}, replicas", partition.replicas, known)
    yield from _unknown(plan, f"{place}, other_replicas", partition.other_replicas, known)
    if twice := sorted(set(partition.replicas) & set(partition.other_replicas)):
        yield f"{place}: {twice[0]!r} stands on both sides; name it in replicas or in other_replicas"
    if partition.other_replicas and plan.cluster.document:
        yield (
            f"{place}, other_replicas: replicas can be parted from each other only in a cluster that the plan starts itself"
        )
    front_ends = frozenset(plan.cluster.front_ends)
    if strangers := sorted(set(partition.front_ends) - front_ends):
        yield f"{place}, front_ends: there is no {strangers[0]!r}; known are {', '.join(plan.cluster.front_ends)}"
    planned, drawn = (partition.at, partition.lasts), (partition.mttf, partition.mttr)
    if (None in planned) == (None in drawn) or any(
        each is not None for each in (drawn if None not in planned else planned)
    ):
        yield f"{place}: give either at and for (a planned one) or mttf and mttr (a process)"
    elif partition.at is not None and partition.lasts is not None:
        yield from _within(plan, place, partition.at, partition.lasts)


def _of_processes(plan: Plan) -> Iterator[str]:
    expected = 0.0
    for place, process in _processes(plan):
        if min(process.mttf, process.mttr) <= 0:
            yield f"{place}: mttf and mttr must be above zero"
            return
        if not (0.1 <= process.shape <= 20 and 0.1 <= process.repair_shape <= 20):
            yield f"{place}: shape and repair_shape must be from 0.1 to 20"
        for name, law, shape in (
            ("", process.law, process.shape),
            ("repair_", process.repair_law, process.repair_shape),
        ):
            if law == "exponential" and shape != 1.0:
                yield f'{place}, {name}shape: only {name}law = "weibull" has a shape'
            if law == "weibull" and shape == 1.0:
                yield (
                    f'{place}, {name}law: give "weibull" a {name}shape other than 1, or leave {name}law out: with 1 it is the '
                    "exponential law"
                )
        expected += plan.time.duration / (process.mttf + process.mttr) * max(1, len(plan.replicas))
    if expected > EVENTS_MAX:
        yield (
            f"the failures of this plan would be about {expected:.0f}, at most {EVENTS_MAX} are run: raise mttf or "
            "shorten the duration"
        )


def _unknown(plan: Plan, place: str, names: tuple[str, ...], known: frozenset[str]) -> Iterator[str]:
    # Of a running cluster the document is not known here; `conductor` looks at the names when it is.
    if plan.cluster.document:
        return
    if strangers := sorted(set(names) - known):
        yield f"{place}: there is no {strangers[0]!r}; known are {', '.join(sorted(known)) or 'none'}"
    if len(set(names)) < len(names):
        yield f"{place}: name each once"


def _within(plan: Plan, place: str, at_s: float, lasts_s: float) -> Iterator[str]:
    if at_s >= plan.time.duration:
        yield f"{place}, at: {duration_text(at_s)} is not before the plan's end at {duration_text(plan.time.duration)}"
    if lasts_s <= 0:
        yield f"{place}, for: it must be above zero"


def _of_workloads(plan: Plan) -> Iterator[str]:
    if not plan.workloads:
        yield "give at least one [[workloads]]"
    for number, workload in enumerate(plan.workloads, 1):
        yield from _of_workload(plan, f"workloads {number}", workload)
    objects = [object_of(workload, choice) for workload in plan.workloads for choice in workload.choices]
    names = [choice.name for workload in plan.workloads for choice in workload.choices]
    for what, each in (("choices have the name", names), ("choices are measured on the object", objects)):
        if twice := next((one for one in each if each.count(one) > 1), None):
            yield f"workloads: two {what} {twice!r}: give each its own"
    rate = sum(sum(each.rates.values()) * len(each.choices) for each in plan.workloads)
    if rate > RATE_MAX:
        yield f"workloads: they ask for {rate:g} operations a second together; one process begins at most {RATE_MAX:g}"


def _of_workload(plan: Plan, place: str, workload: Workload) -> Iterator[str]:
    is_own = workload.type not in OPERATIONS
    if is_own and not plan.cluster.document and workload.type not in plan.types:
        yield f"{place}, type: {unknown_type(workload.type, plan.types)}"
        return
    if not workload.rates:
        yield f"{place}, rates: name at least one operation and how many a second, as {{ Enq = 5 }}"
    for operation, rate in workload.rates.items():
        if not is_own and operation not in OPERATIONS[workload.type]:
            known = ", ".join(OPERATIONS[workload.type])
            yield f"{place}, rates: {operation!r} of a {workload.type} cannot be measured; use {known}"
        elif not 0.01 <= rate <= RATE_MAX:
            yield f"{place}, rates, {operation}: {rate:g} a second; use 0.01 to {RATE_MAX:g}, or leave it out"
    if not 0.01 <= workload.deadline <= Limits().deadline_s_max:
        longest = duration_text(Limits().deadline_s_max)
        yield f"{place}, deadline: {duration_text(workload.deadline)} of real time; use 10ms to {longest}"
    if workload.prefill is not None and (
        workload.type != "queue" or not 0 <= workload.prefill <= PREFILL_MAX
    ):
        yield f"{place}, prefill: only queues have one, of 0 to {PREFILL_MAX} items"
    if not workload.choices:
        yield f"{place}: name at least one [[workloads.choices]]"
    for number, choice in enumerate(workload.choices, 1):
        yield from _of_choice(plan, f"{place}, choices {number}", workload, choice)


_OF_OUTBOXES: Final = frozenset(map(operation_of, EventualQueue.depends))


def _of_choice(plan: Plan, place: str, workload: Workload, choice: Choice) -> Iterator[str]:
    try:
        check_name(choice.name)
    except BadName as error:
        yield f"{place}, name: {error}"
    yield from _of_object(plan, place, workload, choice)
    if choice.outbox and (unjudged := sorted(workload.rates.keys() - _OF_OUTBOXES)):
        yield f"{place}, outbox: {unjudged[0]} cannot be measured through outboxes: leave it out of rates, or outbox"
    if plan.cluster.document:
        return
    try:
        checked(_document(plan, choice.rule_for(object_of(workload, choice))))
    except BadCluster as error:
        yield f"{place}: {str(error).removeprefix('[[choices]] 1 ')}"


def _document(plan: Plan, *rules: ChoiceRule) -> ClusterDocument:
    """A cluster of the plan's replicas with a rule: what a document makes of a choice is the plan's sense of it too."""
    urls = {id: f"http://127.0.0.1:{port}" for port, id in enumerate(plan.replicas, 1)}
    replicas = tuple(ReplicaInfo(id, url) for id, url in urls.items())
    return ClusterDocument("plan", replicas, rules, types=plan.types or UNSET)


def _of_object(plan: Plan, place: str, workload: Workload, choice: Choice) -> Iterator[str]:
    if not plan.cluster.document:
        if choice.object:
            yield f"{place}, object: the plan starts its own cluster, and names the objects itself; leave it out"
        return
    if choice.rule_for("") != ChoiceRule(""):
        yield f"{place}: of a running cluster, name the object; its document says by which quorums it is kept"
    if not choice.object.startswith(f"{workload.type}/"):
        yield f"{place}, object: name the {workload.type} to measure on, as {workload.type}/measured"
