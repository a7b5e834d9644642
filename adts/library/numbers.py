"""Numbers that many change: a counter, places of which there are only so many, an account."""

from typing import Any, ClassVar

MOST = (1 << 63) - 1


class Full(Exception):
    """Fewer places are free."""


class BadAmount(Exception):
    """Only amounts above zero can be moved."""


class Overdraft(Exception):
    """The account has less."""


class Counter:
    """A sum of 64 bits, which stays at its end beyond. `add` is blind."""

    blind = ("add",)
    examples: ClassVar[dict[str, Any]] = {"amount": (1, 2, -1)}

    def __init__(self) -> None:
        self.sum = 0

    def add(self, amount: int = 1) -> None:
        """Add an amount, which may be negative."""
        self.sum = max(-MOST - 1, min(self.sum + amount, MOST))

    def value(self) -> int:
        """The sum."""
        return self.sum


class BoundedCounter:
    """Places, as of a quota or a semaphore: `limit` of them, which a class that derives from this one sets."""

    examples: ClassVar[dict[str, Any]] = {"count": (1, 3, 60)}
    limit = 100

    def __init__(self) -> None:
        self.used = 0

    def take(self, count: int = 1) -> int:
        """Take so many places, all or, with Full, none: how many are left."""
        if count < 0:
            raise BadAmount
        if self.used + count > self.limit:
            raise Full
        self.used += count
        return self.limit - self.used

    def give_back(self, count: int = 1) -> int:
        """Give so many places back: how many are free. BadAmount where fewer were taken."""
        if not 0 <= count <= self.used:
            raise BadAmount
        self.used -= count
        return self.limit - self.used

    def taken(self) -> int:
        """How many places are taken."""
        return self.used


class Account:
    """An amount of money, in its smallest unit, that is never below zero."""

    examples: ClassVar[dict[str, Any]] = {"amount": (1, 2, 0)}

    def __init__(self) -> None:
        self.amount = 0

    def credit(self, amount: int) -> int:
        """Pay in: what it has then."""
        if amount <= 0:
            raise BadAmount
        self.amount += amount
        return self.amount

    def debit(self, amount: int) -> int:
        """Pay out, or, with Overdraft, nothing: what it has then."""
        if amount <= 0:
            raise BadAmount
        if amount > self.amount:
            raise Overdraft
        self.amount -= amount
        return self.amount

    def balance(self) -> int:
        """What it has."""
        return self.amount
