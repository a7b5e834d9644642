"""The demo's short table: how many operations were answered, with all replicas up and with one down. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from ...adts.specification import operation_of
from ...api_specs.cluster import ClusterDocument
from ...measurement.rows import OperationRow
from ...measurement.up_times import Interval, were_all_up


def outcome_rows(
    rows: Sequence[OperationRow],
    replicas: Sequence[Interval[str]],
    document: ClusterDocument,
    objects: Mapping[str, str],
) -> list[dict[str, Any]]:
    """One row for each quorum choice and operation, in the order of the choices that `objects` names for each object.

    `replicas` are the true times of the replicas.
    """
    groups: dict[tuple[str, str], list[OperationRow]] = defaultdict(list)
    for row in rows:
        groups[row.choice, row.operation].append(row)
    order = list(dict.fromkeys(objects.values()))
    keys = sorted(groups, key=lambda key: (order.index(key[0]), key[1] != "Enq", key[1]))
    return [_row(*key, groups[key], replicas, document) for key in keys]


def _row(
    choice: str,
    operation: str,
    rows: Sequence[OperationRow],
    replicas: Sequence[Interval[str]],
    document: ClusterDocument,
) -> dict[str, Any]:
    whole = [were_all_up(replicas, each.start_s, each.start_s + each.latency_s) for each in rows]
    answered = [each.outcome == "ok" for each in rows]
    latencies = [each.latency_s for each in rows if each.outcome == "ok"]
    return {
        "choice": choice,
        "operation": operation,
        "needed_votes": needed_votes(document, rows[0].object, operation),
        "begun": len(rows),
        "answered_all_up": _share([was for was, up in zip(answered, whole, strict=True) if up]),
        "answered_some_down": _share([was for was, up in zip(answered, whole, strict=True) if not up]),
        "unknown": sum(each.outcome == "unknown" for each in rows),
        "median_ms": median(latencies) * 1000 if latencies else None,
    }


def needed_votes(document: ClusterDocument, example: str, operation: str) -> int:
    """The votes that an operation needs live: the larger of its two quorums, in the class that ends Ok."""
    classes = document.choice_of(example).classes
    normal = next(name for name in classes if operation_of(name) == operation)
    return max(classes[normal])


def _share(answered: list[bool]) -> float | None:
    return sum(answered) / len(answered) if answered else None
