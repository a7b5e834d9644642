"""What an application does with the generated Python client of a cluster with a type of its own: `python drive.py URL`.

It prints what it was answered as one line of JSON. mypy checks it against the generated package; each `type: ignore` is a
mistake that the generated types must refuse.
"""

import json
import sys

from quorate_client import AuthenticatedClient
from quorate_client.api.types_of_your_own import orders_add, orders_all, orders_place
from quorate_client.models import (
    OrdersAddArguments,
    OrdersLine,
    OrdersOrder,
    OrdersOrderState,
    OrdersPlaceArguments,
    Problem,
)
from quorate_client.types import Unset

CLIENT = AuthenticatedClient(sys.argv[1], token="none is asked for")
NAME = "python"


def place(order: OrdersOrder) -> OrdersOrder | None:
    """Ann orders: what she had ordered before."""
    placed = orders_place.sync(NAME, client=CLIENT, body=OrdersPlaceArguments(who="ann", order=order))
    assert placed is not None
    assert not isinstance(placed, Problem)
    assert not isinstance(placed.result, Unset)
    return placed.result


def add(who: str, line: OrdersLine) -> str:
    """Somebody orders more: how that ended."""
    added = orders_add.sync(NAME, client=CLIENT, body=OrdersAddArguments(who=who, line=line))
    assert added is not None
    assert not isinstance(added, Problem)
    return added.outcome


def counts(order: OrdersOrder) -> list[tuple[str, int]]:
    """How many of each item; one where it is not said."""
    return [(each.item, each.count if not isinstance(each.count, Unset) else 1) for each in order.lines]


def refused() -> None:
    """What the types must refuse. It is never called: only mypy looks at it."""
    OrdersLine(count=1)  # type: ignore[call-arg]
    OrdersLine(item=1)  # type: ignore[arg-type]
    OrdersOrder(lines=["book"], state=OrdersOrderState.OPEN, note=None)  # type: ignore[list-item]
    OrdersOrder(lines=[], state="sent", note=None)  # type: ignore[arg-type]


def main() -> None:
    """Order twice, and look."""
    first = OrdersOrder(lines=[OrdersLine(item="book", count=2)], state=OrdersOrderState.OPEN, note=None)
    before = place(first)
    added = [add("ann", OrdersLine(item="pen")), add("bob", OrdersLine(item="pen"))]
    second = OrdersOrder(lines=[], state=OrdersOrderState.PAID, note="soon", instead_of=first)
    replaced = place(second)
    assert replaced is not None
    everybody = orders_all.sync(NAME, client=CLIENT)
    assert everybody is not None
    assert not isinstance(everybody, Problem)
    assert everybody.result
    ann = everybody.result["ann"]
    assert not isinstance(ann.instead_of, Unset)
    told = {
        "before": before,
        "added": added,
        "replaced": counts(replaced),
        "state": ann.state,
        "note": ann.note,
        "instead_of": counts(ann.instead_of),
    }
    print(json.dumps(told))


main()
