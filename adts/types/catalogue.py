"""The data types: those that the service offers, those that the calculus knows, and how objects are named.

An object's name starts with its data type: `queue/jobs`, `register/leader`, `dictionary/users`; the entry of a
dictionary's key is the object `dictionary/users/KEY`.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from ..specification import Specification
from .account import Account
from .bounded_counter import BoundedCounter
from .called import Called
from .counter import Counter
from .dictionary import Dictionary
from .directory import Directory
from .eventual_queue import EventualQueue
from .file import File
from .priority_queue import PriorityQueue
from .queue import Queue
from .register import Register
from .semiqueue import Semiqueue
from .set import Set
from .stack import Stack

SPECIFICATIONS: Final[Mapping[str, Specification]] = {
    specification.name: specification for specification in (Queue(), Register(), Dictionary())
}

_FURTHER: Final[tuple[Specification, ...]] = (
    File(),
    Directory(),
    Counter(),
    BoundedCounter(),
    Account(),
    Set(),
    Stack(),
    PriorityQueue(),
    Semiqueue(),
    EventualQueue(),
)
_KNOWN: Final[Mapping[str, Specification]] = {
    **SPECIFICATIONS,
    **{specification.name: specification for specification in _FURTHER},
}

NAME_PATTERN: Final = r"[A-Za-z0-9_~@=:+-][A-Za-z0-9._~@=:+-]{0,199}"
"""Names and keys: 1 to 200 of these characters, not starting with a dot, so that none is ever a path."""

NAMES_CACHED: Final = 10_000
"""Names remembered to be in form: a replica asks twice for each request, mostly about the same objects."""

_NAME = re.compile(NAME_PATTERN)
TYPE_PATTERN: Final = r"[a-z][a-z0-9_-]{0,31}"
"""Names of data types: those of the users' own, too."""

_OBJECT = re.compile(
    rf"(?!dictionary/){TYPE_PATTERN}/{NAME_PATTERN}|dictionary/{NAME_PATTERN}/{NAME_PATTERN}"
)


def known_types() -> Mapping[str, Specification]:
    """All data types by name, those that the service offers first: the quorum calculus works for each of them."""
    return _KNOWN


def kept_type(name: str) -> Specification:
    """The data type of that name, as quorums see it: one that the service offers, or else one of the users' own."""
    return SPECIFICATIONS.get(name) or Called(name)


CONFIGURATION: Final = "register/quorate.configuration"
"""The register in which a cluster keeps the configuration that it has chosen last."""


class BadName(ValueError):
    """A name outside the stated set of characters, or too long."""


def check_name(name: str, what: str = "name") -> str:
    """`name` itself, or BadName with the rule that it breaks."""
    if not isinstance(name, str):  # Whoever calls without a type checker is told in words, too.
        raise BadName(f"the {what} {name!r} is of type {type(name).__name__}: write it as a text")
    if not _NAME.fullmatch(name):
        shown = name if len(name) <= 80 else name[:80] + "…"
        raise BadName(
            f"the {what} {shown!r} is not allowed: use 1 to 200 of A-Z a-z 0-9 . _ ~ @ = : + - and no dot in front"
        )
    return name


def object_name(adt: str, name: str, key: str | None = None) -> str:
    """The object's full name; BadName when `name` or `key` is not allowed."""
    check_name(name)
    if f"{adt}/{name}" == CONFIGURATION:
        raise BadName(
            f"the register {name!r} is the cluster's own, for the configuration in force: use another name"
        )
    return f"{adt}/{name}" if key is None else f"{adt}/{name}/{check_name(key, 'key')}"


def is_object_name(text: str) -> bool:
    """Whether `text` names an object that a replica may keep, if its cluster has the data type."""
    return kept_as(text) is not None


@lru_cache(NAMES_CACHED)
def kept_as(text: str) -> str | None:
    """The data type as which a replica may keep an object of this name, if its cluster has the type; None where it may not."""
    return adt_of(text) if _OBJECT.fullmatch(text) else None


def is_overwritten(adt: str) -> bool:
    """Whether a new entry of such an object's log leaves nothing of older ones: of a register, and of a dictionary's key."""
    return adt in (Register.name, Dictionary.name)


def is_log(adt: str) -> bool:
    """Whether such an object's log is its state, in order: of a queue."""
    return adt == Queue.name


def may_delete(adt: str) -> bool:
    """Whether an entry of such an object's log may be null, and the object be gone with it: of a dictionary's key."""
    return adt == Dictionary.name


def read_word(adt: str) -> str:
    """What to read such a cell is called."""
    return "Read" if adt == Register.name else "Get"


def write_word(adt: str, *, deletes: bool) -> str:
    """What to write such a cell is called, or to write null into it (`deletes`)."""
    if not may_delete(adt):
        return "Write"
    return "Delete" if deletes else "Put"


def adt_of(object_name: str) -> str:
    """The data type of an object, from its name."""
    return object_name.partition("/")[0]
