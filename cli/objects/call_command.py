"""`quorate call TYPE/NAME OPERATION …`: one call on an object of a type of your own."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ...adts.plain_class import BadClass, thawed
from ...adts.specification import Response
from ...client_sdk import Client, connect
from ...client_sdk.api.objects import OwnType
from ...client_sdk.transport.tls import from_environment
from ..cluster.document import DEFAULT_NAME, folder_of, read_document, url_of
from ..credentials import read_token
from ..failure import EXIT_FAILED, Usage
from ..options import ClusterOption, DeadlineOption
from ..output import AsJson, answer, reported
from ..quorums.data_types import class_of
from ..values import compact, parse_value
from .asking import Weak


@reported
def call(
    object_name: Annotated[
        str,
        typer.Argument(metavar="TYPE/NAME", help="As cart/ann; the cluster file's [types] name types."),
    ],
    operation: Annotated[str, typer.Argument(metavar="OPERATION", help="A method of the class.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE…", help="Its arguments; values are JSON.")
    ] = None,
    cluster: ClusterOption = DEFAULT_NAME,
    deadline_s: DeadlineOption = None,
    key: Annotated[
        str | None, typer.Option("--key", help="An idempotency key: a repeat with it takes effect once.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Call an operation of an object of your own type, and show what it returned.

    Exit code 1 where the operation ended with an exception of the class: its name is shown, and nothing was changed.
    """
    type_name, _, name = object_name.partition("/")
    given = dict(map(_argument, arguments or ()))
    place = url_of(cluster) or read_document(Path(cluster))
    weak = Weak()
    with connect(place, token=read_token(), tls=from_environment(), deadline_s=deadline_s) as client:
        client.on_finished(weak.note)
        found_type = type_of(client, type_name, cluster)
        try:
            invocation = found_type.type.call(operation, **given)
        except BadClass as error:
            raise Usage(f"{error}.") from None
        found: Response = client.perform(found_type.call(name, invocation, key, lambda response: response))
    result = thawed(found.results[0]) if found.results else None
    told: dict[str, Any] = {"outcome": found.condition} | ({"result": result} if found.results else {})
    is_ok = found.condition == "Ok"
    answer(
        as_json,
        weak.labelled(told),
        "" if is_ok and not found.results else compact(result) if is_ok else found.condition,
    )
    if not is_ok:
        raise typer.Exit(EXIT_FAILED)


def _argument(word: str) -> tuple[str, Any]:
    name, equals, value = word.partition("=")
    if not equals:
        raise Usage(f"{word!r} is not NAME=VALUE, as count=2 or 'item=\"book\"'.")
    return name, parse_value(value)


def type_of(client: Client, type_name: str, cluster: str) -> OwnType:
    """The type of that name, with the code that the document names, which may stand in the document's folder, or in this one."""
    if type_name not in client.document.own_types:
        known = ", ".join(client.document.own_types) or "none"
        raise Usage(f"The cluster has no type {type_name!r}: its document's [types] name {known}.")
    return OwnType(
        client.document, class_of(client.document.own_types, type_name, folder_of(cluster)), type_name
    )
