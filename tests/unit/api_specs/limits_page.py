"""docs/reference/limits.md, made from `quorate.api_specs.limits`: `python -m tests.unit.api_specs.limits_page > docs/reference/limits.md`."""

import ast
import inspect
from itertools import pairwise

from quorate.api_specs import limits
from quorate.api_specs.limits import DEFAULTS, Limits

FIXED = {
    "NAME_CHARS_MAX": (
        limits.NAME_CHARS_MAX,
        "Characters of an object's name and of a dictionary's key, in which what no name has counts more.",
    ),
    "REPLICAS_MAX": (limits.REPLICAS_MAX, "Replicas of a cluster."),
    "VOTES_MAX": (limits.VOTES_MAX, "Votes of a replica."),
    "ADOPTED_MAX": (
        limits.ADOPTED_MAX,
        "Entries that a summary adopts; a recovery that finds no room tries again.",
    ),
    "KEYED_ENTRIES_MAX": (
        limits.KEYED_ENTRIES_MAX,
        "Entries that the keyed dequeues of an object name together while they are remembered, one caller's as many as are left for others; more keys are refused.",
    ),
    "RESERVATIONS_MAX": (
        limits.RESERVATIONS_MAX,
        "Idempotency keys of enqueues that a replica remembers, of all objects, in 0.14 kB of memory each; then new ones are refused.",
    ),
    "LEASES_MAX": (
        limits.LEASES_MAX,
        "Items of a queue that are delivered, or wait to be after an acquire met them; then acquire is refused.",
    ),
    "DEAD_MAX": (limits.DEAD_MAX, "Dead letters of a queue; then reject is refused."),
    "SETTLED_MAX": (
        limits.SETTLED_MAX,
        "Leases that ended lately, whose repeated acknowledgement gets its first answer.",
    ),
    "SETTLE_TOKENS_MAX": (
        limits.SETTLE_TOKENS_MAX,
        "Leases that are acknowledged, released, rejected or renewed at once.",
    ),
    "DELIVERIES_MAX": (
        limits.DELIVERIES_MAX,
        "So often is an item delivered at most, and so high a maximum may an acquire name.",
    ),
    "LEASE_S_MAX": (limits.LEASE_S_MAX, "Seconds that a lease lasts, from when it is given or renewed."),
    "DELAY_S_MAX": (limits.DELAY_S_MAX, "Seconds until an item is due, or expires."),
    "STATE_BYTES_MAX": (
        limits.STATE_BYTES_MAX,
        "Bytes of the state of an object of a type of one's own, as JSON.",
    ),
    "WAITING_BYTES_MAX": (
        limits.WAITING_BYTES_MAX,
        "Bytes of calls of one such object that a replica stores and does not know to have run, 100 for each included, and one for "
        + f"every {limits.WORK_OF_A_WAITING_BYTE} bytes that each runs on, the state and what calls before it bring (an array or object counts for 16 more); less where "
        + "those of all replicas would not fit into `value_bytes_max` beside such a state.",
    ),
    "AMBIGUOUS_BYTES_MAX": (
        limits.AMBIGUOUS_BYTES_MAX,
        "Bytes of the names of what was taken and may not be stored by a quorum, 100 for each included, in an object's decided state.",
    ),
    "AMBIGUOUS_MAX": (limits.AMBIGUOUS_MAX, "And how many of them a replica takes in one state."),
    "SUMMARY_BYTES_MAX": (
        limits.SUMMARY_BYTES_MAX,
        "Bytes of an object's decided state besides payloads: a message of the replica protocol may have so many more than a body.",
    ),
    "SYSTEM_CHARS_MAX": (limits.SYSTEM_CHARS_MAX, "Characters of a quorum system, as text."),
    "FORWARDED_COMMANDS_MAX": (
        limits.FORWARDED_COMMANDS_MAX,
        "Commands that a front end hands to another one at once.",
    ),
    "REPLY_BODIES_MAX": (
        limits.REPLY_BODIES_MAX,
        "A reply is at most so many times as long as a request body may be; it holds pages of whole values.",
    ),
    "FORWARD_S_MAX": (limits.FORWARD_S_MAX, "Seconds that the other one may take over them."),
    "TOKENS_MAX": (limits.TOKENS_MAX, "Tokens that a replica accepts at the same time."),
    "REQUESTS_PER_S_MAX": (
        limits.REQUESTS_PER_S_MAX,
        (
            "Requests a second of one token, or of all where none is asked for, each request of a batch counted, and once for each key that it asks for; "
            "twice as many at once. Further ones get 429."
        ),
    ),
    "BATCH_ENTRIES_MAX": (
        limits.BATCH_ENTRIES_MAX,
        "Entries that one batch brings or marks complete, and keys that it asks for, unless one request has more; the rest of it is to be sent again. One `commit` marks no more.",
    ),
    "BATCH_READS_S_MAX": (
        limits.BATCH_READS_S_MAX,
        (
            "Seconds that the reads of one batch take; the rest of it is to be sent again, as where its replies pass "
            "`page_bytes_max`."
        ),
    ),
    "UNPROVEN_PER_S_MAX": (
        limits.UNPROVEN_PER_S_MAX,
        (
            "Requests a second without a valid token that are answered 401; further ones get 429, a second later (a batch of the replica "
            "protocol that came in one piece at once, and its connection ends)."
        ),
    ),
    "HEALTH_PER_S_MAX": (
        limits.HEALTH_PER_S_MAX,
        (
            "Health checks a second of one address (of IPv6: one /64 network), where tokens are asked for; further ones get 429, a second "
            "later. Twice as many may come at once."
        ),
    ),
    "DOCUMENTS_PER_S_MAX": (
        limits.DOCUMENTS_PER_S_MAX,
        "The same for what else needs no token: the OpenAPI documents, pages and their files, and types of problems.",
    ),
    "CONCURRENT_MAX": (limits.CONCURRENT_MAX, "Requests under way at one replica; further ones get 503."),
    "BODIES_BYTES_MAX": (
        limits.BODIES_BYTES_MAX,
        "Bytes of request bodies that a replica holds together, half of them one caller's at most; further ones get 503.",
    ),
    "BODY_VALUES_MAX": (
        limits.BODY_VALUES_MAX,
        (
            "Values in one body together, in JSON with names of members, which count as three each; more are refused with 413: "
            "send them in several requests."
        ),
    ),
    "OPEN_BODY_BYTES_MAX": (
        limits.OPEN_BODY_BYTES_MAX,
        "Bytes of the body of a request that needs no token; a larger one is refused with 413 before it is read.",
    ),
    "CONNECTIONS_MAX": (
        limits.CONNECTIONS_MAX,
        (
            "Connections open to one replica (fewer where the system allows fewer files). For a further one, the oldest connection on "
            "which no request has begun gives way, of the address that has most of these; where there is none, it gets 503."
        ),
    ),
    "ADDRESS_SHARE_MAX": (
        limits.ADDRESS_SHARE_MAX,
        "The share of these that one address may have (of IPv6: one /64). For a further one, one of the same address gives way. `quorate serve --address-share` sets another.",
    ),
    "AHEAD_MAX": (
        limits.AHEAD_MAX,
        "Requests that wait on one connection for the one ahead of them; when they are more, what comes is kept until they are fewer.",
    ),
    "AHEAD_BYTES_MAX": (
        limits.AHEAD_BYTES_MAX,
        "Bytes that may come while requests wait; when they are more, nothing is read until all of them are answered, and one under an idempotency key is refused (503): nobody would hear that its client has gone.",
    ),
    "URL_BYTES_MAX": (limits.URL_BYTES_MAX, "Bytes of a request's path and query (414)."),
    "HEAD_BYTES_MAX": (
        limits.HEAD_BYTES_MAX,
        "Bytes of a request's headers (431), and of what stands around its body: chunks' lengths and extensions, trailers (the connection is cut off), besides an eighth of the body.",
    ),
    "HEADERS_MAX": (limits.HEADERS_MAX, "Headers of a request (431)."),
    "HEAD_S_MAX": (
        limits.HEAD_S_MAX,
        "Seconds from the first byte of a request, or from a connection's beginning, to the end of its headers (408).",
    ),
    "BODY_S_MAX": (limits.BODY_S_MAX, "Seconds that a request's body may take (408)."),
    "IDLE_S_MAX": (limits.IDLE_S_MAX, "Seconds that a connection stays open between two requests."),
    "STALL_S_MAX": (
        limits.STALL_S_MAX,
        "Seconds in which a client takes 64 KiB more of an answer, or is cut off.",
    ),
    "UNSENT_BYTES_MAX": (
        limits.UNSENT_BYTES_MAX,
        (
            "Bytes of answers that wait on all connections for clients to read them, where more than 64 KiB wait on one. Beyond, the "
            "connection is cut off that has taken nothing for longest; a single larger answer still goes."
        ),
    ),
    "DRAIN_S_MAX": (
        limits.DRAIN_S_MAX,
        "Seconds that requests under way get to end when a replica is told to stop; the rest is told that its outcome is unknown.",
    ),
    "STOP_S_MAX": (limits.STOP_S_MAX, "Seconds within which a replica that was told to stop has ended."),
    "BACKUP_S_MAX": (
        limits.BACKUP_S_MAX,
        "Seconds that a running replica may take to copy its database for a backup; one at a time. Then 503.",
    ),
    "COUNTS_MAX": (
        limits.COUNTS_MAX,
        "Sizes of queues that a replica counts for its REST callers at the same time, half of them for one caller; further ones wait, and callers take turns.",
    ),
    "PLACES_MAX": (
        limits.PLACES_MAX,
        "Places for what REST callers have under way at a replica, half of them for one caller: one for each operation (four for one that reads a value), for each 64 items, for each 64 KiB of values and for each 1,024 arrays and objects in them, 16 for a queue's leases or dead letters. As many for commands that wait for decisions: one for each, for each 64 items or tokens, and for each 4 KiB of arguments or state, where each array or object counts for 16 bytes more; the first for an object one for each 64 KiB, counted alike, that its decisions carry (eight before the first look). One operation takes a quarter of all at most. Further ones wait, and callers take turns.",
    ),
    "LISTINGS_MAX": (
        limits.LISTINGS_MAX,
        "Dictionaries that a replica lists for its REST callers, whole or in pages, at the same time, each for another caller, until they are sent; further ones wait.",
    ),
    "BACKUPS_SENT_MAX": (
        limits.BACKUPS_SENT_MAX,
        "Copies for backups that a replica sends at the same time; a further one gets 503 with Retry-After.",
    ),
    "BACKUP_SENT_S_MAX": (
        limits.BACKUP_SENT_S_MAX,
        "Seconds that a backup may be under way to who asked for it; then it is cut off.",
    ),
    "PROBE_DAYS_MAX": (
        limits.PROBE_DAYS_MAX,
        "Days that a replica keeps its probe log; `quorate serve --probe-days` sets another number.",
    ),
    "PROBE_FILE_BYTES_MAX": (
        limits.PROBE_FILE_BYTES_MAX,
        "Bytes of a file of a probe log, after which another one begins; so it does with each day.",
    ),
    "PROBE_LOG_BYTES_MAX": (
        limits.PROBE_LOG_BYTES_MAX,
        "Bytes of all files of a replica's probe log; the oldest go.",
    ),
    "PROBE_PAGE_BYTES_MAX": (
        limits.PROBE_PAGE_BYTES_MAX,
        "Bytes of a probe log that are read for one answer; the rest is on further pages.",
    ),
}
INTRODUCTION = """# Limits

Everything that grows has a bound. This page is made from `api_specs/limits.py`, and a test compares the two.

## Set in the cluster file

Under `[limits]`. What is left out has the default. Sizes are in bytes, times in seconds.

| name | default | what it bounds |
| --- | ---: | --- |
"""
RELATIONS = """
A document whose limits do not fit together is refused, with a sentence that names the pair:

- every limit is above zero, and finite;
- `value_bytes_max` is at most half of `body_bytes_max`, or a value of that size could not be sent;
- `page_bytes_max` and `value_bytes_max` together are at most half of `body_bytes_max`, or a summary could not be sent
  that adopts as much as it may;
- `batch_items_max` is at most `KEYED_ENTRIES_MAX`, or a batch under a key could never be remembered;
- `deadline_s_max` is below `retry_window_s`, or a retry might outlive the ids it relies on;
- `wait_s_max` is at most `deadline_s_max`;
- `consumed_lag_s` is at most `retry_window_s`.

Payloads of a queue's leases weigh together at most half of `page_bytes_max`, and at most half of what a body has room for
besides twice `page_bytes_max` and `value_bytes_max`: 1048576 bytes by default. Its dead letters weigh half as much. A
single larger item still goes.

## Fixed

| name | value | what it bounds |
| --- | ---: | --- |
"""


def meanings() -> dict[str, str]:
    """The docstring under each field of Limits."""
    (body,) = (
        node.body for node in ast.parse(inspect.getsource(Limits)).body if isinstance(node, ast.ClassDef)
    )
    found: dict[str, str] = {}
    for field, docstring in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            assert isinstance(docstring, ast.Expr)
            assert isinstance(docstring.value, ast.Constant)
            found[field.target.id] = str(docstring.value.value)
    return found


def rendered() -> str:
    """The whole page."""
    meaning = meanings()
    rows = [
        f"| `{name}` | {getattr(DEFAULTS, name)} | {meaning[name]} |\n" for name in Limits.__struct_fields__
    ]
    constants = {name for name in vars(limits) if name.endswith("_MAX")} - {"TEXT_CHARS_MAX"}
    assert constants == FIXED.keys(), "a constant of the module is missing here"
    fixed = [f"| `{name}` | {value} | {what} |\n" for name, (value, what) in FIXED.items()]
    return INTRODUCTION + "".join(rows) + RELATIONS + "".join(fixed)


if __name__ == "__main__":
    print(rendered(), end="")
