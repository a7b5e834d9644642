"""`quorate queue NAME acquire|ack|…`: leases from a command line. A lease is named by the token that acquire prints.

Owns these words and what they print. Each is one call of the SDK, as in `quorate.cli.objects.commands`.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from msgspec import to_builtins

from ...client_sdk import LeaseLost
from ...client_sdk.api.lease_calls import LEASE_S
from ..values import compact
from .asking import Answer, Asked, asking
from .commands import WaitOption, queue_app

Tokens = Annotated[
    list[str], typer.Argument(metavar="TOKEN…", help="Which leases: the tokens that acquire printed.")
]
Ids = Annotated[
    list[str] | None, typer.Argument(metavar="ID…", help="Which dead letters, by their ids; none named: all.")
]
AcquireMaxOption = Annotated[int, typer.Option("--max", min=1, help="Up to so many.")]
LeaseOption = Annotated[
    float, typer.Option("--lease", metavar="SECONDS", min=0.001, help="How long the lease lasts.")
]
MaxDeliveriesOption = Annotated[
    int | None,
    typer.Option(
        "--max-deliveries", min=1, help="A value that was delivered so often becomes a dead letter instead."
    ),
]
DelayOption = Annotated[
    float, typer.Option("--delay", metavar="SECONDS", min=0, help="Deliver them again after so long.")
]
DueAfterOption = Annotated[
    float, typer.Option("--due-after", metavar="SECONDS", min=0, help="Only those that are due so late.")
]
DropOption = Annotated[bool, typer.Option("--drop", help="Delete them instead.")]


@queue_app.command()
@asking
def acquire(
    asked: Asked,
    items_max: AcquireMaxOption = 1,
    lease_s: LeaseOption = LEASE_S,
    wait_s: WaitOption = 0.0,
    max_deliveries: MaxDeliveriesOption = None,
) -> Answer:
    """Lease values: a token, how often it was delivered, and the value, one a line."""
    leases = asked.queue.acquire(items_max, lease_s, wait_s, max_deliveries=max_deliveries)
    lines = "\n".join(f"{lease.token}\t{lease.deliveries}\t{compact(lease.value)}" for lease in leases)
    return Answer({"leases": to_builtins(leases)}, lines)


@queue_app.command()
@asking
def ack(asked: Asked, tokens: Tokens) -> Answer:
    """Acknowledge values: they are done with. Exit code 1 if a lease was lost; all others count."""
    return _settled(asked.queue.ack, tokens)


@queue_app.command()
@asking
def release(asked: Asked, tokens: Tokens, delay_s: DelayOption = 0.0) -> Answer:
    """Give values back, to be delivered again. Exit code 1 if a lease was lost."""
    return _settled(asked.queue.release, tokens, delay_s=delay_s)


@queue_app.command()
@asking
def reject(asked: Asked, tokens: Tokens, is_dropped: DropOption = False) -> Answer:
    """Make dead letters of values. Exit code 1 if a lease was lost."""
    return _settled(asked.queue.reject, tokens, dead_letter=not is_dropped)


@queue_app.command()
@asking
def renew(asked: Asked, tokens: Tokens, lease_s: LeaseOption = LEASE_S) -> Answer:
    """Make leases last longer, counted from now. Exit code 1 if a lease was lost."""
    return _settled(asked.queue.renew, tokens, lease_s=lease_s)


def _settled(settle: Callable[..., object], tokens: Sequence[str], **options: Any) -> Answer:
    """Leases that were lost are told, and all others count."""
    lost: tuple[str, ...] = ()
    try:
        settle(*tokens, **options)
    except LeaseLost as error:
        lost = error.lost
    return Answer({"lost": list(lost)}, f"lost: {' '.join(lost)}" if lost else "ok", is_no=bool(lost))


@queue_app.command()
@asking
def leases(asked: Asked) -> Answer:
    """Count the leased values, those that wait to be delivered (again), and the dead letters."""
    counts = asked.queue.leases()
    text = f"held {counts.held}  waiting {counts.waiting}  dead {counts.dead}"
    return Answer(to_builtins(counts), text, is_look=True)


@queue_app.command()
@asking
def dead_letters(asked: Asked) -> Answer:
    """List the dead letters: id, reason, how often it was delivered, and the value."""
    letters = asked.queue.dead_letters()
    lines = (f"{each.id}\t{each.reason}\t{each.deliveries}\t{compact(each.value)}" for each in letters)
    return Answer({"letters": to_builtins(letters)}, "\n".join(lines), is_look=True)


@queue_app.command()
@asking
def requeue(asked: Asked, ids: Ids = None) -> Answer:
    """Put dead letters back into the queue, for acquire."""
    number = asked.queue.requeue_dead_letters(ids or None)
    return Answer({"requeued": number}, str(number))


@queue_app.command()
@asking
def purge(asked: Asked, ids: Ids = None) -> Answer:
    """Delete dead letters."""
    number = asked.queue.purge_dead_letters(ids or None)
    return Answer({"purged": number}, str(number))


@queue_app.command()
@asking
def purge_delayed(asked: Asked, due_after_s: DueAfterOption = 0.0) -> Answer:
    """Delete values that wait until they are due, after an acquire has met them."""
    number = asked.queue.purge_delayed(due_after_s=due_after_s)
    return Answer({"purged": number}, str(number))
