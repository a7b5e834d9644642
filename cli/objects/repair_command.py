"""`quorate repair OBJECT`: the remedy for an object whose decided state the replicas refuse, so that nothing goes on from it.

Owns the words. What is wrong and what becomes of it, `quorate.api_specs.mending` says.
"""

from typing import Annotated

import typer

from ...client_sdk.api.calls import repair as repair_call
from ..cluster.document import DEFAULT_NAME
from ..options import DEADLINE_S, ClusterOption, DeadlineOption
from ..output import AsJson, answer, reported
from .commands import connected


@reported
def repair(
    name: Annotated[
        str,
        typer.Argument(metavar="OBJECT", help="queue/NAME, register/NAME or dictionary/NAME/KEY."),
    ],
    cluster: ClusterOption = DEFAULT_NAME,
    deadline_s: DeadlineOption = DEADLINE_S,
    as_json: AsJson = False,
) -> None:
    """Set an object right whose decided state the replicas refuse. Tells each change, with what was taken out."""
    with connected(cluster, deadline_s) as client:
        told = client.perform(repair_call(name))
    answer(as_json, {"changes": list(told)}, "\n".join(told) or "nothing was wrong")
