"""Asks each replica, again and again over connections of its own, whether it is ready to vote.

Owns what a prober sees, which is later than the truth and sometimes wrong: that is why it is recorded beside it.
"""

import asyncio
import time
from typing import Final
from urllib.parse import urlsplit

from ...api_specs.messages import ProbeRow
from ...client_sdk.transport.tls import from_environment
from ..clock import RunClock
from .recorder import Recorder

TIMEOUT_S_MAX: Final = 1.0
_REQUEST: Final = "GET /v1/health/ready HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
_STATUS_BYTES_MAX: Final = 4096


async def is_ready(url: str, timeout_s: float) -> bool:
    """Whether the replica says within `timeout_s` that it is ready to vote."""
    try:
        async with asyncio.timeout(timeout_s):
            return await _asked(url)
    except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return False


async def _asked(url: str) -> bool:
    parts = urlsplit(url)
    secured = from_environment().context() if parts.scheme == "https" else None
    port = parts.port or (443 if secured else 80)
    reader, writer = await asyncio.open_connection(parts.hostname, port, ssl=secured, limit=_STATUS_BYTES_MAX)
    try:
        writer.write(_REQUEST.format(host=parts.netloc).encode("ascii"))
        status = await reader.readuntil(b"\r\n")
    finally:
        writer.transport.abort()
    return status.split(b" ", 2)[1:2] == [b"200"]


class Prober:
    """Probes the replicas at `urls` every `step_s` seconds. A probe waits for as long as its step, at most a second."""

    def __init__(self, urls: dict[str, str], step_s: float, recorder: Recorder, clock: RunClock) -> None:
        self._urls: Final = urls
        self._step_s: Final = step_s
        self._recorder: Final = recorder
        self._clock: Final = clock

    async def run(self) -> None:
        """Probe until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number, replica in enumerate(self._urls):
                # One after another within a step, for each takes a little of the machine.
                group.create_task(self._probe_for_ever(replica, self._step_s * number / len(self._urls)))

    async def _probe_for_ever(self, replica: str, due_s: float) -> None:
        began_s = time.monotonic()
        while True:
            late_s = time.monotonic() - began_s - due_s
            if late_s > 0:
                due_s += self._step_s * int(late_s / self._step_s)
            await asyncio.sleep(began_s + due_s - time.monotonic())
            self._recorder.add(await self._probe(replica))
            due_s += self._step_s

    async def _probe(self, replica: str) -> ProbeRow:
        sent_s = self._clock.now_s()
        up = await is_ready(self._urls[replica], min(self._step_s, TIMEOUT_S_MAX))
        return ProbeRow(replica, sent_s, 1 if up else 0, self._clock.now_s() - sent_s if up else None)
