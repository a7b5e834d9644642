"""docs/reference/metrics.md, made from `quorate.replica.telemetry.metric_table`: `python -m tests.unit.replica.telemetry.metrics_page > docs/reference/metrics.md`."""

from collections.abc import Mapping
from typing import Final

from quorate.replica.telemetry.metric_table import EVENTS, METRICS, OF_QUEUES, PROCESS, Metric

INTRODUCTION: Final = """# Metrics

Each replica exposes metrics for Prometheus at `/metrics`, in the text format 0.0.4. Where tokens are required, a scrape needs one of
scope `read`. Counting is always on, and [costs little](../explanation/performance.md#how-cost-grows). A scrape takes some
milliseconds. The figures of logs and queues are read by a connection of their own, at most once in five seconds, beside the writer.

No label holds a name that callers choose: figures of objects are totals and maxima. Only who asks for it is told of [single
queues](#single-queues). Counters begin at 0 when a replica starts.

[Monitor a cluster](../how-to/monitoring.md) says how to have Prometheus scrape them, and which to alert on.

<!-- run: background -->
```sh
quorate up --data my-cluster --ports 8001,8002,8003
```

<!-- run: sh -->
```sh
curl -s -X POST http://127.0.0.1:8001/v1/queues/jobs/items -H 'Content-Type: application/json' -d '{"item": "fold"}'
curl -s http://127.0.0.1:8001/metrics | grep quorate_operations_total
```

<!-- output: part -->
```text
# TYPE quorate_operations_total counter
quorate_operations_total{operation="Enq",outcome="Ok",type="queue"} 1.0
```

## The replica's metrics

| metric | kind | labels | meaning |
| --- | --- | --- | --- |
"""
PROCESS_NAMES: Final = ", ".join(f"`{name}`" for name in PROCESS)
OF_TYPES: Final = f"""
`type` is queue, register or dictionary; `operation` and `outcome` are those of event classes (`Deq` and `Empty`), or the
outcome is `unavailable`, `unknown`, `refused`, `key-reused`, or `cancelled` (the caller did not wait for the end). Front ends
of other processes, as of the SDK, count their own operations: see below. Of the process itself there are
{PROCESS_NAMES}.
"""
OF_QUEUES_INTRODUCTION: Final = """
## Single queues

`/metrics?queues=20` also tells of the 20 queues with the longest logs (100 at most), of the first 1000 by name: those where most waits, or where most was
taken in the last minute. So a scrape has no more series, however many queues there are. But each queue that comes among them makes series of its own in
Prometheus: do not ask where callers make new queues all the time. An outbox goes by the name `QUEUE@REPLICA`.

| metric | kind | labels | meaning |
| --- | --- | --- | --- |
"""
EVENTS_INTRODUCTION: Final = """
## Events of a front end

The values of `event` of `quorate_front_end_events_total`; in the SDK's counters with spaces in place of hyphens.

| event | meaning |
| --- | --- |
"""
SDK: Final = """
## In your own program

A client of the SDK counts the same of its own front end, without any further package: `client.counters()` gives a
`FrontEndCounts` with operations, rounds and events since it was connected.

<!-- run: python -->
```python
from quorate.client_sdk import connect

with connect("my-cluster/cluster.toml") as client:
    client.queue("jobs").enqueue("sweep")
    counted = client.counters()
    for kind, times in counted.operations.items():
        print(kind.type, kind.operation, kind.outcome, times.count, f"{times.sum / times.count:.4f} s each")
    duels = counted.events.get("terms lost", 0)
    print(counted.rounds["Append"].count, "rounds of appends;", duels, "duels lost")
```

<!-- output: part -->
```text
queue Enq Ok 1 ... s each
1 rounds of appends; 0 duels lost
```

A `Distribution` has `count`, `sum`, and how often the figure fell into each class (`bounds` and `counts`).
"""


def rows_of(metrics: Mapping[str, Metric]) -> list[str]:
    """A row of the table for each."""
    return [
        f"| `{name}` | {told.kind} | {', '.join(f'`{label}`' for label in told.labels)} | {told.help} |"
        for name, told in metrics.items()
    ]


def page() -> str:
    """The page."""
    events = [f"| `{event.replace(' ', '-')}` | {meaning} |" for event, meaning in EVENTS.items()]
    parts = [
        INTRODUCTION + "\n".join(rows_of(METRICS)),
        OF_TYPES + OF_QUEUES_INTRODUCTION + "\n".join(rows_of(OF_QUEUES)),
        EVENTS_INTRODUCTION + "\n".join(events),
        SDK,
    ]
    return "\n".join(parts).replace("|  |", "| |")


if __name__ == "__main__":
    print(page(), end="")
