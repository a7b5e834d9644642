"""The ways to replicas that a plan may close, from front ends, the prober and other replicas, each a proxy of its own.

Owns which ways are closed and why: one stays closed until its last reason is gone. A closed way resets its connections and
refuses further ones, as a firewall that rejects. A way that no fault of the plan closes has no proxy, and costs nothing.
"""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from typing import Final, Self

from .proxy import Proxy

Way = tuple[str, str]
"""Who asks, and the replica that is asked."""


class Ways:
    """Proxies for `ways` to the replicas at `urls`; `async with` starts and ends them."""

    def __init__(self, ways: Iterable[Way], urls: Mapping[str, str]) -> None:
        names = sorted(set(ways))
        self._proxies: Final = {way: Proxy(urls[way[1]]) for way in names}
        self._reasons: Final[dict[Way, set[str]]] = {way: set() for way in names}
        self._urls: Final = dict(urls)
        self._stack: Final = AsyncExitStack()
        self._changing: Final = asyncio.Lock()
        """One fault may close a way while another one opens it."""

    async def __aenter__(self) -> Self:
        for proxy in self._proxies.values():
            await self._stack.enter_async_context(proxy)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def endpoints_of(self, asker: str) -> dict[str, str]:
        """Where `asker` finds those replicas to which its way may be closed."""
        return {replica: proxy.url for (each, replica), proxy in self._proxies.items() if each == asker}

    def urls_of(self, asker: str) -> dict[str, str]:
        """Where `asker` finds each replica."""
        return self._urls | self.endpoints_of(asker)

    def to(self, replica: str) -> list[Way]:
        """All ways to a replica."""
        return [way for way in self._proxies if way[1] == replica]

    def around(self, replica: str) -> list[Way]:
        """All ways to a replica and from it."""
        return [way for way in self._proxies if replica in way]

    def reasons(self, way: Way) -> frozenset[str]:
        """Why a way is closed; empty while it is open."""
        return frozenset(self._reasons[way])

    async def close(self, way: Way, reason: str) -> None:
        """Close a way."""
        self._reasons[way].add(reason)
        await self._settle(way)

    async def open(self, way: Way, reason: str) -> None:
        """The reason is gone; open the way if it was the last."""
        self._reasons[way].discard(reason)
        await self._settle(way)

    async def _settle(self, way: Way) -> None:
        """Have the way be as its reasons say."""
        proxy = self._proxies[way]
        async with self._changing:
            if not self._reasons[way]:
                if not proxy.is_listening:
                    await proxy.listen()
            elif proxy.is_listening:
                try:
                    await proxy.refuse()
                finally:
                    proxy.cut()
