"""Who is connected from where, and who gives way when there are too many.

Owns the counts by address, and which connections are silent: no whole request has begun on them. Of these the oldest gives
way, of the address that has most; one that speaks is never cut off for a newcomer. Must not know sockets.
"""

from collections import Counter
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final, Generic, TypeVar

NETWORK_BITS: Final = 64
"""Of an IPv6 address: one host may have all addresses of such a network."""

_Connection = TypeVar("_Connection")


class Crowd(Generic[_Connection]):
    """The connections of one server: at most `most` of them, and `address_most` of one address."""

    def __init__(self, most: int, address_most: int) -> None:
        self._most: Final = most
        self._address_most: Final = address_most
        self._count = 0
        self._of: Final[Counter[str]] = Counter()
        self._silent: Final[dict[str, dict[_Connection, None]]] = {}
        """By address, oldest first."""

    def enter(self, connection: _Connection, address: str) -> _Connection | None:
        """One more. Which one must give way to it, if any: perhaps itself."""
        crowded = None
        if self._of[address] >= self._address_most:
            crowded = address
        elif self._count >= self._most:
            crowded = max(self._silent, key=lambda each: len(self._silent[each]), default=address)
        self._count += 1
        self._of[address] += 1
        self._silent.setdefault(address, {})[connection] = None
        if crowded is None:
            return None
        gives_way: _Connection = next(iter(self._silent.get(crowded, ())), connection)
        self.speaks(gives_way, crowded)
        return gives_way

    def speaks(self, connection: _Connection, address: str) -> None:
        """It is silent no longer, or was told to go."""
        if (silent := self._silent.get(address)) is not None:
            silent.pop(connection, None)
            if not silent:
                del self._silent[address]

    def leave(self, connection: _Connection, address: str) -> None:
        """It is closed."""
        self.speaks(connection, address)
        self._count -= 1
        self._of[address] -= 1
        if not self._of[address]:
            del self._of[address]


def origin(host: str) -> str:
    """The address that a connection from `host` counts for: of IPv6, its network."""
    if ":" not in host:
        return host
    address = ip_address(host.partition("%")[0])
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ip_network((int(address), NETWORK_BITS), strict=False))
