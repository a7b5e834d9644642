"""`quorate repair OBJECT`: the remedy for an object whose decided state the replicas refuse, so that nothing goes on from it.

Owns the words. What is wrong and what becomes of it, `quorate.api_specs.mending` says.
"""

from typing import Annotated

import typer

from ...client_sdk.api.calls import repair as repair_call
from .asking import Answer, Asked, asking


@asking
def repair(
    asked: Asked,
    name: Annotated[
        str,
        typer.Argument(metavar="OBJECT", help="queue/NAME, register/NAME or dictionary/NAME/KEY."),
    ],
) -> Answer:
    """Set an object right whose decided state the replicas refuse. Tells each change, with what was taken out."""
    told = asked.client.perform(repair_call(name))
    return Answer({"changes": list(told)}, "\n".join(told) or "nothing was wrong")
