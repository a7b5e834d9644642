"""Every bound of the service, in one place, with the relations between them. Documented in docs/reference/limits.md.

Values that an operator may change live in the cluster file's `[limits]` and default to these.
"""

import math
from typing import Final

from msgspec import Struct

from ..quorums.systems.expressions import TEXT_CHARS_MAX

NAME_CHARS_MAX: Final = 200
REPLICAS_MAX: Final = 25
VOTES_MAX: Final = 1000
ADOPTED_MAX: Final = 1000
"""Entries that a summary adopts: recoveries in force that nothing has passed yet, and a settled front."""
KEYED_ENTRIES_MAX: Final = 2000
"""Entries that the keyed operations of a summary name together: every accept carries them."""
RESERVATIONS_MAX: Final = 1_000_000
"""Idempotency keys of enqueues that a replica remembers, of all objects: three minutes of 5,000 a second."""
LEASES_MAX: Final = 1024
"""Items of a queue that are delivered under leases, or wait to be after they were met once: every accept carries them."""
DEAD_MAX: Final = 256
"""Dead letters of a queue; every accept carries them, too."""
SETTLED_MAX: Final = 1024
"""Leases that ended lately, of which a summary knows how."""
SETTLE_TOKENS_MAX: Final = LEASES_MAX
DELIVERIES_MAX: Final = 1_000_000_000
"""So often is an item delivered at most, and so high a maximum may an acquire name."""
LEASE_S_MAX: Final = 7 * 86400.0
"""The longest lease, from when it is given or renewed."""
DELAY_S_MAX: Final = 366 * 86400.0
"""How far ahead an item may be due, or expire."""
STATE_BYTES_MAX: Final = 256 * 1024
"""The state of an object of a type of one's own: every change carries all of it."""
WAITING_BYTES_MAX: Final = 256 * 1024
"""Calls of one object of such a type that a replica stores before they run, with ENTRY_BYTES for each; less, where those of all replicas could make
a state that is larger than a value may be. Further ones are refused until a decision has run some."""
WORK_OF_A_WAITING_BYTE: Final = 16
"""So much of the work of running them, as `work_bytes` counts it, weighs as a byte of theirs does: each runs on the whole state, and who looks waits for all."""
AMBIGUOUS_BYTES_MAX: Final = 512 * 1024
"""What was taken and may not be complete is named in a decided state, by its id and with ENTRY_BYTES for each. Further such entries are taken when nobody
asks for the earlier ones any more. Each look at the object takes time for each name."""
AMBIGUOUS_MAX: Final = 20_000
"""So many names a replica takes: until November 2026, front ends named four times as much."""
SUMMARY_BYTES_MAX: Final = 4 * 1024 * 1024
"""What a decided state weighs besides its payloads, when it remembers, names, adopts and lends as much as it may: a message of the replica
protocol has room for it beside a body. All other replicas would refuse one that is larger, for good."""
SYSTEM_CHARS_MAX: Final = TEXT_CHARS_MAX
FORWARDED_COMMANDS_MAX: Final = 16
FORWARD_S_MAX: Final = 1.0
REPLY_BODIES_MAX: Final = 8
ENTRY_BYTES: Final = 100
"""What an entry weighs in a message besides its payload, when its id is its timestamp: small items weigh little else."""

TOKENS_MAX: Final = 1000
"""Tokens that a replica accepts at the same time."""
REQUESTS_PER_S_MAX: Final = 50_000.0
"""Requests a second of one token, those within a batch counted each, and one that asks for keys once for each of them; a line of the list of tokens may set less. Twice as many
may come at once."""
BATCH_READS_S_MAX: Final = 0.05
"""How long the reads of one batch may take, before the rest of it is left to another batch."""
BATCH_ENTRIES_MAX: Final = 8192
"""Entries that one batch may bring or mark complete, and keys that it may ask for, before the rest of it is left to another batch: some hundredths of a second."""
UNPROVEN_PER_S_MAX: Final = 100.0
"""Requests a second without a valid token that are answered 401; further ones are answered 429."""
HEALTH_PER_S_MAX: Final = 100.0
"""Health checks a second of one address, where tokens are asked for; twice as many may come at once."""
DOCUMENTS_PER_S_MAX: Final = 20.0
"""And of other requests that need no token: for documents, pages and their files, which are large."""
CONCURRENT_MAX: Final = 4000
"""Requests under way at one replica."""
COUNTS_MAX: Final = 8
"""Sizes of queues that a replica counts for its REST callers at the same time, half of them for one caller; further ones wait, and callers
take turns."""
PLACES_MAX: Final = 512
"""Places for what REST callers have under way at a replica, and as many for commands that wait for decisions, half of them for one caller;
further ones wait, and callers take turns. One caller's work at a time takes about a quarter of a second."""
BODIES_BYTES_MAX: Final = 256 * 1024 * 1024
"""Request bodies that a replica holds together."""
BODY_VALUES_MAX: Final = 1_000_000
"""Values that a body holds together, however deep; in JSON with names of members, which count as three each: one value of `value_bytes_max`
always has fewer."""
OPEN_BODY_BYTES_MAX: Final = 1024
"""A body of a request that needs no token: nothing that is open to everyone has any."""
CONNECTIONS_MAX: Final = 2000
"""Connections open to one replica, less where the system allows fewer files."""
ADDRESS_SHARE_MAX: Final = 0.75
"""Of these, one address may have so many: many workers behind one address need most, and others still find a place."""
AHEAD_MAX: Final = 100
"""Requests that wait on one connection for the one ahead of them to be answered."""
AHEAD_BYTES_MAX: Final = 65_536
"""And the bytes that have come while one waited."""
URL_BYTES_MAX: Final = 8192
HEAD_BYTES_MAX: Final = 65_536
HEADERS_MAX: Final = 256
"""Headers of a request, however short: each takes as much memory as a hundred bytes."""
HEAD_S_MAX: Final = 10.0
"""From the first byte of a request, or from a connection's beginning, to the end of its headers."""
BODY_S_MAX: Final = 30.0
IDLE_S_MAX: Final = 30
"""How long a connection stays open between two requests."""
STALL_S_MAX: Final = 20.0
"""How long a client may take over each STALL_BYTES of an answer that waits to be sent to it."""
UNSENT_BYTES_MAX: Final = 128 * 1024 * 1024
"""Answers that wait to be sent to callers who do not read them, of all connections together."""

DRAIN_S_MAX: Final = 5.0
"""How long a stopping replica lets what is under way go on."""
STOP_S_MAX: Final = 20.0
"""By then a stopping replica has ended, unless its disk hangs."""
LISTINGS_MAX: Final = 2
"""Dictionaries that a replica lists for its REST callers, whole or in pages, at the same time, each for another caller, until they are sent; further
ones wait."""
BACKUP_S_MAX: Final = 600.0
"""How long a replica may take to copy its database for a backup, before it sends the copy."""
BACKUPS_SENT_MAX: Final = 2
"""Copies that a replica sends at the same time: each holds as much of its disk as the database."""
BACKUP_SENT_S_MAX: Final = 3600.0
"""How long a copy may be under way."""
PROBE_DAYS_MAX: Final = 30
"""How long a replica keeps what it noted of the others, unless it is told otherwise."""
PROBE_FILE_BYTES_MAX: Final = 8 * 1024**2
"""A file of a probe log that has so many bytes is followed by another one; so is that of another day (UTC)."""
PROBE_LOG_BYTES_MAX: Final = 1024**3
"""All files of a replica's probe log; the oldest go, however young they are."""
PROBE_PAGE_BYTES_MAX: Final = 256 * 1024
"""What is read of a probe log for one answer."""


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds that the cluster file may set. Sizes in bytes, times in seconds."""

    body_bytes_max: int = 8 * 1024 * 1024
    """An HTTP request body; a larger one is refused with 413 before it is read."""
    value_bytes_max: int = 1024 * 1024
    """One item, as JSON text."""
    value_depth_max: int = 64
    """Nesting of arrays and objects in a value."""
    batch_items_max: int = 1000
    """Items in one enqueue or one dequeue."""
    page_entries_max: int = 2000
    """Log entries or objects in one reply."""
    page_bytes_max: int = 2 * 1024 * 1024
    """Payloads in one reply, and in one dequeue, together; a single larger one still goes."""
    listing_bytes_max: int = 32 * 1024 * 1024
    """A dictionary that is listed whole: its values, with those overwritten or deleted lately, and 300 bytes for each. A larger
    one is refused: list it in pages."""
    requests_max: int = 1000
    """Protocol requests in one batch."""
    recent_decisions_max: int = 1000
    """Dequeues, compare-and-sets and puts if absent with an idempotency key that an object remembers, one caller's
    as many as are left for others; more within the time that they are remembered are refused."""
    retry_window_s: float = 30.0
    """How long an operation may be repeated; ids of stored and taken entries and idempotency keys are kept that long, and as much
    longer as a repeat may take (`deadline_s_max`)."""
    deadline_s_max: float = 25.0
    """The longest deadline of an operation; below the retry window, so that no retry outlives what it relies on."""
    wait_s_max: float = 20.0
    """The longest long poll of a dequeue."""
    consumed_lag_s: float = 30.0
    """How long payloads of taken entries stay, so that a repeated dequeue gets the first answer; and as much longer as a repeat may take
    (`deadline_s_max`)."""

    @property
    def message_bytes_max(self) -> int:
        """The body of a message of the replica protocol: every decision carries what the object remembers, whatever `body_bytes_max`
        leaves for callers."""
        return self.body_bytes_max + SUMMARY_BYTES_MAX

    @property
    def forwarded_commands_max(self) -> int:
        """Commands that go in one forwarded request, so that all that they are granted fits in one reply."""
        granted_bytes = self.page_bytes_max + self.value_bytes_max + self.batch_items_max * ENTRY_BYTES
        return max(1, min(FORWARDED_COMMANDS_MAX, REPLY_BODIES_MAX * self.body_bytes_max // granted_bytes))

    @property
    def leases_bytes_max(self) -> int:
        """Payloads of a queue's leases together, and half as much of its dead letters: what a body has room for besides what
        a summary adopts and remembers. A single larger one still goes."""
        room = self.body_bytes_max - 2 * (self.page_bytes_max + self.value_bytes_max)
        return min(self.page_bytes_max, room) // 2

    def _problem_of_sizes(self) -> str | None:
        if self.message_bytes_max * 2 > BODIES_BYTES_MAX:
            most = BODIES_BYTES_MAX // 2 - SUMMARY_BYTES_MAX
            return f"body_bytes_max must be at most {most}: no caller has more than half of BODIES_BYTES_MAX"
        if self.value_bytes_max * 2 > self.body_bytes_max:
            return "value_bytes_max must be at most half of body_bytes_max, or a value of that size cannot be sent"
        if 2 * (self.page_bytes_max + self.value_bytes_max) > self.body_bytes_max:
            return (
                "page_bytes_max and value_bytes_max together must be at most half of body_bytes_max, "
                "or a summary cannot be sent that adopts as much as it may"
            )
        return None

    @property
    def state_bytes_max(self) -> int:
        """The largest state of an object of one's own type for which calls are stored before they run."""
        return min(STATE_BYTES_MAX, self.value_bytes_max // 2)

    @property
    def stored_depth_max(self) -> int:
        """How deep a call may be nested that is stored before it runs: a state may hold its arguments some levels deeper."""
        return self.value_depth_max // 2

    def waiting_bytes_max(self, replicas: int) -> int:
        """Calls of one object that are stored at each of so many replicas and have not run, with ENTRY_BYTES for each call. Each replica may hold
        others: all of them together must not make a state of `state_bytes_max` larger than a value may be."""
        return min(WAITING_BYTES_MAX, (self.value_bytes_max - self.state_bytes_max) // replicas)

    @property
    def repeats_s(self) -> float:
        """How old an operation may be that a repeat of it still works on: one begins within the retry window, and ends by its
        deadline."""
        return self.retry_window_s + self.deadline_s_max

    @property
    def payloads_s(self) -> float:
        """How long payloads of taken entries stay: as long as a repeat may take that begins within the lag."""
        return self.consumed_lag_s + self.deadline_s_max

    def problem(self) -> str | None:
        """What is wrong with these limits, in a sentence; None when all relations hold."""
        if not all(0 < getattr(self, name) < math.inf for name in self.__struct_fields__):
            return "every limit must be above zero, and finite"
        if (wrong := self._problem_of_sizes()) is not None:
            return wrong
        if self.batch_items_max > KEYED_ENTRIES_MAX:
            return f"batch_items_max must be at most {KEYED_ENTRIES_MAX}, or a batch under a key could never be remembered"
        if self.deadline_s_max >= self.retry_window_s:
            return "deadline_s_max must be below retry_window_s, or a retry may outlive the ids it relies on"
        if self.wait_s_max > self.deadline_s_max:
            return "wait_s_max must be at most deadline_s_max"
        if self.consumed_lag_s > self.retry_window_s:
            return "consumed_lag_s must be at most retry_window_s"
        return None


CAPACITY_ALARM: Final = 0.8
"""From this share of a bound on, somebody should look."""


class Capacity(Struct, frozen=True):
    """What one replica takes in; `quorate serve` sets it. New objects and entries are refused beyond, and nothing else."""

    objects_max: int = 1_000_000
    """Objects; each key of a dictionary is one."""
    log_entries_max: int = 10_000_000
    """Entries of one object's log, with history that is not deleted yet."""
    disk_bytes_max: int = 64 * 1024**3
    """What the database holds; its file may be larger."""
    disk_free_min: int = 256 * 1024**2
    """Bytes that are to stay free on the file system: to take items out must always be possible."""


DEFAULTS: Final = Limits()
assert DEFAULTS.problem() is None
