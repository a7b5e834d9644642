"""Data types of somebody's own, as tests have them kept by clusters."""

import asyncio
import sys
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import Meta


class NotThere(Exception):
    """The item is not in the cart."""


class Odd:
    """Nothing can be told of it."""

    def __repr__(self) -> str:
        raise ValueError


class Color(Enum):
    """A kind of value that JSON has not."""

    RED = "red"


ENDS = {
    found.__name__: found
    for found in (
        asyncio.CancelledError,
        GeneratorExit,
        KeyboardInterrupt,
        SystemExit,
        StopIteration,
        BaseException,
        ValueError,
    )
}
"""What Python has for other ends than a mistake, and one that is a mistake."""


class Cart:
    """What a customer wants to buy: how many of each item."""

    observing = ("content",)

    def __init__(self) -> None:
        self.items: dict[str, int] = {}

    def add(self, item: str, count: int = 1) -> None:
        """Put so many of an item into the cart."""
        self.items[item] = self.items.get(item, 0) + count

    def take(self, item: str) -> int:
        """Take an item out: how many there were."""
        if item not in self.items:
            raise NotThere
        return self.items.pop(item)

    def content(self) -> dict[str, int]:
        """How many of each item."""
        return self.items

    def keep(self, note: Any) -> Any:
        """Give back what was given."""
        return note

    examples = {"note": (None, [1]), "color": ("red",)}  # noqa: RUF012 - as users write it

    def slip(self) -> None:
        """A mistake in the code."""
        vars(self).pop("nothing")

    def quit(self) -> None:
        """A mistake of another kind."""
        sys.exit(3)

    def end(self, how: str) -> int:
        """Mistakes that mean more to whoever they pass through."""
        self.items["half"] = 1
        raise ENDS[how]("\ud800")

    def loop(self) -> None:
        """A state that holds itself."""
        self.items["me"] = self.items  # type: ignore[assignment]

    def odd(self) -> Any:
        """A result that nobody can look at."""
        return Odd()

    def pass_on(self, operation: str, model_dump: int, body: int = 1) -> list[Any]:
        """Names that others have, too."""
        return [operation, model_dump, body]

    def paint(self, color: Color) -> None:
        """A hint that says more than JSON does."""

    def fill(self, bytes: int) -> None:
        """Grow beyond all bounds."""
        self.items["x" * bytes] = 1


class Basket(Cart):
    """A cart into which things are put without a look at it."""

    blind = ("add",)


class Line(TypedDict):
    """So many of an item."""

    item: str
    count: NotRequired[Annotated[int, Meta(ge=1, description="How many")]]


class Order(TypedDict):
    """What a customer has ordered."""

    lines: list[Line]
    state: Literal["open", "paid"]
    note: str | None
    instead_of: NotRequired["Order"]


class Orders:
    """Orders by customer."""

    examples = {  # noqa: RUF012 - as users write it
        "line": ({"item": "book"}, {"item": "pen", "count": 2}),
        "order": ({"lines": [{"item": "book"}], "state": "open", "note": None},),
    }

    def __init__(self) -> None:
        self.orders: dict[str, Order] = {}

    def place(self, who: str, order: Order) -> Order | None:
        """Order instead of what was ordered before: what that was."""
        before = self.orders.get(who)
        self.orders[who] = order
        return before

    def add(self, who: str, line: Line) -> None:
        """Order more."""
        if who not in self.orders:
            raise NotThere
        self.orders[who]["lines"].append(line)

    def all(self) -> dict[str, Order]:
        """Everybody's orders."""
        return self.orders


class Bag(list[int]):
    """State that is in no attribute."""

    def add(self, number: int) -> None:
        self.append(number)


TYPES = {
    "cart": "tests.support.own_types:Cart",
    "lost": "tests.support.nowhere:Lost",
    "broken": "tests.support.own_types:NotThere",
    "bag": "tests.support.own_types:Bag",
    "cart_keep": "tests.support.own_types:Cart",
    "orders": "tests.support.own_types:Orders",
}
"""Types with their code, one without, and two whose code is no data type."""
