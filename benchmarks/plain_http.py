"""A plain keep-alive HTTP/1.1 connection for load on the ADT API: no more than a benchmark needs, so that the client is
not what is measured. Answers must have a Content-Length or no body."""

import asyncio
from typing import Self


class PlainConnection:
    """One connection; one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
        self._reader = reader
        self._writer = writer
        self._host = host

    @classmethod
    async def open(cls, host: str, port: int) -> Self:
        """Connect."""
        return cls(*await asyncio.open_connection(host, port), f"{host}:{port}")

    async def post(self, path: str, body: bytes) -> int:
        """The status of the answer to a JSON body."""
        head = f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        lines = answer.decode().lower().split("\r\n")
        length = next(
            (int(line.partition(":")[2]) for line in lines if line.startswith("content-length:")), 0
        )
        await self._reader.readexactly(length)
        return int(lines[0].split(" ")[1])

    def close(self) -> None:
        """Hang up."""
        self._writer.close()
