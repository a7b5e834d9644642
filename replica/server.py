"""Runs one replica: opens its folder, serves HTTP until told to stop.

Owns the process: signals, logging, the socket's address. Called by the command line.
"""

import ipaddress
import logging
import signal
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import uvicorn

from quorate.api_specs.cluster import ClusterDocument
from quorate.replica.app import create_app
from quorate.replica.embedded import embedded_front_end
from quorate.replica.identity import open_folder
from quorate.replica.member import Member

KEEP_ALIVE_S: Final = 30
SHUTDOWN_S: Final = 5
BACKLOG: Final = 1024
SWITCH_INTERVAL_S: Final = 0.001
"""Event loop and writer thread share one interpreter; the default of 5 ms would be felt in every commit."""

_log = logging.getLogger(__name__)


class ServeRefused(Exception):
    """The replica must not be served like that; the sentence says what to do."""


def serve(
    document: ClusterDocument,
    replica_id: str,
    folder: Path,
    *,
    host: str | None = None,
    port: int | None = None,
    token: str | None = None,
    clock_offset_s: float = 0.0,
    endpoints: Mapping[str, str] | None = None,
) -> None:
    """Serve replica `replica_id` from its data `folder` until SIGTERM or SIGINT.

    `host` and `port` to listen on, when they are not those of its URL in the cluster document. `token` is asked of every
    caller; without one, only loopback addresses are allowed. `clock_offset_s` makes its clock wrong, for tests. `endpoints`
    maps ids of other replicas to URLs that override the document's (proxies, tunnels).
    Raises FolderRefused before it listens, or ServeRefused when it must not or cannot.
    """
    opened = open_folder(folder, document, replica_id)
    try:
        url = urlsplit(document.urls[replica_id])
        host = host or url.hostname or "127.0.0.1"
        port = port if port is not None else url.port or (443 if url.scheme == "https" else 80)
        _check_exposure(host, token)
    except BaseException:
        opened.abandon()
        raise
    if opened.lost is not None:
        _log.error("%s", opened.lost)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    _ignore_repeated_signals()
    if clock_offset_s:
        _log.warning("the clock is wrong by %+g s, as was asked for", clock_offset_s)
    offset_us = round(clock_offset_s * 1e6)
    member = Member(
        document,
        replica_id,
        opened,
        wall_us=lambda: time.time_ns() // 1000 + offset_us,
        endpoints=endpoints,
    )
    app = create_app(member, lambda each: embedded_front_end(each, token), token)
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
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=SHUTDOWN_S,
    )
    _log.info(
        "replica %s of cluster %s starts on %s:%s from %s", replica_id, document.name, host, port, folder
    )
    try:
        uvicorn.Server(config).run()
    except SystemExit:  # uvicorn's way to say so, with an exit code that means something else here
        raise ServeRefused(
            f"no replica can listen on {host}:{port}, for the reason in the line above: stop what listens there, or "
            "choose another address with --host and --port"
        ) from None
    finally:
        member.close()
    _log.info("replica %s has stopped", replica_id)


def log_to_stderr(replica_id: str, level: int = logging.INFO) -> None:
    """One line per event: time, level, replica, module, message."""
    logging.basicConfig(
        stream=sys.stderr,
        level=level,
        format=f"%(asctime)s %(levelname)s replica={replica_id} %(name)s: %(message)s",
    )
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("httpx").setLevel(logging.WARNING)


def _check_exposure(host: str, token: str | None) -> None:
    if token is not None:
        if not token or not token.isascii() or not token.isprintable():
            raise ServeRefused("the token must be printable ASCII text, and not empty")
        return
    if not _is_loopback(host):
        raise ServeRefused(
            f"{host} is not a loopback address, and anyone who reaches it could read and write: set a token "
            "(QUORATE_TOKEN), or listen on 127.0.0.1"
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _ignore_repeated_signals() -> None:
    """uvicorn stops at these signals, then raises them again, which would end the process as if it had failed."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
