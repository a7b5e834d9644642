"""From a scenario to a verdict.

Must not know how a world runs, nor what the promises are (`judging`).
"""

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..adts.collector import collector_off
from ..adts.plain_class import PlainClass
from ..adts.types.catalogue import adt_of
from ..api_specs.cluster import ClusterDocument
from ..api_specs.problems import LIMITS
from ..client_sdk.protocol.core.values import Acquire, Dequeue, Enqueue, Invoke, Operation, Write
from ..client_sdk.protocol.decisions import summary_builder
from .history import NEVER, Call
from .judging.checkers import check_drained, check_empty, check_invented, check_object, check_weak
from .judging.lease_checkers import check_kept, check_leases, projected
from .judging.own import Law, check_own
from .scenarios.faults import NO_FAULTS
from .scenarios.scenario import Scenario, keeps_order
from .scenarios.varied import OPERATIONS, OUTLASTING_S
from .violation import Violation
from .world.world import World


class Report(Struct):
    """What a run did; `counters` are those of the front ends, the replicas' watch and the outcomes, `injected` faults."""

    operations: int
    given_up: int
    counters: dict[str, int]
    injected: dict[str, int]


def run(what: Scenario, trace: Callable[[str], None] | None = None, law: Law | None = None) -> Report:
    """Run a scenario and check all that was promised; Violation or Stuck when it does not hold.

    Calls of a type of one's own are held against `law`, or else against the code that ran them.
    """
    with collector_off():  # When it finds what is held weakly no more would decide what front ends remember, and the run were another one.
        world = World(what, trace)
        world.run()
    check_quiet(world)
    given_up = judge(world, law)
    counters = dict(world.counters)
    for source in (world.watch.seen, world.history.outcomes):
        for name, times in source.items():
            counters[name] = counters.get(name, 0) + times
    return Report(sum(world.history.outcomes.values()), given_up, counters, dict(world.injected))


def check_quiet(world: World) -> None:
    """Where nothing goes wrong, every operation has its answer."""
    is_tight = world.scenario.leasing is not None and world.scenario.leasing.is_tight
    is_own = (
        world.scenario.drawn is not None
    )  # All callers may carry keys, on one object, whose code may fail.
    reasons = (*LIMITS, "refused") if is_own else LIMITS
    is_bounded = is_tight or is_own or world.scenario.objects_max > 0
    expected = {f"{reason} (definite)" for reason in reasons} if is_bounded else set()
    # More operations may carry keys than an object remembers: of each front end as many as are left for others.
    what = world.scenario
    each = what.processes * what.operations
    if what.keyed and (what.fronts + 1) * each > what.document.limits.recent_decisions_max:
        expected.add("too-many-keys (definite)")
    # More terms may be decided than are remembered: then nobody can tell of an older one.
    if summary_builder.TERMS_MAX < OPERATIONS:
        expected.add("unknown (indefinite)")
    excused = _expected_of_exact_empty(what.document) | _expected_of_changes(what)
    failed = {word for _, word in world.history.failed - excused} - expected
    if failed and what.faults == NO_FAULTS and not what.dying:
        raise Violation(f"without any fault there were outcomes {world.history.outcomes}")


def _expected_of_changes(what: Scenario) -> set[tuple[type[Operation], str]]:
    """A decision may have passed what was stored before the configuration changed, while its operation was under way."""
    return (
        {(each, "unknown (indefinite)") for each in (Enqueue, Write, Invoke)} if what.is_changing else set()
    )


def _expected_of_exact_empty(document: ClusterDocument) -> set[tuple[type[Operation], str]]:
    """Others' items may pass through outboxes all the time, so that no two looks agree."""
    is_any = any(each.has_exact_empty for each in document.choices)
    return {(each, "unavailable (definite)") for each in (Dequeue, Acquire)} if is_any else set()


def judge(world: World, law: Law | None = None) -> int:
    """Check the history of every object; the number of searches that were given up."""
    given_up = 0
    is_in_order = not any("stamped anew" in name for name in world.counters)
    for name, noted in world.history.calls.items():
        if not is_in_order:
            # A batch that a dequeue fenced midway: what could be void got a new timestamp, the rest kept its own.
            for call in noted:
                call.after = None
        calls = [call for call in noted if not call.is_weak]
        is_exact = world.scenario.is_exact
        if world.document.rule_of(name).has_outboxes:
            given_up += _judge_outboxes(world, name, calls)
            if world.document.limits.retry_window_s < OUTLASTING_S:
                continue
            calls, is_exact = _relayed_later(calls), False
        check_weak(name, [call for call in noted if call.is_weak], calls)
        if (drawn := world.scenario.drawn) is not None and adt_of(name) in world.document.own_types:
            given_up += check_own(name, law or _itself(drawn), calls, is_exact=world.scenario.is_exact)
            continue
        if (leasing := world.scenario.leasing) is not None and adt_of(name) == "queue":
            is_sound = has_good_clocks(world.scenario)
            given_up += check_leases(
                name,
                calls,
                world.document.limits,
                may_wear=leasing.deliveries_max > 0,
                has_good_clocks=is_sound,
            )
            given_up += check_object(name, projected(calls), is_exact=is_exact)
            continue
        given_up += check_object(name, calls, is_exact=is_exact)
        if adt_of(name) == "queue":
            check_drained(name, calls)
    return given_up


def _judge_outboxes(world: World, name: str, calls: Sequence[Call]) -> int:
    """Check what holds of a queue with outboxes alone; as `judge`."""
    if world.scenario.leasing is None:
        check_drained(name, calls)
    else:
        check_kept(name, calls, world.document.limits)
    check_invented(name, calls)
    if not world.document.rule_of(name).has_exact_empty:
        return 0
    check_empty(name, calls)
    if world.document.limits.retry_window_s < OUTLASTING_S:
        return 0  # Items may come twice.
    return check_object(name, projected(_of_semiqueue(calls)), is_exact=False)


def _relayed_later(calls: Sequence[Call]) -> list[Call]:
    """The calls on a queue with outboxes: an enqueue takes effect once it is relayed, which may be after it has ended."""
    return [replace(call, returned=NEVER) if call.operation == "Enq" else call for call in calls]


def _of_semiqueue(calls: Sequence[Call]) -> list[Call]:
    """Those that a semiqueue knows."""
    return [call for call in calls if call.operation in ("Enq", "Deq", "Acquire")]


def _itself(found: PlainClass) -> Law:
    return Law(lambda: found)


def has_good_clocks(what: Scenario) -> bool:
    """Whether the declared clock errors are true, though the order of enqueues may need none."""
    by_clock = tuple(replace(each, ordering="clock") for each in what.document.choices)
    return keeps_order(replace(what.document, choices=by_clock), what.faults)
