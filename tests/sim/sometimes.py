"""What must happen now and then in the simulated worlds: a rule that no run ever used was not checked.

Owns the names: counters of the front ends (`count` in `quorate.client_sdk`), of the watch, and of outcomes.
"""

from collections.abc import Mapping
from typing import Final

SOMETIMES: Final[Mapping[str, str]] = {
    "stamped anew": "Blind 2: fenced by all, so a new timestamp",
    "recoveries": "Blind 3: fenced by some, so a decision settles the entry's fate",
    "entries adopted": "Blind 3: a decided summary holds the entry itself",
    "ambiguous ids": "Blind 3, Decide 4: an entry taken while it may be incomplete is noted",
    "recovered entries in force": "Blind 3: a recovery finds that its entry took effect, or has it adopted",
    "void entries stamped anew": "Blind 3: it never will be complete, so a new timestamp",
    "fates unknown": "Blind 3: the fate cannot be told yet",
    "unknown (indefinite)": "Blind 4: an unknown outcome",
    "unavailable (definite)": "no quorum, and certainly nothing done",
    "fenced replies": "a replica refuses an entry at or below its fence",
    "refused ballots": "a replica refuses a collect or an accept of a lower turn",
    "refused accepts": "a duel: an owner is deposed between its collect and its accept",
    "turns lost": "an owner learns that it was deposed",
    "takeovers by another owner": "a replica accepts a summary of another turn than before",
    "accepts superseded": "... that does not rest on what it had accepted",
    "lost accepts found decided": "Decide 5: the accept of a lost turn is in force after all",
    "steady-owner steps": "an owner decides again in the same turn",
    "several taken in one decision": "a run of heads in one decision",
    "batches of several": "several requests in one message",
    "collected again": "Decide 6: the double collect",
    "summaries written back": "an undecided summary is finished before anything rests on it",
    "entries written back": "Observe: what is not known to be complete is written back",
    "payloads fetched": "an entry known by name only is taken",
    "keys remembered": "a decision under an idempotency key",
    "keyed repeats": "a caller repeats an operation under its key",
    "Bury/Ok": "a deleted key is forgotten everywhere",
    "Bury/Kept": "a deletion is too young to be forgotten, or not everywhere",
    "Enq/Ok": "",
    "Deq/Ok": "",
    "Deq/Empty": "",
    "Peek/Ok": "",
    "Peek/Empty": "",
    "Size/Ok": "",
    "Read/Ok": "",
    "Write/Ok": "",
    "Cas/Ok": "",
    "Cas/Fail": "",
    "Get/Ok": "",
    "Put/Ok": "",
    "Delete/Ok": "",
    "PutIfAbsent/Ok": "",
    "PutIfAbsent/Present": "",
    "Items/Ok": "",
}
"""Counters by name, and where the design speaks of what they count."""

FAULTS: Final = (
    "packets lost",
    "packets doubled",
    "packets late",
    "packets slow",
    "packets cut off",
    "packets overtaken",
    "slow links",
    "slow throughout",
    "newest first",
    "cuts",
    "partitions",
    "crashes",
    "slow replicas",
    "freezes",
    "client crashes",
    "client freezes",
    "clock steps",
    "replica clock steps",
    "cancels",
    "lazy messages lost",
)
"""What is done to nodes and packets (`World.injected`)."""
