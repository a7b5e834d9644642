"""What the OpenAPI document says of each operation besides its shapes: a summary, the answer, errors and links.

Owns one row per operation id, in the order of the document. Pure data; `quorate.replica.openapi.builder` puts it in. An id is the
name of a method in every generated client: a verb and its object, or the verb alone where that is what everybody calls it.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

_GATE: Final = ("unauthorized", "forbidden", "too-many-requests", "internal", "stopping", "overloaded")
_BODY: Final = ("timeout", "too-large", "unsupported-media-type")
_LOST: Final = ("store-lost", "other-configuration")
_STORE: Final = (*_LOST, "storage-failed")
_RUN: Final = ("malformed", "bad-name", "refused", "unavailable", "outcome-unknown", *_LOST)

_LOOK: Final = (*_GATE, *_RUN)
_WRITE: Final = (*_LOOK, *_BODY)
_NEW: Final = (*_WRITE, "log-full", "too-many-objects", "disk-full")
_KEYED: Final = (*_NEW, "key-reused", "too-many-keys")
_MESSAGE: Final = (*_GATE, *_BODY, "malformed", "wrong-cluster")


class Link(NamedTuple):
    """That the operation `to` is a sensible next one about the same object; `parts` are the path's that go along."""

    to: str
    why: str
    parts: tuple[str, ...] = ("name",)


class Told(NamedTuple):
    """A row. `problems` are all names of `quorate.api_specs.problems` that the operation may answer."""

    summary: str
    answer: str
    problems: tuple[str, ...]
    links: tuple[Link, ...] = ()
    is_open: bool = False
    """Whether it asks for no token."""


_ENTRY: Final = ("name", "key")
_TO_DEQUEUE: Final = Link("dequeue", "Take items from the same queue.")
_TO_PEEK: Final = Link("peekQueue", "Look at the front of the same queue.")
_TO_QUEUE: Final = Link("getQueue", "Count the items of the same queue.")
_TO_ACCEPT: Final = Link("acceptLeases", "End the leases of what is done.")
_TO_RENEW: Final = Link("renewLeases", "Let the leases last longer.")
_TO_RELEASE: Final = Link("releaseLeases", "Give items back.")
_TO_REJECT: Final = Link("rejectLeases", "Have items delivered to nobody any more.")
_TO_ACQUIRE: Final = Link("acquire", "Be delivered items of the same queue.")
_TO_LEASES: Final = Link("getLeases", "Count the leases of the same queue.")
_TO_LETTERS: Final = Link("getDeadLetters", "List the dead letters of the same queue.")
_TO_REQUEUE: Final = Link("requeueDeadLetters", "Have dead letters delivered again.")
_TO_DISCARD: Final = Link("discardDeadLetters", "Forget dead letters.")
_TO_READ: Final = Link("readRegister", "Read the same register.")
_TO_SWAP: Final = Link("compareAndSetRegister", "Replace what was read, if it is still there.")
_TO_ENTRY: Final = Link("getEntry", "Read the same key.", _ENTRY)
_TO_ENTRY_SWAP: Final = Link("compareAndSetEntry", "Replace what was read, if it is still there.", _ENTRY)
_TO_DELETE: Final = Link("deleteEntry", "Delete the same key.", _ENTRY)
_TO_DICTIONARY: Final = Link("getDictionary", "Read the whole dictionary.")

_SETTLED: Final = "Which leases were lost, so that nothing was done for them; all others took effect."

OPERATIONS: Final[Mapping[str, Told]] = {
    "enqueue": Told(
        "Enqueue items",
        "All items have joined the queue.",
        _KEYED,
        (_TO_DEQUEUE, _TO_ACQUIRE, _TO_PEEK, _TO_QUEUE),
    ),
    "dequeue": Told(
        "Dequeue items",
        "The items taken, oldest first. None: the queue was empty, and stayed so while the call waited.",
        _KEYED,
        (_TO_DEQUEUE, _TO_QUEUE),
    ),
    "peekQueue": Told("Peek at a queue", "The oldest item, or none.", _LOOK, (_TO_DEQUEUE,)),
    "getQueue": Told("Count a queue's items", "How many items wait.", _LOOK, (_TO_DEQUEUE, _TO_PEEK)),
    "readRegister": Told("Read a register", "The value.", _LOOK, (_TO_SWAP,)),
    "writeRegister": Told("Write a register", "The register holds the value.", _NEW, (_TO_READ,)),
    "compareAndSetRegister": Told(
        "Compare and set a register", "Whether the register held `old`.", _KEYED, (_TO_READ,)
    ),
    "getEntry": Told(
        "Read a dictionary's key", "The value.", (*_LOOK, "not-found"), (_TO_ENTRY_SWAP, _TO_DELETE)
    ),
    "putEntry": Told(
        "Set a dictionary's key", "The key has the value.", _NEW, (_TO_ENTRY, _TO_DELETE, _TO_DICTIONARY)
    ),
    "deleteEntry": Told("Delete a dictionary's key", "The key is absent.", _NEW, (_TO_ENTRY,)),
    "compareAndSetEntry": Told(
        "Compare and set a dictionary's key", "Whether the key had the value `old`.", _KEYED, (_TO_ENTRY,)
    ),
    "putEntryIfAbsent": Told(
        "Set a dictionary's key if absent",
        "Whether the key was absent.",
        _KEYED,
        (_TO_ENTRY, _TO_ENTRY_SWAP),
    ),
    "getDictionary": Told("Read a whole dictionary", "All keys and values.", (*_LOOK, "listing-too-large")),
    "acquire": Told(
        "Acquire items under leases",
        "The items delivered. None: there was none, and came none while the call waited.",
        (*_NEW, "too-many-leases"),
        (_TO_ACCEPT, _TO_RENEW, _TO_RELEASE, _TO_REJECT, _TO_LEASES),
    ),
    "getLeases": Told("Count a queue's leases", "How many there are.", _LOOK, (_TO_ACQUIRE, _TO_LETTERS)),
    "acceptLeases": Told("Accept leases", _SETTLED, _WRITE, (_TO_ACQUIRE,)),
    "releaseLeases": Told("Release leases", _SETTLED, _WRITE, (_TO_ACQUIRE,)),
    "rejectLeases": Told("Reject leases", _SETTLED, (*_WRITE, "too-many-dead-letters"), (_TO_LETTERS,)),
    "renewLeases": Told(
        "Renew leases", "Which leases were lost, and how long the others last.", _WRITE, (_TO_ACCEPT,)
    ),
    "getDeadLetters": Told(
        "List a queue's dead letters", "The dead letters, oldest first.", _LOOK, (_TO_REQUEUE, _TO_DISCARD)
    ),
    "requeueDeadLetters": Told(
        "Requeue dead letters",
        "How many are delivered again.",
        (*_WRITE, "too-many-leases"),
        (_TO_ACQUIRE,),
    ),
    "discardDeadLetters": Told("Discard dead letters", "How many are gone.", _WRITE, (_TO_LETTERS,)),
    "getCluster": Told("Show the cluster document", "The document and its hash.", _GATE),
    "getLiveness": Told("Ask whether the process runs", "It does.", ("internal",), is_open=True),
    "getReadiness": Told(
        "Ask whether the replica votes",
        "It does.",
        ("internal", "starting", "stopping", *_STORE),
        is_open=True,
    ),
    "getQuorumHealth": Told(
        "Ask whether every operation has its quorums",
        "It has, as this replica sees the others.",
        ("internal", "unavailable"),
        is_open=True,
    ),
    "getStatus": Told("Show the replica's state", "What the replica says about itself.", (*_GATE, *_STORE)),
    "getProblemType": Told(
        "Explain a type of problem",
        "What the type means, and what to do.",
        ("internal", "stopping", "overloaded", "not-found"),
        is_open=True,
    ),
    "getOverview": Told(
        "Show the cluster at a glance", "Replicas and objects, as this replica sees them.", _LOOK
    ),
    "getTrace": Told("Show an object's logs side by side", "One row per timestamp.", _LOOK),
    "getChoices": Told(
        "Show the quorum choices", "Choices, constraints, and what has its quorums now.", _LOOK
    ),
    "getMetrics": Told("Show the replica's metrics", "The metrics, in the text format of Prometheus.", _GATE),
    "getTokens": Told(
        "List the valid tokens",
        "The tokens that this replica accepts now, without their secrets.",
        _GATE,
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
    "sendBatch": Told(
        "Send a batch of protocol requests",
        "One reply per request, in order; if all were refused, a problem instead.",
        (*_MESSAGE, "starting", *_STORE, "clock-ahead", "clock-behind", "too-old"),
    ),
    "forwardRequest": Told(
        "Ask the replica's front end to decide",
        "One result per command, in order.",
        _MESSAGE,
    ),
    "announceReplica": Told(
        "Bear witness to another replica's store",
        "What was known before; empty when nothing was.",
        (*_MESSAGE, *_STORE),
    ),
}

TAGS: Final[Mapping[str, str]] = {
    "queues": "First in, first out. Several callers may enqueue and dequeue the same queue at any replica.",
    "registers": "One value, with compare-and-set.",
    "dictionaries": "Values by key, each key by itself, with put-if-absent and compare-and-set.",
    "service": "The replica itself: its cluster document, its health, and what problems mean.",
    "replica protocol": "How front ends and replicas talk to each other; an application has no need of it.",
    "administration": "For operators: which tokens are valid, and backups.",
}

INTRODUCTION: Final = """\
Queues, registers and dictionaries that live on several replicas. Ask any replica: it runs the quorum operation for you.

Every error is a problem document (RFC 9457). Its member `definite` decides whether you may simply repeat: true means that
the operation did not take effect and will not; false that it may have, or may still do so. Then repeat it only with the
same `Idempotency-Key`, which makes a repeat within the retry window take effect once, or look at the object first."""
