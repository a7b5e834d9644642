"""`quorate queue NAME acquire|accept|…`: leases from a command line. A lease is named by the token that acquire prints.

Owns these words and what they print. Each is one call of the SDK, as in `quorate.cli.objects.commands`.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Final

import typer
from msgspec import to_builtins

from ...client_sdk import LeaseLost, Queue
from ...client_sdk.api.lease_calls import LEASE_S
from ..cluster.document import DEFAULT_NAME
from ..failure import EXIT_FAILED
from ..options import DEADLINE_S, ClusterOption, DeadlineOption
from ..output import AsJson, answer, reported
from ..values import compact
from .commands import connected

Tokens = Annotated[
    list[str], typer.Argument(metavar="TOKEN…", help="Which leases: the tokens that acquire printed.")
]
Ids = Annotated[
    list[str] | None, typer.Argument(metavar="ID…", help="Which dead letters, by their ids; none named: all.")
]
LeaseOption = Annotated[
    float, typer.Option("--lease", metavar="SECONDS", min=0.001, help="How long the lease lasts.")
]


def _settle(
    context: typer.Context, cluster: str, deadline_s: float, as_json: bool, settle: Callable[[Queue], object]
) -> None:
    """Leases that were lost are told, with the exit code that lets a shell branch on it; all others count."""
    lost: tuple[str, ...] = ()
    with connected(cluster, deadline_s) as client:
        try:
            settle(client.queue(context.obj))
        except LeaseLost as error:
            lost = error.lost
    answer(as_json, {"lost": list(lost)}, f"lost: {' '.join(lost)}" if lost else "ok")
    if lost:
        raise typer.Exit(EXIT_FAILED)


@reported
def acquire(
    context: typer.Context,
    items_max: Annotated[int, typer.Option("--max", min=1, help="Up to so many.")] = 1,
    lease_s: LeaseOption = LEASE_S,
    wait_s: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", min=0, help="Wait for the first one.")
    ] = 0.0,
    max_deliveries: Annotated[
        int | None,
        typer.Option("--max-deliveries", min=1, help="What was delivered so often is a dead letter instead."),
    ] = None,
    cluster: ClusterOption = DEFAULT_NAME,
    deadline_s: DeadlineOption = DEADLINE_S,
    as_json: AsJson = False,
) -> None:
    """Be delivered values under leases: a token, how often it was delivered, and the value, one a line."""
    with connected(cluster, deadline_s) as client:
        leases = client.queue(context.obj).acquire(items_max, lease_s, wait_s, max_deliveries=max_deliveries)
    lines = "\n".join(f"{lease.token}\t{lease.deliveries}\t{compact(lease.value)}" for lease in leases)
    answer(as_json, {"leases": to_builtins(leases)}, lines)


@reported
def accept(
    context: typer.Context,
    tokens: Tokens,
    cluster: ClusterOption = DEFAULT_NAME,
    deadline_s: DeadlineOption = DEADLINE_S,
    as_json: AsJson = False,
) -> None:
    """Say that the values are done with. Exit code 1 if a lease was lost; all others count."""
    _settle(context, cluster, deadline_s, as_json, lambda queue: queue.accept(*tokens))


@reported
def release(
    context: typer.Context,
    tokens: Tokens,
    delay_s: Annotated[
        float, typer.Option("--delay", metavar="SECONDS", min=0, help="Not before so long.")
    ] = 0.0,
    cluster: ClusterOption = DEFAULT_NAME,
    deadline_s: DeadlineOption = DEADLINE_S,
    as_json: AsJson = False,
) -> None:
    """Give values back, to be delivered again. Exit code 1 if a lease was lost."""
    _settle(context, cluster, deadline_s, as_json, lambda queue: queue.release(*tokens, delay_s=delay_s))


@reported
def reject(
    context: typer.Context,
    tokens: Tokens,
    is_dropped: Annotated[bool, typer.Option("--drop", help="Without a dead letter: it is gone.")] = False,
    cluster: ClusterOption = DEFAULT_NAME,
    deadline_s: DeadlineOption = DEADLINE_S,
    as_json: AsJson = False,
) -> None:
    """Have values delivered to nobody any more. Exit code 1 if a lease was lost."""
    _settle(
        context, cluster, deadline_s, as_json, lambda queue: queue.reject(*tokens, dead_letter=not is_dropped)
    )


@reported
def renew(
    context: typer.Context,
    tokens: Tokens,
    lease_s: LeaseOption = LEASE_S,
    cluster: ClusterOption = DEFAULT_NAME,
    deadline_s: DeadlineOption = DEADLINE_S,
    as_json: AsJson = False,
) -> None:
    """Let leases last longer, counted from now. Exit code 1 if a lease was lost."""
    _settle(context, cluster, deadline_s, as_json, lambda queue: queue.renew(*tokens, lease_s=lease_s))


@reported
def leases(
    context: typer.Context,
    cluster: ClusterOption = DEFAULT_NAME,
    deadline_s: DeadlineOption = DEADLINE_S,
    as_json: AsJson = False,
) -> None:
    """Count what is delivered, what waits to be (again), and dead letters."""
    with connected(cluster, deadline_s) as client:
        counts = client.queue(context.obj).leases()
    answer(as_json, to_builtins(counts), f"held {counts.held}  waiting {counts.waiting}  dead {counts.dead}")


@reported
def dead_letters(
    context: typer.Context,
    cluster: ClusterOption = DEFAULT_NAME,
    deadline_s: DeadlineOption = DEADLINE_S,
    as_json: AsJson = False,
) -> None:
    """List what is delivered to nobody any more: id, reason, how often it was delivered, and the value."""
    with connected(cluster, deadline_s) as client:
        letters = client.queue(context.obj).dead_letters()
    lines = (f"{each.id}\t{each.reason}\t{each.deliveries}\t{compact(each.value)}" for each in letters)
    answer(as_json, {"letters": to_builtins(letters)}, "\n".join(lines))


@reported
def requeue(
    context: typer.Context,
    ids: Ids = None,
    cluster: ClusterOption = DEFAULT_NAME,
    deadline_s: DeadlineOption = DEADLINE_S,
    as_json: AsJson = False,
) -> None:
    """Have dead letters delivered again by acquire."""
    with connected(cluster, deadline_s) as client:
        number = client.queue(context.obj).requeue_dead_letters(ids or None)
    answer(as_json, {"requeued": number}, str(number))


@reported
def discard(
    context: typer.Context,
    ids: Ids = None,
    cluster: ClusterOption = DEFAULT_NAME,
    deadline_s: DeadlineOption = DEADLINE_S,
    as_json: AsJson = False,
) -> None:
    """Forget dead letters."""
    with connected(cluster, deadline_s) as client:
        number = client.queue(context.obj).discard_dead_letters(ids or None)
    answer(as_json, {"discarded": number}, str(number))


COMMANDS: Final[Mapping[str, Callable[..., None]]] = {
    "acquire": acquire,
    "accept": accept,
    "release": release,
    "reject": reject,
    "renew": renew,
    "leases": leases,
    "dead-letters": dead_letters,
    "requeue": requeue,
    "discard": discard,
}
"""By the words that follow `quorate queue NAME`."""
