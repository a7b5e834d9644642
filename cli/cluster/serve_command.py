"""`quorate serve`: one replica, until a signal.

Owns its options, and the door and settings of the replica that they say. The replica room is imported only when one is
served, so that the other commands work where only the client is installed.
"""

import enum
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ...adts.collector import collector_off
from ...api_specs.cluster import ClusterDocument
from ...api_specs.limits import ADDRESS_SHARE_MAX, PROBE_DAYS_MAX, STOP_S_MAX, Capacity
from ...client_sdk.api.connect import is_url
from ...client_sdk.transport.tls import from_environment
from ...measurement.plan.durations import BadDuration, parse_duration
from ...replica.access.token_list import Access, BadTokens, from_file, from_text, one_token
from ..credentials import read_token
from ..failure import EXIT_FAILED, Failure, Usage
from ..files import used_as_folder
from ..options import DataOption, DocumentOption, IdOption
from ..output import reported
from .document import read_document

if TYPE_CHECKING:
    from ...replica.http.tls.context import ServerTls
    from ...replica.server.server import Door, Settings
    from ...replica.upkeep.probing import Probes

_CLOCK_OFFSET_S_MAX: Final = 366 * 86400
"""More than any test needs; beyond what timestamps hold, janitor and front end would fail at every step."""

_ADDRESS_SHARE_MIN: Final = 0.001
"""Of 2,000 connections, two."""


class LogFormat(enum.Enum):
    """The words of `--log-format`."""

    TEXT = "text"
    JSON = "json"


LogFormatOption = Annotated[
    LogFormat, typer.Option("--log-format", help="How each line of its log, on standard error, is written.")
]
TracesOption = Annotated[
    str,
    typer.Option(
        "--traces",
        metavar="URL",
        envvar="QUORATE_TRACES",
        help="Send traces of operations to that collector (OTLP over HTTP, as http://127.0.0.1:4318).",
    ),
]
PortOption = Annotated[
    int | None,
    typer.Option("--port", min=1, max=65535, help="Listen there instead of at the document's port."),
]
ClockOffsetOption = Annotated[
    float,
    typer.Option(
        "--clock-offset",
        metavar="SECONDS",
        min=-_CLOCK_OFFSET_S_MAX,
        max=_CLOCK_OFFSET_S_MAX,
        help="Make the replica's clock wrong, to test what that does.",
    ),
]
AddressShareOption = Annotated[
    float,
    typer.Option(
        "--address-share",
        metavar="SHARE",
        min=_ADDRESS_SHARE_MIN,
        max=1.0,
        help="So large a share of the connections may come from one address; 1.0 where all callers are behind one.",
    ),
]


def _bound(name: str, what: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        f"--{name}", min=1, metavar="N", envvar=f"QUORATE_{name.upper().replace('-', '_')}", help=what
    )
    return option


CAPACITY: Final = Capacity()
ObjectsMaxOption = Annotated[int, _bound("objects-max", "Refuse new objects when it has so many.")]
LogEntriesMaxOption = Annotated[
    int, _bound("log-entries-max", "Refuse new entries of an object whose log has so many.")
]
DiskBytesMaxOption = Annotated[
    int, _bound("disk-bytes-max", "Refuse new entries when its database holds so many bytes.")
]
DiskFreeMinOption = Annotated[
    int, _bound("disk-free-min", "Refuse new entries when its disk has fewer bytes free.")
]
HostOption = Annotated[
    str | None, typer.Option("--host", help="Listen there instead of at the document's host.")
]
CertificateOption = Annotated[
    str, typer.Option("--tls-cert", metavar="FILE", help="Its certificate (PEM), for an https:// URL.")
]
KeyOption = Annotated[str, typer.Option("--tls-key", metavar="FILE", help="The certificate's key.")]
ClientCaOption = Annotated[
    str,
    typer.Option("--tls-client-ca", metavar="FILE", help="Let in only callers with certificates of it."),
]
PlainOption = Annotated[
    bool, typer.Option("--allow-plain-http", help="Listen beyond this machine without TLS.")
]
AnyoneOption = Annotated[
    bool, typer.Option("--allow-anyone", help="Listen beyond this machine without tokens.")
]
EndpointOption = Annotated[
    list[str] | None,
    typer.Option(
        "--endpoint",
        metavar="ID=URL",
        help="Find that other replica there instead of at its URL: a proxy, a tunnel. Repeat it.",
    ),
]
JoinOption = Annotated[
    str,
    typer.Option(
        "--join",
        metavar="URL",
        help="Serve a replica at URL that is to become a member: see `quorate member add`. For one that is, it says nothing.",
    ),
]
ProbeLogOption = Annotated[
    Path | None,
    typer.Option(
        "--probe-log",
        metavar="DIR",
        envvar="QUORATE_PROBE_LOG",
        help="Note there, at each step, which replicas vote as it sees them, for `quorate report --cluster`; replicas may share it.",
    ),
]
PROBE_EVERY: Final = "10s"
_PROBE_EVERY_S: Final = (0.1, 3600.0)
ProbeEveryOption = Annotated[
    str,
    typer.Option(
        "--probe-every", metavar=PROBE_EVERY, help="With --probe-log: the step; the same for all replicas."
    ),
]
ProbeDaysOption = Annotated[
    int, typer.Option("--probe-days", metavar="N", min=1, help="With --probe-log: keep so many days.")
]
StopOption = Annotated[bool, typer.Option("--stop-with-parent", hidden=True)]
ErrorAsJson = Annotated[bool, typer.Option("--json", help="Tell an error as one JSON line.")]


@reported
def serve(
    cluster: DocumentOption,
    replica_id: IdOption,
    data: DataOption,
    host: HostOption = None,
    port: PortOption = None,
    tls_cert: CertificateOption = "",
    tls_key: KeyOption = "",
    tls_client_ca: ClientCaOption = "",
    allow_plain_http: PlainOption = False,
    allow_anyone: AnyoneOption = False,
    clock_offset_s: ClockOffsetOption = 0.0,
    endpoint: EndpointOption = None,
    join: JoinOption = "",
    log_format: LogFormatOption = LogFormat.TEXT,
    traces: TracesOption = "",
    address_share: AddressShareOption = ADDRESS_SHARE_MAX,
    objects_max: ObjectsMaxOption = CAPACITY.objects_max,
    log_entries_max: LogEntriesMaxOption = CAPACITY.log_entries_max,
    disk_bytes_max: DiskBytesMaxOption = CAPACITY.disk_bytes_max,
    disk_free_min: DiskFreeMinOption = CAPACITY.disk_free_min,
    probe_log: ProbeLogOption = None,
    probe_every: ProbeEveryOption = PROBE_EVERY,
    probe_days: ProbeDaysOption = PROBE_DAYS_MAX,
    stop_with_parent: StopOption = False,
    as_json: ErrorAsJson = False,
) -> None:
    """Run one replica until Ctrl-C or SIGTERM; SIGHUP reads tokens and certificate again.

    QUORATE_TOKENS_FILE names the list of tokens it accepts (`quorate token new` makes them); QUORATE_TOKEN or
    QUORATE_TOKEN_FILE is what it sends to the other replicas, and, without a list, the one it accepts.
    """
    del as_json  # It has no answer; `reported` looks at it when it fails.
    if stop_with_parent:
        threading.Thread(target=_stop_at_end_of_input, name="parent-watch", daemon=True).start()
    with collector_off():
        from ...replica.server.server import Door, Settings  # noqa: PLC0415

    document = read_document(cluster)
    if document.own_types:  # Their code may stand beside the document.
        sys.path.append(str(Path(cluster).resolve().parent))
    tls = _tls(tls_cert, tls_key, tls_client_ca)
    if join and not is_url(join):
        raise Usage(f"--join {join!r} must be the replica's own URL, as http://127.0.0.1:8004.")
    door = Door(host, port, tls, from_environment(), allow_plain_http, allow_anyone, address_share, join)
    capacity = Capacity(objects_max, log_entries_max, disk_bytes_max, disk_free_min)
    endpoints = _endpoints(document, replica_id, endpoint or [])
    probes = None if probe_log is None else _probes(probe_log, replica_id, probe_every, probe_days)
    settings = Settings(capacity, endpoints, traces, clock_offset_s, probes)
    _run(document, replica_id, data, door, settings, is_json=log_format is LogFormat.JSON)


def _run(
    document: ClusterDocument,
    replica_id: str,
    data: Path,
    door: "Door",
    settings: "Settings",
    *,
    is_json: bool,
) -> None:
    """Serve until a signal; Failure when the folder or the address cannot be used, Usage where the folder is the wrong one: who starts the
    replica again goes by that."""
    from ...replica.data_folder.identity import FolderBusy, FolderRefused  # noqa: PLC0415
    from ...replica.logs.formats import log_to_stderr  # noqa: PLC0415
    from ...replica.server.server import ServeRefused, serve  # noqa: PLC0415

    access = _access()
    log_to_stderr(replica_id, is_json=is_json)
    try:
        serve(document, replica_id, data, door=door, access=access, settings=settings)
    except (ServeRefused, FolderBusy) as error:
        raise Failure(f"{error}.") from None
    except FolderRefused as error:
        raise Usage(f"{error}.") from None


def _probes(folder: Path, replica_id: str, every: str, days: int) -> "Probes":
    """Where it notes what it sees, in a folder that is made where it is missing."""
    from ...replica.data_folder.private_folders import make_private_folder  # noqa: PLC0415
    from ...replica.logs.probe_log import ProbeLog  # noqa: PLC0415
    from ...replica.upkeep.probing import Probes  # noqa: PLC0415

    every_s = probe_step_s(every)
    with used_as_folder(folder, "--probe-log"):
        make_private_folder(folder)
    return Probes(ProbeLog(folder, replica_id, days), every_s)


def probe_step_s(every: str) -> float:
    """The seconds of `--probe-every`."""
    low_s, high_s = _PROBE_EVERY_S
    try:
        found_s = parse_duration(every)
    except BadDuration as error:
        raise Usage(f"--probe-every: {error}") from None
    if not low_s <= found_s <= high_s:
        raise Usage(f"--probe-every {every}: give {low_s:g}s to 1h")
    return found_s


def _tls(certificate: str, key: str, client_ca: str) -> "ServerTls | None":
    """Its certificate, the key and the authority of its callers; empty where not given."""
    from ...replica.http.tls.context import ServerTls  # noqa: PLC0415

    if bool(certificate) != bool(key) or (client_ca and not certificate):
        raise Usage("Give --tls-cert and --tls-key together; --tls-client-ca goes with both.")
    return ServerTls(certificate, key, client_ca) if certificate else None


def _access() -> Access:
    """Which tokens the environment says are accepted."""
    token = read_token()
    file, text = os.environ.get("QUORATE_TOKENS_FILE", ""), os.environ.get("QUORATE_TOKENS", "")
    if file and text:
        raise Usage("QUORATE_TOKENS_FILE and QUORATE_TOKENS are both set: keep one.")
    try:
        if file:
            return from_file(Path(file), token)
        return from_text(text, token) if text else one_token(token)
    except BadTokens as error:
        raise Usage(f"{error}.") from None


def _endpoints(document: ClusterDocument, own: str, words: list[str]) -> dict[str, str]:
    """Where other replicas are found instead of at their URLs."""
    found: dict[str, str] = {}
    for text in words:
        replica, _, url = text.partition("=")
        if not is_url(url):
            raise Usage(f"--endpoint {text!r} is not ID=URL, as --endpoint r2=http://127.0.0.1:9002.")
        others = [id for id in document.urls if id != own]
        if replica not in others:
            raise Usage(
                f"--endpoint {text!r}: {own} has no other replica {replica!r}; they are {', '.join(others) or 'none'}."
            )
        found[replica] = url
    return found


def _stop_at_end_of_input() -> None:
    """Stops this process when the parent's end of the pipe closes, which happens however the parent ends."""
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_S_MAX)
    os._exit(EXIT_FAILED)
