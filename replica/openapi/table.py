"""What the OpenAPI document says of each operation besides its shapes: a summary, the answer, errors and links.

Owns one row per operation id, in the order of the document. Pure data; `quorate.replica.openapi.builder` puts it in. An id is the
name of a method in every generated client: a verb and its object, or the verb alone where that is what everybody calls it.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from ...api_specs.messages import PROTOCOL_HEADER
from ..access.authorization import DOCUMENT_PATH, PROTOCOL_DOCUMENT_PATH
from ..http.routers import OWN_TAG, PROTOCOL_TAG

_OPEN: Final = ("too-many-requests", "internal")
_GATE: Final = ("unauthorized", "forbidden", "too-many-requests", "internal", "stopping", "overloaded")
_BODY: Final = ("timeout", "too-large", "unsupported-media-type")
_LOST: Final = ("store-lost", "other-configuration")
_STORE: Final = (*_LOST, "storage-failed")
_RUN: Final = ("malformed", "bad-name", "refused", "unavailable", "outcome-unknown", *_LOST)

_LOOK: Final = (*_GATE, *_RUN)
_WRITE: Final = (*_LOOK, *_BODY)
_NEW: Final = (*_WRITE, "log-full", "too-many-objects", "disk-full")
_KEYED: Final = (*_NEW, "key-reused", "too-many-keys")
_MESSAGE: Final = (*_GATE, *_BODY, "malformed", "wrong-cluster", "other-protocol")


class Told(NamedTuple):
    """A row. `problems` are all names of `quorate.api_specs.problems` that the operation may answer; `links` are ids of sensible next
    operations on the same object."""

    summary: str
    answer: str
    problems: tuple[str, ...]
    links: tuple[str, ...] = ()


REASONS: Final[Mapping[str, str]] = {
    "dequeue": "Take items from the same queue.",
    "peekQueue": "Look at the front of the same queue.",
    "getQueue": "Count the items of the same queue.",
    "ackLeases": "Acknowledge what is done.",
    "renewLeases": "Let the leases last longer.",
    "releaseLeases": "Give items back.",
    "rejectLeases": "Make dead letters of items.",
    "acquire": "Lease items of the same queue.",
    "getLeases": "Count the leases of the same queue.",
    "purgeDelayed": "Delete items that wait until they are due.",
    "getDeadLetters": "List the dead letters of the same queue.",
    "requeueDeadLetters": "Have dead letters delivered again.",
    "purgeDeadLetters": "Delete dead letters.",
    "readRegister": "Read the same register.",
    "compareAndSetRegister": "Replace what was read, if it is still there.",
    "getEntry": "Read the same key.",
    "compareAndSetEntry": "Replace what was read, if it is still there.",
    "compareAndDeleteEntry": "Delete what was read, if it is still there.",
    "deleteEntry": "Delete the same key.",
    "getDictionary": "List the same dictionary.",
}
"""Why an operation is a sensible next one."""

_SETTLED: Final = "Which leases were lost, so that nothing was done for them; all others took effect."

OPERATIONS: Final[Mapping[str, Told]] = {
    "enqueue": Told(
        "Enqueue items",
        "All items have joined the queue.",
        _KEYED,
        ("dequeue", "acquire", "peekQueue", "getQueue"),
    ),
    "dequeue": Told(
        "Dequeue items",
        "The items taken, oldest first. None: the queue was empty, and stayed so while the call waited.",
        _KEYED,
        ("dequeue", "getQueue"),
    ),
    "peekQueue": Told("Peek at a queue", "The oldest item, or none.", _LOOK, ("dequeue",)),
    "getQueue": Told("Count a queue's items", "How many items wait.", _LOOK, ("dequeue", "peekQueue")),
    "readRegister": Told("Read a register", "The value.", _LOOK, ("compareAndSetRegister",)),
    "writeRegister": Told("Write a register", "The register holds the value.", _NEW, ("readRegister",)),
    "compareAndSetRegister": Told(
        "Compare and set a register", "Whether the register held `old`.", _KEYED, ("readRegister",)
    ),
    "getEntry": Told(
        "Read a dictionary's key",
        "The value.",
        (*_LOOK, "not-found"),
        ("compareAndSetEntry", "compareAndDeleteEntry", "deleteEntry"),
    ),
    "putEntry": Told(
        "Set a dictionary's key", "The key has the value.", _NEW, ("getEntry", "deleteEntry", "getDictionary")
    ),
    "deleteEntry": Told("Delete a dictionary's key", "The key is absent.", _NEW, ("getEntry",)),
    "compareAndSetEntry": Told(
        "Compare and set a dictionary's key", "Whether the key had the value `old`.", _KEYED, ("getEntry",)
    ),
    "compareAndDeleteEntry": Told(
        "Compare and delete a dictionary's key", "Whether the key had the value `old`.", _KEYED, ("getEntry",)
    ),
    "putEntryIfAbsent": Told(
        "Set a dictionary's key if absent",
        "Whether the key was absent.",
        _KEYED,
        ("getEntry", "compareAndSetEntry"),
    ),
    "getDictionary": Told("List a dictionary", "Keys and values.", (*_LOOK, "listing-too-large")),
    "acquire": Told(
        "Lease items",
        "The items delivered. None: there was none, and came none while the call waited.",
        (*_NEW, "too-many-leases"),
        ("ackLeases", "renewLeases", "releaseLeases", "rejectLeases", "getLeases"),
    ),
    "getLeases": Told(
        "Count a queue's leases",
        "How many there are.",
        _LOOK,
        ("acquire", "getDeadLetters", "purgeDelayed"),
    ),
    "ackLeases": Told("Acknowledge items", _SETTLED, _WRITE, ("acquire",)),
    "releaseLeases": Told("Release leases", _SETTLED, _WRITE, ("acquire",)),
    "rejectLeases": Told("Reject leases", _SETTLED, (*_WRITE, "too-many-dead-letters"), ("getDeadLetters",)),
    "renewLeases": Told(
        "Renew leases", "Which leases were lost, and how long the others last.", _WRITE, ("ackLeases",)
    ),
    "purgeDelayed": Told("Purge delayed items", "How many are gone.", _WRITE, ("getLeases",)),
    "getDeadLetters": Told(
        "List a queue's dead letters",
        "The dead letters, oldest first.",
        _LOOK,
        ("requeueDeadLetters", "purgeDeadLetters"),
    ),
    "requeueDeadLetters": Told(
        "Requeue dead letters", "How many are delivered again.", (*_WRITE, "too-many-leases"), ("acquire",)
    ),
    "purgeDeadLetters": Told("Purge dead letters", "How many are gone.", _WRITE, ("getDeadLetters",)),
    "getCluster": Told("Show the cluster file", "The document and its hash.", _GATE),
    "getLiveness": Told("Ask whether the process runs", "It does.", _OPEN),
    "getReadiness": Told(
        "Ask whether the replica votes", "It does.", (*_OPEN, "starting", "stopping", *_STORE)
    ),
    "getQuorumHealth": Told(
        "Ask whether every operation has its quorums",
        "It has, as this replica sees the others.",
        (*_OPEN, "unavailable"),
    ),
    "getStatus": Told("Show the replica's state", "What the replica says about itself.", (*_GATE, *_STORE)),
    "getProblemType": Told(
        "Explain a type of problem",
        "What the type means, and what to do.",
        (*_OPEN, "stopping", "overloaded", "not-found"),
    ),
    "getOverview": Told(
        "Show the cluster at a glance", "Replicas and objects, as this replica sees them.", _LOOK
    ),
    "getTrace": Told("Show an object's logs side by side", "One row per timestamp.", _LOOK),
    "getChoices": Told(
        "Show the quorum choices", "Choices, constraints, and what has its quorums now.", _LOOK
    ),
    "getMetrics": Told(
        "Show the replica's metrics",
        "The metrics, in the text format of Prometheus.",
        (*_GATE, "malformed"),
    ),
    "getProbes": Told(
        "Show what the replica saw of the others",
        "A page of its probe log.",
        (*_GATE, "malformed", "not-found", "storage-failed"),
    ),
    "getTokens": Told(
        "List the valid tokens", "The tokens that this replica accepts now, without their secrets.", _GATE
    ),
    "reloadTokens": Told(
        "Read the list of tokens again",
        "The tokens that this replica accepts now, without their secrets.",
        (*_GATE, "timeout", "too-large"),
    ),
    "takeBackup": Told(
        "Copy the replica's database",
        "The database, as an SQLite file: all that the replica had acknowledged when it was asked.",
        (*_GATE, "timeout", "too-large", *_STORE, "no-room"),
    ),
    "followConfiguration": Told(
        "Tell the replica of a later configuration",
        "The configuration that it is in now.",
        (*_GATE, *_BODY, "malformed", *_STORE),
    ),
    "getHoldings": Told(
        "List what a change has to carry over",
        "What the replica holds.",
        (*_GATE, "malformed", *_STORE),
    ),
    "sendBatch": Told(
        "Send a batch of protocol requests",
        "One reply per request, in order.",
        (*_MESSAGE, "starting", *_STORE),
    ),
    "forwardRequest": Told(
        "Ask the replica's front end to decide", "One result per command, in order.", _MESSAGE
    ),
    "announceReplica": Told(
        "Bear witness to another replica's store",
        "What was known before; empty when nothing was.",
        (*_MESSAGE, *_STORE),
    ),
}

OF_OWN_TYPES: Final = Told(
    "", "How the call ended, and what it returned.", (*_KEYED, "not-found", "type-not-loaded")
)
"""Of each operation of a type of one's own: what it does, its class says."""

TAGS: Final[Mapping[str, str]] = {
    "queues": "First in, first out. Several callers may enqueue and dequeue the same queue at any replica.",
    "registers": "One value, with compare-and-set.",
    "dictionaries": "Values by key, each key by itself, with put-if-absent, compare-and-set and compare-and-delete.",
    OWN_TAG: "Objects whose types are classes of your own: each method is an operation.",
    "service": "The replica itself: its cluster file, its health, and what problems mean.",
    "administration": "For operators: which tokens are valid, and backups.",
    PROTOCOL_TAG: "How front ends and replicas talk to each other, and what `quorate change` asks each replica.",
}

INTRODUCTION: Final = f"""\
Queues, registers and dictionaries that live on several replicas. Ask any replica: it runs the quorum operation for you.
The replica protocol, which an application has no need of, has a document of its own: `{PROTOCOL_DOCUMENT_PATH}`.

Every error is a problem document (RFC 9457). Its member `definite` decides whether you may simply repeat: true means that
the operation did not take effect and will not; false that it may have, or may still do so. Then repeat it only with the
same `Idempotency-Key`, which makes a repeat within the retry window take effect once, or look at the object first."""

PROTOCOL_INTRODUCTION: Final = f"""\
How front ends (the SDK, and the one in each replica) and replicas talk to each other. It changes from release to release: a sender names
the versions that it speaks (`{PROTOCOL_HEADER}`), and a replica that speaks none of them refuses the message. An application uses
the HTTP API (`{DOCUMENT_PATH}`) or the SDK."""
