"""Which Host and Origin a request may name.

A page in a browser can reach what listens on 127.0.0.1: it gives its own host's name that address (DNS rebinding), or it
sends a request that needs no permission. The first names a foreign Host, the second a foreign Origin. A link or an
image of another page names neither, so what browsers say of where a request comes from (Sec-Fetch-Site) counts, too. Owns these
checks.
"""

import ipaddress
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from .problems import Refusal

_HOST: Final = re.compile(rb"(?:\[([0-9A-Fa-f:.]+)\]|([^\[\]:@/?#\s]+))(?::[0-9]*)?")
"""The whole of a Host header: an address of IPv6 in brackets, or another address or name; and a port, which may be empty."""


HOSTS_CACHED: Final = 16
"""Hosts of which it is remembered whether they are this machine's: callers mostly send one."""
_OWN_SITES: Final = frozenset({b"none", b"same-origin"})
"""What a browser says where its user gave the address, and where a page of this very replica asks. Programs say nothing."""


class AllowedHosts:
    """What is accepted. `is_loopback`: the replica listens on this machine alone, so only its names are."""

    def __init__(self, names: Iterable[str], *, is_loopback: bool) -> None:
        self._is_loopback: Final = is_loopback
        self._names: Final = frozenset({b"localhost", *(name.lower().encode() for name in names)})
        self._is_own: Final = lru_cache(HOSTS_CACHED)(self._names_own)

    def check(self, headers: Mapping[bytes, bytes]) -> None:
        """Raises Refusal for a request that a foreign page may have sent."""
        host = headers.get(b"host", b"")
        if self._is_loopback and not self._is_own(host):
            raise Refusal(
                "wrong-host",
                "this replica listens on its own machine alone, and the Host header names another",
            )
        origin = headers.get(b"origin")
        if origin is not None and origin.partition(b"://")[2].lower() != host.lower():
            raise Refusal("foreign-origin", "the Origin header names another place than the Host header")

    def check_site(self, headers: Mapping[bytes, bytes]) -> None:
        """Raises Refusal for what a browser asks on behalf of another page: as a link, an image or a form does, without Origin.
        What is the same for every cluster need not be looked at, so that links lead to the live page."""
        if headers.get(b"sec-fetch-site", b"none") not in _OWN_SITES:
            raise Refusal(
                "foreign-origin",
                "the browser says (Sec-Fetch-Site) that a page of another origin asks: open the address itself",
            )

    def _names_own(self, host: bytes) -> bool:
        if (found := _HOST.fullmatch(host)) is None:
            return False
        name = found[1] or found[2]
        return name.lower() in self._names or is_loopback(name.decode("latin-1"))


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens there."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
