"""`quorate queue|register|dict NAME OPERATION …`: each word is one call of the SDK."""

import sys
from typing import Annotated, Any, Final

import typer

from ...client_sdk import Dictionary, QuorateError
from ...client_sdk.api.calls import lookup
from ..failure import PartlyDone, Usage
from ..groups import Group
from ..values import compact, compact_lines, parse_one, parse_value, parse_words, spelled_out
from .asking import Answer, Asked, asking, shown

BATCH: Final = 500
"""Values that are enqueued with one call; standard input may hold more."""

Values = Annotated[
    list[str],
    typer.Argument(
        metavar="VALUE…", help="JSON, as '\"text\"' or 42; - reads JSON lines from standard input."
    ),
]
Value = Annotated[
    str, typer.Argument(metavar="VALUE", help="JSON, as '\"text\"' or 42; - reads it from standard input.")
]
Key = Annotated[str, typer.Argument(metavar="KEY", help="The key: any text.")]
Old = Annotated[str, typer.Argument(metavar="OLD", help="The value it must have; null for none.")]
Held = Annotated[str, typer.Argument(metavar="OLD", help="The value it must have.")]
New = Annotated[str, typer.Argument(metavar="NEW", help="The value it gets.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The object's name.")]
TakeMaxOption = Annotated[int, typer.Option("--max", min=1, help="Take up to so many.")]
PrefixOption = Annotated[str, typer.Option("--prefix", metavar="TEXT", help="Only keys that begin so.")]
PagesOption = Annotated[
    bool,
    typer.Option(
        "--pages",
        help="A page at a time, each of a moment of its own: for what is too large for one listing.",
    ),
]
WaitOption = Annotated[
    float, typer.Option("--wait", metavar="SECONDS", min=0, help="Wait for the first one.")
]

queue_app = typer.Typer(cls=Group, no_args_is_help=True)
register_app = typer.Typer(cls=Group, no_args_is_help=True)
dictionary_app = typer.Typer(cls=Group, no_args_is_help=True)


def _named(context: typer.Context, name: Name) -> None:
    context.obj = name


queue_app.callback(help="Add to a queue, take from it, look at it.")(_named)
register_app.callback(help="Read or set a register, one shared value.")(_named)
dictionary_app.callback(help="Read or change a dictionary of keys and values.")(_named)


@queue_app.command()
@asking
def enqueue(asked: Asked, values: Values) -> Answer:
    """Add values at the end, in order."""
    parsed = parse_words(values, sys.stdin)
    if not parsed:
        raise Usage("Standard input holds no value: nothing was enqueued.")
    queue = asked.queue
    for start in range(0, len(parsed), BATCH):
        try:
            queue.enqueue_many(parsed[start : start + BATCH])
        except QuorateError as error:
            if start:
                raise PartlyDone(
                    f"The first {start} of {len(parsed)} values were enqueued, and then: {error}"
                ) from None
            raise
    return Answer({"enqueued": len(parsed)})


@queue_app.command()
@asking
def dequeue(asked: Asked, items_max: TakeMaxOption = 1, wait_s: WaitOption = 0.0) -> Answer:
    """Take values from the front: one JSON value a line, nothing when the queue is empty."""
    items = asked.queue.dequeue(max_items=items_max, wait_s=wait_s)
    return Answer({"items": items}, compact_lines(items))


@queue_app.command()
@asking
def peek(asked: Asked) -> Answer:
    """Show the value at the front, which stays there; null when the queue is empty."""
    return shown("item", asked.queue.peek())


@queue_app.command("size")
@asking
def queue_size(asked: Asked) -> Answer:
    """Count the values that wait."""
    return shown("size", asked.queue.size())


@register_app.command()
@asking
def read(asked: Asked) -> Answer:
    """Show the value; null when nobody has written one."""
    return shown("value", asked.register.read())


@register_app.command()
@asking
def write(asked: Asked, value: Value) -> Answer:
    """Set the value."""
    parsed = parse_one(value, sys.stdin)
    asked.register.write(parsed)
    return Answer({"written": True})


@register_app.command("cas")
@asking
def register_cas(asked: Asked, old: Old, new: New) -> Answer:
    """Compare and set: set NEW if the value is OLD. Exit code 1 if it was not."""
    before, after = parse_value(old), parse_value(new)
    return _swapped(asked.register.compare_and_set(before, after))


@dictionary_app.command()
@asking
def get(asked: Asked, key: Key) -> Answer:
    """Show a key's value. Where it is absent: null, and exit code 1."""
    found = asked.client.perform(lookup(asked.name, key))
    value = found[0] if found else None
    return Answer({"value": value}, compact(value), is_no=not found, is_look=True)


@dictionary_app.command()
@asking
def put(asked: Asked, key: Key, value: Value) -> Answer:
    """Set a key's value."""
    parsed = parse_one(value, sys.stdin)
    asked.dictionary.put(key, parsed)
    return Answer({"put": True})


@dictionary_app.command()
@asking
def delete(asked: Asked, key: Key) -> Answer:
    """Remove a key; one that is absent stays so."""
    asked.dictionary.delete(key)
    return Answer({"deleted": True})


@dictionary_app.command()
@asking
def put_if_absent(asked: Asked, key: Key, value: Value) -> Answer:
    """Set a key's value if it has none. Exit code 1 if it has one."""
    parsed = parse_one(value, sys.stdin)
    was = asked.dictionary.put_if_absent(key, parsed)
    return Answer({"stored": was}, "ok" if was else "not put: the key has a value", is_no=not was)


@dictionary_app.command("cas")
@asking
def dictionary_cas(asked: Asked, key: Key, old: Old, new: New) -> Answer:
    """Compare and set: set NEW if the key's value is OLD. Exit code 1 if it was not."""
    before, after = parse_value(old), parse_value(new)
    return _swapped(asked.dictionary.compare_and_set(key, before, after))


@dictionary_app.command()
@asking
def compare_and_delete(asked: Asked, key: Key, old: Held) -> Answer:
    """Remove a key if its value is OLD. Exit code 1 if it was not."""
    was = asked.dictionary.compare_and_delete(key, parse_value(old))
    return Answer({"deleted": was}, "ok" if was else "not deleted: the value is another one", is_no=not was)


@dictionary_app.command()
@asking
def items(asked: Asked, prefix: PrefixOption = "", *, pages: PagesOption = False) -> Answer:
    """Show keys and values as they were at one moment: KEY, a tab, JSON."""
    found = _paged(asked.dictionary, prefix) if pages else asked.dictionary.items(prefix)
    lines = [f"{spelled_out(key)}\t{compact(value)}" for key, value in found.items()]
    return Answer({"items": found}, "\n".join(lines), is_look=True)


def _paged(dictionary: Dictionary, prefix: str) -> dict[str, Any]:
    page = dictionary.page(prefix)
    found = dict(page.items)
    while page.next:
        page = dictionary.page(prefix, after=page.next)
        found |= page.items
    return found


@dictionary_app.command("size")
@asking
def dictionary_size(asked: Asked, prefix: PrefixOption = "") -> Answer:
    """Count the keys."""
    return shown("size", asked.dictionary.size(prefix))


def _swapped(was: bool) -> Answer:
    return Answer({"swapped": was}, "ok" if was else "not set: the value is another one", is_no=not was)
