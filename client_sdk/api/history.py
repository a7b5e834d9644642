"""Histories: each operation of a client as JSON lines, for a checker that knows nothing of this project.

Owns the form of a line and that `invoke` is written before anything is sent. Must not know how operations run. A line is

    {"process", "id", "type": "invoke"|"ok"|"fail"|"info", "f", "object", "key", "value", "result", "time"}

`time` is monotonic, in nanoseconds. `fail`: certainly without effect; `info`: unknown. An answer as eventual consistency allows has
`"weak": true`, too. Each item of a batch is an
operation of its own. A repeat with the same idempotency key is a line of its own too, though it takes effect once.
"""

import itertools
import os
import time
from collections.abc import Sequence
from typing import Final, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from ...adts.log import Value
from .calls import NULL, Told

Ending = Literal["ok", "fail", "info"]


class Line(Struct, frozen=True):
    """One line."""

    process: str
    id: str
    type: Literal["invoke", "ok", "fail", "info"]
    f: str
    object: str
    key: str | None
    value: Raw
    result: Raw
    time: int
    weak: bool | UnsetType = UNSET


class History:
    """A file to which clients append. `process` names the writer; by default something nobody else is called.

    Needs no lock: a line is one `write` in append mode, so that threads, clients and forked processes can share a file.
    Raises OSError when the file cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str], *, process: str | None = None) -> None:
        self.path: Final = os.fspath(path)
        self._named: Final = process
        self._chosen: Final = os.urandom(4).hex()
        self._pid: Final = os.getpid()
        self._ids: Final = itertools.count(1)
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    @property
    def process(self) -> str:
        """The name of the writer; a forked child has one of its own."""
        if self._named is None:
            return f"{self._chosen}-{os.getpid()}"
        return self._named if os.getpid() == self._pid else f"{self._named}-{os.getpid()}"

    def begin(self, told: Sequence[Told]) -> "Recording":
        """Write that these operations begin."""
        recording = Recording(self, told, [f"{self.process}:{next(self._ids)}" for _ in told])
        recording.write("invoke", [NULL] * len(told))
        return recording

    def append(self, line: Line) -> None:
        """Write a line with one call."""
        rest = memoryview(msgspec.json.encode(line) + b"\n")
        while rest:  # a second call is needed only when the disk is full: then it raises
            rest = rest[os.write(self._file, rest) :]

    def close(self) -> None:
        """Close the file; again is harmless."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class Recording:
    """The operations of one call, begun and not yet ended."""

    def __init__(self, history: History, told: Sequence[Told], ids: Sequence[str]) -> None:
        self._history = history
        self._told = told
        self._ids = ids

    def ended(self, results: Sequence[Value], *, is_weak: bool = False) -> None:
        """The first operations gave `results`; those of a batch that are left over took no effect."""
        self.write("ok", results, is_weak=is_weak)
        self.write("fail", [NULL] * (len(self._told) - len(results)), start=len(results))

    def failed(self, *, definite: bool) -> None:
        """They gave no answer."""
        self.write("fail" if definite else "info", [NULL] * len(self._told))

    def write(
        self,
        type_: Literal["invoke"] | Ending,
        results: Sequence[Value],
        start: int = 0,
        *,
        is_weak: bool = False,
    ) -> None:
        """One line for each result, of the operations from number `start` on."""
        for told, id_, result in zip(self._told[start:], self._ids[start:], results, strict=False):
            self._history.append(
                Line(
                    self._history.process,
                    id_,
                    type_,
                    told.f,
                    told.object,
                    told.key,
                    _raw(told.value),
                    _raw(result),
                    time.monotonic_ns(),
                    True if is_weak else UNSET,
                )
            )


def _raw(value: Value) -> Raw:
    return Raw(value.encode())
