"""The demo's short table: how many operations were answered, with all replicas up and with one down. Pure."""

from collections import defaultdict
from collections.abc import Mapping
from statistics import median
from typing import Any

from quorate.adts.specification import operation_of
from quorate.api_specs.cluster import ClusterDocument
from quorate.cli.demo_record import UpTimes


def outcome_rows(
    records: list[dict[str, Any]], up_times: UpTimes, document: ClusterDocument, choices: Mapping[str, str]
) -> list[dict[str, Any]]:
    """One row for each quorum choice and operation, in the order of `choices` (name: an object that is run with it)."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        groups[record["choice"], record["operation"]].append(record)
    order = list(choices)
    keys = sorted(groups, key=lambda key: (order.index(key[0]), key[1] != "Enq", key[1]))
    return [_row(*key, groups[key], up_times, document, choices) for key in keys]


def _row(
    choice: str,
    operation: str,
    records: list[dict[str, Any]],
    up_times: UpTimes,
    document: ClusterDocument,
    choices: Mapping[str, str],
) -> dict[str, Any]:
    whole = [up_times.were_all_up(each["start_s"], each["start_s"] + each["latency_s"]) for each in records]
    answered = [each["outcome"] == "ok" for each in records]
    latencies = [each["latency_s"] for each in records if each["outcome"] == "ok"]
    return {
        "choice": choice,
        "operation": operation,
        "needed_votes": needed_votes(document, choices[choice], operation),
        "begun": len(records),
        "answered_all_up": _share([was for was, up in zip(answered, whole, strict=True) if up]),
        "answered_some_down": _share([was for was, up in zip(answered, whole, strict=True) if not up]),
        "unknown": sum(each["outcome"] == "unknown" for each in records),
        "median_ms": median(latencies) * 1000 if latencies else None,
    }


def needed_votes(document: ClusterDocument, example: str, operation: str) -> int:
    """The votes that an operation needs live: the larger of its two quorums, in the class that ends Ok."""
    classes = document.choice_of(example).classes
    normal = next(name for name in classes if operation_of(name) == operation)
    return max(classes[normal])


def _share(answered: list[bool]) -> float | None:
    return sum(answered) / len(answered) if answered else None
