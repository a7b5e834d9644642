"""From what the replicas answered to what the live page shows. Pure: answers in, models of `live_models` out.

Owns what *missing* means. An entry counts as missing where others hold it, this replica does not, and a view still needs
it: above the highest horizon that any replica knows; of a register or key only the newest, which alone decides its value.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec.structs import asdict

from ...adts.keys import as_written
from ...adts.specification import operation_of
from ...adts.types.catalogue import adt_of, is_overwritten
from ...api_specs.classes_held import choice_before, rules_in_force
from ...api_specs.cluster import ChoiceRule, ClusterDocument
from ...api_specs.messages import Collected
from ...client_sdk.inspection.lease_status import LeaseStatus
from ...client_sdk.inspection.log_table import Column, column_of, when
from ...quorums.choices.choice import QuorumChoice
from ...quorums.choices.choices import constraints_of
from ...quorums.choices.system_choice import SystemChoice
from ...timestamps.timestamp import ZERO, Timestamp
from ..service.status import CatchUp
from . import models
from .cluster_scan import Seen, Told

EVENT_CHARS_MAX: Final = 200
"""Of an event in a trace: values may have a megabyte, and nobody reads it in a table."""
RULES_SHOWN_MAX: Final = 50


def overview_of(
    document: ClusterDocument,
    served_by: str,
    now_us: int,
    seen: Mapping[str, Seen],
    newest: int,
    told: Mapping[str, Told | None],
    absent: Mapping[str, Timestamp],
    prefix: str = "",
) -> models.Overview:
    """The cluster at a glance, from the answers to a scan for the `newest` entries of each object, what each replica says of
    itself, and since when keys are absent as far as the asked replica knows. Of the objects those whose names, as people write them,
    begin with `prefix`."""
    known = {id: dict(each.objects) for id, each in seen.items()}
    # Behind the last name that a cut-off answer gave, its replica may know objects that it did not name.
    ends = [max(known[id]) for id, each in seen.items() if each.more and known[id]]
    end = min(ends, default=None)
    names = sorted({name for objects in known.values() for name in objects if end is None or name <= end})
    names = [name for name in names if as_written(name).startswith(prefix)]
    objects = [
        _object(
            name,
            {id: held[name] for id, held in known.items() if name in held},
            seen,
            newest,
            absent.get(name),
        )
        for name in names
    ]
    return models.Overview(
        cluster=document.name,
        hash=document.hash,
        served_by=served_by,
        now_us=now_us,
        replicas=[_replica(document, id, each, objects, told.get(id)) for id, each in seen.items()],
        configuration=_configuration(document),
        objects=objects,
        next=None if end is None else as_written(end),
    )


def _configuration(document: ClusterDocument) -> models.ConfigurationSeen:
    return models.ConfigurationSeen(
        number=document.number,
        before=[] if document.former is None else list(document.former.own_votes),
        members=list(document.own_votes),
        removed=list(document.former_members),
        declared_dead=list(document.declared_dead),
        fallbacks=[
            models.FallbackSeen(
                objects=rule.objects, condition=rule.standing.condition, is_in_force=rule.has_fallen_back
            )
            for rule in document.standing_rules
            if rule.standing is not None
        ],
    )


def _replica(
    document: ClusterDocument,
    id: str,
    seen: Seen,
    objects: Iterable[models.ObjectSeen],
    told: Told | None,
) -> models.ReplicaSeen:
    is_ready = seen.state == "ready"
    missing = sum(each.replicas[id].missing for each in objects if id in each.replicas)
    return models.ReplicaSeen(
        id=id,
        url=document.urls[id],
        votes=document.votes[id],
        state=seen.state,
        trouble=seen.trouble,
        answered_ms=round(seen.took_s * 1000, 1) if is_ready else None,
        clock_offset_ms=round(seen.clock_offset_us / 1000, 1) if is_ready else None,
        incarnation=seen.incarnation or None,
        missing=missing if is_ready else None,
        catch_up=None if told is None else {name: _catch_up(each) for name, each in told.catch_up.items()},
        role=_role(document, id),
        configuration=None if told is None else told.epoch,
        release=None if told is None else told.release,
        switch_waits="" if told is None else told.switch_waits,
    )


def _role(document: ClusterDocument, id: str) -> models.Role:
    if document.former is not None and id not in document.own_votes:
        return "leaving"
    if document.former is not None and id not in document.former.own_votes:
        return "joining"
    return "voter" if document.votes[id] else "learner"


def _catch_up(told: CatchUp) -> models.CatchUpSeen:
    return models.CatchUpSeen(lag=told.lag, entries=told.entries)


def _object(
    name: str,
    held: Mapping[str, Collected],
    seen: Mapping[str, Seen],
    newest: int,
    absent_since: Timestamp | None,
) -> models.ObjectSeen:
    horizon = max(each.status.horizon for each in held.values())
    fence = max(each.status.fence for each in held.values())
    times = {id: {row.entry.t for row in each.rows} for id, each in held.items()}
    cut = [min(each) for id, each in times.items() if held[id].more or (newest and len(each) >= newest)]
    above = {t for each in times.values() for t in each if t > horizon}
    counting = {t for t in above if t >= max(cut, default=ZERO)}
    if is_overwritten(adt_of(name)):
        counting = {max(counting)} if counting else set()
    # A replica that answers and does not know the object lacks all of it.
    logs = {
        id: _log(held.get(id), times.get(id, set()), horizon, counting)
        for id, each in seen.items()
        if each.state == "ready"
    }
    # Somebody else may hold a newer value than the asked replica knows.
    is_absent = absent_since == max((horizon, *(t for each in times.values() for t in each)))
    # The decision of the highest ballot that anybody accepted: it may not stand yet, but an older one stands no more.
    latest = max(held.values(), key=lambda each: each.status.accepted).leases
    return models.ObjectSeen(
        object=as_written(name),
        horizon=horizon,
        fence=fence,
        entries=len(above),
        is_cut=bool(cut),
        replicas=logs,
        is_absent=is_absent,
        **asdict(latest),
    )


def _log(
    held: Collected | None, times: set[Timestamp], horizon: Timestamp, counting: set[Timestamp]
) -> models.LogSeen:
    return models.LogSeen(
        horizon=ZERO if held is None else held.status.horizon,
        fence=ZERO if held is None else held.status.fence,
        entries=len({t for t in times if t > horizon}),
        missing=len(counting - times),
    )


def trace_of(
    document: ClusterDocument, name: str, seen: Mapping[str, Seen], newest: int, now_us: int
) -> models.ObjectTrace:
    """The logs of an object side by side, from the answers to a scan for its `newest` entries and events, with the newest of
    what summaries keep. Items' states are those at `now_us`.

    Where a log was cut off, only what is kept is shown below the cut, and of whom it is not known is told: a blank always means
    that the replica does not hold the entry.
    """
    columns: dict[str, Column] = {}
    cuts: dict[str, tuple[Timestamp, Timestamp]] = {}
    for id, each in seen.items():
        answer = dict(each.objects).get(name)
        columns[id] = Column() if answer is None else column_of(name, answer, newest, now_us)
        if answer is not None:
            kept = sorted(columns[id].kept)
            kept_from = kept[-newest] if len(kept) > newest else ZERO
            cuts[id] = _complete_from(document, answer, newest), kept_from
    shown_from = max((log for log, _ in cuts.values()), default=ZERO)
    kept_from = max((kept for _, kept in cuts.values()), default=ZERO)
    rows = {t for column in columns.values() for t in column.events if t >= shown_from}
    rows |= {t for column in columns.values() for t in column.kept if t >= kept_from}
    return models.ObjectTrace(
        object=as_written(name),
        rows=[_row(t, columns, {id for id, cut in cuts.items() if t < cut[0]}, now_us) for t in sorted(rows)],
        replicas={id: _column(seen[id], column) for id, column in columns.items()},
        is_cut=max(shown_from, kept_from) > ZERO,
    )


def _complete_from(document: ClusterDocument, answer: Collected, newest: int) -> Timestamp:
    """From where on the answer certainly holds all that its replica does; ZERO when nothing was cut off."""
    found = ZERO
    limits = document.limits
    size = sum(len(row.entry.value.encode()) for row in answer.rows if isinstance(row.entry.value, str))
    # The next payload may not have fitted.
    if len(answer.rows) >= newest or size > limits.page_bytes_max - limits.value_bytes_max:
        found = min((row.entry.t for row in answer.rows), default=ZERO)
    if len(answer.events) >= newest:
        found = max(found, min((t for t, _ in answer.events), default=ZERO))
    return found


def _row(
    t: Timestamp, columns: Mapping[str, Column], cut_off: Collection[str], now_us: int
) -> models.TraceRow:
    held = {id: column.kept.get(t) or column.events.get(t) for id, column in columns.items()}
    lease_statuses = {
        id: column.lease_statuses[t] for id, column in columns.items() if t in column.lease_statuses
    }
    return models.TraceRow(
        t=t,
        at=when(t),
        events={id: _cut(event) for id, event in held.items() if event is not None},
        lease_statuses={id: _status(each, now_us) for id, each in lease_statuses.items()},
        unseen=[id for id, event in held.items() if event is None and id in cut_off],
    )


def _status(status: LeaseStatus, now_us: int) -> models.LeaseStatusSeen:
    return models.LeaseStatusSeen(
        state=status.state,
        words=status.words(now_us),
        until_us=status.until_us or None,
        deliveries=status.deliveries,
    )


def _column(seen: Seen, column: Column) -> models.TraceColumn:
    is_ready = seen.state == "ready"
    return models.TraceColumn(
        state=seen.state,
        trouble=seen.trouble,
        horizon=column.horizon if is_ready else None,
        fence=column.fence if is_ready else None,
        accepted=column.accepted if is_ready else None,
        adopted=list(column.adopted),
        value=None if column.value is None else _cut(column.value),
        **asdict(column.leases),
    )


def _cut(text: str) -> str:
    return text if len(text) <= EVENT_CHARS_MAX else text[: EVENT_CHARS_MAX - 1] + "…"


def choices_of(document: ClusterDocument, seen: Mapping[str, Seen]) -> models.Choices:
    """The quorum choices in force, with their constraints, and which event classes have their quorums now."""
    ready = [id for id, each in seen.items() if each.state == "ready"]
    shown = [
        _choice(rule, adt, document.choice_by(rule, adt), choice_before(document, rule, adt), ready)
        for rule, adt in rules_in_force(document)
    ]
    return models.Choices(
        votes=document.votes,
        ready=ready,
        choices=shown[:RULES_SHOWN_MAX],
        is_cut=len(shown) > RULES_SHOWN_MAX,
    )


def _choice(
    rule: ChoiceRule, adt: str, choice: QuorumChoice, before: QuorumChoice | None, ready: list[str]
) -> models.ChoiceSeen:
    constraints = constraints_of(choice.specification, ordering=rule.ordering, consistency=choice.consistency)
    return models.ChoiceSeen(
        objects=rule.objects,
        type=adt,
        ordering=rule.ordering,
        collect=rule.collect,
        classes=[_class(choice, before, name, ready) for name in choice.classes],
        constraints=[
            models.Constraint(operation=operation, event_class=name)
            for operation, needed in constraints.meets.items()
            for name in constraints.classes
            if name in needed
        ],
    )


def _class(
    choice: QuorumChoice, before: QuorumChoice | None, name: str, ready: list[str]
) -> models.ClassSeen:
    operation = operation_of(name)
    sizes = choice.sizes(name)
    systems = choice.assignment if isinstance(choice, SystemChoice) else None
    sides = [choice] if before is None else [choice, before]
    quorums = [quorum for side in sides for quorum in (side.initial_of(operation), side.final_of(name))]
    return models.ClassSeen(
        name=name,
        operation=operation,
        initial=sizes.initial,
        final=sizes.final,
        initial_system=None if systems is None else str(systems.initials[operation]),
        final_system=None if systems is None else str(systems.finals[name]),
        is_available=all(quorum.is_met_by(ready) for quorum in quorums),
    )
