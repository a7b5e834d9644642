"""docs/reference/metrics.md, made from `quorate.replica.telemetry.metric_table`: `python -m tests.unit.replica.telemetry.metrics_page > docs/reference/metrics.md`."""

from typing import Final

from quorate.replica.telemetry.metric_table import EVENTS, METRICS, PROCESS

INTRODUCTION: Final = """# Metrics

Each replica exposes metrics for Prometheus at `/metrics`, in the text format 0.0.4. Where tokens are required, a scrape needs one of
scope `read`. Counting is always on, and [costs little](../explanation/performance.md#how-cost-grows). A scrape takes some
milliseconds. The figures of logs and queues are read by a connection of their own, at most once in five seconds, beside the writer.

No label holds a name that callers choose: figures of objects are totals and maxima. `quorate trace` and the live page
show single objects. Counters begin at 0 when a replica starts.

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
EVENTS_INTRODUCTION: Final = """
`type` is queue, register or dictionary; `operation` and `outcome` are those of event classes (`Deq` and `Empty`), or the
outcome is `unavailable`, `unknown`, `refused`, `key-reused`, or `cancelled` (the caller did not wait for the end). Front ends
of other processes, as of the SDK, count their own operations: see below. Of the process itself there are
{process}.

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


def page() -> str:
    """The page."""
    rows = [
        f"| `{name}` | {told.kind} | {', '.join(f'`{label}`' for label in told.labels)} | {told.help} |"
        for name, told in METRICS.items()
    ]
    events = [f"| `{event.replace(' ', '-')}` | {meaning} |" for event, meaning in EVENTS.items()]
    process = ", ".join(f"`{name}`" for name in PROCESS)
    parts = [
        INTRODUCTION + "\n".join(rows),
        EVENTS_INTRODUCTION.format(process=process) + "\n".join(events),
        SDK,
    ]
    return "\n".join(parts).replace("|  |", "| |")


if __name__ == "__main__":
    print(page(), end="")
