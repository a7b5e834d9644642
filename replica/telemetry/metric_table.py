"""The metrics of a replica: names, kinds, labels and what they mean. Pure data, from which docs/reference/metrics.md is made.

Owns one row per metric. Names follow the conventions of Prometheus: base units, counters end in `_total`. No label has values
that callers choose (names of objects, tokens, addresses): the number of series is bounded by the cluster file and by the
tables of this project. Names of queues are told to those alone who ask for so many.
"""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

Kind = Literal["counter", "gauge", "histogram"]


class Metric(NamedTuple):
    """A row."""

    kind: Kind
    labels: tuple[str, ...]
    help: str


METRICS: Final[Mapping[str, Metric]] = {
    "quorate_replica_info": Metric(
        "gauge",
        ("cluster", "replica", "store", "incarnation", "release", "protocol"),
        "Always 1; the labels say which replica this is, which release runs there, and which versions of the replica protocol it speaks.",
    ),
    "quorate_configuration": Metric(
        "gauge",
        (),
        "Which configuration of the cluster the replica is in, counted from 0. Replicas that differ for long cannot reach each other.",
    ),
    "quorate_ready": Metric("gauge", (), "1 when the replica votes, else 0."),
    "quorate_not_ready": Metric(
        "gauge",
        ("reason",),
        "1 for the reason that keeps the replica from voting, else 0: stopping, store-lost, other-configuration, starting, "
        "storage-failed.",
    ),
    "quorate_operations_total": Metric(
        "counter",
        ("type", "operation", "outcome"),
        "Operations that the replica's own front end ended: those asked for over HTTP, commands of other front ends "
        "(operation Serve), the janitor's (Collect), read repairs (ReadRepair), and what is carried into a new configuration (Carry).",
    ),
    "quorate_operation_duration_seconds": Metric(
        "histogram",
        ("type", "operation"),
        "How long these operations took, whatever their outcome; a dequeue's waiting for items counts.",
    ),
    "quorate_round_duration_seconds": Metric(
        "histogram",
        ("request",),
        "How long the replica's own front end waited for a quorum, by kind of request; rounds without one do not count.",
    ),
    "quorate_front_end_events_total": Metric(
        "counter", ("event",), "What the replica's own front end met on the way; see the table of events."
    ),
    "quorate_commands_total": Metric(
        "counter", ("outcome",), "Commands that other front ends forwarded, and that were granted or denied."
    ),
    "quorate_replica_requests_total": Metric(
        "counter",
        ("request", "outcome"),
        "Requests of front ends that the replica handled: done, ballot-refused (a higher term was promised: two front "
        "ends met), or the reason of the refusal.",
    ),
    "quorate_fences_raised_total": Metric("counter", (), "Requests that raised the fence of an object."),
    "quorate_entries_stored_total": Metric("counter", (), "Log entries that appends added."),
    "quorate_entries_fenced_total": Metric("counter", (), "Log entries that a fence kept out."),
    "quorate_objects": Metric("gauge", (), "Objects in the store; each key of a dictionary is one."),
    "quorate_capacity_used_ratio": Metric(
        "gauge",
        ("bound",),
        "Share of what the replica may take in that is used, by the option of `quorate serve` that sets the bound. From 0.8 on "
        "it says so in its log; at 1 it refuses what is new.",
    ),
    "quorate_log_entries": Metric("gauge", (), "Entries of all logs, with history that is not deleted yet."),
    "quorate_log_entries_max": Metric("gauge", (), "Entries of the longest log."),
    "quorate_queue_entries_waiting": Metric(
        "gauge", (), "Entries above the horizons of all queues, as this replica knows them."
    ),
    "quorate_queue_entries_waiting_max": Metric(
        "gauge", (), "Entries above the horizon of the queue that has most."
    ),
    "quorate_queue_oldest_waiting_seconds": Metric(
        "gauge", (), "Age of the oldest entry that waits in any queue; 0 where none does."
    ),
    "quorate_horizon_age_seconds": Metric(
        "gauge",
        (),
        "Age of the oldest horizon of a queue on which something waits: since when nothing newer was taken; 0 where "
        "nothing waits.",
    ),
    "quorate_queue_leases": Metric(
        "gauge",
        ("state",),
        "Items of all queues that an acquire has met: `held` under leases, `waiting` to be delivered, and `dead` letters.",
    ),
    "quorate_queue_dead_letters_max": Metric(
        "gauge", (), "Dead letters of the queue that has most; no more than 256 find room."
    ),
    "quorate_survey_partial": Metric(
        "gauge",
        (),
        "1 when the figures of logs and queues are not of all: time ran out, or there are more than 1000 queues.",
    ),
    "quorate_tombstones_waiting": Metric(
        "gauge",
        (),
        "Deleted keys, and objects known only by failed operations with an idempotency key, that wait until every replica has confirmed that.",
    ),
    "quorate_tombstone_age_seconds": Metric("gauge", (), "Age of the oldest of them; 0 where none waits."),
    "quorate_tombstones_held_up": Metric(
        "gauge",
        ("replica",),
        "1 for each replica that did not confirm when it was last asked, or had no room for one of them, else 0.",
    ),
    "quorate_storage_bytes": Metric("gauge", ("file",), "Size of the database and of its write-ahead log."),
    "quorate_transaction_requests": Metric(
        "histogram", (), "Requests that shared a transaction (group commit), of transactions that wrote."
    ),
    "quorate_transaction_rows": Metric("histogram", (), "Log entries that one such transaction put."),
    "quorate_commit_duration_seconds": Metric(
        "histogram", (), "How long it took until a transaction was on disk."
    ),
    "quorate_connections": Metric("gauge", (), "Connections that are open."),
    "quorate_connections_made_total": Metric("counter", (), "Connections that were opened."),
    "quorate_http_requests_under_way": Metric("gauge", (), "HTTP requests under way, this one included."),
    "quorate_http_requests_total": Metric("counter", (), "HTTP requests that came in whole heads."),
    "quorate_refusals_total": Metric(
        "counter",
        ("reason",),
        "Answers that were problems, by the name of the problem; also of what was no request yet.",
    ),
    "quorate_peer_up": Metric(
        "gauge", ("replica",), "1 for each other replica that answered when it was asked last."
    ),
    "quorate_quorums_held": Metric(
        "gauge",
        ("objects", "type", "event_class"),
        "1 while the replicas that this one sees voting hold the quorums of the event class, by rule, else 0.",
    ),
    "quorate_catch_up_lag": Metric(
        "gauge",
        ("replica",),
        "Changes of the other replica's logs that this one has not looked at yet, or may not install yet; absent while "
        "that is not known.",
    ),
    "quorate_catch_up_age_seconds": Metric(
        "gauge",
        ("replica",),
        "How long ago this replica had looked at all that the other one held; absent before the first time.",
    ),
    "quorate_catch_up_entries_total": Metric(
        "counter", ("replica",), "Log entries that this replica had missed, and got from the other one."
    ),
    "quorate_catch_up_bytes_total": Metric("counter", ("replica",), "Payloads of these entries."),
    "quorate_outboxes_open": Metric(
        "gauge",
        (),
        "Outboxes of this replica in which something may wait.",
    ),
    "quorate_outbox_stalled_seconds": Metric(
        "gauge",
        (),
        "For how long something of one could not be relayed, of that where it is longest; 0 where none is open.",
    ),
    "quorate_fallback_in_force": Metric(
        "gauge",
        ("objects",),
        "1 while the fallback of the standing rule for these objects is in force, 0 while its first choice is.",
    ),
    "quorate_switches_total": Metric(
        "counter",
        ("outcome",),
        "Switches of standing rules that this replica began: done, given-up (they could not end, or were not wanted any more), or refused by "
        "others.",
    ),
    "quorate_switch_waits": Metric(
        "gauge",
        (),
        "1 while this replica does not switch a standing rule that is due, or may not switch any: `/v1/status` and its log say why.",
    ),
    "quorate_clock_offset_seconds": Metric(
        "gauge",
        ("replica",),
        "How far the other replica's clock is ahead of this one's; absent while it is down.",
    ),
    "quorate_stored_ahead_seconds": Metric(
        "gauge",
        (),
        "How far the highest timestamp in the store is ahead of this replica's clock; 0 where it is not.",
    ),
    "quorate_clock_offset_error_seconds": Metric(
        "gauge",
        ("replica",),
        "How far that figure may be wrong, either way: half of the time that the question took.",
    ),
}

OF_QUEUES: Final[Mapping[str, Metric]] = {
    "quorate_one_queue_log_entries": Metric(
        "gauge", ("queue",), "Entries of its log: what waits, and what was taken about in the last minute."
    ),
    "quorate_one_queue_entries_waiting": Metric(
        "gauge", ("queue",), "Entries above its horizon, as this replica knows it."
    ),
    "quorate_one_queue_oldest_waiting_seconds": Metric(
        "gauge", ("queue",), "Age of the oldest of them; 0 where none waits."
    ),
    "quorate_one_queue_leases": Metric(
        "gauge",
        ("queue", "state"),
        "Items that an acquire has met: `held`, `waiting` and `dead`, as in `quorate_queue_leases`.",
    ),
}
"""What is told of single queues to who asks for it."""

EVENTS: Final[Mapping[str, str]] = {
    "recoveries": "An entry that some replicas fenced: a decision settles its fate.",
    "recovered entries in force": "It turned out to be part of the log.",
    "void entries stamped anew": "It turned out not to be; it was sent again with a new timestamp.",
    "fates unknown": "Not even the decision could tell yet.",
    "begun again since clocks were wrong": "Replicas refused a timestamp that was given while clocks were wrong; another one was given.",
    "stamped anew": "All replicas fenced an entry; it was sent again with a new timestamp.",
    "keys agreed in two rounds": "Replicas held different entries under a key, or too few answered soon: another round agreed.",
    "keys contended": "Another front end had a higher ballot for the same idempotency key.",
    "terms lost": "A duel: another front end has taken a higher term on the same object.",
    "terms whose ground was forgotten": "A term ended because a replica came to know the object after it had forgotten others.",
    "decisions put off for want of room": "Full replicas refused it; who may go further beyond their bounds, as a reader, was decided first.",
    "calls without room": "As many calls of an own type waited to be run as replicas store; they were to be run before another one is stored.",
    "lost accepts found decided": "What was proposed before the term was lost had been decided all the same.",
    "decisions held off for a look": "A size met a decision at every look, took the term, and its front end decided nothing for a moment.",
    "moving keys read between looks": "Keys that kept changing were read by themselves, between two looks at all others of a dictionary.",
    "collected again": "A view was not good enough, and the replicas were asked once more.",
    "summaries written back": "A decision that another front end had left half-finished was finished.",
    "entries written back": "An entry that a reader saw, or whose client vanished, was to be stored at a final quorum.",
    "outboxes looked at again": "With exact_empty: a queue was empty, and one of its outboxes was not, or not as it was before.",
    "outboxes tried in vain": "An enqueue was not known to be in one replica's outbox, and was kept at another one.",
    "payloads fetched": "Values were asked for that the first answers did not hold.",
    "several taken in one decision": "One decision served several dequeues, or several items.",
    "commands forwarded": "A command was forwarded to the front end that decides on the object for all.",
    "commands served for others": "A command of another front end was decided here.",
    "commands refused elsewhere decided here": "The other front end would not; the command was decided here.",
    "commands lost elsewhere decided here": "Its answer was lost, and the command changes nothing: it was decided here.",
    "commands lost elsewhere unknown": "Its answer was lost: the outcome is unknown.",
    "configurations followed": "The front end went on to a later configuration of the cluster.",
    "begun again in a new configuration": "An operation that had stored nothing began again, since the configuration changed.",
    "decisions begun again in a new configuration": "A decision began again, since the configuration changed.",
    "others asked": "A replica that was asked first was silent, or refused: a round asked the others, too.",
    "went on alone": "An operation that shared a round of messages with others could not end with it.",
    "outcomes unavailable": "An operation ended without a quorum.",
    "outcomes unknown": "An operation ended without anybody knowing whether it took effect.",
    "outcomes refused": "The replicas would not do an operation.",
    "outcomes key-reused": "An idempotency key came with other arguments.",
    "outcomes too-many-keys": "As much was remembered of keys, or of items just taken, as may be.",
    "outcomes too-many-leases": "A queue had as many items delivered as it may.",
    "outcomes too-many-dead-letters": "A queue had as many dead letters as it may.",
    "outcomes log-full": "The log of an object had as many entries as it may.",
    "outcomes too-many-objects": "Replicas had as many objects as they may.",
    "outcomes disk-full": "The disks of replicas had no room for more.",
    "outcomes listing-too-large": "A dictionary was larger than a listing may be.",
}
"""What `quorate.client_sdk.protocol.core.counters.Counts.events` counts, by its name there."""

PROCESS: Final = (
    "process_cpu_seconds_total",
    "process_max_fds",
    "process_open_fds",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
    "process_virtual_memory_bytes",
)
"""What the Prometheus library tells of the process, on Linux."""
