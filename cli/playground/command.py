"""`quorate playground`: replicas in a folder that goes away, and the live page on which one may kill them."""

import secrets
import socket
from typing import Annotated, Final

import typer

from ...measurement.faults.held_ports import LOCAL
from ..cluster.commands import ReplicasOption, stopped_at_end
from ..cluster.local_cluster import LocalCluster
from ..failure import Failure
from ..output import AsJson, answer, reported, say

STOP_S_MAX: Final = 2
"""For requests under way when it stops."""


@reported
def playground(
    replicas: ReplicasOption = 3,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Where the page is; 0: a free one.")
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Run replicas and a live page on which you kill and start them. Ctrl-C stops all, and removes all.

    Only this machine reaches the page, and only who has the address as it is
    printed can kill.
    """
    import uvicorn  # noqa: PLC0415 - help is shown where replicas cannot run

    from .server import playground_app  # noqa: PLC0415

    with stopped_at_end(None) as (root, at_end):
        listening = at_end.enter_context(_listening(port))
        cluster = at_end.enter_context(LocalCluster.create(root, replicas=replicas))
        cluster.start()
        cluster.ready()
        key = secrets.token_urlsafe(16)
        url = f"http://{LOCAL}:{listening.getsockname()[1]}/ui#key={key}"
        answer(as_json, {"url": url, **cluster.as_json()}, url)
        say(
            f"Open this address in a browser: there you kill and start {', '.join(cluster.urls)}. Ctrl-C stops all.\n"
            f"In another terminal: export QUORATE_CLUSTER={cluster.document_path}"
        )
        config = uvicorn.Config(
            playground_app(cluster, key),
            log_config=None,
            access_log=False,
            ws="none",
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=STOP_S_MAX,
        )
        uvicorn.Server(config).run(sockets=[listening])


def _listening(port: int) -> socket.socket:
    try:
        return socket.create_server((LOCAL, port))
    except OSError as error:
        raise Failure(
            f"Port {port} is taken ({error}): stop what listens there, or leave out --port."
        ) from None
