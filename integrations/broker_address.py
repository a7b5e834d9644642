"""What a Kombu connection says about a cluster: its URL, TLS and transport options, checked, as `connect` wants them. Pure.

Owns the forms of broker URLs and the names of options. Must not know Kombu: it reads the attributes that a
`kombu.Connection` has.
"""

import os
import re
import ssl
from collections.abc import Mapping
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from ..client_sdk import BadInput, ClientTls
from ..client_sdk.api.connect import DEADLINE_S, is_url

SCHEME: Final = "quorate"
"""`quorate+http://HOST:PORT` and `quorate+https://…` for any one replica; `quorate://PATH` for a cluster file."""

LEASE_S: Final = 30.0
LEASE_S_MIN: Final = 2.0
PUBLISH_S: Final = 20.0
"""Longer than what else is asked: a worker that cannot add a retry or the rest of a chain can only report a failure."""
POLLING_S: Final = 0.2
POLLING_S_MIN: Final = 0.005

FORMS: Final = (
    "use quorate+http://HOST:PORT (or quorate+https://…) of any one replica, or quorate:// and the path of the "
    "cluster file"
)

_OPTIONS: Final = frozenset(
    {"token", "endpoints", "deadline_s", "lease_s", "max_deliveries", "polling_interval", "publish_s"}
)
_OPTIONS_OF_KOMBU: Final = frozenset(
    {
        "body_encoding",
        "callback",
        "connect_retries_timeout",
        "deadletter_queue",
        "errback",
        "interval_max",
        "interval_start",
        "interval_step",
        "max_retries",
    }
)
_TLS_FILES: Final = {"ca_certs": "ca", "certfile": "certificate", "keyfile": "key"}
_HOST_AND_PORT: Final = re.compile(r"[A-Za-z0-9.-]+:[0-9]+/*")
"""What other brokers' URLs have behind the scheme: it is taken for no path, though a file might have such a name."""
_SECRET: Final = re.compile(r"//[^/@]*@")


class Connection(Protocol):
    """What is read of a `kombu.Connection`. After a switch to another URL of several, `hostname` is a mere host."""

    hostname: str | None
    port: int | str | None
    transport_cls: Any
    transport_options: Mapping[str, Any]
    ssl: Any


class Address(Struct, frozen=True):
    """A cluster, and how to use it. Times are in seconds."""

    cluster: str
    endpoints: Mapping[str, str]
    token: str | None
    tls: ClientTls | None
    deadline_s: float
    publish_s: float
    lease_s: float
    polling_s: float
    max_deliveries: int | None

    def __repr__(self) -> str:
        return f"Address({self.cluster!r})"  # without the token


def address_of(connection: Connection) -> Address:
    """What the connection says. Raises BadInput, which names what is wrong and what to write instead."""
    options = connection.transport_options
    _check_names(options)
    cluster = _cluster_of(connection)
    deadline_s = _number(options, "deadline_s", DEADLINE_S, least=0.1)
    return Address(
        cluster=cluster,
        endpoints=options.get("endpoints") or {},
        token=_text(options, "token"),
        tls=_tls_of(connection.ssl, cluster),
        deadline_s=deadline_s,
        publish_s=_number(options, "publish_s", max(deadline_s, PUBLISH_S), least=0.1),
        lease_s=_number(options, "lease_s", LEASE_S, least=LEASE_S_MIN),
        polling_s=_number(options, "polling_interval", POLLING_S, least=POLLING_S_MIN),
        max_deliveries=_count(options, "max_deliveries"),
    )


def shown(connection: Connection) -> str:
    """The broker URL for people: whatever stands there, without what might be a secret."""
    return _SECRET.sub("//**@", _broker_url(connection))


def _broker_url(connection: Connection) -> str:
    """The URL as it was written, put together again where Kombu took it apart."""
    place, scheme = connection.hostname or "", str(connection.transport_cls)
    if "://" not in place:
        return f"{scheme}://{place}" + (f":{connection.port}" if connection.port else "")
    return place if place.startswith(SCHEME) else f"{SCHEME}+{place}"


def _cluster_of(connection: Connection) -> str:
    """What `connect` is given: the path of a document, or the URL of a replica."""
    text = _broker_url(connection)
    scheme, _, rest = text.partition("://")
    if scheme == SCHEME and _HOST_AND_PORT.fullmatch(rest):
        raise BadInput(
            f"broker URL {text}: quorate:// is for the path of the cluster file; for a replica write {SCHEME}+http://{rest}, "
            f"or {SCHEME}+https://{rest}"
        )
    if scheme == SCHEME and rest:
        return os.path.expanduser(rest)
    url = f"{scheme.removeprefix(f'{SCHEME}+')}://{rest}".rstrip("/")
    if "@" in urlsplit(url).netloc:
        raise BadInput(
            f"broker URL {shown(connection)}: it must hold no user or password; replicas want a token, which goes into "
            "broker_transport_options={'token': …}"
        )
    if scheme.startswith(f"{SCHEME}+") and is_url(url):
        return url
    raise BadInput(f"broker URL {shown(connection)}: {FORMS}")


def _check_names(options: Mapping[str, Any]) -> None:
    unknown = sorted(options.keys() - _OPTIONS - _OPTIONS_OF_KOMBU)
    if not unknown:
        return
    advice = f"use {', '.join(sorted(_OPTIONS))}"
    if "visibility_timeout" in unknown:
        advice = "leave it out: leases of lease_s seconds are renewed for as long as a worker lives"
    raise BadInput(f"broker_transport_options: unknown {', '.join(unknown)}: {advice}")


def _tls_of(told: Any, cluster: str) -> ClientTls | None:
    """The files of Celery's `broker_use_ssl`; None when it is not set."""
    if not told:
        return None
    if cluster.startswith("http://"):
        raise BadInput("broker_use_ssl is set, but the broker URL says http: write quorate+https://…")
    files = dict(told) if isinstance(told, Mapping) else {}
    if files.pop("cert_reqs", ssl.CERT_REQUIRED) not in (ssl.CERT_REQUIRED, "required", "CERT_REQUIRED"):
        raise BadInput("broker_use_ssl: cert_reqs: certificates are always checked; leave it out")
    if unknown := ", ".join(sorted(map(str, files.keys() - _TLS_FILES.keys()))):
        raise BadInput(f"broker_use_ssl: unknown {unknown}: use {', '.join(_TLS_FILES)}")
    return ClientTls(**{_TLS_FILES[name]: os.fspath(path) for name, path in files.items()})


def _text(options: Mapping[str, Any], name: str) -> str | None:
    text = options.get(name)
    if text is not None and not isinstance(text, str):
        raise BadInput(f"broker_transport_options: {name} must be text")
    return text


def _number(options: Mapping[str, Any], name: str, default: float, *, least: float) -> float:
    number = options.get(name, default)
    if not isinstance(number, int | float) or not least <= number < float("inf"):
        raise BadInput(
            f"broker_transport_options: {name} is {number!r}: use a number of seconds from {least:g} on"
        )
    return float(number)


def _count(options: Mapping[str, Any], name: str) -> int | None:
    count = options.get(name)
    if count is not None and (not isinstance(count, int) or count < 1):
        raise BadInput(
            f"broker_transport_options: {name} is {count!r}: use a whole number from 1 on, or leave it out"
        )
    return count
