"""A lock that its holder loses with time, and whose number keeps out who has lost it (Kleppmann 2016, "How to do distributed locking")."""

from typing import Any, ClassVar


class Held(Exception):
    """Somebody else has the lock."""


class NotHeld(Exception):
    """Somebody else has the lock, or nobody."""


class NoOwner(Exception):
    """Whoever takes a lock needs a name."""


class Lock:
    """Held by one at a time, until it is given back or its time is over.

    Times are arguments, since replicas could not agree on a clock: seconds since 1970, of the caller's. Whoever is to be protected by
    the lock takes the number along, and refuses a lower one than it has seen: then a holder who slept, or whose clock is wrong, does no
    harm.
    """

    examples: ClassVar[dict[str, Any]] = {"now_s": (0.0, 9.0), "for_s": (5.0,), "number": (1, 2)}

    def __init__(self) -> None:
        self.owner = ""
        self.until_s = 0.0
        self.number = 0

    def acquire(self, owner: str, now_s: float, for_s: float) -> int:
        """Take the lock, or, as its holder, keep it for so long from now: its number, which is higher for each who takes it anew. Nobody
        without a name is given it."""
        if not owner:
            raise NoOwner
        is_free = not self.owner or self.until_s <= now_s
        if not is_free and self.owner != owner:
            raise Held
        if is_free:
            self.number += 1
        self.owner, self.until_s = owner, now_s + for_s
        return self.number

    def release(self, number: int) -> None:
        """Give the lock back; NotHeld where another one has taken it since, or it was given back."""
        if not self.owner or number != self.number:
            raise NotHeld
        self.owner, self.until_s = "", 0.0

    def holder(self) -> dict[str, Any]:
        """Who took it last and has not given it back, until when, and its number."""
        return {"owner": self.owner, "until_s": self.until_s, "number": self.number}
