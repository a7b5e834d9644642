"""Values that many share: a set, a stack, a priority queue, a directory, a journal. All of one object is in one state, and small."""

from bisect import insort
from typing import Any, ClassVar

_ITEMS = ("x", {"n": 1})


class Empty(Exception):
    """There is nothing to take."""


class Present(Exception):
    """The key has a value already."""


class Missing(Exception):
    """The key has no value."""


class Set:
    """Elements, each once. `add` and `remove` are blind."""

    blind = ("add", "remove")

    def __init__(self) -> None:
        self.members: dict[str, None] = {}

    def add(self, element: str) -> None:
        """Put an element in; nothing changes where it is there."""
        self.members[element] = None

    def remove(self, element: str) -> None:
        """Take an element out; nothing changes where it is not there."""
        self.members.pop(element, None)

    def contains(self, element: str) -> bool:
        """Whether it is there."""
        return element in self.members

    def size(self) -> int:
        """How many there are."""
        return len(self.members)

    def elements(self) -> list[str]:
        """All, in the order of their texts."""
        return sorted(self.members)


class Stack:
    """Items: the one that came last goes first. `push` is blind."""

    blind = ("push",)
    examples: ClassVar[dict[str, Any]] = {"item": _ITEMS}

    def __init__(self) -> None:
        self.items: list[Any] = []

    def push(self, item: Any) -> None:
        """Put an item on top."""
        self.items.append(item)

    def pop(self) -> Any:
        """Take the top item."""
        if not self.items:
            raise Empty
        return self.items.pop()

    def top(self) -> Any:
        """The top item, which stays."""
        if not self.items:
            raise Empty
        return self.items[-1]


class PriorityQueue:
    """Items: the one of the least number goes first, and of equal ones the one that came first. `put` is blind."""

    blind = ("put",)
    examples: ClassVar[dict[str, Any]] = {"item": _ITEMS, "priority": (0, 1)}

    def __init__(self) -> None:
        self.waiting: list[list[Any]] = []
        self.came = 0

    def put(self, item: Any, priority: int = 0) -> None:
        """Let an item wait."""
        insort(self.waiting, [priority, self.came, item], key=lambda each: (each[0], each[1]))
        self.came += 1

    def take(self) -> Any:
        """Take the first item."""
        if not self.waiting:
            raise Empty
        return self.waiting.pop(0)[2]

    def first(self) -> Any:
        """The first item, which stays."""
        if not self.waiting:
            raise Empty
        return self.waiting[0][2]

    def size(self) -> int:
        """How many items wait."""
        return len(self.waiting)


class Directory:
    """Values by key, where it matters whether a key is there. `put` is blind."""

    blind = ("put",)
    examples: ClassVar[dict[str, Any]] = {"value": _ITEMS}

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def put(self, key: str, value: Any) -> None:
        """Give a key a value, whether it has one or not."""
        self.values[key] = value

    def insert(self, key: str, value: Any) -> None:
        """Give a new key a value; Present where it is there."""
        if key in self.values:
            raise Present
        self.values[key] = value

    def update(self, key: str, value: Any) -> None:
        """Give a key that is there another value; Missing where it is not."""
        if key not in self.values:
            raise Missing
        self.values[key] = value

    def delete(self, key: str) -> Any:
        """Take a key out: its value; Missing where it is not there."""
        if key not in self.values:
            raise Missing
        return self.values.pop(key)

    def lookup(self, key: str) -> Any:
        """The value of a key; Missing where it is not there."""
        if key not in self.values:
            raise Missing
        return self.values[key]

    def keys(self) -> list[str]:
        """All keys, in the order of their texts."""
        return sorted(self.values)


class Journal:
    """Entries that are only ever appended, as minutes or a ledger."""

    examples: ClassVar[dict[str, Any]] = {"entry": _ITEMS, "start": (0, 1), "count": (1, 100)}

    def __init__(self) -> None:
        self.entries: list[Any] = []

    def append(self, entry: Any) -> int:
        """Append an entry: its number, from 0."""
        self.entries.append(entry)
        return len(self.entries) - 1

    def read(self, start: int = 0, count: int = 100) -> list[Any]:
        """So many entries from a number on; fewer where there are no more."""
        begin = max(0, start)
        return self.entries[begin : begin + max(0, count)]

    def length(self) -> int:
        """How many entries there are."""
        return len(self.entries)
