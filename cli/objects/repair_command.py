"""`quorate repair OBJECT`: the remedy for an object whose decided state the replicas refuse, so that nothing goes on from it.

Owns the words. What is wrong and what becomes of it, `quorate.api_specs.mending` says.
"""

from typing import Annotated

import typer

from ...adts.types.catalogue import adt_of
from ...client_sdk.api.calls import repair as repair_call
from ..failure import Usage
from .asking import Answer, Asked, asking
from .call_command import type_of
from .trace_command import checked_object


@asking
def repair(
    asked: Asked,
    name: Annotated[
        str,
        typer.Argument(metavar="OBJECT", help="queue/NAME, register/NAME, dictionary/NAME/KEY or TYPE/NAME."),
    ],
    anew: Annotated[
        bool,
        typer.Option(
            "--anew",
            help="An object of a type of your own begins with the state of a new one. What it held is printed. Calls that are "
            "stored and have not run yet run on the new state.",
        ),
    ] = False,
) -> Answer:
    """Set an object right whose decided state the replicas refuse, or whose log holds a call that its class cannot run. Tells each change,
    with what was taken out."""
    name = checked_object(name, asked.client.document.own_types)
    type_name = adt_of(name)
    is_own = type_name in asked.client.document.own_types
    if anew and not is_own:
        command = {"dictionary": "dict"}.get(type_name, type_name)
        raise Usage(
            f"--anew is for objects of types of your own: {name} is emptied by its own commands (`quorate {command} --help`)."
        )
    found = type_of(asked.client, type_name, asked.cluster).type if is_own else None
    told = asked.client.perform(repair_call(name, found, is_anew=anew))
    return Answer({"changes": list(told)}, "\n".join(told) or "nothing was wrong")
