"""Runs one replica: opens its folder, serves HTTP until told to stop.

Owns the process: signals, logging, the socket's address. Called by the command line.
"""

import asyncio
import logging
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import uvicorn
from msgspec import Struct

from ...api_specs.cluster import ClusterDocument
from ...api_specs.configuration import difference_of_documents, keeping_states
from ...api_specs.limits import ADDRESS_SHARE_MAX, CONNECTIONS_MAX, IDLE_S_MAX, Capacity
from ...client_sdk.api.connect import is_url
from ...client_sdk.errors import BadInput
from ...client_sdk.transport.tls import SYSTEM_TRUST, ClientTls
from ..access.token_list import Access, nobody_asked
from ..data_folder.identity import Folder, open_folder
from ..http.connections import Bounds
from ..http.host_header import AllowedHosts, is_loopback
from ..http.tls.context import BadTls, ServerContext, ServerTls
from ..logs.audit import audit
from ..service.embedded import embedded_front_end
from ..service.member import Member
from ..upkeep.probing import Probes
from .accepting import ACCEPTS_MAX
from .app import ReplicaApp, create_app
from .direct import bounded
from .exposure import exposure_problem
from .shutdown import CUT_S, Server

if TYPE_CHECKING:
    from ..service.tracing import RequestTraces

LOOK_S: Final = 1.0
"""How often the files of tokens and certificate are looked at."""
FILES_BESIDE: Final = 200 + 2 * ACCEPTS_MAX
"""Files that a replica may have open besides its callers' connections: its database, the way to other replicas."""
BACKLOG: Final = 1024
SWITCH_INTERVAL_S: Final = 0.001
"""Event loop and writer thread share one interpreter; the default of 5 ms would be felt in every commit."""

_log = logging.getLogger(__name__)


class ServeRefused(Exception):
    """The replica must not be served like that; the sentence says what to do."""


class Door(Struct, frozen=True):
    """How a replica is reached, and by whom. `host` and `port` when they are not those of its URL in the cluster file; `joins_at` is that URL where
    it is to become a member;
    `tls` is its own certificate, `client_tls` is how it calls the others; `address_share` of its connections may come from one
    address; the rest as in `exposure`."""

    host: str | None = None
    port: int | None = None
    tls: ServerTls | None = None
    client_tls: ClientTls = SYSTEM_TRUST
    allows_plain: bool = False
    allows_anyone: bool = False
    address_share: float = ADDRESS_SHARE_MAX
    joins_at: str = ""


class Settings(Struct, frozen=True):
    """How a replica works. `endpoints` maps ids of other replicas to URLs that override the document's (proxies, tunnels);
    `traces` is the URL of a collector, without which nothing is traced; `clock_offset_s` makes its clock wrong, for tests; `probes` is where it notes
    what it sees of the others, if it does."""

    capacity: Capacity = Capacity()
    endpoints: Mapping[str, str] | None = None
    traces: str = ""
    clock_offset_s: float = 0.0
    probes: Probes | None = None


def serve(
    document: ClusterDocument,
    replica_id: str,
    folder: Path,
    *,
    door: Door = Door(),  # noqa: B008 - it cannot change
    access: Access | None = None,
    settings: Settings = Settings(),  # noqa: B008 - it cannot change
) -> None:
    """Serve replica `replica_id` from its data `folder` until SIGTERM or SIGINT. SIGHUP reads the tokens and the certificate
    again; so does a change of their files.

    `access` says which tokens are accepted (left out: none is asked for).
    Raises FolderRefused before it listens, or ServeRefused when it must not or cannot.
    """
    access = access or nobody_asked()
    opened = open_folder(folder, document, replica_id, joins_at=door.joins_at)
    try:
        host, port = _address(opened.url, door)
        context = _checked(host, opened.url, door, access)
        followed = _traces(settings.traces, replica_id)
    except BaseException:
        opened.abandon()
        raise
    if opened.lost is not None:
        _log.error("%s", opened.lost)
    _tell_configuration(opened)
    _prepare_process()
    if settings.clock_offset_s:
        _log.warning("the clock is wrong by %+g s, as was asked for", settings.clock_offset_s)
    offset_us = round(settings.clock_offset_s * 1e6)
    member = Member(
        opened,
        wall_us=lambda: time.time_ns() // 1000 + offset_us,
        endpoints=settings.endpoints,
        traces=followed,
        capacity=settings.capacity,
    )
    app = _application(member, door, access, context, settings.probes)
    config = _config(app, host, port, context, door.address_share)
    _log.info(
        "replica %s of cluster %s starts on %s:%s from %s", replica_id, document.name, host, port, folder
    )
    facts = {"replica": replica_id, "store": opened.identity.store, "incarnation": opened.incarnation}
    audit(
        "start",
        **facts,
        address=f"{host}:{port}",
        tls=door.tls is not None,
        mutual=bool(door.tls and door.tls.client_ca),
        tokens=[each.shown for each in access.known.credentials],
    )
    try:
        _listen(config, app)
    finally:
        member.close()
        if member.traces is not None:
            member.traces.close()
    audit("stop", **facts)
    _log.info("replica %s has stopped", replica_id)


def _tell_configuration(opened: Folder) -> None:
    """Where it was chosen while the cluster ran: what the file says of members, votes and rules does not count."""
    if opened.chosen is None:
        return
    _log.info("configuration %d is in force, chosen while the cluster ran", opened.chosen.number)
    file = keeping_states(opened.file, opened.document)
    if found := difference_of_documents(opened.document, file):
        _log.warning(
            "the cluster file differs from it, which does not count (`quorate change` changes it): %s", found
        )


def _prepare_process() -> None:
    """What holds for all that this process does from now on."""
    os.umask(0o077)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the loop runs, which then listens for it


def _listen(config: uvicorn.Config, app: ReplicaApp) -> None:
    """Answer requests until told to stop. Raises ServeRefused."""
    try:
        Server(config, app.shutdown).run()
    except SystemExit:  # uvicorn's way to say so, with an exit code that means something else here
        raise ServeRefused(
            f"no replica can listen on {config.host}:{config.port}, for the reason in the line above: stop what listens "
            "there, or choose another address with --host and --port"
        ) from None


def _traces(url: str, replica_id: str) -> "RequestTraces | None":
    """Imports what traces take only where they are asked for. Raises ServeRefused."""
    if not url:
        return None
    if not is_url(url):
        raise ServeRefused(f"--traces {url!r} must look like http://host:4318")
    try:
        from ...client_sdk.tracing.otlp import provider_to  # noqa: PLC0415
        from ..service.tracing import RequestTraces  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ServeRefused(f"--traces needs the package {error.name}: pip install 'quorate[otel]'") from None
    provider = provider_to(url, "quorate-replica", replica_id)
    return RequestTraces(provider, replica_id, provider)


def _application(
    member: Member, door: Door, access: Access, context: ServerContext | None, probes: Probes | None
) -> ReplicaApp:
    names = ["127.0.0.1", urlsplit(member.folder.url).hostname or ""]
    host, _ = _address(member.folder.url, door)
    return create_app(
        member,
        lambda each: embedded_front_end(each, access.own_token, door.client_tls),
        access=access,
        hosts=AllowedHosts(names, is_loopback=is_loopback(host)),
        tls=door.client_tls,
        beside=lambda: _renew(access, context),
        probes=probes,
    )


def _address(url: str, door: Door) -> tuple[str, int]:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return door.host or parts.hostname or "127.0.0.1", port if door.port is None else door.port


def _checked(host: str, url: str, door: Door, access: Access) -> ServerContext | None:
    """The replica's certificate, once nothing speaks against listening like that. Raises ServeRefused."""
    problem = exposure_problem(
        host,
        url,
        has_tokens=not access.is_open,
        has_tls=door.tls is not None,
        allows_plain=door.allows_plain,
        allows_anyone=door.allows_anyone,
    )
    if (problem := problem or access.own_problem()) is not None:
        raise ServeRefused(problem)
    try:
        if url.startswith("https:"):
            door.client_tls.context()
        return None if door.tls is None else ServerContext(door.tls)
    except (BadTls, BadInput) as error:
        raise ServeRefused(str(error)) from None


def _config(
    app: ReplicaApp, host: str, port: int, context: ServerContext | None, address_share: float
) -> uvicorn.Config:
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=IDLE_S_MAX,
        timeout_graceful_shutdown=CUT_S,
    )
    config.load()
    bounds = Bounds(_connections_max(), address_share)
    config.http_protocol_class = bounded(bounds, app.traffic, app.direct, context)
    return config


def _connections_max() -> int:
    """As many as the limits say, if the system allows so many files; the soft bound is raised as far as it may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS_MAX + FILES_BESIDE
    if soft < wanted and (hard == resource.RLIM_INFINITY or soft < hard):
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return CONNECTIONS_MAX if soft >= wanted else max(1, soft - min(FILES_BESIDE, soft // 2))


async def _renew(access: Access, context: ServerContext | None) -> None:
    """Read tokens and certificate again when their files change, and at SIGHUP; for ever."""
    look = partial(_look, access, context)
    if threading.current_thread() is threading.main_thread():
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, partial(look, wanted=True))
    while True:
        await asyncio.sleep(LOOK_S)
        look()


def _look(access: Access, context: ServerContext | None, *, wanted: bool = False) -> None:
    try:
        access.look(wanted=wanted)
        if context is not None and context.look(wanted=wanted):
            audit("certificate-read")
    except BadTls as error:
        _log.error("the certificate used before stays in use: %s", error)
    except Exception:  # noqa: BLE001 - whatever it is, the next look may go well, and nobody else would hear of it
        _log.exception("tokens and certificate could not be read again")
